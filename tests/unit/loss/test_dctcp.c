/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/cc.h"
#include "uwtest.h"

#define MSS 1000u

static struct loss_config cfg;
static struct rtt rtt;
static struct cc c;
static uint32_t una;

static int setup(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	cfg.cc = &cc_dctcp;
	cfg.hystart = false;
	rtt_sample(&rtt, 100, 0);
	cc_init(&c, &cfg, MSS);
	c.cwnd = c.ssthresh = 100 * MSS;
	una = 0;
	return 0;
}

/* A window's octets, the first `marked` segments of them marked. */
static void window(unsigned marked)
{
	for (unsigned i = 0; i < 100; i++) {
		struct cc_ack a = { .delivered = MSS,
				    .una = una += 2 * MSS,
				    .nxt = una + 200 * MSS,
				    .rtt = &rtt,
				    .limited = true,
				    .ece = i < marked };

		c.ops->acked(&c, &a);
	}
}

/* RFC 8257 §3.3: alpha follows the share of marked octets by a sixteenth, from 1 down. */
static void alpha_follows_the_marks(void **state)
{
	(void)state;
	assert_int_equal(c.dctcp.alpha, 1024);
	for (unsigned i = 0; i < 100; i++)
		window(0);
	assert_in_range(c.dctcp.alpha, 0, 20);
	for (unsigned i = 0; i < 100; i++)
		window(50);
	assert_in_range(c.dctcp.alpha, 400, 600);
}

/* RFC 8257 §3.4: by half of alpha, once in a window. */
static void few_marks_shrink_it_a_little(void **state)
{
	uint32_t before;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		window(0);
	before = c.cwnd;
	window(10);
	assert_in_range(c.cwnd, before - before / 50, before + MSS);
	c.dctcp.alpha = 1024;
	before = c.cwnd;
	window(100);
	assert_in_range(c.cwnd, before / 2 - MSS, before * 6 / 10);
}

/* RFC 8257 §3.5 */
static void losses_halve_it(void **state)
{
	(void)state;
	c.ops->congested(&c, CC_LOSS, 100 * MSS);
	assert_int_equal(c.ssthresh, 50 * MSS);
	c.ssthresh = 100 * MSS;
	c.ops->congested(&c, CC_ECE, 100 * MSS);
	assert_int_equal(c.ssthresh, 100 * MSS); /* marks are counted, not answered one by one */
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(alpha_follows_the_marks, setup),
	cmocka_unit_test_setup(few_marks_shrink_it_a_little, setup),
	cmocka_unit_test_setup(losses_halve_it, setup),
};

UWTEST_MAIN(tests)
