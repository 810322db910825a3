/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prefetching a connection's memory. With thousands of connections, the memory of one is in no near
 * cache when its next segment or request comes, and the code would wait for one cache line after
 * another. Each connection has a list of the lines that its next message needs. The whole list is
 * prefetched at once, which takes about as long as one line.
 */
#ifndef UWARP_BASE_PREFETCH_H
#define UWARP_BASE_PREFETCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define UW_LINE 64u
/* n rounded up to whole cache lines, as aligned_alloc wants it. */
#define UW_LINES(n) (((n) + UW_LINE - 1) & ~(size_t)(UW_LINE - 1))
/* Prefetching begins with this many QPs. The memory of fewer stays in the cache anyway. */
#define UW_PREFETCH_FROM 24u

/* Adjacent cache lines: the address of the first one, and in its low bits how many more follow. 0:
 * none. The memory may have been freed: a prefetch cannot fault. */
typedef uintptr_t uw_lines;

/* The lines of the n octets at p; n > 0. */
static inline uw_lines uw_prefetch_lines(const void *p, size_t n)
{
	uintptr_t first = (uintptr_t)p & ~(uintptr_t)(UW_LINE - 1);
	uintptr_t last = ((uintptr_t)p + n - 1) & ~(uintptr_t)(UW_LINE - 1);

	return first | (last - first) / UW_LINE;
}

static inline void uw_prefetch(uw_lines w)
{
	uintptr_t more = w & (UW_LINE - 1);

	for (uintptr_t k = 0; k <= more; k++)
		__builtin_prefetch((const void *)(w - more + k * UW_LINE));
}

/* The entries of a list, in the order in which a segment needs them. */
enum uw_prefetch_slot {
	UW_PREFETCH_PCB,
	UW_PREFETCH_CONN,
	UW_PREFETCH_QP,
	UW_PREFETCH_RECV,   /* the next receive in the RQ */
	UW_PREFETCH_ENTRY,  /* entry of the last used memory region in the region table */
	UW_PREFETCH_REGION, /* the memory region */
	UW_PREFETCH_SEND,   /* the SQ slot of the next request */
	/* in the QP's copy: struct conn; in the transport's copy: the provider's QP */
	UW_PREFETCH_OTHER,
	UW_PREFETCH_COUNT
};

/* Written under the stack lock. Threads that post read the list without the lock; relaxed, since a
 * wrong value only costs a useless prefetch. */
struct uw_prefetch_list {
	_Alignas(UW_LINE) _Atomic uw_lines v[UW_PREFETCH_COUNT];
};

static inline void uw_prefetch_list_set(struct uw_prefetch_list *t, enum uw_prefetch_slot i,
					uw_lines w)
{
	atomic_store_explicit(&t->v[i], w, memory_order_relaxed);
}

static inline void uw_prefetch_list_fetch_one(const struct uw_prefetch_list *t,
					      enum uw_prefetch_slot i)
{
	uw_prefetch(atomic_load_explicit(&t->v[i], memory_order_relaxed));
}

static inline void uw_prefetch_list_copy(struct uw_prefetch_list *to,
					 const struct uw_prefetch_list *from)
{
	for (unsigned i = 0; i < UW_PREFETCH_COUNT; i++)
		uw_prefetch_list_set(to, i,
				     atomic_load_explicit(&from->v[i], memory_order_relaxed));
}

static inline void uw_prefetch_list_fetch(const struct uw_prefetch_list *t)
{
	for (unsigned i = 0; i < UW_PREFETCH_COUNT; i++)
		uw_prefetch_list_fetch_one(t, i);
}

#endif
