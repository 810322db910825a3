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
	rtt_sample(&rtt, 1000, 0);
	cc_init(&c, &cfg, MSS);
	return 0;
}

static struct cc_ack ack(uint32_t octets)
{
	return (struct cc_ack){ .delivered = octets, .rtt = &rtt, .limited = true };
}

/* RFC 6928 §2, RFC 5681 §3.1 */
static void it_begins_with_the_first_window(void **state)
{
	(void)state;
	assert_int_equal(c.cwnd, 10 * MSS);
	assert_int_equal(c.ssthresh, cfg.max_window);
}

/* RFC 3465 §2.2: by what was acknowledged, L segments for one ACK at most. */
static void slow_start_counts_octets(void **state)
{
	struct cc_ack a = ack(500);

	(void)state;
	assert_int_equal(cc_slow_start(&c, &a), 0);
	assert_int_equal(c.cwnd, 10 * MSS + 500);
	a = ack(100 * MSS);
	cc_slow_start(&c, &a);
	assert_int_equal(c.cwnd, 10 * MSS + 500 + cfg.abc_limit * MSS);
}

/* A receiver may acknowledge a whole burst at once, as ours does (doc/adr/0042). */
static void slow_start_doubles_behind_acks_of_bursts(void **state)
{
	struct cc_ack a = ack(16 * MSS);

	(void)state;
	c.cwnd = 64 * MSS;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(cc_slow_start(&c, &a), 0);
	assert_int_equal(c.cwnd, 128 * MSS);
}

/* What is left when ssthresh is reached counts for congestion avoidance. */
static void slow_start_ends_at_the_threshold(void **state)
{
	struct cc_ack a = ack(3 * MSS);

	(void)state;
	c.ssthresh = 11 * MSS;
	assert_int_equal(cc_slow_start(&c, &a), 2 * MSS);
	assert_int_equal(c.cwnd, 11 * MSS);
}

/* RFC 7661 §4.3: a window that is not used does not grow. */
static void an_unused_window_does_not_grow(void **state)
{
	struct cc_ack a = ack(3 * MSS);

	(void)state;
	a.limited = false;
	assert_int_equal(cc_slow_start(&c, &a), 0);
	assert_int_equal(c.cwnd, 10 * MSS);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(it_begins_with_the_first_window, setup),
	cmocka_unit_test_setup(slow_start_counts_octets, setup),
	cmocka_unit_test_setup(slow_start_doubles_behind_acks_of_bursts, setup),
	cmocka_unit_test_setup(slow_start_ends_at_the_threshold, setup),
	cmocka_unit_test_setup(an_unused_window_does_not_grow, setup),
};

UWTEST_MAIN(tests)
