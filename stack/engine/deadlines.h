/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose time comes next, among many of whom few wait for a time at all. A pairing heap whose nodes
 * live in the objects: nothing is allocated, setting is O(1), taking the next out O(log n)
 * amortized. For one thread at a time.
 */
#ifndef UWARP_ENGINE_DEADLINES_H
#define UWARP_ENGINE_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: not in a heap. */
struct deadline {
	uint64_t at_us;
	struct deadline *child, *next; /* the first of those below it; its sibling */
	struct deadline *prev;	       /* its sibling before, or the one above the first of them */
	bool set;
};

struct deadlines {
	struct deadline *first;
};

/* From now on it is due at at_us, and at no other time. */
void deadline_set(struct deadlines *h, struct deadline *d, uint64_t at_us);
/* Whether it was set or not. */
void deadline_clear(struct deadlines *h, struct deadline *d);
/* Take out the first of those that are due; NULL: none is. */
struct deadline *deadline_take(struct deadlines *h, uint64_t now_us);

/* UINT64_MAX: none. */
static inline uint64_t deadline_next_us(const struct deadlines *h)
{
	return h->first ? h->first->at_us : UINT64_MAX;
}

#endif
