/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack lock, and what happens when it is let go: the post ring is emptied, a sleeper's wish to
 * look for frames is met, and last, without the lock, peers and threads of the program are woken.
 */
#include "sched/sched.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 100u

void sched_init(struct sched *s)
{
	if (!s->first)
		s->first = s;
	atomic_store_explicit(&s->doorbell, &s->own_doorbell, memory_order_relaxed);
}

/* ---- taking it --------------------------------------------------------------------------- */

static void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* With the holder in it from the first moment on: a signal handler asks (sched_lock_all_to_fork).
 */
static uint64_t self(void)
{
	return (uint64_t)pthread_self(); /* an address, and even */
}

static bool take(struct sched *s)
{
	uint64_t is_free = SCHED_FREE;

	/* seq_cst: whoever leaves something for the holder and then fails here relies on
	 * sched_unlock, which lets go and looks in the same order */
	return atomic_compare_exchange_strong(&s->lock, &is_free, self());
}

/* False: the time is over. until NULL: there is no limit. */
static bool sleep_for_lock(struct sched *s, uint64_t is, const struct timespec *until)
{
	int op = FUTEX_WAIT_BITSET_PRIVATE;
	/* the word's lower half, where SCHED_WANTED is */
	long err =
		syscall(SYS_futex, &s->lock, op, (uint32_t)is, until, NULL, FUTEX_BITSET_MATCH_ANY);

	return !err || errno != ETIMEDOUT;
}

static bool lock_until(struct sched *s, const struct timespec *until)
{
	uint64_t is = SCHED_FREE;

	for (unsigned i = 0; i < SPINS; i++) {
		if (take(s))
			return true;
		relax();
	}
	/* Others may sleep as well, so it is taken as one that is wanted. */
	while (!atomic_compare_exchange_strong(&s->lock, &is, self() | SCHED_WANTED)) {
		uint64_t wanted = is | SCHED_WANTED;

		if ((is == wanted || atomic_compare_exchange_strong(&s->lock, &is, wanted)) &&
		    !sleep_for_lock(s, wanted, until))
			return false;
		is = SCHED_FREE;
	}
	return true;
}

static bool wait_for_lock(struct sched *s, const struct timespec *until)
{
	bool got;

	if (take(s))
		return true;
	atomic_fetch_add_explicit(&s->waiters, 1, memory_order_relaxed);
	got = lock_until(s, until);
	atomic_fetch_sub_explicit(&s->waiters, 1, memory_order_relaxed);
	return got;
}

static int cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

/* The state from before cancel_off() is kept by the lock, or restored without it. */
static bool took(struct sched *s, int before, bool got)
{
	if (got)
		s->cancel_state = before;
	else
		pthread_setcancelstate(before, NULL);
	return got;
}

void sched_lock(struct sched *s)
{
	took(s, cancel_off(), wait_for_lock(s, NULL));
}

bool sched_trylock(struct sched *s)
{
	return took(s, cancel_off(), take(s));
}

bool sched_lock_within(struct sched *s, uint32_t us)
{
	struct timespec until;
	int before = cancel_off();

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)us % 1000000 * 1000;
	until.tv_sec += us / 1000000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return took(s, before, wait_for_lock(s, &until));
}

bool sched_trylock_or_ask(struct sched *s)
{
	if (sched_trylock(s))
		return true;
	/* Dekker with sched_unlock: ask, fence, try once more. */
	atomic_store_explicit(&s->look, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return sched_trylock(s);
}

/* ---- letting it go ------------------------------------------------------------------------ */

/* Let the lock go, then wake and call. */
static void release(struct sched *s)
{
	struct after after;
	/* mostly there is neither */
	bool any = s->after.n_wakes || s->after.n_calls;
	bool row = after_row_is_due(&s->row);

	if (any)
		after_take(&s->after, &after);
	if (atomic_exchange(&s->lock, SCHED_FREE) & SCHED_WANTED)
		syscall(SYS_futex, &s->lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	if (any)
		after_do(&after);
	if (row)
		after_make_row(&s->row);
}

static bool asked_to_look(struct sched *s)
{
	return atomic_load(&s->look);
}

void sched_unlock(struct sched *s)
{
	int before;

	do {
		if (asked_to_look(s)) {
			/* Before the look, also as others see it. */
			atomic_exchange(&s->look, false);
			s->stats.lock_looks++;
			sched_run(s);
			/* It took one burst. Who asked may sleep, and nobody rings for the rest. */
			if (s->ops->pending(s->stack, true))
				sched_wake(s);
		}
		if (!sched_ring_empty(s)) {
			sched_drain(s);
			s->ops->flush(s->stack);
		}
		before = s->cancel_state;
		release(s);
		/* A thread that posted or asked before that and found the lock taken relies on this
		 * look (seq_cst on both sides: it leaves its wish and tries, we let go and look).
		 */
	} while ((atomic_load(&s->ring) || asked_to_look(s)) && take(s) && took(s, before, true));
	pthread_setcancelstate(before, NULL);
}

/* ---- all stacks of a process --------------------------------------------------------------- */

void sched_lock_all(struct sched *s)
{
	for (s = s->first; s; s = s->next)
		sched_lock(s);
}

bool sched_lock_all_to_fork(struct sched *s)
{
	for (const struct sched *one = s->first; one; one = one->next) {
		if ((atomic_load(&one->lock) & ~SCHED_WANTED) == self())
			return false;
	}
	sched_lock_all(s);
	return true;
}

/* The last first: the state of cancellation that the first lock kept is the thread's own. */
static void unlock_from(struct sched *s)
{
	if (s->next)
		unlock_from(s->next);
	s->ops->flush(s->stack);
	sched_unlock(s);
}

void sched_unlock_all(struct sched *s)
{
	unlock_from(s->first);
}

static void reset(struct sched *s, const struct sched_ops *nothing)
{
	atomic_store(&s->lock, SCHED_FREE);
	atomic_store(&s->waiters, 0);
	atomic_store(&s->look, false);
	atomic_store(&s->started, false);
	atomic_store(&s->ring, NULL);
	atomic_store(&s->held, 0);
	atomic_store(&s->no_hold, false);
	atomic_store(&s->app_drives, false);
	atomic_store(&s->doorbell, &s->own_doorbell);
	atomic_store(&s->waiter, SCHED_NO_WAITER);
	atomic_store(&s->plain_waits, 0);
	after_clear(&s->after);
	after_clear_row(&s->row);
	s->ops = nothing;
}

void sched_after_fork(struct sched *first, const struct sched_ops *nothing)
{
	for (struct sched *s = first; s; s = s->next)
		reset(s, nothing);
	pthread_setcancelstate(first->cancel_state, NULL);
}
