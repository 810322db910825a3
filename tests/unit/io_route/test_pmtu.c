/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/pmtu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct pmtu_table t;

static struct uw_ip host(uint32_t n)
{
	return uw_ip_v4(htobe32(0x0a000000 + n));
}

static void what_is_set_is_found(void **state)
{
	const struct uw_ip a = host(1), b = host(2);

	(void)state;
	pmtu_init(&t);
	assert_null(pmtu_find(&t, &a));
	pmtu_set(&t, &a, 1400, 0);
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1400);
	assert_null(pmtu_find(&t, &b));
	assert_int_equal(t.least, 1400);
	pmtu_set(&t, &a, 1300, 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.least, 1300);
}

/* RFC 1191 §6.3: "no more often than every 10 minutes" or so. */
static void it_is_forgotten(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	pmtu_set(&t, &a, 1400, 5);
	assert_false(pmtu_expire(&t, 4 + PMTU_LIFE_US));
	assert_true(pmtu_expire(&t, 5 + PMTU_LIFE_US));
	assert_null(pmtu_find(&t, &a));
	assert_int_equal(t.least, UINT32_MAX);
}

static void more_than_there_is_room_for(void **state)
{
	const struct uw_ip last = host(9999);

	(void)state;
	pmtu_init(&t);
	for (uint32_t i = 0; i < 10000; i++) {
		const struct uw_ip a = host(i);

		pmtu_set(&t, &a, 1000, i);
	}
	assert_true(t.n <= PMTU_PATHS);
	assert_non_null(pmtu_find(&t, &last));
}

/* RFC 8201 §4: "MUST NOT reduce its estimate of the Path MTU below the IPv6 minimum link MTU" */
static void the_least(void **state)
{
	const struct uw_ip four = host(1), six = { .b = { 0xfd, [15] = 1 } };

	(void)state;
	pmtu_init(&t);
	pmtu_set(&t, &six, 68, 0);
	assert_int_equal(pmtu_find(&t, &six)->mtu, 1280);
	assert_false(pmtu_find(&t, &six)->fragment);
	pmtu_set(&t, &four, 68, 0);
	assert_int_equal(pmtu_find(&t, &four)->mtu, PMTU_MIN_4);
	assert_true(pmtu_find(&t, &four)->fragment);
}

/* RFC 1191 §7.1 */
static void the_next_size(void **state)
{
	(void)state;
	assert_int_equal(pmtu_below(65280, true), 32000);
	assert_int_equal(pmtu_below(9000, true), 8166);
	assert_int_equal(pmtu_below(1500, true), 1492);
	assert_int_equal(pmtu_below(1492, true), 1280);
	assert_int_equal(pmtu_below(1280, true), 1006);
	assert_int_equal(pmtu_below(1280, false), 1280);
	assert_int_equal(pmtu_below(100, true), PMTU_MIN_4);
}

static bool acked(const struct uw_ip *to, uint32_t octets, bool once, uint64_t us)
{
	return pmtu_acked(&t, to, &(struct pmtu_packet){ octets, us, once }, us);
}

/* RFC 4821 §7.7: a path that was dead for a while looks like one that takes short packets alone. */
static void a_wrong_guess_is_forgotten(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	assert_int_equal(pmtu_guess(&t, &a, 1500, PMTU_MIN_4, 1), 1500); /* it is short already */
	assert_int_equal(t.n, 0);
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1500, 1), 1492);
	assert_int_equal(pmtu_guess(&t, &a, 1492, 1500, 2), 1280);
	assert_false(acked(&a, 1500, false, 1)); /* sent before that */
	assert_false(acked(&a, 100, true, 3));	 /* says nothing */
	assert_true(acked(&a, 1500, false, 3));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1500);
	assert_false(acked(&a, 1280, true, 4));
	assert_false(acked(&a, 1491, true, 4));	 /* shorter than what vanished */
	assert_false(acked(&a, 1500, false, 4)); /* it may have been cut the first time */
	assert_int_equal(t.n, 1);
	assert_false(acked(&a, 1500, true, 4));
	assert_int_equal(t.n, 0);
}

/* It need not be as long as the link takes: the longest segment may be shorter. */
static void the_guess_is_below_what_vanished(void **state)
{
	const struct uw_ip a = host(1), b = host(2), six = { .b = { 0xfd, [15] = 1 } };

	(void)state;
	pmtu_init(&t);
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1414, 1), 1280);
	assert_int_equal(pmtu_guess(&t, &a, 1280, 1414, 2), 1006);
	assert_int_equal(pmtu_guess(&t, &b, 9000, 1500, 1), 1492);
	assert_int_equal(pmtu_guess(&t, &six, 1500, 1414, 1), 1280);
	assert_int_equal(pmtu_guess(&t, &six, 1280, 1414, 2), 1280);
}

/* A short one that was lost again and again on a path that has nothing against long ones. */
static void a_short_one_proves_little(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	assert_int_equal(pmtu_guess(&t, &a, 1500, 700, 1), PMTU_MIN_4);
	assert_true(acked(&a, PMTU_MIN_4, false, 2));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1500);
	assert_false(acked(&a, 700, true, 3));
	assert_int_equal(t.n, 0);
}

/* What goes through later is what is used when longer ones vanish again. */
static void the_longest_that_went_through(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1414, 1), 1280);
	assert_true(acked(&a, 1280, false, 2));
	assert_false(acked(&a, 1300, true, 3));
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1350, 4), 1300);
	assert_false(acked(&a, 1300, false, 5));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1300);
}

/* The path has become shorter once more while the size from before was tried. */
static void one_that_went_through_vanishes(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1500, 1), 1492);
	assert_true(acked(&a, 1492, false, 2));
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1400, 3), 1280);
	assert_true(acked(&a, 1280, false, 4)); /* a new guess, and to be tried */
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1400, 5), 1280);
	assert_false(acked(&a, 1280, false, 6));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1280);
}

static void a_right_guess_is_kept(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	pmtu_guess(&t, &a, 1500, 1500, 1);
	pmtu_guess(&t, &a, 1492, 1500, 2);
	assert_true(acked(&a, 1500, false, 3));
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1500, 4), 1280); /* not by way of 1492 */
	assert_false(acked(&a, 1500, false, 5));
	assert_false(acked(&a, 1500, true, 6));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1280);
	assert_false(pmtu_expire(&t, 4 + PMTU_LIFE_US));
	assert_true(pmtu_expire(&t, 5 + PMTU_LIFE_US));
}

/* What went through once may not the next time: then it was no proof. */
static void a_size_that_vanishes_later_is_a_guess_again(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	pmtu_guess(&t, &a, 1500, 1500, 1);
	assert_true(acked(&a, 1500, false, 2));
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1500, 3), 1492);
	assert_int_equal(pmtu_guess(&t, &a, 1492, 1500, 4), 1280);
	assert_true(acked(&a, 1500, false, 5));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1500);
	/* also at the least of all, which cannot become less */
	for (uint32_t mtu = 1500; mtu > PMTU_MIN_4;)
		mtu = pmtu_guess(&t, &a, mtu, 1500, 6);
	assert_true(acked(&a, 1500, false, 7));
	assert_int_equal(pmtu_guess(&t, &a, 1500, 1500, 8), PMTU_MIN_4);
	assert_int_equal(pmtu_guess(&t, &a, PMTU_MIN_4, 1500, 9), PMTU_MIN_4);
	assert_true(acked(&a, 1500, false, 10));
}

/* What a router told stays, whatever was guessed below it. */
static void what_was_told_stays(void **state)
{
	const struct uw_ip a = host(1);

	(void)state;
	pmtu_init(&t);
	pmtu_set(&t, &a, 1400, 0);
	assert_false(acked(&a, 1400, true, 1));
	assert_int_equal(pmtu_guess(&t, &a, 1400, 1400, 1), 1280);
	assert_true(acked(&a, 1400, false, 2));
	assert_false(acked(&a, 1400, true, 3));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1400);
	pmtu_guess(&t, &a, 1400, 1400, 4);
	pmtu_set(&t, &a, 1300, 5); /* ... and takes a guess's place */
	assert_false(acked(&a, 1300, true, 6));
	assert_int_equal(pmtu_find(&t, &a)->mtu, 1300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_is_found),
		cmocka_unit_test(it_is_forgotten),
		cmocka_unit_test(more_than_there_is_room_for),
		cmocka_unit_test(the_least),
		cmocka_unit_test(the_next_size),
		cmocka_unit_test(a_wrong_guess_is_forgotten),
		cmocka_unit_test(the_guess_is_below_what_vanished),
		cmocka_unit_test(a_short_one_proves_little),
		cmocka_unit_test(the_longest_that_went_through),
		cmocka_unit_test(one_that_went_through_vanishes),
		cmocka_unit_test(a_right_guess_is_kept),
		cmocka_unit_test(a_size_that_vanishes_later_is_a_guess_again),
		cmocka_unit_test(what_was_told_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
