/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is about to be needed. With thousands of connections what belongs to one of them is
 * in no near cache when its turn comes, and is fetched line after line as the code gets there. Who
 * knows the places beforehand has them fetched side by side, for about the time of one.
 */
#ifndef UWARP_BASE_WARM_H
#define UWARP_BASE_WARM_H

#include <stddef.h>
#include <stdint.h>

#define UW_LINE 64u
/* So many octets, rounded up to whole lines: what aligned_alloc takes. */
#define UW_LINES(n) (((n) + UW_LINE - 1) & ~(size_t)(UW_LINE - 1))
/* With fewer connections than that all of them stay in the cache by themselves. */
#define UW_WARM_FROM 24u

/* Places: of each the address of its first line, whose lowest bits are free for how many more lines
 * follow. 0: none. They may be of memory that is no more: fetching reads nothing. */
struct uw_warm {
	uintptr_t v[4];
};

static inline void uw_warm_set(struct uw_warm *w, unsigned i, const void *p, size_t n)
{
	uintptr_t first = (uintptr_t)p & ~(uintptr_t)(UW_LINE - 1);
	uintptr_t last = ((uintptr_t)p + n - 1) & ~(uintptr_t)(UW_LINE - 1);

	w->v[i] = first | (last - first) / UW_LINE;
}

static inline void uw_warm_fetch(const struct uw_warm *w)
{
	for (unsigned i = 0; i < sizeof(w->v) / sizeof(w->v[0]); i++) {
		uintptr_t more = w->v[i] & (UW_LINE - 1);

		for (uintptr_t k = 0; k <= more; k++)
			__builtin_prefetch((const void *)(w->v[i] - more + k * UW_LINE));
	}
}

#endif
