/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A page of the tree, as the server keeps it and clients READ it. The page of a key is where the
 * key lies between `low` and `high`; a reader who came to another one, since pages have been split
 * or merged on his way, goes to the right or begins again at the root, page 0. Every change gives
 * the page a new version and new checks: whoever reads while the server writes sees that a check
 * is wrong, and reads again. Nothing relies on the order in which octets are read.
 *
 * A page consists of pieces of PAGE_PIECE octets, each with a check of its own. So a client that
 * knows in which piece of a leaf a key is (leaf_map.h) READs that piece alone. What lies between
 * two items of one piece is in no other piece: a key that would be there is not in the tree.
 */
#ifndef BTREE_PAGE_H
#define BTREE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PAGE_FREE   UINT16_MAX /* its level */
#define PAGE_LEVELS 16u
#define PAGE_PIECE  256u

struct page_item {
	uint64_t key;
	uint64_t value; /* of an inner page: the number of the page with keys from `key` on */
};

/* The head of a page, and so of its first piece; that piece's items are behind it. */
struct page {
	uint64_t check; /* XXH3 of what is behind it, to the last item of the first piece */
	uint64_t sum;	/* XXH3 of the other pieces' checks: they belong together */
	uint64_t version;
	uint16_t level; /* 0: a leaf */
	uint16_t count; /* of the whole page */
	uint32_t unused;
	uint64_t low, high; /* both included */
	uint64_t right;	    /* the next page of this level, or 0 */
	uint64_t unused2;
};

/* The head of every other piece; its items are behind it. */
struct page_piece {
	uint64_t check; /* XXH3 of what is behind it, to the last item */
	uint16_t level, count;
	uint32_t unused;
};

_Static_assert(sizeof(struct page) == 64 && sizeof(struct page_piece) == 16, "items are aligned");

#define PAGE_FIRST ((PAGE_PIECE - sizeof(struct page)) / sizeof(struct page_item))
#define PAGE_OTHER ((PAGE_PIECE - sizeof(struct page_piece)) / sizeof(struct page_item))

/* A page may be shorter than a piece; otherwise it is so many whole ones. */
static inline unsigned page_pieces(uint32_t size)
{
	return size <= PAGE_PIECE ? 1 : size / PAGE_PIECE;
}

static inline unsigned page_capacity(uint32_t size)
{
	if (size <= PAGE_PIECE)
		return (unsigned)((size - sizeof(struct page)) / sizeof(struct page_item));
	return (unsigned)(PAGE_FIRST + (page_pieces(size) - 1) * PAGE_OTHER);
}

/* The piece in which item i is, and the item. */
static inline unsigned page_piece_of(unsigned i)
{
	return i < PAGE_FIRST ? 0 : 1 + (i - (unsigned)PAGE_FIRST) / (unsigned)PAGE_OTHER;
}

static inline struct page_item *page_item(const struct page *p, unsigned i)
{
	unsigned j = i - (unsigned)PAGE_FIRST;
	const uint8_t *at = (const uint8_t *)p;

	if (i < PAGE_FIRST)
		return (struct page_item *)(at + sizeof(*p)) + i;
	at += (1 + j / PAGE_OTHER) * PAGE_PIECE + sizeof(struct page_piece);
	return (struct page_item *)at + j % PAGE_OTHER;
}

/* What is kept of pages has its places by the page's number. A division for each look-up costs as
 * much as the search, so there is a power of two of them: n rounded up. */
static inline uint64_t page_places(uint64_t n)
{
	uint64_t places = 1;

	while (places < n)
		places *= 2;
	return places;
}

/* After a change: items before `from` are as they were, and so is the level, or from is 0. */
void page_seal(struct page *p, uint32_t size, unsigned from);
/* Is what was read one state of a page of this size? */
bool page_is_whole(const struct page *p, uint32_t size);
/* The last item whose key is not above, or -1. */
int page_find(const struct page *p, uint64_t key);

/* What one piece says of a key. */
enum piece_answer { PIECE_HAS, PIECE_HAS_NOT, PIECE_TORN, PIECE_ELSEWHERE };

/* piece: what was READ of a page, from its piece of this number on. believe: without its check.
 * PIECE_HAS: *value. PIECE_ELSEWHERE: this is no leaf, or the key is not between its items. */
enum piece_answer page_piece_ask(const void *piece, unsigned number, uint64_t key, bool believe,
				 uint64_t *value);

#endif
