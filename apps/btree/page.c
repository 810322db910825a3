/* SPDX-License-Identifier: BSD-3-Clause */
#include "page.h"

#define PIECES_MAX (65536u / PAGE_PIECE)
#define CACHE_LINE 64u
/* Those of a page of 4 KiB. A larger one's are not asked for, as most would be in vain. */
#define HEADS_AT_ONCE 16u

static struct page_piece *piece_at(const struct page *p, unsigned number)
{
	return (struct page_piece *)((const uint8_t *)p + (size_t)number * PAGE_PIECE);
}

/* The first item of that piece. */
static unsigned first_of(unsigned number)
{
	return number ? (unsigned)(PAGE_FIRST + (number - 1) * PAGE_OTHER) : 0;
}

/* How many of a page's items are in that piece. */
static unsigned items_in(unsigned count, unsigned number)
{
	unsigned before = first_of(number);
	unsigned room = number ? (unsigned)PAGE_OTHER : (unsigned)PAGE_FIRST;

	return count <= before ? 0 : count - before < room ? count - before : room;
}

static uint64_t first_check(const struct page *p)
{
	return XXH3_64bits(&p->sum, sizeof(*p) - sizeof(p->check) +
					    items_in(p->count, 0) * sizeof(struct page_item));
}

static uint64_t piece_check(const struct page_piece *q)
{
	return XXH3_64bits(&q->level,
			   sizeof(*q) - sizeof(q->check) + q->count * sizeof(struct page_item));
}

static uint64_t sum_of(const struct page *p, unsigned pieces)
{
	uint64_t checks[PIECES_MAX];

	for (unsigned i = 1; i < pieces; i++)
		checks[i - 1] = piece_at(p, i)->check;
	return XXH3_64bits(checks, (pieces - 1) * sizeof(checks[0]));
}

void page_seal(struct page *p, uint32_t size, unsigned from)
{
	unsigned pieces = page_pieces(size), first = page_piece_of(from);

	for (unsigned i = first ? first : 1; i < pieces; i++) {
		struct page_piece *q = piece_at(p, i);

		q->level = p->level;
		q->count = (uint16_t)items_in(p->count, i);
		q->check = piece_check(q);
	}
	p->version++;
	p->sum = sum_of(p, pieces);
	p->check = first_check(p);
}

bool page_is_whole(const struct page *p, uint32_t size)
{
	unsigned pieces = page_pieces(size);

	if (p->count > page_capacity(size) || p->check != first_check(p) ||
	    p->sum != sum_of(p, pieces))
		return false;
	for (unsigned i = 1; i < pieces; i++) {
		const struct page_piece *q = piece_at(p, i);

		if (q->count != items_in(p->count, i) || q->check != piece_check(q))
			return false;
	}
	return true;
}

static const struct page_item *items_of(const struct page *p, unsigned piece)
{
	return piece ? (const void *)(piece_at(p, piece) + 1) : (const void *)(p + 1);
}

/* The last of n items, at least one, whose key is not above, or the first. Nobody can guess in
 * which half it is, so a step chooses between values, and not between ways through the code. */
static unsigned search(const struct page_item *item, unsigned n, uint64_t key)
{
	unsigned low = 0;

	while (n > 1) {
		unsigned half = n / 2;

		low += item[low + half].key <= key ? half : 0;
		n -= half;
	}
	return low;
}

/* A search that does not guess waits for each item that it looks at. So what lies in lines of their
 * own is asked for beforehand: the first items of pieces, and the rest of the piece that it is. */
static void prefetch_heads(const struct page *p, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		__builtin_prefetch(piece_at(p, i));
}

static void prefetch_piece(const struct page *p, unsigned number)
{
	const uint8_t *at = (const uint8_t *)piece_at(p, number);

	for (unsigned i = CACHE_LINE; i < PAGE_PIECE; i += CACHE_LINE)
		__builtin_prefetch(at + i);
}

/* search() of the first items of n pieces. */
static unsigned search_pieces(const struct page *p, unsigned n, uint64_t key)
{
	unsigned low = 0;

	if (n <= HEADS_AT_ONCE)
		prefetch_heads(p, n);
	while (n > 1) {
		unsigned half = n / 2;
		const struct page_piece *q = piece_at(p, low + half);

		low += ((const struct page_item *)(q + 1))->key <= key ? half : 0;
		n -= half;
	}
	return low;
}

int page_find(const struct page *p, uint64_t key)
{
	const struct page_item *item;
	unsigned piece, i;

	if (!p->count)
		return -1;
	piece = search_pieces(p, 1 + page_piece_of(p->count - 1u), key);
	prefetch_piece(p, piece);
	item = items_of(p, piece);
	i = search(item, items_in(p->count, piece), key);
	return item[i].key <= key ? (int)(first_of(piece) + i) : -1;
}

static enum piece_answer look_up(const struct page_item *item, unsigned n, uint64_t key,
				 uint64_t *value)
{
	unsigned i = n ? search(item, n, key) : 0;

	if (!n || item[i].key > key)
		return PIECE_ELSEWHERE;
	if (item[i].key < key)
		return i + 1 < n ? PIECE_HAS_NOT : PIECE_ELSEWHERE;
	*value = item[i].value;
	return PIECE_HAS;
}

enum piece_answer page_piece_ask(const void *piece, unsigned number, uint64_t key, bool believe,
				 uint64_t *value)
{
	const struct page *p = piece;
	const struct page_piece *q = piece;

	if (number) {
		if (q->count > PAGE_OTHER || (!believe && q->check != piece_check(q)))
			return PIECE_TORN;
		return q->level ? PIECE_ELSEWHERE
				: look_up((const void *)(q + 1), q->count, key, value);
	}
	if (!believe && p->check != first_check(p))
		return PIECE_TORN;
	return p->level ? PIECE_ELSEWHERE
			: look_up((const void *)(p + 1), items_in(p->count, 0), key, value);
}
