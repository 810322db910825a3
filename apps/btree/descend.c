/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "descend.h"

/* One piece of the page, or WHOLE_PAGE. */
static int read_part(struct btree_client *c, unsigned slot, uint64_t number, uint32_t piece)
{
	struct btree_slot *s = &c->slot[slot];
	struct link *l = &c->link[s->link];
	uint32_t size = piece == WHOLE_PAGE ? l->offer.page : PAGE_PIECE;
	uint64_t at = piece == WHOLE_PAGE ? 0 : (uint64_t)piece * PAGE_PIECE;
	struct ibv_sge sge = region_sge(&l->pages, (size_t)slot * l->offer.page, size);
	struct ibv_send_wr *wr =
		conn_next(&l->conn, IBV_WR_RDMA_READ, slot, IBV_SEND_SIGNALED, sge);
	int err;

	wr->wr.rdma.remote_addr = l->offer.base + number * l->offer.page + at;
	wr->wr.rdma.rkey = l->offer.rkey;
	err = conn_add(&l->conn);
	s->step = STEP_PAGE;
	s->page = number;
	s->piece = piece;
	c->reads++;
	c->pieces += piece != WHOLE_PAGE;
	return err ? err : -EINPROGRESS;
}

static int read_page(struct btree_client *c, unsigned slot, uint64_t number)
{
	return read_part(c, slot, number, WHOLE_PAGE);
}

/* To the page with that number, or to the one below the last that is kept on the way to the key. */
static int go_to(struct btree_client *c, unsigned slot, uint64_t number)
{
	struct btree_slot *s = &c->slot[slot];
	struct page_cache *kept = &c->link[s->link].kept;
	const struct page *p;
	unsigned level = PAGE_LEVELS;

	while ((p = page_cache_find(kept, number)) && s->key >= p->low && s->key <= p->high) {
		int i = page_find(p, s->key);

		/* always down: entries of different age may point at each other */
		if (i < 0 || p->level >= level)
			break;
		level = p->level;
		s->above = number;
		number = page_item(p, (unsigned)i)->value;
	}
	return read_part(c, slot, number, leaf_map_find(&c->link[s->link].leaves, number, s->key));
}

/* The page is not the key's: so the kept page that led there is out of date. */
static int go_elsewhere(struct btree_client *c, unsigned slot, uint64_t number)
{
	struct btree_slot *s = &c->slot[slot];

	c->restarts++;
	if (s->above != NO_PAGE)
		page_cache_drop(&c->link[s->link].kept, s->above);
	s->above = NO_PAGE;
	return read_page(c, slot, number);
}

int descend_begin(struct btree_client *c, unsigned slot)
{
	int err;

	c->slot[slot].above = NO_PAGE;
	err = go_to(c, slot, 0);
	return err == -EINPROGRESS ? 0 : err;
}

/* With --fault believe whatever was read is taken, as far as it can be taken at all. */
static bool is_whole(const struct btree_client *c, const struct page *p, uint32_t size)
{
	return c->options->oracle.believe ? p->count <= page_capacity(size)
					  : page_is_whole(p, size);
}

/* One piece of a leaf has come. */
static int on_piece(struct btree_client *c, unsigned slot, uint64_t *value)
{
	struct btree_slot *s = &c->slot[slot];
	struct link *l = &c->link[s->link];

	switch (page_piece_ask(l->pages.base + (size_t)slot * l->offer.page, s->piece, s->key,
			       c->options->oracle.believe, value)) {
	case PIECE_HAS:
		return 0;
	case PIECE_HAS_NOT:
		return -ENOENT;
	case PIECE_TORN:
		c->torn++;
		return read_part(c, slot, s->page, s->piece);
	case PIECE_ELSEWHERE:
		break;
	}
	leaf_map_drop(&l->leaves, s->page);
	return read_page(c, slot, s->page);
}

int descend_page(struct btree_client *c, unsigned slot, uint64_t *value)
{
	struct btree_slot *s = &c->slot[slot];
	struct link *l = &c->link[s->link];
	const struct page *p = (const void *)(l->pages.base + (size_t)slot * l->offer.page);
	int i;

	if (s->piece != WHOLE_PAGE)
		return on_piece(c, slot, value);
	if (!is_whole(c, p, l->offer.page)) {
		c->torn++;
		return read_page(c, slot, s->page);
	}
	if (!c->options->oracle.believe && (p->level == PAGE_FREE || s->key < p->low))
		return go_elsewhere(c, slot, 0);
	if (!c->options->oracle.believe && s->key > p->high)
		return go_elsewhere(c, slot, p->right);
	i = page_find(p, s->key);
	if (p->level && p->level < PAGE_LEVELS && i >= 0) {
		page_cache_keep(&l->kept, s->page, p);
		s->above = s->page;
		return go_to(c, slot, page_item(p, (unsigned)i)->value);
	}
	if (!p->level)
		leaf_map_keep(&l->leaves, s->page, p);
	if (i < 0 || page_item(p, (unsigned)i)->key != s->key)
		return -ENOENT;
	*value = page_item(p, (unsigned)i)->value;
	return 0;
}
