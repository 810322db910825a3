/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is to be done as soon as the stack lock is free: doorbells of other processes to ring, and
 * calls to make. wake.c adds to it; lock.c takes it out before it releases the lock, and does it
 * afterwards.
 */
#ifndef UWARP_SCHED_AFTER_H
#define UWARP_SCHED_AFTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/doorbell.h"

#define AFTER_WAKES 8u
#define AFTER_CALLS 32u /* a power of two */

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

/* Calls that may not overtake each other: completion events, of which several CQs may have one
 * channel. They are made in the order in which they were added, by one thread at a time. Whoever
 * finds another thread at it leaves its own to that one. */
struct after_row {
	struct after_call ring[AFTER_CALLS];
	uint32_t added;	       /* under the stack lock */
	_Atomic uint32_t due;  /* so many of them may be made; written under the stack lock */
	_Atomic uint32_t made; /* or being made; written by the thread that is at it */
	_Atomic bool busy;     /* a thread is at it */
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

/* ---- calls in a row ------------------------------------------------------------------------- */

/* False: it is full. */
static inline bool after_add_in_row(struct after_row *c, void (*fn)(void *arg), void *arg)
{
	/* acquire: its place was read */
	if (c->added - atomic_load_explicit(&c->made, memory_order_acquire) == AFTER_CALLS)
		return false;
	c->ring[c->added++ % AFTER_CALLS] = (struct after_call){ fn, arg };
	return true;
}

/* Under the lock, which is let go next. True: there is something for after_make_row(). */
static inline bool after_row_is_due(struct after_row *c)
{
	if (c->added == atomic_load_explicit(&c->due, memory_order_relaxed))
		return false;
	/* seq_cst: whoever is at it stops, then looks here; we write, then see whether one is */
	atomic_store(&c->due, c->added);
	return true;
}

static inline void after_make_row(struct after_row *c)
{
	while (atomic_load(&c->made) != atomic_load(&c->due) && !atomic_exchange(&c->busy, true)) {
		uint32_t n = atomic_load_explicit(&c->made, memory_order_relaxed);

		while (n != atomic_load_explicit(&c->due, memory_order_acquire)) {
			struct after_call call = c->ring[n++ % AFTER_CALLS];

			atomic_store_explicit(&c->made, n, memory_order_release);
			call.fn(call.arg);
		}
		atomic_store(&c->busy, false);
	}
}

static inline void after_clear_row(struct after_row *c)
{
	c->added = 0;
	atomic_store(&c->due, 0);
	atomic_store(&c->made, 0);
	atomic_store(&c->busy, false);
}

#endif
