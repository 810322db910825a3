/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of many objects, of which few are set at a time. A pairing heap whose nodes lie in the
 * objects, so nothing is allocated. Setting a timer is O(1), taking the earliest out O(log n)
 * amortized. Not thread-safe: each stack has a heap under its lock.
 */
#ifndef UWARP_CONN_DEADLINES_H
#define UWARP_CONN_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

/* One object's timer. All zero: not set. */
struct deadline {
	uint64_t at_us;
	struct deadline *child; /* the first node of the next level of the heap */
	struct deadline *next;	/* the next sibling */
	struct deadline *prev;	/* the previous sibling; for the first sibling, the parent */
	bool set;
};

/* The heap. All zero: empty. */
struct deadlines {
	struct deadline *first;
};

/* Set d to at_us; d may be set already. */
void deadline_set(struct deadlines *h, struct deadline *d, uint64_t at_us);
/* Clear d, which need not be set. */
void deadline_clear(struct deadlines *h, struct deadline *d);
/* Take out the earliest timer if due at now_us. NULL: none is due. */
struct deadline *deadline_take(struct deadlines *h, uint64_t now_us);

/* When the earliest timer is due; UINT64_MAX: none is set. */
static inline uint64_t deadline_next_us(const struct deadlines *h)
{
	return h->first ? h->first->at_us : UINT64_MAX;
}

#endif
