/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmap/flush.h"

#include <endian.h>
#include <stdatomic.h>

#include "base/guard.h"

static uw_status check(const struct rdmap_stream *s, const struct mem_access *at, uint8_t **va)
{
	enum mem_verdict v = mem_check(s->mem, at, va);

	if (!v && (s->remote_rights & at->need) != at->need)
		v = MEM_NO_RIGHTS;
	return v ? mem_verdict_status(v, MEM_FOR_RDMAP) : UW_OK;
}

static struct mem_access asked(const struct rdmap_stream *s, const struct rdmap_atomic *a)
{
	return (struct mem_access){ .stag = a->stag, .pd = s->pd, .stream = s->num, .to = a->to };
}

/* In one piece. False: the program has unmapped the memory, or it may not be written. */
static bool store(void *word, uint64_t value)
{
	uint64_t now, old;

	if (!uw_guarded_copy(&now, word, sizeof(now)))
		return false;
	do {
		old = now;
		if (!uw_guarded_cas(word, &now, value))
			return false;
	} while (now != old);
	return true;
}

static uw_status atomic_write(const struct rdmap_stream *s, const struct rdmap_atomic *a)
{
	struct mem_access at = asked(s, a);
	uint8_t *va = NULL;
	uw_status st;

	at.len = sizeof(uint64_t);
	at.need = UW_ACCESS_REMOTE_WRITE;
	st = check(s, &at, &va);
	if (st)
		return st;
	if ((uintptr_t)va % sizeof(uint64_t))
		return UW_E_RDMAP_STREAM_CATASTROPHIC;
	if (!store(va, htobe64(a->add_swap)))
		return mem_verdict_status(MEM_NO_BOUNDS, MEM_FOR_RDMAP);
	return UW_OK;
}

/* All of the region that the STag names; false: no such region. */
static bool widen(const struct rdmap_stream *s, struct mem_access *at)
{
	const struct mem_region *r = mem_find(s->mem, at->stag);

	if (!r)
		return false;
	at->to = r->to;
	at->len = r->len;
	return true;
}

/* What was placed before is in memory that every processor sees the same way: for global visibility
 * nothing is left but its order. */
static uw_status flush(const struct rdmap_stream *s, const struct rdmap_atomic *a)
{
	const uint64_t bits = a->add_swap_mask;
	struct mem_access at = asked(s, a);
	uint8_t *va = NULL;
	uw_status st;

	if ((bits & ~(uint64_t)RDMAP_FLUSH_BITS) ||
	    !(bits & (RDMAP_FLUSH_GLOBAL | RDMAP_FLUSH_PERSISTENT)))
		return UW_E_RDMAP_OPCODE;
	at.len = a->add_swap;
	at.need = (bits & RDMAP_FLUSH_GLOBAL ? UW_ACCESS_FLUSH_GLOBAL : 0) |
		  (bits & RDMAP_FLUSH_PERSISTENT ? UW_ACCESS_FLUSH_PERSISTENT : 0);
	if ((bits & RDMAP_FLUSH_REGION) && !widen(s, &at))
		return UW_E_RDMAP_STAG;
	st = check(s, &at, &va);
	if (st)
		return st;
	atomic_thread_fence(memory_order_seq_cst);
	return (bits & RDMAP_FLUSH_PERSISTENT) && at.len ? s->ulp->persist(s->ulp_arg, va, at.len)
							 : UW_OK;
}

uw_status rdmap_place(const struct rdmap_stream *s, const struct rdmap_atomic *a)
{
	return a->aop == RDMAP_FLUSH ? flush(s, a) : atomic_write(s, a);
}
