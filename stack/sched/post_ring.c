/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The post ring: queues with something new, left by threads that did not get the stack lock. An
 * entry is on it at most once, so it is a linked list without a limit. The order among entries does
 * not matter; the order within one is its queue's.
 */
#include "sched/sched.h"

#include <sched.h>

#define POSTS_PER_CPU_LOOK 16u /* programs seldom move to another CPU */

static void push(struct sched *s, struct ring_entry *r)
{
	struct ring_entry *head = atomic_load_explicit(&s->ring, memory_order_relaxed);

	/* Whoever sets `queued` links the entry; the stack clears it before looking at the queue.
	 */
	if (atomic_exchange_explicit(&r->queued, true, memory_order_acq_rel))
		return;
	do {
		r->next = head;
		/* release: pairs with the acquire in sched_drain; next is visible */
	} while (!atomic_compare_exchange_weak_explicit(&s->ring, &head, r, memory_order_seq_cst,
							memory_order_relaxed));
}

/* Nobody else may be there to see to it. */
void sched_kick_later(struct sched *s)
{
	if (s->ops->rouse)
		s->ops->rouse(s->stack);
	sched_wake(s);
}

struct sched *sched_push(struct ring_entry *r)
{
	/* acquire: pairs with the release of whoever moves the entry to another stack */
	struct sched *s = atomic_load_explicit(&r->home, memory_order_acquire);

	push(s, r);
	return s;
}

void sched_drain(struct sched *s)
{
	struct ring_entry *r;

	if (sched_ring_empty(s))
		return;
	atomic_store_explicit(&s->held, 0, memory_order_relaxed);
	r = atomic_exchange_explicit(&s->ring, NULL, memory_order_acquire);
	while (r) {
		struct ring_entry *next = r->next;

		/* acq_rel: a post from here on queues the entry again, one from before is seen */
		atomic_exchange_explicit(&r->queued, false, memory_order_acq_rel);
		s->stats.post_ring++;
		if (atomic_load_explicit(&r->home, memory_order_relaxed) == s)
			r->fn(r);
		else /* it moved to another stack meanwhile */
			sched_kick_later(sched_push(r));
		r = next;
	}
}

void sched_drain_all(struct sched *first)
{
	/* Twice: an entry that had moved went to the ring of its home. */
	for (unsigned i = 0; i < 2; i++) {
		for (struct sched *s = first; s; s = s->next)
			sched_drain(s);
	}
}

void sched_forget(struct ring_entry *r)
{
	/* Calls on the way may have queued it again, as others gave it their turn. */
	while (atomic_load_explicit(&r->queued, memory_order_acquire))
		sched_drain_all(atomic_load_explicit(&r->home, memory_order_relaxed)->first);
}

/* Take the lock, unless somebody has it or waits for it, or the entry has moved. */
static bool try_inline(struct sched *s, const struct ring_entry *r)
{
	if (!sched_ring_empty(s) || !sched_trylock(s))
		return false;
	if (atomic_load_explicit(&r->home, memory_order_relaxed) == s)
		return true;
	sched_unlock(s);
	return false;
}

/* What completed at once may be another thread's to poll. */
static void wake_pollers(struct sched *s)
{
	if (atomic_load_explicit(&s->app_sleepers, memory_order_relaxed))
		sched_wake(s);
}

static void run_inline(struct sched *s, struct ring_entry *r)
{
	if (s->stats.post_inline++ % POSTS_PER_CPU_LOOK == 0)
		atomic_store_explicit(&s->post_cpu, (uint32_t)sched_getcpu(), memory_order_relaxed);
	r->fn(r);
	s->ops->flush(s->stack);
	sched_unlock(s);
	wake_pollers(s);
}

static bool rx_thread_posts(struct sched *s)
{
	return !s->model->posts_inline && atomic_load_explicit(&s->started, memory_order_acquire);
}

void sched_kick(struct sched *s)
{
	if (rx_thread_posts(s)) {
		sched_kick_later(s);
		return;
	}
	/* The holder may have emptied the ring just before: then the lock is free now, or it looks
	 * once more after letting go (sched_unlock). */
	if (sched_trylock(s)) {
		sched_unlock(s);
		wake_pollers(s);
	}
}

/* It looks at the ring as soon as it has the lock. If it has stopped waiting meanwhile, nobody may:
 * Dekker with who changes its state and then looks at the ring. */
static void leave_to_waiter(struct sched *s, struct ring_entry *r)
{
	push(s, r);
	sched_wake(s); /* once for all posts before it comes */
	if (atomic_load(&s->waiter) != SCHED_WAITS)
		sched_kick(s);
}

void sched_post(struct ring_entry *r)
{
	struct sched *s = atomic_load_explicit(&r->home, memory_order_acquire);

	if (sched_waiter_sends(s)) {
		leave_to_waiter(s, r);
		return;
	}
	if (!rx_thread_posts(s) && try_inline(s, r)) {
		run_inline(s, r);
		return;
	}
	push(s, r);
	sched_kick(s);
}
