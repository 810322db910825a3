/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/mem.h"

#include <string.h>

/* A slot whose region left; a search goes on past it. */
#define TOMBSTONE ((struct mem_region *)(uintptr_t)1)

void mem_table_init(struct mem_table *t, struct mem_region **slots, uint32_t n_slots)
{
	memset(slots, 0, n_slots * sizeof(*slots));
	t->slots = slots;
	t->mask = n_slots - 1;
	t->used = t->dead = 0;
	t->reachable = NULL;
	t->persist = NULL;
}

/* The lower 8 bits are no part of it: a window changes them and stays where it is. */
static uint32_t slot_of(const struct mem_table *t, uint32_t stag)
{
	return (stag >> 8) & t->mask;
}

static void put(struct mem_table *t, struct mem_region *r)
{
	uint32_t i = slot_of(t, r->stag);

	while (t->slots[i] && t->slots[i] != TOMBSTONE)
		i = (i + 1) & t->mask;
	if (t->slots[i] == TOMBSTONE)
		t->dead--;
	t->slots[i] = r;
	t->used++;
}

void mem_table_move(struct mem_table *t, struct mem_region **slots, uint32_t n_slots)
{
	struct mem_table old = *t;

	mem_table_init(t, slots, n_slots);
	t->reachable = old.reachable;
	t->persist = old.persist;
	for (uint32_t i = 0; i <= old.mask; i++) {
		if (old.slots[i] && old.slots[i] != TOMBSTONE)
			put(t, old.slots[i]);
	}
}

bool mem_table_full(const struct mem_table *t)
{
	return (t->used + t->dead + 1) * 2 > t->mask;
}

struct mem_region *mem_find_index(const struct mem_table *t, uint32_t stag)
{
	for (uint32_t i = slot_of(t, stag); t->slots[i]; i = (i + 1) & t->mask) {
		if (t->slots[i] != TOMBSTONE && t->slots[i]->stag >> 8 == stag >> 8)
			return t->slots[i];
	}
	return NULL;
}

const void *mem_entry(const struct mem_table *t, uint32_t stag)
{
	return &t->slots[slot_of(t, stag)];
}

struct mem_region *mem_find(const struct mem_table *t, uint32_t stag)
{
	struct mem_region *r = mem_find_index(t, stag);

	return r && r->stag == stag ? r : NULL;
}

uw_status mem_insert(struct mem_table *t, struct mem_region *r, uint32_t random)
{
	/* STag 0 names nothing: some peers fault on it and zero-length frames carry it. */
	if (!(random >> 8) || mem_find_index(t, random))
		return UW_E_BUSY;
	r->stag = random;
	put(t, r);
	return UW_OK;
}

void mem_remove(struct mem_table *t, const struct mem_region *r)
{
	for (uint32_t i = slot_of(t, r->stag); t->slots[i]; i = (i + 1) & t->mask) {
		if (t->slots[i] != r)
			continue;
		t->slots[i] = TOMBSTONE;
		t->used--;
		t->dead++;
		return;
	}
}

#define MEM_WRITES (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_ATOMIC)

static bool is_there(const struct mem_table *t, const struct mem_region *r, const uint8_t *va,
		     const struct mem_access *a)
{
	return !r->on_demand || t->reachable(va, a->len, a->need & MEM_WRITES);
}

/* Nearly always it is where the search begins. */
static const struct mem_region *find_soon(const struct mem_table *t, uint32_t stag)
{
	const struct mem_region *r = t->slots[slot_of(t, stag)];

	return r && r != TOMBSTONE && r->stag == stag ? r : mem_find(t, stag);
}

enum mem_verdict mem_check(const struct mem_table *t, const struct mem_access *a, uint8_t **va)
{
	const struct mem_region *r = find_soon(t, a->stag);

	if (!r || r->off || (r->kind >= MEM_WINDOW && !a->stream))
		return MEM_NO_STAG;
	/* RFC 5042 §6.1.1: other streams' memory is out of reach */
	if (r->pd != a->pd || (r->stream && r->stream != a->stream))
		return MEM_NO_STREAM;
	if (a->to + a->len < a->to) /* RFC 5041 §5.2: the 64-bit sum must not wrap */
		return MEM_NO_WRAP;
	/* RFC 5042 §6.2.1, §6.3.1: nothing beyond the buffer is written or read */
	if (a->to < r->to || a->to - r->to > r->len || a->len > r->len - (a->to - r->to))
		return MEM_NO_BOUNDS;
	/* RFC 5042 §6.2.3, §6.3.5, §6.3.6: the rights are the STag's, whatever another STag of the
	 * same memory allows */
	if ((r->rights & a->need) != a->need)
		return MEM_NO_RIGHTS;
	*va = r->kind == MEM_NULL ? NULL : r->base + (a->to - r->to);
	return is_there(t, r, *va, a) ? MEM_OK : MEM_NO_BOUNDS;
}

/* ---- windows ----------------------------------------------------------------------------- */

void mem_unbind(struct mem_region *w)
{
	if (w->off)
		return;
	w->off = true;
	w->parent->windows--;
	w->parent = NULL;
}

/* IBTA 10.6.7.2.2: a window never allows more than its region does. */
static bool may_show(const struct mem_region *r, const struct mem_bind *b)
{
	if (!r || r->kind != MEM_PLAIN || r->pd != b->pd || !(r->rights & UW_ACCESS_MW_BIND))
		return false;
	if ((b->rights & (UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_ATOMIC)) &&
	    !(r->rights & UW_ACCESS_LOCAL_WRITE))
		return false;
	return b->addr >= r->to && b->addr - r->to <= r->len &&
	       b->len <= r->len - (b->addr - r->to);
}

uw_status mem_bind(struct mem_table *t, const struct mem_bind *b)
{
	struct mem_region *w = mem_find_index(t, b->stag), *r = mem_find(t, b->parent);

	if (!w || w->kind < MEM_WINDOW || w->pd != b->pd)
		return UW_E_BIND;
	if (w->kind == MEM_STREAM_WINDOW && (!w->off || !b->len))
		return UW_E_BIND;
	if (b->len && !may_show(r, b))
		return UW_E_BIND;
	mem_unbind(w);
	w->stag = b->stag;
	if (!b->len)
		return UW_OK;
	w->off = false;
	w->parent = r;
	r->windows++;
	w->base = r->base + (b->addr - r->to);
	w->to = b->rights & UW_ACCESS_ZERO_BASED ? 0 : b->addr;
	w->len = b->len;
	w->on_demand = r->on_demand;
	w->rights = b->rights &
		    (UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ | UW_ACCESS_REMOTE_ATOMIC);
	w->stream = w->kind == MEM_STREAM_WINDOW ? b->stream : 0;
	return UW_OK;
}

/* Unbind the window that this stream has bound. False: it has no such window. */
static bool unbind_of_stream(const struct mem_table *t, uint32_t stag, uint32_t pd, uint32_t stream)
{
	struct mem_region *w = mem_find(t, stag);

	if (!w || w->kind != MEM_STREAM_WINDOW || w->pd != pd || w->stream != stream || w->off)
		return false;
	mem_unbind(w);
	return true;
}

uw_status mem_invalidate(const struct mem_table *t, uint32_t stag, uint32_t pd, uint32_t stream)
{
	return unbind_of_stream(t, stag, pd, stream) ? UW_OK : UW_E_BIND;
}

/* RFC 5040 §8.1.1, RFC 5042 §6.4.5: what more than one stream may use cannot be invalidated from
 * afar; plain registrations belong to a whole protection domain. */
uw_status mem_invalidate_remote(const struct mem_table *t, uint32_t stag, uint32_t pd,
				uint32_t stream)
{
	return unbind_of_stream(t, stag, pd, stream) ? UW_OK : UW_E_RDMAP_NOT_INV;
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
