/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/pace.h"
#include "uwtest.h"

static void without_a_rate_it_is_open(void **state)
{
	struct pace p = { 0 };

	(void)state;
	pace_sent(&p, 1000000, 5);
	assert_true(pace_open(&p, 5));
	assert_int_equal(pace_at(&p), 0);
}

static void over_time_it_is_the_rate(void **state)
{
	struct pace p = { 0 };
	uint64_t now = 1000, sent = 0;

	(void)state;
	pace_set(&p, 100000000, now); /* 100 octets in a microsecond */
	while (now < 1001000) {
		while (pace_open(&p, now)) {
			pace_sent(&p, 1500, now);
			sent += 1500;
		}
		assert_true(pace_at(&p) > now);
		now = pace_at(&p);
	}
	assert_in_range(sent, 99000000, 102000000);
}

/* What was not used is worth a burst, not more. */
static void silence_earns_a_burst(void **state)
{
	struct pace p = { 0 };
	uint64_t sent = 0;

	(void)state;
	pace_set(&p, 1000000000, 0);
	pace_sent(&p, 65536, 0);
	for (; pace_open(&p, 60000000000ull); sent += 1500)
		pace_sent(&p, 1500, 60000000000ull);
	assert_in_range(sent, 900000, 1100000); /* of a millisecond */
}

/* A short path's rate is high, and a window of it times a long silence more than 64 bits hold. */
static void silence_on_a_short_path_earns_a_burst(void **state)
{
	const uint64_t rate = 1200000000000, silent = 10000000;
	struct pace p = { 0 };

	(void)state;
	pace_set(&p, rate, 0);
	pace_sent(&p, 1500, 0);
	assert_true(pace_open(&p, silent));
	pace_set(&p, rate, 2 * silent);
	assert_true(pace_open(&p, 3 * silent));
	pace_sent(&p, 1500, 3 * silent);
	assert_true(pace_open(&p, 3 * silent));
}

/* The burst of a rate is what a higher one has left over at most. */
static void a_lower_rate_has_a_lower_burst(void **state)
{
	struct pace p = { 0 };
	uint64_t sent = 0;

	(void)state;
	pace_set(&p, 1000000000, 0);
	pace_set(&p, 1000000, 0);
	for (; pace_open(&p, 1); sent += 1500)
		pace_sent(&p, 1500, 1);
	assert_in_range(sent, 65536, 70000);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(without_a_rate_it_is_open),
	cmocka_unit_test(over_time_it_is_the_rate),
	cmocka_unit_test(silence_earns_a_burst),
	cmocka_unit_test(silence_on_a_short_path_earns_a_burst),
	cmocka_unit_test(a_lower_rate_has_a_lower_burst),
};

UWTEST_MAIN(tests)
