/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "clock.h"
#include "hist.h"

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What it says of a value is that value, or at most a thousandth more. */
static void test_precision(void **state)
{
	(void)state;
	for (uint64_t v = 1; v < 1ull << 36; v += v / 3 + 1) {
		struct hist *h = calloc(1, sizeof(*h));

		hist_add(h, v);
		hist_add(h, 1ull << 37); /* so that the largest does not bound what is said */
		assert_true(hist_at(h, 50) >= v);
		assert_true(hist_at(h, 50) <= v + v / 1000);
		free(h);
	}
}

static void test_percentiles(void **state)
{
	enum { N = 20000 };
	static const double percents[] = { 1, 10, 50, 90, 99, 99.9, 100 };
	struct hist *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	uint64_t *all = calloc(N, sizeof(*all)), random = 7, sum = 0;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		all[i] = random64(&random) >> (34 + random64(&random) % 20);
		sum += all[i];
		hist_add(i % 2 ? a : b, all[i]);
	}
	hist_merge(a, b);
	qsort(all, N, sizeof(*all), by_size);
	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		uint64_t exact = all[(unsigned)(percents[i] / 100 * N + 0.5) - 1];

		assert_true(hist_at(a, percents[i]) >= exact);
		assert_true(hist_at(a, percents[i]) <= exact + exact / 1000);
	}
	assert_int_equal(a->count, N);
	assert_int_equal(a->sum, sum);
	assert_int_equal(a->max, all[N - 1]);
	free(all);
	free(a);
	free(b);
}

static void test_limits(void **state)
{
	struct hist *h = calloc(1, sizeof(*h));

	(void)state;
	assert_int_equal(hist_at(h, 50), 0);
	hist_add(h, 0);
	assert_int_equal(hist_at(h, 50), 0);
	hist_add(h, UINT64_MAX);
	assert_int_equal(h->count, 2);
	assert_int_equal(h->max, UINT64_MAX);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_precision),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
