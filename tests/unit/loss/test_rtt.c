/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rtt.h"
#include "uwtest.h"

/* RFC 6298 §2.2 */
static void the_first_sample_sets_both(void **state)
{
	struct rtt r = { 0 };

	(void)state;
	assert_int_equal(rtt_min(&r), UINT64_MAX);
	rtt_sample(&r, 800, 1000);
	assert_int_equal(r.smoothed_us, 800);
	assert_int_equal(r.var_us, 400);
	assert_int_equal(rtt_min(&r), 800);
}

/* RFC 6298 §2.3 */
static void it_follows_by_an_eighth(void **state)
{
	struct rtt r = { 0 };

	(void)state;
	rtt_sample(&r, 800, 0);
	rtt_sample(&r, 1600, 100);
	assert_int_equal(r.smoothed_us, 900);
	assert_int_equal(r.var_us, 800); /* up at once */
}

/* RFC 7323 appendix G: many samples in a round trip are worth one. */
static void rttvar_does_not_forget_within_a_round_trip(void **state)
{
	struct rtt r = { 0 };

	(void)state;
	rtt_sample(&r, 10000, 0);
	for (uint64_t i = 1; i < 1000; i++)
		rtt_sample(&r, 10000, i * 10);
	assert_in_range(r.var_us, 3000, 5000);
	for (uint64_t i = 1000; i < 20000; i++)
		rtt_sample(&r, 10000, i * 10);
	assert_in_range(r.var_us, 0, 200);
}

/* RFC 8985 §6.2 step 1: the least of a while, which changes when the path does. */
static void the_least_is_forgotten_after_a_while(void **state)
{
	struct rtt r = { 0 };
	uint64_t t = 0;

	(void)state;
	rtt_sample(&r, 100, t);
	for (; t <= RTT_MIN_AGE_US / 2; t += 100000)
		rtt_sample(&r, 500, t);
	assert_int_equal(rtt_min(&r), 100);
	for (; t <= 3ull * RTT_MIN_AGE_US; t += 100000)
		rtt_sample(&r, 500, t);
	assert_int_equal(rtt_min(&r), 500);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_first_sample_sets_both),
	cmocka_unit_test(it_follows_by_an_eighth),
	cmocka_unit_test(rttvar_does_not_forget_within_a_round_trip),
	cmocka_unit_test(the_least_is_forgotten_after_a_while),
};

UWTEST_MAIN(tests)
