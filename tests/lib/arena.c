/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena.h"

void arena_init(struct arena *a)
{
	memset(a, 0, sizeof(*a));
	mem_table_init(&a->t, a->slots, COUNT(a->slots));
}

uint32_t arena_put(struct arena *a, struct mem_region want)
{
	struct mem_region *r = &a->r[a->n++];

	assert_in_range(a->n, 1, ARENA_SIZE);
	*r = want;
	assert_status(mem_insert(&a->t, r, want.stag), UW_OK);
	return r->stag;
}

uint32_t arena_add(struct arena *a, void *p, size_t n, unsigned rights)
{
	struct mem_region r = { .stag = 0x11223300u + a->n * 0x01010101u,
				.pd = ARENA_PD,
				.base = p,
				.to = to_of(p),
				.len = n,
				.rights = rights };

	return arena_put(a, r);
}

void arena_drop(struct arena *a, uint32_t stag)
{
	const struct mem_region *r = mem_find(&a->t, stag);

	assert_non_null(r);
	mem_remove(&a->t, r);
}
