/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/frto.h"
#include "uwtest.h"

/* RFC 5682 §3.1 step 2b, then 3b */
static void an_original_that_arrives_tells(void **state)
{
	struct frto f;

	(void)state;
	frto_begin(&f);
	assert_int_equal(frto_acked(&f, true, false), FRTO_UNKNOWN);
	assert_true(frto_wants_new(&f));
	frto_sent_new(&f);
	frto_sent_new(&f);
	assert_false(frto_wants_new(&f));
	assert_int_equal(frto_acked(&f, true, true), FRTO_SPURIOUS);
	assert_int_equal(frto_acked(&f, true, true), FRTO_UNKNOWN); /* over */
}

/* RFC 5682 §3.1 step 2a */
static void a_duplicate_ack_says_loss(void **state)
{
	struct frto f;

	(void)state;
	frto_begin(&f);
	assert_int_equal(frto_acked(&f, false, false), FRTO_LOSS);
	assert_false(frto_wants_new(&f));
}

/* RFC 5682 §3.1 step 3a */
static void nothing_original_in_the_second_round_says_loss(void **state)
{
	struct frto f;

	(void)state;
	frto_begin(&f);
	frto_acked(&f, true, false);
	frto_sent_new(&f);
	assert_int_equal(frto_acked(&f, true, false), FRTO_LOSS);
}

/* RFC 5682 §3.1 step 2b: without new octets it cannot be told. */
static void without_new_octets_repeats_go_on(void **state)
{
	struct frto f;

	(void)state;
	frto_begin(&f);
	frto_acked(&f, true, false);
	frto_nothing_new(&f);
	assert_false(frto_wants_new(&f));
	assert_int_equal(frto_acked(&f, true, true), FRTO_UNKNOWN);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(an_original_that_arrives_tells),
	cmocka_unit_test(a_duplicate_ack_says_loss),
	cmocka_unit_test(nothing_original_in_the_second_round_says_loss),
	cmocka_unit_test(without_new_octets_repeats_go_on),
};

UWTEST_MAIN(tests)
