/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * STags: what memory they name and who may do what to it. RFC 5040 §5, §8.1.1; RFC 5041 §5.2;
 * RFC 5042 §6. The table's memory is the caller's; the table only finds and judges.
 */
#ifndef UWARP_MEM_MEM_H
#define UWARP_MEM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* = enum uw_access = IBV_ACCESS_* */
enum mem_rights {
	MEM_LOCAL_WRITE = 1,
	MEM_REMOTE_WRITE = 2,
	MEM_REMOTE_READ = 4,
	MEM_REMOTE_ATOMIC = 8,
};

/* Registered memory: [base, base + len) is reached as TO to .. to + len. */
struct mem_region {
	uint32_t stag;
	uint32_t pd; /* streams of this protection domain may use it */
	uint8_t *base;
	uint64_t to;
	uint64_t len;
	unsigned rights;
};

/* Why an access was refused; each layer has its own status for each (mem_verdict_status). */
enum mem_verdict {
	MEM_OK,
	MEM_NO_STAG,
	MEM_NO_STREAM, /* other protection domain */
	MEM_NO_BOUNDS,
	MEM_NO_WRAP,
	MEM_NO_RIGHTS,
};

/* Open hash over random STags: the STag is its own hash. `slots` has 2^n entries. */
struct mem_table {
	struct mem_region **slots;
	uint32_t mask;
	uint32_t used, dead;
};

void mem_table_init(struct mem_table *t, struct mem_region **slots, uint32_t n_slots);
/* Move everything to bigger (or cleaner) slots; the old ones are the caller's again. */
void mem_table_move(struct mem_table *t, struct mem_region **slots, uint32_t n_slots);
/* Time to mem_table_move: more than half of the slots are taken or dead. */
bool mem_table_full(const struct mem_table *t);

/* Enter r under the STag made from `random`; UW_E_BUSY: that STag is taken or 0, try another. */
uw_status mem_insert(struct mem_table *t, struct mem_region *r, uint32_t random) UW_CHECK;
void mem_remove(struct mem_table *t, const struct mem_region *r);
struct mem_region *mem_find(const struct mem_table *t, uint32_t stag);

struct mem_access {
	uint32_t stag;
	uint32_t pd;
	uint64_t to;
	uint64_t len;
	unsigned need; /* enum mem_rights; 0 = local read */
};
/* May it be done? *va is where (only for MEM_OK). len > 0: zero-length accesses are not checked at
 * all (RFC 5041 §5.2, RFC 5040 §5.2), so they must not come here. */
enum mem_verdict mem_check(const struct mem_table *t, const struct mem_access *a, uint8_t **va);

enum mem_layer { MEM_FOR_DDP, MEM_FOR_RDMAP, MEM_FOR_LOCAL };
/* The status that stands for a verdict: DDP tagged errors 1/1/x for Writes and Read Responses,
 * RDMAP protection errors 0/1/x for Read Requests, UW_E_LKEY for a request's own buffers. */
uw_status mem_verdict_status(enum mem_verdict v, enum mem_layer layer);

#endif
