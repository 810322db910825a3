/* SPDX-License-Identifier: BSD-3-Clause */
/* Futexes, and the wake-ups that wait until the stack lock is free. */
#include "sched/run.h"

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

	uint32_t was;

	atomic_thread_fence(memory_order_seq_cst);
	was = atomic_load_explicit(bell, memory_order_relaxed);
	if (was != IO_ASLEEP && was != IO_ASLEEP_FD)
		return;
	was = atomic_exchange(bell, IO_AWAKE);
	if (was == IO_ASLEEP)
		sched_futex_wake(bell);
	else if (was == IO_ASLEEP_FD)
		doorbell_wake(&s->wait.ring, was);
}

/* A compare and swap, since a thread of the program may begin to wait at this moment; it sets its
 * state before the word. */
bool sched_say_asleep(struct sched *s)
{
	_Atomic uint32_t *bell = atomic_load_explicit(&s->doorbell, memory_order_acquire);
	uint32_t was = atomic_load_explicit(bell, memory_order_relaxed);

	while (was != IO_ASLEEP_FD) {
		bool waits = atomic_load(&s->waiter) == SCHED_WAITS;

		if (atomic_compare_exchange_weak(bell, &was, waits ? IO_ASLEEP_FD : IO_ASLEEP)) {
			was = waits ? IO_ASLEEP_FD : IO_ASLEEP;
			break;
		}
	}
	atomic_thread_fence(memory_order_seq_cst);
	return was == IO_ASLEEP;
}

/* Each calls this after it has changed the word, or joined those that wait (Dekker: both seq_cst).
 */
void sched_end_doze(struct sched *s)
{
	_Atomic uint32_t *bell = atomic_load_explicit(&s->doorbell, memory_order_acquire);

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&s->plain_waits, memory_order_relaxed) &&
	    atomic_load_explicit(&s->rx_dozes, memory_order_relaxed) &&
	    atomic_load_explicit(bell, memory_order_relaxed) != IO_ASLEEP)
		sched_futex_wake(bell);
}

void sched_wake_peers(struct sched *s)
{
	after_wake_all(&s->after);
}

void sched_wake_peer(struct sched *s, const struct io_ring *ring, uint32_t was)
{
	if (after_add_wake(&s->after, ring, was))
		return;
	sched_wake_peers(s);
	after_add_wake(&s->after, ring, was);
}

bool sched_defer(struct sched *s, void (*fn)(void *arg), void *arg)
{
	return after_add_call(&s->after, fn, arg);
}

bool sched_defer_in_row(struct sched *s, void (*fn)(void *arg), void *arg)
{
	if (after_add_in_row(&s->row, fn, arg))
		return true;
	if (after_row_is_due(&s->row))
		after_make_row(&s->row);
	return after_add_in_row(&s->row, fn, arg);
}
