/* SPDX-License-Identifier: BSD-3-Clause */
/* Where uwarp-btree splits the keys between two servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "balance.h"

#define KEYS 1000u

/* Look-ups of all keys in turn, at servers whose time grows with what they are asked for. */
static uint64_t settled(uint64_t begin, uint64_t first_ns, uint64_t second_ns)
{
	struct balance b;

	balance_open(&b, KEYS, begin);
	for (unsigned i = 0; i < 100 * KEYS; i++) {
		uint64_t number = i * 7919u % KEYS;

		if (number < b.split)
			balance_note(&b, 0, first_ns * b.split);
		else
			balance_note(&b, 1, second_ns * (KEYS - b.split));
	}
	return b.split;
}

static void equals_have_half(void **state)
{
	(void)state;
	assert_in_range(settled(500, 10, 10), 480, 520);
	assert_in_range(settled(900, 10, 10), 480, 520);
	assert_in_range(settled(0, 10, 10), 480, 520);
}

static void a_fast_one_has_more(void **state)
{
	(void)state;
	assert_in_range(settled(500, 10, 30), 720, 780);
	assert_in_range(settled(500, 30, 10), 220, 280);
}

/* Else it would never be asked again, when it is fast once more. */
static void nobody_loses_all(void **state)
{
	(void)state;
	assert_in_range(settled(500, 1, 100000), 900, KEYS - 1);
	assert_in_range(settled(500, 100000, 1), 1, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_have_half),
		cmocka_unit_test(a_fast_one_has_more),
		cmocka_unit_test(nobody_loses_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
