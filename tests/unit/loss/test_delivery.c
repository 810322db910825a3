/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/delivery.h"
#include "uwtest.h"

static struct sent segment(uint32_t seq, uint64_t us, uint8_t times)
{
	return (struct sent){ .seq = seq, .len = 100, .sent_us = us, .times = times };
}

static void it_adds_up(void **state)
{
	struct delivery d = { .now_us = 1000, .min_rtt_us = 100 };
	struct sent a = segment(0, 500, 1), b = segment(100, 600, 1);

	(void)state;
	delivery_take(&d, &b);
	delivery_take(&d, &a);
	assert_int_equal(d.octets, 200);
	assert_int_equal(d.segments, 2);
	assert_int_equal(d.highest, 200);
	assert_int_equal(d.newest.seq, 100);
	assert_int_equal(delivery_rtt(&d), 400);
}

/* RFC 6298 §3 (Karn) */
static void a_repeat_spoils_the_sample(void **state)
{
	struct delivery d = { .now_us = 1000, .min_rtt_us = 100 };
	struct sent a = segment(0, 500, 1), b = segment(100, 600, 2);

	(void)state;
	delivery_take(&d, &a);
	delivery_take(&d, &b);
	assert_int_equal(delivery_rtt(&d), 0);
}

/* RFC 8985 §6.2 step 2: sooner than a round trip it can only be the first sending. */
static void an_answer_too_soon_is_to_the_first_sending(void **state)
{
	struct delivery d = { .now_us = 1000, .min_rtt_us = 100 };
	struct sent soon = segment(0, 950, 2), late = segment(100, 900, 2);

	(void)state;
	delivery_take(&d, &soon);
	assert_false(d.any);
	delivery_take(&d, &late);
	assert_true(d.any);
}

/* RFC 8985 §6.2 step 3 */
static void reordering_shows_below_the_highest(void **state)
{
	struct delivery d = { .now_us = 1000, .min_rtt_us = 100, .fack = 500 };
	struct sent again = segment(0, 500, 2), above = segment(600, 500, 1),
		    below = segment(100, 500, 1);

	(void)state;
	delivery_take(&d, &again);
	delivery_take(&d, &above);
	assert_false(d.reordered);
	delivery_take(&d, &below);
	assert_true(d.reordered);
}

/* RFC 8985 §5.2 */
static void equal_times_are_told_apart_by_sequence(void **state)
{
	(void)state;
	assert_true(sent_after(2, 0, 1, 100));
	assert_true(sent_after(1, 200, 1, 100));
	assert_true(sent_after(1, 10, 1, 0xfffffff0u));
	assert_false(sent_after(1, 100, 1, 100));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(it_adds_up),
	cmocka_unit_test(a_repeat_spoils_the_sample),
	cmocka_unit_test(an_answer_too_soon_is_to_the_first_sending),
	cmocka_unit_test(reordering_shows_below_the_highest),
	cmocka_unit_test(equal_times_are_told_apart_by_sequence),
};

UWTEST_MAIN(tests)
