/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is to be done as soon as the stack lock is free: doorbells of other processes to ring, and
 * calls to make. wake.c adds to it; lock.c takes it out before it releases the lock, and does it
 * afterwards.
 */
#ifndef UWARP_SCHED_AFTER_H
#define UWARP_SCHED_AFTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/doorbell.h"

#define AFTER_WAKES 8u
#define AFTER_CALLS 32u

/* Under the stack lock. */
struct after {
	struct after_wake {
		struct io_ring ring;
		uint32_t was; /* what the doorbell said before it was swapped */
	} wakes[AFTER_WAKES];
	unsigned n_wakes;
	struct after_call {
		void (*fn)(void *arg);
		void *arg;
	} calls[AFTER_CALLS];
	unsigned n_calls;
};

/* False: it is full. */
static inline bool after_add_wake(struct after *a, const struct io_ring *ring, uint32_t was)
{
	if (a->n_wakes == AFTER_WAKES)
		return false;
	a->wakes[a->n_wakes++] = (struct after_wake){ *ring, was };
	return true;
}

static inline bool after_add_call(struct after *a, void (*fn)(void *arg), void *arg)
{
	if (a->n_calls == AFTER_CALLS)
		return false;
	a->calls[a->n_calls++] = (struct after_call){ fn, arg };
	return true;
}

/* Forget all of it. */
static inline void after_clear(struct after *a)
{
	a->n_wakes = a->n_calls = 0;
}

/* Move all of it to `to`, of which nothing need be initialised. */
static inline void after_take(struct after *a, struct after *to)
{
	to->n_wakes = a->n_wakes;
	for (unsigned i = 0; i < a->n_wakes; i++)
		to->wakes[i] = a->wakes[i];
	to->n_calls = a->n_calls;
	for (unsigned i = 0; i < a->n_calls; i++)
		to->calls[i] = a->calls[i];
	after_clear(a);
}

/* A page that was unmapped meanwhile is no address to the kernel, which says so and does nothing.
 */
static inline void after_wake_all(struct after *a)
{
	for (unsigned i = 0; i < a->n_wakes; i++)
		doorbell_wake(&a->wakes[i].ring, a->wakes[i].was);
	a->n_wakes = 0;
}

/* Without the lock, on what after_take() gave. */
static inline void after_do(struct after *a)
{
	after_wake_all(a);
	for (unsigned i = 0; i < a->n_calls; i++)
		a->calls[i].fn(a->calls[i].arg);
}

#endif
