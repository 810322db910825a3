/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts in a row. Over a link whose frames cost a system call each, a post waits on the post ring
 * for those that follow it, so that they share frames: until the program polls a CQ or waits, or
 * until enough has come together. The RX thread watches such a program, and sends within WATCH_US
 * if it does neither (doc/adr/0071). Posts of a program with a thread that waits for frames may be
 * left to that thread (doc/adr/0072).
 */
#include "sched/run.h"

/* Two messages of 64 KiB, each with a head and a tail that programs post apart from it (Valkey). */
#define HOLD_OCTETS    147456u
#define POST_OCTETS    2048u /* a post counts as so many more: 71 small ones are enough */
#define COUNTED_OCTETS 4096u /* longer posts are no sign that a program drives */
#define ROW_US	       100u  /* between two posts: other threads are likely to post as well */

/* Does the RX thread watch whether the program comes back, and look within WATCH_US? While a thread
 * waits for frames it does not, and what it last said of those that poll is old. */
static bool is_watched(const struct sched *s)
{
	unsigned waiter = atomic_load_explicit(&s->waiter, memory_order_relaxed);

	return waiter == SCHED_AWAY ||
	       (waiter == SCHED_NO_WAITER &&
		atomic_load_explicit(&s->app_drives, memory_order_relaxed) &&
		atomic_load_explicit(&s->app_drives_steadily, memory_order_relaxed));
}

/* A thread that sleeps for a completion would not send what another one posts, which then may wait
 * as well. One that polls is back soon. */
static bool others_sleep(const struct sched *s)
{
	if (atomic_load_explicit(&s->app_sleepers, memory_order_relaxed))
		return true;
	return atomic_load_explicit(&s->plain_waits, memory_order_relaxed) &&
	       (atomic_load_explicit(&s->poller, memory_order_relaxed) !=
			(uint64_t)pthread_self() ||
		!sched_has_polled(s, sched_now_us(s)));
}

bool sched_may_hold(const struct sched *s)
{
	return sched_has_sockets(s) && is_watched(s) && !others_sleep(s) &&
	       !sched_is_one_of_several(s) &&
	       !atomic_load_explicit(&s->no_hold, memory_order_relaxed);
}

bool sched_wants_octets(const struct sched *s)
{
	return sched_has_sockets(s);
}

/* A polling program that posts most of the time looks for completions seldom. One whose posts are
 * long has time to be served by the RX thread, on another core. */
static void count_post(struct sched *s, uint32_t octets)
{
	if (octets < COUNTED_OCTETS)
		atomic_fetch_add_explicit(&s->app_posts, 1, memory_order_relaxed);
}

/* What goes now are whole queues: a new post of one that waits already goes as well. One of another
 * queue does not, or the start of its message would be a frame of its own. */
static bool goes_along(const struct ring_entry *r)
{
	return atomic_load_explicit(&r->queued, memory_order_relaxed);
}

static void hold(struct sched *s, struct ring_entry *r, uint32_t octets)
{
	uint32_t held = atomic_load_explicit(&s->held, memory_order_relaxed);

	if (held + octets + POST_OCTETS >= HOLD_OCTETS) {
		atomic_store_explicit(&s->held, 0, memory_order_relaxed);
		if (octets >= HOLD_OCTETS || goes_along(r)) {
			sched_post(r); /* what is on the ring goes first */
			return;
		}
		sched_kick(s);
	}
	atomic_fetch_add_explicit(&s->held, octets + POST_OCTETS, memory_order_relaxed);
	sched_push(r);
	/* Dekker with the RX thread, which stops watching, fences, and then looks at the ring. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!sched_may_hold(s))
		sched_kick(s);
}

void sched_post_octets(struct ring_entry *r, uint32_t octets)
{
	struct sched *s = atomic_load_explicit(&r->home, memory_order_acquire);

	count_post(s, octets);
	if (sched_may_hold(s))
		hold(s, r, octets);
	else
		sched_post(r);
}

bool sched_waiter_sends(struct sched *s)
{
	uint64_t now, last;

	if (atomic_load_explicit(&s->waiter, memory_order_relaxed) != SCHED_WAITS ||
	    !sched_has_sockets(s))
		return false;
	now = sched_now_us(s);
	last = atomic_exchange_explicit(&s->row_us, now, memory_order_relaxed);
	return now - last < ROW_US;
}

void sched_send_held(struct sched *s)
{
	if (sched_ring_empty(s))
		return;
	s->stats.post_held += atomic_load_explicit(&s->held, memory_order_relaxed) != 0;
	sched_drain(s);
	s->ops->flush(s->stack);
}
