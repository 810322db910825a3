/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "clock.h"
#include "workload.h"

#define DRAWS 200000u

static uint64_t counted[10000];

static void draw(const char *dist, uint64_t n)
{
	struct keys k;
	uint64_t random = 3;

	for (uint64_t i = 0; i < n; i++)
		counted[i] = 0;
	assert_int_equal(keys_parse(&k, dist), 0);
	keys_open(&k, n);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t key = keys_next(&k, n, &random);

		assert_true(key < n);
		counted[key]++;
	}
}

static int downwards(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void test_uniform(void **state)
{
	(void)state;
	draw("uniform", 100);
	for (unsigned i = 0; i < 100; i++)
		assert_in_range(counted[i], DRAWS / 100 * 9 / 10, DRAWS / 100 * 11 / 10);
}

/* Of 1000 keys with theta 0.99 the most popular one has 1 / zeta(1000) = 13 %, twice the second
 * one. */
static void test_zipf(void **state)
{
	(void)state;
	draw("zipf", 1000);
	qsort(counted, 1000, sizeof(*counted), downwards);
	assert_in_range(counted[0], DRAWS * 12 / 100, DRAWS * 15 / 100);
	assert_in_range(counted[1] * 100 / counted[0], 45, 60);
}

static void test_latest(void **state)
{
	(void)state;
	draw("latest", 1000);
	assert_true(counted[999] > DRAWS / 10);
	assert_true(counted[999] > counted[998]);
	assert_true(counted[0] < DRAWS / 1000);
}

static void test_bad_names(void **state)
{
	static const char *const bad[] = { "",	     "zipfian", "zipf:",   "zipf:1",
					   "zipf:0", "zipf:x",	"uniform " };
	struct keys k;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(keys_parse(&k, bad[i]), 0);
}

static void test_mixes(void **state)
{
	uint64_t random = 5;

	(void)state;
	assert_null(mix_find('E'));
	for (const char *letter = "ABCDF"; *letter; letter++) {
		const struct mix *m = mix_find(*letter);
		unsigned seen[OP_DELETE + 1] = { 0 };

		assert_non_null(m);
		assert_int_equal(m->read + m->update + m->insert + m->modify, 100);
		for (unsigned i = 0; i < DRAWS; i++)
			seen[mix_next(m, &random)]++;
		assert_in_range(seen[OP_READ] * 100 / DRAWS + 1, m->read, m->read + 2);
		assert_in_range(seen[OP_UPDATE] * 100 / DRAWS + 1, m->update, m->update + 2);
		assert_in_range(seen[OP_INSERT] * 100 / DRAWS + 1, m->insert, m->insert + 2);
		assert_in_range(seen[OP_MODIFY] * 100 / DRAWS + 1, m->modify, m->modify + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uniform), cmocka_unit_test(test_zipf),
		cmocka_unit_test(test_latest),	cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_mixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
