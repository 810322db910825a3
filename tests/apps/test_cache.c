/* SPDX-License-Identifier: BSD-3-Clause */
/* Inner pages that a client of uwarp-btree keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache.h"
#include "leaf_map.h"

#define SIZE 256u

static void a_page_is_found_until_it_is_dropped(void **state)
{
	_Alignas(64) uint8_t octets[SIZE] = { 0 };
	struct page *p = (struct page *)octets;
	struct page_cache c;

	(void)state;
	assert_int_equal(page_cache_open(&c, SIZE, 8), 0);
	assert_null(page_cache_find(&c, 0));
	*p = (struct page){ .level = 1, .count = 2, .low = 5, .high = 9 };
	*page_item(p, 1) = (struct page_item){ 7, 70 };
	page_cache_keep(&c, 3, p);
	page_item(p, 1)->value = 0; /* a copy is kept */
	assert_non_null(page_cache_find(&c, 3));
	assert_int_equal(page_item(page_cache_find(&c, 3), 1)->value, 70);
	assert_null(page_cache_find(&c, 11)); /* the same set, another page */
	page_cache_drop(&c, 11);
	assert_non_null(page_cache_find(&c, 3));
	page_cache_drop(&c, 3);
	assert_null(page_cache_find(&c, 3));
	page_cache_close(&c);
}

/* Pages of one set share its places, and then take turns; one that is kept again stays where it is.
 */
static void a_set_has_room_for_a_few(void **state)
{
	_Alignas(64) uint8_t octets[SIZE] = { 0 };
	struct page *p = (struct page *)octets;
	struct page_cache c;
	unsigned found = 0;

	(void)state;
	assert_int_equal(page_cache_open(&c, SIZE, 2 * CACHE_WAYS), 0);
	for (unsigned i = 0; i < CACHE_WAYS; i++)
		page_cache_keep(&c, 1 + 2 * i, p);
	page_cache_keep(&c, 1, p);
	for (unsigned i = 0; i < CACHE_WAYS; i++)
		assert_non_null(page_cache_find(&c, 1 + 2 * i));
	page_cache_keep(&c, 101, p);
	assert_non_null(page_cache_find(&c, 101));
	for (unsigned i = 0; i < CACHE_WAYS; i++)
		found += page_cache_find(&c, 1 + 2 * i) != NULL;
	assert_int_equal(found, CACHE_WAYS - 1);
	assert_null(page_cache_find(&c, 100)); /* the other set is empty */
	page_cache_close(&c);
	/* fewer places than a set has */
	assert_int_equal(page_cache_open(&c, SIZE, 1), 0);
	page_cache_keep(&c, 7, p);
	assert_non_null(page_cache_find(&c, 7));
	page_cache_keep(&c, 8, p);
	assert_null(page_cache_find(&c, 7));
	page_cache_close(&c);
}

static void without_room_nothing_is_kept(void **state)
{
	struct page p = { .level = 1 };
	struct page_cache c;

	(void)state;
	assert_int_equal(page_cache_open(&c, SIZE, 0), 0);
	page_cache_keep(&c, 1, &p);
	assert_null(page_cache_find(&c, 1));
	page_cache_drop(&c, 1);
	page_cache_close(&c);
}

static void a_map_knows_the_piece(void **state)
{
	static _Alignas(64) uint8_t octets[2 * PAGE_PIECE];
	struct page *p = (struct page *)octets;
	struct leaf_map m;

	(void)state;
	p->count = PAGE_FIRST + 3;
	for (unsigned i = 0; i < p->count; i++)
		page_item(p, i)->key = 10 * (i + 1);
	assert_int_equal(leaf_map_open(&m, sizeof(octets), 4), 0);
	assert_int_equal(leaf_map_find(&m, 2, 50), WHOLE_PAGE);
	leaf_map_keep(&m, 2, p);
	assert_int_equal(leaf_map_find(&m, 2, 50), 0);
	assert_int_equal(leaf_map_find(&m, 2, 1), 0);
	assert_int_equal(leaf_map_find(&m, 2, 10 * (PAGE_FIRST + 1)), 1);
	assert_int_equal(leaf_map_find(&m, 2, UINT64_MAX - 1), 1);
	assert_int_equal(leaf_map_find(&m, 6, 50), WHOLE_PAGE); /* the same place */
	p->count = 2;						/* now its second piece is empty */
	leaf_map_keep(&m, 6, p);
	assert_int_equal(leaf_map_find(&m, 2, 50), WHOLE_PAGE);
	assert_int_equal(leaf_map_find(&m, 6, UINT64_MAX - 1), 0);
	leaf_map_drop(&m, 6);
	assert_int_equal(leaf_map_find(&m, 6, 50), WHOLE_PAGE);
	leaf_map_close(&m);
	/* a page of one piece is READ whole */
	assert_int_equal(leaf_map_open(&m, PAGE_PIECE, 4), 0);
	leaf_map_keep(&m, 2, p);
	assert_int_equal(leaf_map_find(&m, 2, 50), WHOLE_PAGE);
	leaf_map_close(&m);
}

/* A page's number is masked, so there is a power of two of places, and never fewer than were asked
 * for. */
static void places_are_a_power_of_two(void **state)
{
	struct page_cache c;
	struct leaf_map m;

	(void)state;
	assert_int_equal(page_places(0), 1);
	assert_int_equal(page_places(1), 1);
	assert_int_equal(page_places(5), 8);
	assert_int_equal(page_places(8), 8);
	assert_int_equal(page_cache_open(&c, SIZE, 3 * CACHE_WAYS), 0);
	assert_int_equal(c.sets, 4);
	page_cache_close(&c);
	assert_int_equal(leaf_map_open(&m, 2 * PAGE_PIECE, 3), 0);
	assert_int_equal(m.places, 4);
	leaf_map_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_found_until_it_is_dropped),
		cmocka_unit_test(a_set_has_room_for_a_few),
		cmocka_unit_test(without_room_nothing_is_kept),
		cmocka_unit_test(a_map_knows_the_piece),
		cmocka_unit_test(places_are_a_power_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
