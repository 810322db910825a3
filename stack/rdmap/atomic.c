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
	uint64_t *word = p, old;

	/* Is the memory there? What it holds may change until it is looked at again. */
	if (!uw_guarded_copy(&old, p, sizeof(old)))
		return false;
	if (a->aop == RDMAP_FETCH_ADD && !a->add_swap_mask) {
		*original = __atomic_fetch_add(word, a->add_swap, __ATOMIC_SEQ_CST);
		return true;
	}
	while (!__atomic_compare_exchange_n(word, &old, next_value(a, old), 0, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		; /* old is now what another one left */
	*original = old;
	return true;
}
