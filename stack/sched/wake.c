/* SPDX-License-Identifier: BSD-3-Clause */
/* Futexes, and the wake-ups that wait until the stack lock is free. */
#include "sched/sched.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void sched_futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sched_futex_wait(_Atomic uint32_t *word, uint32_t expect, uint64_t us)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000 * 1000) };

	syscall(SYS_futex, word, FUTEX_WAIT, expect, &t, NULL, 0);
}

/* The caller has left what there is to do where sched_pending() finds it. The fence pairs with the
 * one of whoever announces its sleep: it stores IO_ASLEEP, fences, then looks (Dekker). */
void sched_wake(struct sched *s)
{
	_Atomic uint32_t *bell = atomic_load_explicit(&s->doorbell, memory_order_acquire);

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(bell, memory_order_relaxed) == IO_ASLEEP &&
	    atomic_exchange(bell, IO_AWAKE) == IO_ASLEEP)
		sched_futex_wake(bell);
}

void sched_wake_peers(struct sched *s)
{
	for (unsigned i = 0; i < s->n_wakes; i++)
		sched_futex_wake(s->wakes[i]);
	s->n_wakes = 0;
}

void sched_wake_peer(struct sched *s, _Atomic uint32_t *bell)
{
	if (s->n_wakes == SCHED_WAKES)
		sched_wake_peers(s);
	s->wakes[s->n_wakes++] = bell;
}

bool sched_defer(struct sched *s, void (*fn)(void *arg), void *arg)
{
	if (s->n_deferred == SCHED_DEFERRED)
		return false;
	s->deferred[s->n_deferred++] = (struct deferred){ fn, arg };
	return true;
}
