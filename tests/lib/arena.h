/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory for tests: a table with its slots and regions. */
#ifndef UWARP_TESTS_ARENA_H
#define UWARP_TESTS_ARENA_H

#include "mem/sgl.h"
#include "uwtest.h"

#define ARENA_PD   7u
#define ARENA_ALL  (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define ARENA_SIZE 16u

struct arena {
	struct mem_table t;
	struct mem_region *slots[4 * ARENA_SIZE];
	struct mem_region r[ARENA_SIZE];
	unsigned n;
};

void arena_init(struct arena *a);
/* Register n octets at p, reached at TO = their address, by protection domain ARENA_PD. */
uint32_t arena_add(struct arena *a, void *p, size_t n, unsigned rights);
/* The same with every choice: region `want` (its stag is the one it gets). */
uint32_t arena_put(struct arena *a, struct mem_region want);
/* Deregister. */
void arena_drop(struct arena *a, uint32_t stag);

static inline uint64_t to_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static inline struct uw_sge sge_of(const void *p, size_t n, uint32_t stag)
{
	return (struct uw_sge){ .addr = to_of(p), .length = (uint32_t)n, .lkey = stag };
}

/* An SGL of n SGEs of ARENA_PD. */
static inline struct mem_sgl sgl_of(const struct uw_sge *v, uint32_t n)
{
	struct mem_sgl sgl = { .v = v, .n = n, .pd = ARENA_PD };

	for (uint32_t i = 0; i < n; i++)
		sgl.len += v[i].length;
	return sgl;
}

#endif
