/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/option.h"
#include "uwtest.h"

/* RFC 2018 §3: two blocks behind two NOPs, as they are usually sent. */
static void blocks_are_read(void **state)
{
	static const uint8_t p[] = { 1, 1, 5,	 18,   0,    0,	   1, 0, 0, 0,
				     2, 0, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 7 };
	struct loss_options o;

	(void)state;
	assert_true(loss_options_read(p, sizeof(p), &o));
	assert_int_equal(o.n_blocks, 2);
	assert_int_equal(o.block[0].left, 0x100);
	assert_int_equal(o.block[0].right, 0x200);
	assert_int_equal(o.block[1].left, 0xfffffffeu);
	assert_int_equal(o.block[1].right, 7);
}

/* RFC 9293 §3.1: an option may be of any kind, and is skipped by its length (MUST-6). */
static void unknown_options_are_skipped(void **state)
{
	static const uint8_t p[] = { 253, 6, 1, 2, 3, 4, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 0, 99 };
	struct loss_options o;

	(void)state;
	assert_true(loss_options_read(p, sizeof(p), &o));
	assert_int_equal(o.n_blocks, 1);
}

/* RFC 9293 §3.1, MUST-7: an illegal length is survived. */
static void malformed_options_end_the_reading(void **state)
{
	static const uint8_t zero[] = { 5, 0, 1, 2 }, cut[] = { 5, 10, 0, 0 }, last[] = { 1, 1, 5 },
			     odd[] = { 5, 9, 0, 0, 0, 1, 0, 0, 0, 0 };
	struct loss_options o;

	(void)state;
	assert_false(loss_options_read(zero, sizeof(zero), &o));
	assert_false(loss_options_read(cut, sizeof(cut), &o));
	assert_false(loss_options_read(last, sizeof(last), &o));
	assert_true(loss_options_read(odd, sizeof(odd), &o));
	assert_int_equal(o.n_blocks, 0);
	assert_true(loss_options_read(NULL, 0, &o));
}

static void more_blocks_than_fit_are_left(void **state)
{
	uint8_t p[2 + 8 * 6] = { 5, sizeof(p) };
	struct loss_options o;

	(void)state;
	assert_true(loss_options_read(p, sizeof(p), &o));
	assert_int_equal(o.n_blocks, LOSS_BLOCKS);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(blocks_are_read),
	cmocka_unit_test(unknown_options_are_skipped),
	cmocka_unit_test(malformed_options_end_the_reading),
	cmocka_unit_test(more_blocks_than_fit_are_left),
};

UWTEST_MAIN(tests)
