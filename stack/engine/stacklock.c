/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack lock, and what is seen to when it is let go: the post ring, a look for frames that a
 * sleeper asked for, and last, without it, the wake-ups of peers. A peer that is woken may take
 * this very core, and would keep the lock from everybody for that long.
 */
#include "engine/engine.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Let the lock go, then wake. A page that is unmapped meanwhile is no address to the kernel. */
static void release(struct uw_engine *e)
{
	_Atomic uint32_t *v[ENGINE_WAKES];
	unsigned n = e->n_wakes;

	for (unsigned i = 0; i < n; i++)
		v[i] = e->wakes[i];
	e->n_wakes = 0;
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; i < n; i++)
		engine_futex_wake(v[i]);
}

/* ---- the lock ---------------------------------------------------------------------------- */

void engine_lock(struct uw_engine *e)
{
	atomic_fetch_add_explicit(&e->waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&e->lock);
	atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
}

bool engine_trylock(struct uw_engine *e)
{
	return pthread_mutex_trylock(&e->lock) == 0;
}

bool engine_lock_within(struct uw_engine *e, uint32_t us)
{
	struct timespec until;
	int err;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)us % 1000000 * 1000;
	until.tv_sec += us / 1000000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	atomic_fetch_add_explicit(&e->waiters, 1, memory_order_relaxed);
	err = pthread_mutex_timedlock(&e->lock, &until);
	atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
	return !err;
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
	return atomic_load_explicit(&e->look, memory_order_relaxed);
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
			llp_flush_links();
		}
		release(e);
		/* Whoever rang or asked after that found the lock taken and relies on this. */
		atomic_thread_fence(memory_order_seq_cst);
	} while ((!engine_ring_empty(e) || asked(e)) && engine_trylock(e));
}
