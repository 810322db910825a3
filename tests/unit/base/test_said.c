/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/said.h"

#include "uwtest.h"

enum { NOW = 5000000, MINUTE = SAID_US };

static void a_line_is_said_once_a_minute(void **state)
{
	struct said s = { 0 };

	(void)state;
	assert_true(said_may(&s, 1, 1, NOW));
	assert_false(said_may(&s, 1, 1, NOW));
	assert_false(said_may(&s, 1, 1, NOW + MINUTE - 1));
	assert_true(said_may(&s, 1, 1, NOW + MINUTE));
	assert_false(said_may(&s, 1, 1, NOW + MINUTE + 1));
}

static void others_are_said_besides(void **state)
{
	struct said s = { 0 };

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		assert_true(said_may(&s, 1, 1, NOW + i) == !i);
		assert_true(said_may(&s, 1, 2, NOW + i) == !i);
		assert_true(said_may(&s, 2, 1, NOW + i) == !i);
	}
}

/* A peer that works for a while and fails again. */
static void what_went_well_is_news_when_it_fails(void **state)
{
	struct said s = { 0 };

	(void)state;
	assert_true(said_may(&s, 1, 1, NOW) && said_may(&s, 1, 2, NOW) && said_may(&s, 2, 1, NOW));
	said_forget(&s, 1);
	assert_true(said_may(&s, 1, 1, NOW) && said_may(&s, 1, 2, NOW));
	assert_false(said_may(&s, 2, 1, NOW));
}

/* However many peers a program tries. */
static void there_are_only_so_many_in_a_minute(void **state)
{
	struct said s = { 0 };
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		n += said_may(&s, i % 500, 1, NOW + i);
	assert_int_equal(n, SAID_LINES);
	assert_true(said_may(&s, 499, 1, NOW + MINUTE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_said_once_a_minute),
		cmocka_unit_test(others_are_said_besides),
		cmocka_unit_test(what_went_well_is_news_when_it_fails),
		cmocka_unit_test(there_are_only_so_many_in_a_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
