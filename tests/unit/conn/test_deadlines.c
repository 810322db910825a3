/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conn/deadlines.h"

#define MANY 500u

static void what_is_not_due_stays(void **state)
{
	struct deadlines h = { 0 };
	struct deadline d = { 0 };

	(void)state;
	assert_null(deadline_take(&h, UINT64_MAX));
	assert_int_equal(deadline_next_us(&h), UINT64_MAX);
	deadline_set(&h, &d, 100);
	assert_int_equal(deadline_next_us(&h), 100);
	assert_null(deadline_take(&h, 99));
	assert_ptr_equal(deadline_take(&h, 100), &d);
	assert_false(d.set);
	assert_null(deadline_take(&h, UINT64_MAX));
}

static void setting_again_moves_it(void **state)
{
	struct deadlines h = { 0 };
	struct deadline a = { 0 }, b = { 0 };

	(void)state;
	deadline_set(&h, &a, 100);
	deadline_set(&h, &b, 200);
	deadline_set(&h, &a, 300); /* later */
	assert_int_equal(deadline_next_us(&h), 200);
	deadline_set(&h, &a, 50); /* earlier */
	assert_int_equal(deadline_next_us(&h), 50);
	assert_ptr_equal(deadline_take(&h, 1000), &a);
	assert_ptr_equal(deadline_take(&h, 1000), &b);
	assert_null(deadline_take(&h, 1000));
}

static void clearing_what_is_not_set_does_nothing(void **state)
{
	struct deadlines h = { 0 };
	struct deadline a = { 0 }, b = { 0 };

	(void)state;
	deadline_set(&h, &a, 1);
	deadline_clear(&h, &b);
	deadline_clear(&h, &a);
	deadline_clear(&h, &a);
	assert_null(deadline_take(&h, UINT64_MAX));
}

static uint32_t rng = 1;

static uint32_t chance(uint32_t n)
{
	rng = rng * 1664525u + 1013904223u;
	return (rng >> 8) % n;
}

static uint64_t least(const struct deadline *d)
{
	uint64_t at = UINT64_MAX;

	for (unsigned i = 0; i < MANY; i++) {
		if (d[i].set && d[i].at_us < at)
			at = d[i].at_us;
	}
	return at;
}

/* Against a search of them all, in whatever order they are set, moved, cleared and taken. */
static void it_is_always_the_first_that_comes(void **state)
{
	struct deadline *d = calloc(MANY, sizeof(*d));
	struct deadlines h = { 0 };

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct deadline *one = &d[chance(MANY)], *got;
		uint64_t first = least(d);

		assert_int_equal(deadline_next_us(&h), first);
		switch (chance(4)) {
		case 0:
			deadline_clear(&h, one);
			break;
		case 1:
			got = deadline_take(&h, first);
			assert_true(got ? !got->set : first == UINT64_MAX);
			break;
		default:
			deadline_set(&h, one, chance(1000));
		}
	}
	for (uint64_t last = 0; least(d) != UINT64_MAX; last = deadline_next_us(&h)) {
		assert_true(deadline_next_us(&h) >= last);
		assert_non_null(deadline_take(&h, least(d)));
		if (!h.first)
			break;
	}
	assert_int_equal(least(d), UINT64_MAX);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_due_stays),
		cmocka_unit_test(setting_again_moves_it),
		cmocka_unit_test(clearing_what_is_not_set_does_nothing),
		cmocka_unit_test(it_is_always_the_first_that_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
