/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * STags: which memory they name, and who may access that memory. RFC 5040 §5, §8.1.1; RFC 5041
 * §5.2; RFC 5042 §6. The caller owns the memory of the table.
 */
#ifndef UWARP_MEM_MEM_H
#define UWARP_MEM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "uwarp/types.h"

enum mem_kind {
	MEM_PLAIN,
	MEM_NULL, /* any address: reads give zeros, what is written is dropped; local use only */
	/* memory windows: the program and the peer create and invalidate their STags, RFC 5040 §3.2
	 */
	MEM_WINDOW,	   /* type 1: of a protection domain */
	MEM_STREAM_WINDOW, /* type 2: of one stream, whose peer may invalidate the window */
};

/* A memory region or window. TO `to` .. `to` + len stands for the memory [base, base + len). */
struct mem_region {
	/* the upper 24 bits are unique; the lower 8 of a window are chosen by the program */
	uint32_t stag;
	uint32_t pd; /* protection domain, whose streams may use the region */
	uint8_t *base;
	uint64_t to;
	uint64_t len;
	unsigned rights; /* enum uw_access */
	enum mem_kind kind;
	/* parts of the region may be unmapped, so each access calls mem_table.reachable */
	bool on_demand;
	/* the next three fields: of windows */
	bool off;	 /* the window is not bound: the STag gives no access */
	uint32_t stream; /* only this stream may use the window; 0: any stream of the domain */
	struct mem_region *parent; /* the region that the window is bound to */
	uint32_t windows;	   /* number of windows bound to this region */
};

/* Why an access was refused; mem_verdict_status maps this to the status of a layer. */
enum mem_verdict {
	MEM_OK,
	MEM_NO_STAG,
	MEM_NO_STREAM, /* the region is of another protection domain or stream */
	MEM_NO_BOUNDS,
	MEM_NO_WRAP,
	MEM_NO_RIGHTS,
};

/* Open-addressing hash table. STags are random, so the STag is the hash. `slots` has 2^n entries.
 */
struct mem_table {
	struct mem_region **slots;
	uint32_t mask;
	uint32_t used, dead;
	/* Can the process read (or write) these octets now? Called for on_demand regions. */
	bool (*reachable)(const void *va, uint64_t len, bool write);
	/* Make the octets survive a loss of power; called for regions with
	 * UW_ACCESS_FLUSH_PERSISTENT. */
	bool (*persist)(void *va, uint64_t len);
};

void mem_table_init(struct mem_table *t, struct mem_region **slots, uint32_t n_slots);
/* Move all regions to a new array of slots, which is larger or has no deleted entries. The caller
 * may free the old array then. */
void mem_table_move(struct mem_table *t, struct mem_region **slots, uint32_t n_slots);
/* Must mem_table_move be called before mem_insert? True if more than half of the slots hold a
 * region or a deleted entry. */
bool mem_table_full(const struct mem_table *t);

/* Add r with an STag made from `random`. UW_E_BUSY: the upper 24 bits are taken or 0; try another
 * number. */
uw_status mem_insert(struct mem_table *t, struct mem_region *r, uint32_t random) UW_CHECK;
void mem_remove(struct mem_table *t, const struct mem_region *r);
struct mem_region *mem_find(const struct mem_table *t, uint32_t stag);
/* The slot where the search for an STag begins, to prefetch it. */
const void *mem_entry(const struct mem_table *t, uint32_t stag);

/* ---- windows ----------------------------------------------------------------------------- */

/* The region whose STag has these upper 24 bits. */
struct mem_region *mem_find_index(const struct mem_table *t, uint32_t stag);

struct mem_bind {
	uint32_t stag;	 /* the new STag of the window; its upper 24 bits name the window */
	uint32_t parent; /* STag of the region */
	uint64_t addr, len;
	unsigned rights;
	uint32_t pd, stream;
};
/* Bind a window. len 0 unbinds a MEM_WINDOW, which keeps the new STag. UW_E_BIND: no window of this
 * domain, a stream window that is bound already, or a region that does not allow the binding. */
uw_status mem_bind(struct mem_table *t, const struct mem_bind *b) UW_CHECK;
/* Invalidate a window for the program: only a window that this stream has bound. UW_E_BIND. */
uw_status mem_invalidate(const struct mem_table *t, uint32_t stag, uint32_t pd,
			 uint32_t stream) UW_CHECK;
/* Invalidate a window for the peer (RFC 5040 §8.1.1): only a window of this stream.
 * UW_E_RDMAP_NOT_INV. */
uw_status mem_invalidate_remote(const struct mem_table *t, uint32_t stag, uint32_t pd,
				uint32_t stream) UW_CHECK;
/* Unbind the window. */
void mem_unbind(struct mem_region *window);

/* ---- access ------------------------------------------------------------------------------ */

struct mem_access {
	uint32_t stag;
	uint32_t pd;
	/* the stream that accesses; 0: a local access, which cannot use windows */
	uint32_t stream;
	uint64_t to;
	uint64_t len;
	unsigned need; /* enum uw_access; 0 = local read */
};
/* May the access be made? MEM_OK: *va is the address of the memory, NULL in a MEM_NULL region.
 * a->len must be > 0: accesses of no octets are not checked (RFC 5041 §5.2, RFC 5040 §5.2). */
enum mem_verdict mem_check(const struct mem_table *t, const struct mem_access *a, uint8_t **va);

enum mem_layer { MEM_FOR_DDP, MEM_FOR_RDMAP, MEM_FOR_LOCAL };
/* The status for a verdict: DDP tagged errors 1/1/x for Writes and Read Responses, RDMAP protection
 * errors 0/1/x for Read Requests, UW_E_LKEY for the buffers of a local request. */
uw_status mem_verdict_status(enum mem_verdict v, enum mem_layer layer);

#endif
