/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inner pages that a client has READ and keeps, so that a look-up begins with the page below the
 * last one it knows, at best with the leaf. A kept page may be out of date. That does no harm:
 * every page says which keys it has (page.h), so whoever follows an old entry comes to a page that
 * sends him to the right, or back to the root; then the entry that led there is dropped.
 */
#ifndef BTREE_CACHE_H
#define BTREE_CACHE_H

#include "page.h"

#define CACHE_WAYS 4u

/* A page's number says in which set of places it is kept; with one place for each number, one
 * look-up in 18 met a page that another one had taken the place of. */
struct page_cache {
	uint32_t size; /* octets of a page */
	uint32_t sets; /* of `ways` places each; 0: nothing is kept */
	uint32_t ways;
	uint64_t kept;	  /* how often: who has to go is the next of his set */
	uint64_t *number; /* of the page that is kept at each place, plus 1; 0: none */
	uint8_t *pages;
};

/* places: of which there are at least so many, the sets being a power of two. 0 or -ENOMEM. */
int page_cache_open(struct page_cache *c, uint32_t size, uint64_t places);
void page_cache_close(struct page_cache *c);

/* The page of this number, or NULL; it stays until the next call of keep or drop. */
const struct page *page_cache_find(const struct page_cache *c, uint64_t number);
/* p: whole (page_is_whole), of c->size octets; copied. */
void page_cache_keep(struct page_cache *c, uint64_t number, const struct page *p);
void page_cache_drop(struct page_cache *c, uint64_t number);

#endif
