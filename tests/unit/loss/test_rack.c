/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rack.h"
#include "record_sound.h"
#include "uwtest.h"

#define LEN 100u

static struct loss_config cfg;
static struct sent slot[64];
static struct record r;
static struct rack k;
static struct rtt rtt;

/* 10 segments, one each microsecond from 1000 on; a round trip is 100. */
static int setup(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	record_init(&r, slot, 64);
	rack_init(&k, 0);
	rtt = (struct rtt){ 0 };
	rtt_sample(&rtt, 400, 0);
	for (uint32_t i = 0; i < 10; i++)
		record_append(&r, LEN * i, LEN, 1000 + i);
	return 0;
}

static void deliver(uint32_t id, uint64_t now)
{
	struct delivery d = { .now_us = now, .min_rtt_us = 400, .fack = k.fack };

	delivery_take(&d, record_at(&r, id));
	record_set(&r, id, SENT_SACKED);
	rack_delivered(&k, &d, &rtt);
}

/* RFC 8985 §6.2 step 5: sent a reordering window before what was delivered. */
static void what_was_sent_before_is_lost_after_the_window(void **state)
{
	(void)state;
	deliver(5, 1405);
	assert_int_equal(rack_detect(&k, &r, 100, 1405), 0);
	assert_int_equal(k.deadline_us, 1000 + 400 + 100);
	assert_int_equal(rack_detect(&k, &r, 100, 1500), LEN);
	assert_int_equal(rack_detect(&k, &r, 100, 1600), 4 * LEN);
	assert_int_equal(k.deadline_us, 0); /* those sent later are nobody's business yet */
	assert_true(record_sound(&r));
}

static void nothing_delivered_is_nothing_lost(void **state)
{
	(void)state;
	assert_int_equal(rack_detect(&k, &r, 0, 1000000), 0);
}

/* RFC 8985 §6.2 step 4: with DupThresh segments sacked and no reordering seen, at once. */
static void without_reordering_the_threshold_decides(void **state)
{
	(void)state;
	deliver(1, 1401);
	deliver(2, 1402);
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, false), 100); /* min_RTT / 4 */
	deliver(3, 1403);
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, false), 0);
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, true), 0);
}

static void with_reordering_it_waits(void **state)
{
	(void)state;
	deliver(5, 1405);
	deliver(2, 1410); /* below: it came late */
	assert_true(k.reordering_seen);
	deliver(6, 1411);
	deliver(7, 1411);
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, true), 100);
}

/* RFC 8985 §6.2 step 4: a D-SACK in a round trip adds a quarter of min_RTT; 16 recoveries without
 * one and it is a quarter again. */
static void duplicates_widen_the_window(void **state)
{
	(void)state;
	rack_adapt(&k, true, false, 100, 1000);
	rack_adapt(&k, true, false, 200, 1000); /* the same round trip */
	assert_int_equal(k.multiplier, 2);
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, true), 200);
	rack_adapt(&k, true, false, 1000, 2000);
	assert_int_equal(k.multiplier, 3);
	for (unsigned i = 0; i < 15; i++)
		rack_adapt(&k, false, true, 2000, 3000);
	assert_int_equal(k.multiplier, 3);
	rack_adapt(&k, false, true, 2000, 3000);
	assert_int_equal(k.multiplier, 1);
}

/* RFC 8985 §6.2 step 4: bounded, by SRTT or by the configured bound if that is more. */
static void the_window_is_bounded(void **state)
{
	(void)state;
	k.multiplier = 1000;
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, false), cfg.reorder_bound_us);
	cfg.reorder_bound_us = 0;
	assert_int_equal(rack_window(&k, &cfg, &rtt, &r, false), rtt.smoothed_us);
}

/* RFC 8985 §6.2 step 2: what is sent again is the newest, and what is lost again is seen. */
static void a_lost_repeat_is_noticed(void **state)
{
	(void)state;
	record_set(&r, 0, SENT_LOST);
	record_at(&r, 0)->sent_us = 2000;
	record_at(&r, 0)->times = 2;
	record_set(&r, 0, SENT_FLYING);
	record_append(&r, 10 * LEN, LEN, 2001);
	deliver(10, 2401);
	rack_detect(&k, &r, 0, 2401);
	assert_int_equal(record_at(&r, 0)->state, SENT_LOST);
}

/* RFC 8985 §6.3: the first, and all that were sent long enough ago. */
static void a_timeout_takes_the_old_ones(void **state)
{
	(void)state;
	deliver(1, 1401);
	record_append(&r, 10 * LEN, LEN, 100000);
	assert_int_equal(rack_timeout(&k, &r, 0, 100100), 9 * LEN);
	assert_int_equal(record_at(&r, 10)->state, SENT_FLYING);
	assert_true(record_sound(&r));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(what_was_sent_before_is_lost_after_the_window, setup),
	cmocka_unit_test_setup(nothing_delivered_is_nothing_lost, setup),
	cmocka_unit_test_setup(without_reordering_the_threshold_decides, setup),
	cmocka_unit_test_setup(with_reordering_it_waits, setup),
	cmocka_unit_test_setup(duplicates_widen_the_window, setup),
	cmocka_unit_test_setup(the_window_is_bounded, setup),
	cmocka_unit_test_setup(a_lost_repeat_is_noticed, setup),
	cmocka_unit_test_setup(a_timeout_takes_the_old_ones, setup),
};

UWTEST_MAIN(tests)
