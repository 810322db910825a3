/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of the program that waits for completions in poll() or the like runs the stack itself:
 * first it looks for a while, then it sleeps on the descriptors of the link as well, so that a
 * frame wakes this thread and no other (doc/adr/0030).
 */
#include "sched/run.h"

#include <sched.h>
#include <string.h>

/* The longest look before a sleep: longer than it takes to wake a thread on an idle core, 20 to 60
 * us in a virtual machine. Otherwise two processes that wake each other would never see each other
 * look.
 */
#define LOOK_MAX_US   200u
#define LOOK_MIN_US   25u     /* the first one that grows */
#define FRAME_US      20u     /* after a frame at least, since the rest of a message may follow */
#define SOON_US	      300u    /* a wait that ended so soon was worth a longer look */
#define LATE_US	      1000u   /* one that lasted so long was not worth any */
#define LOCK_US	      200u    /* frames are there, and another thread has the lock */
#define NO_LOOK_US    100000u /* after a long yield: sleep at once for so long */
#define ASKS_TO_YIELD 4u      /* waits of no time in a row that brought nothing */

static __thread uint32_t look_us;
static __thread uint64_t no_look_until_us;

static _Atomic uint32_t *doorbell_of(struct sched *s)
{
	return atomic_load_explicit(&s->doorbell, memory_order_acquire);
}

bool sched_app_can_wait(struct sched *s)
{
	return atomic_load_explicit(&s->started, memory_order_acquire) && s->wait.able &&
	       s->model->polls_drive;
}

/* ---- looking ------------------------------------------------------------------------------- */

/* The thread is at work: the RX thread compares. */
static void count_wait(struct sched *s)
{
	atomic_fetch_add_explicit(&s->waits, 1, memory_order_relaxed);
}

static void note_wait(struct sched *s, uint64_t now)
{
	atomic_store_explicit(&s->waited_us, now, memory_order_relaxed);
}

static unsigned run_if_free(struct sched *s)
{
	unsigned frames;

	if (!sched_trylock(s))
		return 0;
	sched_send_held(s);
	sched_run_timers(s);
	frames = s->ops->run(s->stack, sched_app_comes_back(s));
	s->stats.drive_wait++;
	sched_unlock(s);
	count_wait(s);
	return frames;
}

static bool has_event(const struct uw_wait *w)
{
	return atomic_load_explicit(w->events, memory_order_acquire) != w->seen;
}

/* Another thread of the program polls, so it takes in what comes. Both would only be in each
 * other's way: for the lock, and each frame would wake this one. (doc/adr/0073) */
static bool another_polls(struct sched *s, uint64_t now)
{
	uint64_t poller = atomic_load_explicit(&s->poller, memory_order_relaxed);

	return poller && poller != (uint64_t)pthread_self() && sched_has_polled(s, now);
}

/* Does this thread wait already? It left the wait by a jump out of a signal handler then. */
static bool waits_already(struct sched *s)
{
	return atomic_load_explicit(&s->waiter_id, memory_order_relaxed) == &look_us;
}

bool sched_app_waits_elsewhere(struct sched *s)
{
	uint64_t now = sched_now_us(s);

	return (atomic_load_explicit(&s->waiter, memory_order_relaxed) == SCHED_WAITS &&
		!waits_already(s)) ||
	       another_polls(s, now) ||
	       now < atomic_load_explicit(&s->wait_doubt_us, memory_order_relaxed);
}

/* What is left of a look `since_us` after the last frame, or after its begin if none came. */
static bool look_on(uint64_t now, uint64_t since_us, bool any)
{
	uint64_t us = any && look_us < FRAME_US ? FRAME_US : look_us;

	return now - since_us < us && now >= no_look_until_us;
}

/* The kernel may have put the thread that we wait for on this very core. Where a yield takes long a
 * third one needs the core, and a sleeper is woken sooner than one that yields. */
static uint64_t yield(struct sched *s, uint64_t now)
{
	uint64_t after;

	sched_yield();
	after = sched_now_us(s);
	if (after - now > LONG_YIELD_US)
		no_look_until_us = after + NO_LOOK_US;
	return after;
}

/* Who asks again and again without waiting does wait, perhaps for a process that needs this core.
 * Valkey does so while one of its clients has no room for an answer. */
static void ask_once(struct sched *s, const struct uw_wait *w)
{
	static __thread unsigned asks;
	bool frames = run_if_free(s);

	asks = frames || has_event(w) ? 0 : asks + 1;
	if (asks && asks % ASKS_TO_YIELD == 0)
		sched_yield();
}

void sched_app_look(struct sched *s, struct uw_wait *w, uint64_t limit_us)
{
	if (!limit_us) {
		ask_once(s, w);
		return;
	}

	uint64_t begin = sched_now_us(s), now = begin, since = begin;
	bool any = false;

	if (!w->began_us)
		w->began_us = begin;
	note_wait(s, begin);
	if (another_polls(s, begin))
		return;
	for (;;) {
		bool frames = run_if_free(s);

		if (has_event(w))
			return;
		any |= frames;
		since = frames ? now : since;
		if (now - begin >= limit_us || !look_on(now, since, any))
			return;
		now = frames ? sched_now_us(s) : yield(s, now);
	}
}

/* ---- sleeping ------------------------------------------------------------------------------ */

/* One thread at a time. */
static bool claim(struct sched *s, uint64_t now)
{
	unsigned state = atomic_load_explicit(&s->waiter, memory_order_relaxed);

	if (now < atomic_load_explicit(&s->wait_doubt_us, memory_order_relaxed))
		return false;
	while (state != SCHED_WAITS) {
		if (atomic_compare_exchange_weak(&s->waiter, &state, SCHED_WAITS)) {
			atomic_store_explicit(&s->waiter_id, &look_us, memory_order_relaxed);
			return true;
		}
	}
	return waits_already(s);
}

/* A frame would wake the RX thread as well, which sleeps on the same sockets (Dekker: the state
 * SCHED_WAITS, this flag; the RX thread stores the flag and looks at the state, all seq_cst). */
static void call_rx_thread_away(struct sched *s)
{
	if (atomic_load(&s->rx_in_transport) && atomic_exchange(&s->rx_in_transport, false))
		s->ops->rouse(s->stack);
}

/* To look for frames before the sleep. Whoever else has the lock looks when it lets go; but once
 * frames have ended a sleep of this wait, and are still there, the sockets end the next at once:
 * then the thread would turn round and round, perhaps on the very core that the holder needs. */
static bool lock_before_sleep(struct sched *s, const struct uw_wait *w)
{
	if (!w->slept)
		return sched_trylock_or_ask(s);
	if (sched_trylock(s))
		return true;
	if (!sched_lock_within(s, LOCK_US))
		return sched_trylock_or_ask(s);
	s->stats.lock_waits++;
	return true;
}

/* An RX thread that sleeps on the word is woken where timers matter: it sleeps no longer than they
 * may be late while the program does (sleep_long in rx_thread.c).
 * The state comes first, then the word: whoever else wants to set the word to IO_ASLEEP finds
 * either (sched_say_asleep). Then Dekker with who rings: the word, fence, frames. */
enum uw_wait_how sched_app_wait_begin(struct sched *s, struct uw_wait *w)
{
	uint64_t now = sched_now_us(s);
	uint32_t was;
	bool any, locked;

	if (another_polls(s, now) || !claim(s, now))
		return UW_WAIT_PLAINLY;
	count_wait(s);
	call_rx_thread_away(s);
	atomic_store_explicit(&s->app_drives, false, memory_order_release);
	was = atomic_exchange(doorbell_of(s), IO_ASLEEP_FD);
	if (was == IO_ASLEEP && sched_has_sockets(s))
		sched_futex_wake(doorbell_of(s));
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(w->fd, s->wait.fd, sizeof(w->fd));
	locked = lock_before_sleep(s, w);
	w->slept = true;
	if (!locked)
		return UW_WAIT_SLEEP;
	any = sched_pending(s);
	s->stats.wait_sleeps += !any;
	sched_unlock(s);
	if (!any)
		return UW_WAIT_SLEEP;
	sched_app_wait_end(s);
	return UW_WAIT_AGAIN;
}

/* The RX thread must not sleep long while the program may go away (Dekker: the state, fence, the
 * flag; the RX thread stores the flag, fences, looks at the state). */
static void have_it_watched(struct sched *s)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&s->rx_sleeps_long, memory_order_relaxed) &&
	    atomic_exchange_explicit(&s->rx_sleeps_long, false, memory_order_relaxed)) {
		sched_hand_over(s);
		sched_futex_wake(doorbell_of(s));
	}
}

/* Not where the RX thread has taken over meanwhile, or another thread waits by now. */
static void stop_waiting(struct sched *s)
{
	const void *self = &look_us;
	unsigned waits = SCHED_WAITS;
	uint32_t asleep = IO_ASLEEP_FD;

	if (!atomic_compare_exchange_strong(&s->waiter_id, &self, NULL) ||
	    !atomic_compare_exchange_strong(&s->waiter, &waits, SCHED_AWAY))
		return;
	atomic_compare_exchange_strong(doorbell_of(s), &asleep, IO_AWAKE);
	sched_end_doze(s);
}

void sched_app_wait_end(struct sched *s)
{
	count_wait(s);
	stop_waiting(s);
	have_it_watched(s);
	/* The program's own descriptor may have ended the wait, and the thread may go away now: it
	 * sends what others left to it (Dekker with leave_to_waiter: the state, then the ring). */
	if (atomic_load(&s->ring))
		sched_kick(s);
}

static uint32_t longer(uint32_t us)
{
	if (us < LOOK_MIN_US)
		return LOOK_MIN_US;
	return us * 2 < LOOK_MAX_US ? us * 2 : LOOK_MAX_US;
}

/* As hypervisors choose how long they poll before they halt. */
void sched_app_wait_done(struct sched *s, const struct uw_wait *w)
{
	uint64_t now = sched_now_us(s), us = now - w->began_us;

	note_wait(s, now);
	if (us > LATE_US || !has_event(w))
		look_us = 0;
	else if (w->slept && us < SOON_US)
		look_us = longer(look_us);
	else if (w->slept)
		look_us /= 2;
}

void sched_app_waits_plainly(struct sched *s, bool on)
{
	atomic_fetch_add_explicit(&s->plain_waits, on ? 1 : -1u, memory_order_relaxed);
	if (on)
		sched_end_doze(s);
}
