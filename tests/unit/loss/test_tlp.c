/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/tlp.h"
#include "uwtest.h"

static struct loss_config cfg;
static struct sent slot[8];

/* RFC 8985 §7.2 */
static void the_probe_waits_two_round_trips(void **state)
{
	struct rtt r = { 0 };
	struct record rec;

	(void)state;
	loss_config_default(&cfg);
	record_init(&rec, slot, 8);
	record_append(&rec, 0, 10, 0);
	assert_int_equal(tlp_pto(&cfg, &r, &rec), 1000000);
	rtt_sample(&r, 5000, 0);
	assert_int_equal(tlp_pto(&cfg, &r, &rec), 10000 + cfg.ack_delay_us);
	record_append(&rec, 10, 10, 0);
	assert_int_equal(tlp_pto(&cfg, &r, &rec), 10000);
}

/* RFC 8985 §7.4.2 */
static void a_new_segment_as_probe_says_nothing_of_loss(void **state)
{
	struct tlp t = { 0 };

	(void)state;
	tlp_sent(&t, false, 1000);
	assert_int_equal(tlp_acked(&t, 999, NULL, false), TLP_NOTHING);
	assert_int_equal(tlp_acked(&t, 1000, NULL, false), TLP_NO_LOSS);
	assert_false(t.pending);
}

/* RFC 8985 §7.4.2, case 1: both arrived. */
static void a_duplicate_says_that_nothing_was_lost(void **state)
{
	struct loss_block b = { 900, 1000 };
	struct tlp t = { 0 };

	(void)state;
	tlp_sent(&t, true, 1000);
	assert_int_equal(tlp_acked(&t, 1000, &b, false), TLP_NO_LOSS);
}

/* RFC 8985 §7.4.2, case 2: more is acknowledged and no duplicate was: the probe was needed. */
static void more_without_a_duplicate_says_that_it_repaired(void **state)
{
	struct tlp t = { 0 };

	(void)state;
	tlp_sent(&t, true, 1000);
	assert_int_equal(tlp_acked(&t, 1000, NULL, false), TLP_NOTHING);
	assert_int_equal(tlp_acked(&t, 1100, NULL, false), TLP_REPAIRED);
}

/* RFC 8985 §7.4.2, case 3 */
static void a_plain_duplicate_ack_ends_it(void **state)
{
	struct tlp t = { 0 };

	(void)state;
	tlp_sent(&t, true, 1000);
	assert_int_equal(tlp_acked(&t, 1000, NULL, true), TLP_NO_LOSS);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_probe_waits_two_round_trips),
	cmocka_unit_test(a_new_segment_as_probe_says_nothing_of_loss),
	cmocka_unit_test(a_duplicate_says_that_nothing_was_lost),
	cmocka_unit_test(more_without_a_duplicate_says_that_it_repaired),
	cmocka_unit_test(a_plain_duplicate_ack_ends_it),
};

UWTEST_MAIN(tests)
