/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all clients of a server together may have of something. The thread that lets them in takes
 * of it, workers give back: atomic, since they do not know of each other.
 */
#ifndef APPS_BUDGET_H
#define APPS_BUDGET_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

struct budget {
	uint64_t all;
	_Atomic uint64_t left;
};

static inline struct budget budget_of(uint64_t n)
{
	return (struct budget){ n, n };
}

/* 0; -EBUSY: not now, and who asks again may get it; -ENOMEM: never. */
static inline int budget_take(struct budget *b, uint64_t n)
{
	uint64_t left = b->left;

	while (left >= n)
		if (atomic_compare_exchange_weak(&b->left, &left, left - n))
			return 0;
	return n > b->all ? -ENOMEM : -EBUSY;
}

static inline void budget_give(struct budget *b, uint64_t n)
{
	b->left += n;
}

#endif
