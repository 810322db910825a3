/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/undo.h"
#include "uwtest.h"

/* RFC 3708 §3: when every repeat was reported as a duplicate. */
static void all_repeats_reported_is_no_loss(void **state)
{
	struct loss_block b = { 1000, 1100 };
	struct undo u;

	(void)state;
	undo_arm(&u, 1000, 5000, 4000);
	assert_false(undo_duplicate(&u, &b, 100)); /* nothing was sent again yet */
	undo_sent_again(&u, 1300);
	undo_sent_again(&u, 1300);
	assert_false(undo_duplicate(&u, &b, 100));
	assert_true(undo_duplicate(&u, &b, 100));
	assert_int_equal(u.cwnd, 5000);
}

static void a_block_may_report_several(void **state)
{
	struct loss_block b = { 1000, 1250 };
	struct undo u;

	(void)state;
	undo_arm(&u, 1000, 5000, 4000);
	for (unsigned i = 0; i < 3; i++)
		undo_sent_again(&u, 1300);
	assert_true(undo_duplicate(&u, &b, 100));
}

static void what_came_before_does_not_count(void **state)
{
	struct loss_block b = { 800, 1000 };
	struct undo u;

	(void)state;
	undo_arm(&u, 1000, 5000, 4000);
	undo_sent_again(&u, 1300);
	assert_false(undo_duplicate(&u, &b, 100));
	u.armed = false;
	assert_false(undo_duplicate(&u, &(struct loss_block){ 1000, 1100 }, 100));
}

/* Octets from before the recovery say nothing about what was sent again in it. */
static void of_a_block_only_what_is_new_counts(void **state)
{
	const struct loss_block b = { 200, 1100 };
	struct undo u;

	(void)state;
	undo_arm(&u, 1000, 5000, 4000);
	undo_sent_again(&u, 1300);
	undo_sent_again(&u, 1300);
	assert_false(undo_duplicate(&u, &b, 100));
	assert_int_equal(u.expected, 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(all_repeats_reported_is_no_loss),
	cmocka_unit_test(a_block_may_report_several),
	cmocka_unit_test(what_came_before_does_not_count),
	cmocka_unit_test(of_a_block_only_what_is_new_counts),
};

UWTEST_MAIN(tests)
