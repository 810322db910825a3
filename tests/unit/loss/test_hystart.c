/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/cc.h"
#include "loss/hystart.h"
#include "uwtest.h"

static struct hystart h;
static uint32_t una;

static int setup(void **state)
{
	(void)state;
	hystart_init(&h);
	una = 0;
	return 0;
}

/* A round trip of ten ACKs; what the last of them said. */
static uint32_t round_trip(uint64_t rtt_us)
{
	uint32_t nxt = una + 10, said = 0;

	for (unsigned i = 0; i < 10; i++) {
		struct cc_ack a = { .una = una++, .nxt = nxt, .rtt_us = rtt_us };

		said = hystart_acked(&h, &a);
	}
	return said;
}

/* RFC 9406 §4.2 */
static void without_more_delay_it_is_slow_start(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(round_trip(20000), 1);
}

/* RFC 9406 §4.2: conservative slow start for five round trips, then congestion avoidance. */
static void more_delay_ends_it(void **state)
{
	unsigned rounds = 0;

	(void)state;
	round_trip(20000);
	round_trip(20000);
	assert_int_equal(round_trip(25000), 4);
	while (round_trip(26000) && rounds < 20)
		rounds++;
	assert_in_range(rounds, 3, 6);
	assert_true(h.done);
}

/* RFC 9406 §4.2: back to slow start if the delay is gone. */
static void a_passing_delay_does_not(void **state)
{
	(void)state;
	round_trip(20000);
	assert_int_equal(round_trip(30000), 4);
	assert_int_equal(round_trip(20000), 1);
}

/* RFC 9406 §4.3: MIN_RTT_THRESH */
static void less_than_the_least_threshold_is_nothing(void **state)
{
	(void)state;
	round_trip(100);
	assert_int_equal(round_trip(3900), 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(without_more_delay_it_is_slow_start, setup),
	cmocka_unit_test_setup(more_delay_ends_it, setup),
	cmocka_unit_test_setup(a_passing_delay_does_not, setup),
	cmocka_unit_test_setup(less_than_the_least_threshold_is_nothing, setup),
};

UWTEST_MAIN(tests)
