/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-btree's tree against an array; and read by another thread, page by page, as clients do. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "clock.h"
#include "tree.h"

#define KEYS  20000u
#define PAGES 8192u

struct bed {
	struct tree tree;
	uint8_t *memory;
	uint64_t value[KEYS]; /* 0: not there; of the key 3 * n + 1 */
};

static void bed_open(struct bed *b, uint32_t page, uint64_t pages)
{
	memset(b, 0, sizeof(*b));
	b->memory = calloc(pages, page);
	tree_open(&b->tree, b->memory, pages, page);
}

static void bed_close(struct bed *b)
{
	tree_close(&b->tree);
	free(b->memory);
}

static const struct page *page_at(const struct bed *b, uint64_t n)
{
	return (const void *)(b->memory + n * b->tree.page);
}

/* Every page is whole, keys are in order and between the limits, levels and neighbours fit. */
static uint64_t walk(const struct bed *b, uint64_t n, uint64_t low, uint64_t high, unsigned level)
{
	const struct page *p = page_at(b, n);
	uint64_t keys = 0;

	assert_true(page_is_whole(p, b->tree.page));
	assert_int_equal(p->level, level);
	assert_int_equal(p->low, low);
	assert_int_equal(p->high, high);
	for (unsigned i = 0; i < p->count; i++) {
		uint64_t next = i + 1u < p->count ? page_item(p, i + 1)->key : 0;

		assert_in_range(page_item(p, i)->key, low, high);
		assert_true(!next || next > page_item(p, i)->key);
		if (!level)
			continue;
		assert_int_equal(page_item(p, 0)->key, low);
		keys += walk(b, page_item(p, i)->value, page_item(p, i)->key,
			     next ? next - 1 : high, level - 1);
		if (next)
			assert_int_equal(page_at(b, page_item(p, i)->value)->right,
					 page_item(p, i + 1)->value);
	}
	return level ? keys : p->count;
}

static void check(struct bed *b)
{
	uint64_t keys = walk(b, 0, 0, UINT64_MAX, tree_levels(&b->tree) - 1), there = 0;

	for (unsigned n = 0; n < KEYS; n++) {
		uint64_t v = 0;
		int err = tree_get(&b->tree, 3 * n + 1, &v);

		assert_int_equal(err, b->value[n] ? 0 : -ENOENT);
		assert_int_equal(v, b->value[n]);
		there += b->value[n] != 0;
	}
	assert_int_equal(keys, there);
	assert_int_equal(b->tree.keys, there);
}

static void random_operations(uint32_t page)
{
	struct bed *b = malloc(sizeof(*b));
	uint64_t random = page;

	bed_open(b, page, PAGES);
	for (unsigned round = 0; round < 8; round++) {
		/* filling, then emptying */
		unsigned puts = round % 2 ? 20 : 80;

		for (unsigned i = 0; i < 60000; i++) {
			unsigned n = (unsigned)(random64(&random) % KEYS);

			if (random64(&random) % 100 < puts) {
				b->value[n] = i + 1;
				assert_int_equal(tree_put(&b->tree, 3 * n + 1, i + 1), 0);
			} else {
				assert_int_equal(tree_delete(&b->tree, 3 * n + 1),
						 b->value[n] ? 0 : -ENOENT);
				b->value[n] = 0;
			}
		}
		check(b);
	}
	for (unsigned n = 0; n < KEYS; n++) {
		tree_delete(&b->tree, 3 * n + 1);
		b->value[n] = 0;
	}
	check(b);
	assert_true(b->tree.splits > 100 && b->tree.merges > 100);
	bed_close(b);
	free(b);
}

static void test_small_pages(void **state)
{
	(void)state;
	random_operations(256);
}

static void test_1k_pages(void **state)
{
	(void)state;
	random_operations(1024);
}

static unsigned in_order(unsigned i, bool down)
{
	return down ? KEYS - 1 - i : i;
}

/* Every page is cut, and later merged, at the same end of the tree. */
static void fill_and_empty(bool fill_down, bool empty_down)
{
	struct bed *b = malloc(sizeof(*b));

	bed_open(b, 256, PAGES);
	for (unsigned i = 0; i < KEYS; i++) {
		unsigned n = in_order(i, fill_down);

		b->value[n] = i + 1;
		assert_int_equal(tree_put(&b->tree, 3 * n + 1, i + 1), 0);
	}
	check(b);
	for (unsigned i = 0; i < KEYS; i++) {
		unsigned n = in_order(i, empty_down);

		b->value[n] = 0;
		assert_int_equal(tree_delete(&b->tree, 3 * n + 1), 0);
		if (i == KEYS / 2)
			check(b);
	}
	check(b);
	assert_int_equal(tree_levels(&b->tree), 1);
	bed_close(b);
	free(b);
}

static void test_keys_in_order(void **state)
{
	(void)state;
	fill_and_empty(true, true);
	fill_and_empty(true, false);
	fill_and_empty(false, true);
	fill_and_empty(false, false);
}

static void test_scan(void **state)
{
	struct page_item got[300];
	struct bed *b = malloc(sizeof(*b));

	(void)state;
	bed_open(b, 256, PAGES);
	for (unsigned n = 0; n < KEYS; n++)
		assert_int_equal(tree_put(&b->tree, 3 * n + 1, n), 0);
	for (uint64_t from = 0; from < 3 * KEYS; from += 997) {
		uint64_t first = from ? (from + 1) / 3 : 0; /* the first n whose key is not below */
		unsigned count = tree_scan(&b->tree, from, from + 600, got, 300);

		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(got[i].key, 3 * (first + i) + 1);
			assert_int_equal(got[i].value, first + i);
		}
		if (from + 600 < 3 * KEYS)
			assert_in_range(count, 200, 201);
	}
	assert_int_equal(tree_scan(&b->tree, 0, UINT64_MAX, got, 10), 10);
	assert_int_equal(tree_scan(&b->tree, 3 * KEYS, UINT64_MAX, got, 10), 0);
	bed_close(b);
	free(b);
}

static void test_pages_run_out(void **state)
{
	struct bed *b = malloc(sizeof(*b));
	unsigned n = 0;

	(void)state;
	bed_open(b, 256, 64);
	while (!tree_put(&b->tree, 3 * n + 1, n + 1)) {
		b->value[n] = n + 1;
		n++;
	}
	assert_in_range(n, 200, KEYS);
	check(b);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(tree_delete(&b->tree, 3 * i + 1), 0);
		b->value[i] = 0;
	}
	assert_int_equal(tree_put(&b->tree, 1, 5), 0);
	b->value[0] = 5;
	check(b);
	bed_close(b);
	free(b);
}

/* ---- a reader without locks -------------------------------------------------------------- */

struct reader {
	struct bed *bed;
	atomic_bool stop;
	uint64_t found, torn;
};

/* The even keys are always there; the others come and go. */
static void *read_pages(void *arg)
{
	struct reader *r = arg;
	uint64_t random = 1, copy[1024 / 8];
	struct page *p = (void *)copy;

	while (!r->stop) {
		uint64_t key = random64(&random) % KEYS / 2 * 2, number = 0;
		int i;

		for (;;) {
			memcpy(copy, page_at(r->bed, number), r->bed->tree.page);
			if (!page_is_whole(p, r->bed->tree.page) || p->level == PAGE_FREE ||
			    key < p->low) {
				r->torn++;
				number = 0;
				continue;
			}
			if (key > p->high) {
				number = p->right;
				continue;
			}
			i = page_find(p, key);
			if (!p->level)
				break;
			number = page_item(p, (unsigned)i)->value;
		}
		assert_true(i >= 0 && page_item(p, (unsigned)i)->key == key &&
			    page_item(p, (unsigned)i)->value == ~key);
		r->found++;
	}
	return NULL;
}

/* What one piece of a leaf says is right by itself: an even key between its items is always there.
 */
static void *read_pieces(void *arg)
{
	struct reader *r = arg;
	const struct bed *b = r->bed;
	uint64_t random = 1, copy[PAGE_PIECE / 8], value = 0;

	while (!r->stop) {
		uint64_t page = random64(&random) % PAGES;
		unsigned piece = (unsigned)random64(&random) % page_pieces(b->tree.page);
		size_t head = piece ? sizeof(struct page_piece) : sizeof(struct page);
		const struct page_item *item = (const void *)((uint8_t *)copy + head);
		enum piece_answer answer;
		uint64_t key;

		memcpy(copy, b->memory + page * b->tree.page + (size_t)piece * PAGE_PIECE,
		       PAGE_PIECE);
		key = item[random64(&random) % ((PAGE_PIECE - head) / sizeof(*item))].key & ~1ull;
		answer = page_piece_ask(copy, piece, key, false, &value);
		assert_int_not_equal(answer, PIECE_HAS_NOT);
		if (answer == PIECE_HAS)
			assert_int_equal(value, ~key);
		r->found += answer == PIECE_HAS;
		r->torn += answer == PIECE_TORN;
	}
	return NULL;
}

static void change_beside(uint32_t page, void *(*reader)(void *))
{
	struct bed *b = malloc(sizeof(*b));
	struct reader r = { .bed = b };
	uint64_t random = 9, end;
	pthread_t thread;

	bed_open(b, page, PAGES);
	for (uint64_t k = 0; k < KEYS; k += 2)
		assert_int_equal(tree_put(&b->tree, k, ~k), 0);
	assert_int_equal(pthread_create(&thread, NULL, reader, &r), 0);
	end = clock_ns() + 1000000000u;
	for (unsigned i = 0; clock_ns() < end; i++) {
		uint64_t k = random64(&random) % (KEYS / 2) * 2 + 1;

		/* in long waves, so that pages are split and merged */
		if ((i >> 14) % 2)
			tree_delete(&b->tree, k);
		else
			assert_int_equal(tree_put(&b->tree, k, ~k), 0);
	}
	r.stop = true;
	pthread_join(thread, NULL);
	assert_true(r.found > 1000);
	bed_close(b);
	free(b);
}

static void test_reader_without_lock(void **state)
{
	(void)state;
	change_beside(256, read_pages);
	change_beside(1024, read_pages);
}

static void test_reader_of_pieces(void **state)
{
	(void)state;
	change_beside(1024, read_pieces);
}

/* What was cut off or freed is in no piece any more; what lies between two pieces, none can tell.
 */
static void test_a_piece_speaks_for_itself(void **state)
{
	struct bed *b = malloc(sizeof(*b));
	/* one piece is full, and the next one has five items */
	uint64_t value, last = PAGE_FIRST * 10, end = last + 50;

	(void)state;
	bed_open(b, 1024, PAGES);
	for (uint64_t k = 10; k <= end; k += 10)
		assert_int_equal(tree_put(&b->tree, k, ~k), 0);
	assert_int_equal(page_piece_ask(b->memory, 0, 20, false, &value), PIECE_HAS);
	assert_int_equal(value, ~20ull);
	assert_int_equal(page_piece_ask(b->memory, 0, 25, false, &value), PIECE_HAS_NOT);
	assert_int_equal(page_piece_ask(b->memory, 0, 5, false, &value), PIECE_ELSEWHERE);
	assert_int_equal(page_piece_ask(b->memory, 0, last + 5, false, &value), PIECE_ELSEWHERE);
	assert_int_equal(page_piece_ask(b->memory + PAGE_PIECE, 1, end, false, &value), PIECE_HAS);
	assert_int_equal(page_piece_ask(b->memory + PAGE_PIECE, 1, end + 5, false, &value),
			 PIECE_ELSEWHERE);
	b->memory[PAGE_PIECE + 40] ^= 1;
	assert_int_equal(page_piece_ask(b->memory + PAGE_PIECE, 1, end, false, &value), PIECE_TORN);
	b->memory[PAGE_PIECE + 40] ^= 1;
	/* the root is cut into two and stays behind as an inner page */
	for (uint64_t k = end + 10; k < 1000; k += 10)
		assert_int_equal(tree_put(&b->tree, k, ~k), 0);
	assert_int_equal(page_piece_ask(b->memory, 0, 20, false, &value), PIECE_ELSEWHERE);
	assert_int_equal(page_piece_ask(b->memory + PAGE_PIECE, 1, end, false, &value),
			 PIECE_ELSEWHERE);
	bed_close(b);
	free(b);
}

/* Full or not, of one piece, of as many as are asked for at once, and of more: the last item that
 * is not above. */
static void find_in_page(uint32_t size)
{
	unsigned capacity = page_capacity(size), step = capacity / 64 + 1;
	struct page *p = calloc(1, size);

	for (unsigned count = 0; count <= capacity; count += step) {
		p->count = (uint16_t)count;
		for (unsigned i = 0; i < count; i++)
			page_item(p, i)->key = 10 * (i + 1);
		for (unsigned i = 0; i <= count; i++) {
			assert_int_equal(page_find(p, 10 * i), (int)i - 1);
			assert_int_equal(page_find(p, 10 * i + 9), (int)i - 1);
		}
	}
	free(p);
}

static void test_find_in_pages_of_all_sizes(void **state)
{
	(void)state;
	find_in_page(256);
	find_in_page(1024);
	find_in_page(4096);
	find_in_page(4352);
	find_in_page(65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_pages),
		cmocka_unit_test(test_1k_pages),
		cmocka_unit_test(test_keys_in_order),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_pages_run_out),
		cmocka_unit_test(test_reader_without_lock),
		cmocka_unit_test(test_reader_of_pieces),
		cmocka_unit_test(test_a_piece_speaks_for_itself),
		cmocka_unit_test(test_find_in_pages_of_all_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
