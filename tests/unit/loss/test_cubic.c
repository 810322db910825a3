/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/cc.h"
#include "uwtest.h"

#define MSS 1000u

static struct loss_config cfg;
static struct rtt rtt;
static struct cc c;

static int setup(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	cfg.hystart = false;
	rtt = (struct rtt){ 0 };
	rtt_sample(&rtt, 100000, 0);
	cc_init(&c, &cfg, MSS);
	return 0;
}

/* A round trip in which all of the window is acknowledged. */
static void round_trip(uint64_t now)
{
	struct cc_ack a = {
		.now_us = now, .delivered = MSS, .rtt = &rtt, .rtt_us = 100000, .limited = true
	};

	for (uint32_t n = c.cwnd / MSS; n; n--)
		c.ops->acked(&c, &a);
}

/* RFC 9438 §4.6 */
static void a_loss_leaves_seven_tenths(void **state)
{
	(void)state;
	c.cwnd = 1000 * MSS;
	c.ops->congested(&c, CC_LOSS, 1000 * MSS);
	assert_int_equal(c.ssthresh, 700 * MSS);
	c.cwnd = 2 * MSS;
	c.ops->congested(&c, CC_LOSS, 2 * MSS);
	assert_int_equal(c.ssthresh, 2 * MSS); /* RFC 5681 §3.1: two segments at least */
}

/* RFC 9438 §4.2: back at W_max after K = cubic root of (W_max - cwnd) / C seconds, flat there. */
static void it_is_back_after_k(void **state)
{
	uint64_t now = 1000000;
	double k = 9.086; /* (1000 * 0.3 / 0.4) ^ (1/3) */

	(void)state;
	c.cwnd = 1000 * MSS;
	c.ops->congested(&c, CC_LOSS, 1000 * MSS);
	c.cwnd = c.ssthresh;
	for (; now < 1000000 + (uint64_t)(k * 1e6); now += 100000)
		round_trip(now);
	assert_in_range(c.cwnd, 990 * MSS, 1010 * MSS);
	for (unsigned i = 0; i < 100; i++, now += 100000)
		round_trip(now);
	assert_true(c.cwnd > 1300 * MSS); /* then it looks for more */
}

/* RFC 9438 §4.7 */
static void a_second_loss_below_gives_way(void **state)
{
	(void)state;
	c.cwnd = 1000 * MSS;
	c.ops->congested(&c, CC_LOSS, 1000 * MSS);
	c.cwnd = 800 * MSS;
	c.ops->congested(&c, CC_LOSS, 800 * MSS);
	assert_true(c.cubic.w_max > 679 && c.cubic.w_max < 681);
}

/* RFC 9438 §4.3: on a short path it is not slower than Reno would be. */
static void on_a_short_path_it_is_reno(void **state)
{
	uint64_t now = 1000000;

	(void)state;
	c.cwnd = 20 * MSS;
	c.ops->congested(&c, CC_LOSS, 20 * MSS);
	c.cwnd = c.ssthresh;
	for (unsigned i = 0; i < 40; i++)
		round_trip(now += 1000);
	/* 0.53 segments in a round trip up to the old window, one beyond */
	assert_in_range(c.cwnd, 30 * MSS, 50 * MSS);
}

/* RFC 9438 §4.3 has 0.53 segments up to the old window. doc/adr/0035: below 5 ms it is one. */
static void a_short_round_trip_is_worth_a_segment(void **state)
{
	static const struct {
		uint64_t rtt_us;
		uint32_t least, most; /* segments after ten round trips, from 70 on */
	} row[] = { { 4999, 79, 80 }, { 5000, 75, 76 } };

	(void)state;
	for (unsigned k = 0; k < COUNT(row); k++) {
		uint64_t now = 1000000;

		rtt = (struct rtt){ 0 };
		rtt_sample(&rtt, row[k].rtt_us, 0);
		cc_init(&c, &cfg, MSS);
		c.cwnd = 100 * MSS;
		c.ops->congested(&c, CC_LOSS, 100 * MSS);
		c.cwnd = c.ssthresh;
		for (unsigned i = 0; i < 10; i++)
			round_trip(now += 100);
		assert_in_range(c.cwnd, row[k].least * MSS, row[k].most * MSS);
	}
}

/* RFC 9438 §5.8 */
static void without_use_it_does_not_grow(void **state)
{
	struct cc_ack a = { .now_us = 1, .delivered = MSS, .rtt = &rtt };

	(void)state;
	c.ssthresh = c.cwnd = 20 * MSS;
	for (unsigned i = 0; i < 1000; i++, a.now_us += 100000)
		c.ops->acked(&c, &a);
	assert_int_equal(c.cwnd, 20 * MSS);
}

static void undone_it_is_as_before(void **state)
{
	struct cubic before;

	(void)state;
	c.cwnd = c.ssthresh = 100 * MSS;
	round_trip(1000000);
	before = c.cubic;
	c.ops->congested(&c, CC_LOSS, 100 * MSS);
	c.ops->undo(&c);
	assert_true(c.cubic.w_max == before.w_max && c.cubic.epoch_us == before.epoch_us &&
		    c.cubic.w_est == before.w_est);
}

/* W_est grows by a segment in each round trip, also while the largest window bounds cwnd; what cwnd
 * is behind it is bounded, however many octets that would be. */
static void the_largest_window_is_kept(void **state)
{
	(void)state;
	cfg.short_rtt_us = UINT64_MAX;
	c.ssthresh = c.cwnd = cfg.max_window;
	c.cubic.epoch_us = 1;
	c.cubic.w_est = (4294967296.0 + 1e6) / MSS; /* a window of 1 MB, modulo 2^32 */
	c.cubic.k = 100;
	round_trip(1000000);
	assert_int_equal(c.cwnd, cfg.max_window);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(a_loss_leaves_seven_tenths, setup),
	cmocka_unit_test_setup(it_is_back_after_k, setup),
	cmocka_unit_test_setup(a_second_loss_below_gives_way, setup),
	cmocka_unit_test_setup(on_a_short_path_it_is_reno, setup),
	cmocka_unit_test_setup(a_short_round_trip_is_worth_a_segment, setup),
	cmocka_unit_test_setup(without_use_it_does_not_grow, setup),
	cmocka_unit_test_setup(undone_it_is_as_before, setup),
	cmocka_unit_test_setup(the_largest_window_is_kept, setup),
};

UWTEST_MAIN(tests)
