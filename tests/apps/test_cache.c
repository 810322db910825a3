/* SPDX-License-Identifier: BSD-3-Clause */
/* Inner pages that a client of uwarp-btree keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache.h"

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
	p->item[1] = (struct page_item){ 7, 70 };
	page_cache_keep(&c, 3, p);
	p->item[1].value = 0; /* a copy is kept */
	assert_non_null(page_cache_find(&c, 3));
	assert_int_equal(page_cache_find(&c, 3)->item[1].value, 70);
	assert_null(page_cache_find(&c, 11)); /* the same place, another page */
	page_cache_drop(&c, 11);
	assert_non_null(page_cache_find(&c, 3));
	page_cache_keep(&c, 11, p);
	assert_null(page_cache_find(&c, 3));
	page_cache_drop(&c, 11);
	assert_null(page_cache_find(&c, 11));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_found_until_it_is_dropped),
		cmocka_unit_test(without_room_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
