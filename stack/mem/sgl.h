/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local buffers of a work request: a list of SGEs, or octets kept in the request (inline). Each
 * access checks the SGE against the table, so deregistering takes effect at once.
 */
#ifndef UWARP_MEM_SGL_H
#define UWARP_MEM_SGL_H

#include "base/span.h"
#include "mem/mem.h"
#include "uwarp/types.h"

struct mem_sgl {
	const struct uw_sge *v;
	uint32_t n;
	uint32_t pd;
	const uint8_t *inl; /* inline octets, and v and n are unused; NULL: v and n are used */
	uint64_t len;	    /* octets in all */
};

/* Copy n octets from offset off of the list to dst. UW_E_LKEY when an SGE fails its check.
 * off + n <= sgl->len. */
uw_status mem_gather(const struct mem_table *t, const struct mem_sgl *sgl, uint64_t off,
		     uint8_t *dst, size_t n) UW_CHECK;

/* Copy the rope to offset off of the list (needs UW_ACCESS_LOCAL_WRITE). off + src.len <= sgl->len.
 */
uw_status mem_scatter(const struct mem_table *t, const struct mem_sgl *sgl, uint64_t off,
		      struct uw_rope src) UW_CHECK;

#endif
