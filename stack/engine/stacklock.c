/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack lock, and what is seen to when it is let go: the post ring, a look for frames that a
 * sleeper asked for, and last, without it, the wake-ups of peers and of the program's threads. Who
 * is woken may take this very core, and would keep the lock from everybody for that long.
 */
#include "engine/engine.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 100u

void engine_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- wake-ups ---------------------------------------------------------------------------- */

void engine_wake_peers(struct uw_engine *e)
{
	for (unsigned i = 0; i < e->n_wakes; i++)
		engine_futex_wake(e->wakes[i]);
	e->n_wakes = 0;
}

void engine_wake_later(struct uw_engine *e, _Atomic uint32_t *bell)
{
	if (e->n_wakes == ENGINE_WAKES)
		engine_wake_peers(e);
	e->wakes[e->n_wakes++] = bell;
}

bool uw_later(struct uw_engine *stack, void (*fn)(void *arg), void *arg)
{
	if (stack->n_later == ENGINE_LATER)
		return false;
	stack->later[stack->n_later++] = (struct engine_later){ fn, arg };
	return true;
}

/* Let the lock go, then wake. A page that is unmapped meanwhile is no address to the kernel. */
static void release(struct uw_engine *e)
{
	struct engine_later later[ENGINE_LATER];
	_Atomic uint32_t *v[ENGINE_WAKES];
	unsigned n = e->n_wakes, n_later = e->n_later;

	for (unsigned i = 0; i < n; i++)
		v[i] = e->wakes[i];
	for (unsigned i = 0; i < n_later; i++)
		later[i] = e->later[i];
	e->n_wakes = e->n_later = 0;
	if (atomic_exchange(&e->lock, ENGINE_FREE) == ENGINE_WANTED)
		syscall(SYS_futex, &e->lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	for (unsigned i = 0; i < n; i++)
		engine_futex_wake(v[i]);
	for (unsigned i = 0; i < n_later; i++)
		later[i].fn(later[i].arg);
}

/* ---- the lock ---------------------------------------------------------------------------- */

static void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* until NULL: for as long as it takes. False: it is until. */
static bool sleep_for(struct uw_engine *e, const struct timespec *until)
{
	return !syscall(SYS_futex, &e->lock, FUTEX_WAIT_BITSET_PRIVATE, ENGINE_WANTED, until, NULL,
			FUTEX_BITSET_MATCH_ANY) ||
	       errno != ETIMEDOUT;
}

/* It is held for as long as a frame takes, and somebody who sleeps for it takes longer to wake. */
static bool lock_until(struct uw_engine *e, const struct timespec *until)
{
	for (unsigned i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&e->lock, memory_order_relaxed) == ENGINE_FREE &&
		    engine_trylock(e))
			return true;
		relax();
	}
	while (atomic_exchange(&e->lock, ENGINE_WANTED) != ENGINE_FREE) {
		if (!sleep_for(e, until))
			return false;
	}
	return true;
}

static bool wait_for_lock(struct uw_engine *e, const struct timespec *until)
{
	bool got;

	if (engine_trylock(e))
		return true;
	atomic_fetch_add_explicit(&e->waiters, 1, memory_order_relaxed);
	got = lock_until(e, until);
	atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
	return got;
}

void engine_lock(struct uw_engine *e)
{
	wait_for_lock(e, NULL);
}

bool engine_lock_within(struct uw_engine *e, uint32_t us)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)us % 1000000 * 1000;
	until.tv_sec += us / 1000000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return wait_for_lock(e, &until);
}

bool engine_trylock_or_ask(struct uw_engine *e)
{
	if (engine_trylock(e))
		return true;
	/* Dekker with engine_unlock: say so, fence, try once more. */
	atomic_store_explicit(&e->look, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return engine_trylock(e);
}

static bool asked(struct uw_engine *e)
{
	return atomic_load(&e->look);
}

void engine_unlock(struct uw_engine *e)
{
	do {
		if (asked(e)) {
			atomic_store_explicit(&e->look, false, memory_order_relaxed);
			e->stats.look_taken++;
			engine_run(e);
		}
		if (!engine_ring_empty(e)) {
			engine_drain_ring(e);
			llp_flush_links(e->llp);
		}
		release(e);
		/* Whoever rang or asked before that and found the lock taken relies on this (all
		 * of it seq_cst: they leave it and try, we let go and look). */
	} while ((atomic_load(&e->rung) || asked(e)) && engine_trylock(e));
}
