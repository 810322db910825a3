/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client remembers of leaves that it has READ: the first key of each piece (page.h), so that
 * the next look-up READs one piece of PAGE_PIECE octets instead of the page. What is remembered may
 * be out of date. That does no harm: a piece that does not answer for the key says so, and the
 * page is READ.
 */
#ifndef BTREE_LEAF_MAP_H
#define BTREE_LEAF_MAP_H

#include "page.h"

#define WHOLE_PAGE UINT32_MAX

/* A page number finds its place directly; two numbers of one place take turns. */
struct leaf_map {
	uint64_t places;  /* 0: nothing is remembered */
	uint32_t pieces;  /* of a page */
	uint64_t *number; /* of the leaf of each place, plus 1; 0: none */
	uint64_t *first;  /* of each place and piece; UINT64_MAX: the piece is empty */
};

/* size: octets of a page; places: rounded up to a power of two. 0 or -ENOMEM. */
int leaf_map_open(struct leaf_map *m, uint32_t size, uint64_t places);
void leaf_map_close(struct leaf_map *m);

/* The piece of the page in which the key must be, if it is there; WHOLE_PAGE: not known. */
uint32_t leaf_map_find(const struct leaf_map *m, uint64_t number, uint64_t key);
/* leaf: whole (page_is_whole), of level 0. */
void leaf_map_keep(struct leaf_map *m, uint64_t number, const struct page *leaf);
void leaf_map_drop(struct leaf_map *m, uint64_t number);

#endif
