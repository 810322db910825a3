/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmap/atomic.h"

#include "base/guard.h"

uint64_t rdmap_masked_add(uint64_t x, uint64_t y, uint64_t mask)
{
	/* Without their top bits the fields cannot carry into each other; the top bits are then
	 * what addition modulo two makes of them and the carry that came in. */
	return ((x & ~mask) + (y & ~mask)) ^ ((x ^ y) & mask);
}

static uint64_t next_value(const struct rdmap_atomic *a, uint64_t old)
{
	if (a->aop == RDMAP_FETCH_ADD)
		return rdmap_masked_add(old, a->add_swap, a->add_swap_mask);
	/* RFC 7306 §5.1.2: compare under one mask, swap under the other. */
	if ((a->compare ^ old) & a->compare_mask)
		return old;
	return (old & ~a->add_swap_mask) | (a->add_swap & a->add_swap_mask);
}

bool rdmap_atomic_execute(const struct rdmap_atomic *a, void *p, uint64_t *original)
{
	uint64_t now;

	/* A guess: what is there may change until it is looked at again. */
	if (!uw_guarded_copy(&now, p, sizeof(now)))
		return false;
	do {
		*original = now;
		if (!uw_guarded_cas(p, &now, next_value(a, *original)))
			return false;
	} while (now != *original);
	return true;
}
