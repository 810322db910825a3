/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A page of the tree, as the server keeps it and clients READ it. The page of a key is where the
 * key lies between `low` and `high`; a reader who came to another one, since pages have been split
 * or merged on his way, goes to the right or begins again at the root, page 0. Every change gives
 * the page a new version and a new check: whoever reads while the server writes sees that the
 * check is wrong, and reads again. Nothing relies on the order in which octets are read.
 */
#ifndef BTREE_PAGE_H
#define BTREE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PAGE_FREE   UINT16_MAX /* its level */
#define PAGE_LEVELS 16u

struct page_item {
	uint64_t key;
	uint64_t value; /* of an inner page: the number of the page with keys from `key` on */
};

struct page {
	uint64_t check; /* XXH3 of what is behind it, to the last item */
	uint64_t version;
	uint16_t level; /* 0: a leaf */
	uint16_t count;
	uint32_t unused;
	uint64_t low, high; /* both included */
	uint64_t right;	    /* the next page of this level, or 0 */
	struct page_item item[];
};

_Static_assert(sizeof(struct page) == 48, "items are aligned");

static inline unsigned page_capacity(uint32_t size)
{
	return (unsigned)((size - sizeof(struct page)) / sizeof(struct page_item));
}

static inline uint64_t page_check(const struct page *p)
{
	return XXH3_64bits(&p->version,
			   sizeof(*p) - sizeof(p->check) + p->count * sizeof(p->item[0]));
}

/* Is what was read one state of a page of this size? */
static inline bool page_is_whole(const struct page *p, uint32_t size)
{
	return p->count <= page_capacity(size) && p->check == page_check(p);
}

/* The last item whose key is not above, or -1. */
static inline int page_find(const struct page *p, uint64_t key)
{
	int low = 0, high = p->count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (p->item[middle].key <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

#endif
