/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is about to be needed. With thousands of connections what belongs to one of them is
 * in no near cache when its turn comes, and is fetched line after line as the code gets there. Who
 * knows the places beforehand has them fetched side by side, for about the time of one.
 */
#ifndef UWARP_BASE_WARM_H
#define UWARP_BASE_WARM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define UW_LINE 64u
/* So many octets, rounded up to whole lines: what aligned_alloc takes. */
#define UW_LINES(n) (((n) + UW_LINE - 1) & ~(size_t)(UW_LINE - 1))
/* With fewer connections than that all of them stay in the cache by themselves. */
#define UW_WARM_FROM 24u

/* A place: the address of its first line, whose lowest bits are free for how many more lines
 * follow. 0: none. It may be of memory that is no more: fetching reads nothing. */
typedef uintptr_t uw_warm;

/* n octets at p, n > 0. */
static inline uw_warm uw_warm_of(const void *p, size_t n)
{
	uintptr_t first = (uintptr_t)p & ~(uintptr_t)(UW_LINE - 1);
	uintptr_t last = ((uintptr_t)p + n - 1) & ~(uintptr_t)(UW_LINE - 1);

	return first | (last - first) / UW_LINE;
}

static inline void uw_warm_fetch(uw_warm w)
{
	uintptr_t more = w & (UW_LINE - 1);

	for (uintptr_t k = 0; k <= more; k++)
		__builtin_prefetch((const void *)(w - more + k * UW_LINE));
}

/* What a segment of a connection touches, a line of its own. The first is what is touched first. */
enum uw_touched {
	UW_TOUCH_PCB,
	UW_TOUCH_CONN,
	UW_TOUCH_QP,
	UW_TOUCH_RECV,	 /* the receive that comes next */
	UW_TOUCH_ENTRY,	 /* of the memory region of the last message, in the table */
	UW_TOUCH_REGION, /* the region */
	UW_TOUCH_SEND,	 /* where the next request goes */
	UW_TOUCH_OTHER,	 /* the QP's copy: its endpoint; the transport's: the program's own QP */
	UW_TOUCH_COUNT
};

/* Read without a lock by who posts, relaxed: any value will do. */
struct uw_touches {
	_Alignas(UW_LINE) _Atomic uw_warm v[UW_TOUCH_COUNT];
};

static inline void uw_touches_set(struct uw_touches *t, enum uw_touched i, uw_warm w)
{
	atomic_store_explicit(&t->v[i], w, memory_order_relaxed);
}

static inline void uw_touches_fetch_one(const struct uw_touches *t, enum uw_touched i)
{
	uw_warm_fetch(atomic_load_explicit(&t->v[i], memory_order_relaxed));
}

static inline void uw_touches_copy(struct uw_touches *to, const struct uw_touches *from)
{
	for (unsigned i = 0; i < UW_TOUCH_COUNT; i++)
		uw_touches_set(to, i, atomic_load_explicit(&from->v[i], memory_order_relaxed));
}

static inline void uw_touches_fetch(const struct uw_touches *t)
{
	for (unsigned i = 0; i < UW_TOUCH_COUNT; i++)
		uw_touches_fetch_one(t, i);
}

#endif
