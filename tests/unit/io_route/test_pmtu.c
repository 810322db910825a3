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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_is_found),
		cmocka_unit_test(it_is_forgotten),
		cmocka_unit_test(more_than_there_is_room_for),
		cmocka_unit_test(the_least),
		cmocka_unit_test(the_next_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
