/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/cc.h"
#include "uwtest.h"

#define MSS  1000u
#define RATE 100000000u /* octets per second */
#define RTT  1000u	/* microseconds: the path holds 100,000 octets */

static struct loss_config cfg;
static struct rtt rtt;
static struct cc c;
static uint32_t una;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	cfg.cc = &cc_delay;
	rtt = (struct rtt){ 0 };
	rtt_sample(&rtt, RTT, 0);
	cc_init(&c, &cfg, MSS);
	una = 0;
	now = 1000000;
	return 0;
}

/* A round trip at that rate, with that many octets lost. */
static void round_trip(uint64_t rate, uint32_t lost)
{
	for (unsigned i = 0; i < 100; i++) {
		struct cc_ack a = { .now_us = now += RTT / 100,
				    .delivered = MSS,
				    .lost = lost / 100,
				    .una = una += MSS,
				    .nxt = una + 100 * MSS,
				    .rtt = &rtt,
				    .rtt_us = RTT,
				    .rate = rate,
				    .limited = true };

		c.ops->acked(&c, &a);
	}
}

static void the_window_is_twice_what_the_path_holds(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 30; i++)
		round_trip(RATE, 0);
	assert_int_equal(c.delay.phase, DELAY_CRUISE);
	assert_in_range(c.cwnd, 200 * MSS, 205 * MSS);
}

static void a_few_losses_do_not_matter(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 30; i++)
		round_trip(RATE, 5 * MSS);
	assert_in_range(c.cwnd, 200 * MSS, 205 * MSS);
	c.ops->congested(&c, CC_LOSS, 100 * MSS);
	assert_true(c.ssthresh >= c.cwnd);
}

static void many_losses_bound_the_window(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 30; i++)
		round_trip(RATE, 0);
	for (unsigned i = 0; i < 4; i++)
		round_trip(RATE, 30 * MSS);
	assert_true(c.cwnd < 150 * MSS);
	for (unsigned i = 0; i < 30; i++)
		round_trip(RATE, 0);
	assert_in_range(c.cwnd, 200 * MSS, 205 * MSS); /* it comes back */
}

static void it_sends_at_the_rate_of_the_path(void **state)
{
	uint64_t sum = 0;

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		round_trip(RATE, 0);
	for (unsigned i = 0; i < 8; i++) {
		round_trip(RATE, 0);
		sum += c.ops->pace(&c, &rtt);
	}
	assert_in_range(sum / 8, RATE - RATE / 50, RATE + RATE / 50);
}

/* A path that has become slower is known as such after ten round trips. */
static void an_old_rate_is_forgotten(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 30; i++)
		round_trip(RATE, 0);
	for (unsigned i = 0; i < 12; i++)
		round_trip(RATE / 4, 0);
	assert_in_range(c.cwnd, 50 * MSS, 55 * MSS);
}

static void now_and_then_it_looks_for_the_least_delay(void **state)
{
	unsigned looked = 0;

	(void)state;
	for (unsigned i = 0; i < 6000; i++) {
		round_trip(RATE, 0);
		looked += c.delay.phase == DELAY_LOOK;
	}
	assert_in_range(looked, 5, 30);
	assert_int_equal(c.delay.phase, DELAY_CRUISE);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(the_window_is_twice_what_the_path_holds, setup),
	cmocka_unit_test_setup(a_few_losses_do_not_matter, setup),
	cmocka_unit_test_setup(many_losses_bound_the_window, setup),
	cmocka_unit_test_setup(it_sends_at_the_rate_of_the_path, setup),
	cmocka_unit_test_setup(an_old_rate_is_forgotten, setup),
	cmocka_unit_test_setup(now_and_then_it_looks_for_the_least_delay, setup),
};

UWTEST_MAIN(tests)
