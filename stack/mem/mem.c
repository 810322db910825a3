/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/mem.h"

#include <string.h>

/* A slot whose region left; a search goes on past it. */
#define GONE ((struct mem_region *)(uintptr_t)1)

void mem_table_init(struct mem_table *t, struct mem_region **slots, uint32_t n_slots)
{
	memset(slots, 0, n_slots * sizeof(*slots));
	t->slots = slots;
	t->mask = n_slots - 1;
	t->used = t->dead = 0;
}

static void put(struct mem_table *t, struct mem_region *r)
{
	uint32_t i = r->stag & t->mask;

	while (t->slots[i] && t->slots[i] != GONE)
		i = (i + 1) & t->mask;
	if (t->slots[i] == GONE)
		t->dead--;
	t->slots[i] = r;
	t->used++;
}

void mem_table_move(struct mem_table *t, struct mem_region **slots, uint32_t n_slots)
{
	struct mem_table old = *t;

	mem_table_init(t, slots, n_slots);
	for (uint32_t i = 0; i <= old.mask; i++) {
		if (old.slots[i] && old.slots[i] != GONE)
			put(t, old.slots[i]);
	}
}

bool mem_table_full(const struct mem_table *t)
{
	return (t->used + t->dead + 1) * 2 > t->mask;
}

struct mem_region *mem_find(const struct mem_table *t, uint32_t stag)
{
	for (uint32_t i = stag & t->mask; t->slots[i]; i = (i + 1) & t->mask) {
		if (t->slots[i] != GONE && t->slots[i]->stag == stag)
			return t->slots[i];
	}
	return NULL;
}

uw_status mem_insert(struct mem_table *t, struct mem_region *r, uint32_t random)
{
	/* STag 0 names nothing: some peers fault on it and zero-length frames carry it. */
	if (!random || mem_find(t, random))
		return UW_E_BUSY;
	r->stag = random;
	put(t, r);
	return UW_OK;
}

void mem_remove(struct mem_table *t, const struct mem_region *r)
{
	for (uint32_t i = r->stag & t->mask; t->slots[i]; i = (i + 1) & t->mask) {
		if (t->slots[i] != r)
			continue;
		t->slots[i] = GONE;
		t->used--;
		t->dead++;
		return;
	}
}

enum mem_verdict mem_check(const struct mem_table *t, const struct mem_access *a, uint8_t **va)
{
	const struct mem_region *r = mem_find(t, a->stag);

	if (!r)
		return MEM_NO_STAG;
	if (r->pd != a->pd) /* RFC 5042 §6.1.1: other streams' memory is out of reach */
		return MEM_NO_STREAM;
	if (a->to + a->len < a->to) /* RFC 5041 §5.2: the 64-bit sum must not wrap */
		return MEM_NO_WRAP;
	if (a->to < r->to || a->to - r->to > r->len || a->len > r->len - (a->to - r->to))
		return MEM_NO_BOUNDS;
	if ((r->rights & a->need) != a->need)
		return MEM_NO_RIGHTS;
	*va = r->base + (a->to - r->to);
	return MEM_OK;
}

uw_status mem_verdict_status(enum mem_verdict v, enum mem_layer layer)
{
	static const uw_status table[][2] = {
		[MEM_OK] = { UW_OK, UW_OK },
		[MEM_NO_STAG] = { UW_E_DDP_STAG, UW_E_RDMAP_STAG },
		[MEM_NO_STREAM] = { UW_E_DDP_STREAM, UW_E_RDMAP_STREAM },
		[MEM_NO_BOUNDS] = { UW_E_DDP_BOUNDS, UW_E_RDMAP_BOUNDS },
		[MEM_NO_WRAP] = { UW_E_DDP_WRAP, UW_E_RDMAP_WRAP },
		/* DDP has no code for rights: RDMAP's Remote Protection Error it is. */
		[MEM_NO_RIGHTS] = { UW_E_RDMAP_ACCESS, UW_E_RDMAP_ACCESS },
	};

	if (layer == MEM_FOR_LOCAL)
		return v == MEM_OK ? UW_OK : UW_E_LKEY;
	return table[v][layer];
}
