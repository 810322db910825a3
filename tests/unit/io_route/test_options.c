/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gateways(void **state)
{
	struct route_table t = { 0 };
	char bad[40];

	(void)state;
	assert_true(route_parse_gateways("", &t, bad, sizeof(bad)));
	assert_int_equal(t.n, 0);
	assert_true(route_parse_gateways("10.0.0.1,fe80::1", &t, bad, sizeof(bad)));
	assert_int_equal(t.n, 2);
	assert_int_equal(t.at[0].net.bits, UW_IP_V4_BITS);
	assert_true(uw_ip_is_v4(&t.at[0].net.ip));
	assert_int_equal(t.at[1].net.bits, 0);
	route_clear(&t);
}

static void bad_gateways(void **state)
{
	static const char *const texts[] = { "x",	  "10.0.0.1,",	    "10.0.0",  "0.0.0.0",
					     "127.0.0.1", "224.0.0.1",	    "ff02::1", "10.0.0.1/8",
					     "::",	  "::ffff:10.0.0.1" };
	struct route_table t = { 0 };
	char bad[40];

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (route_parse_gateways(texts[i], &t, bad, sizeof(bad)))
			fail_msg("%s was taken", texts[i]);
	}
	assert_string_equal(bad, "::ffff:10.0.0.1");
	route_clear(&t);
}

static void routes(void **state)
{
	struct route_table t = { 0 };
	char bad[40], text[ROUTE_TEXT];

	(void)state;
	assert_true(
		route_parse_list("10.2.0.0/16=10.0.0.1,fd02::/32=fd00::1", &t, bad, sizeof(bad)));
	assert_int_equal(t.n, 2);
	assert_int_equal(t.at[0].net.bits, UW_IP_V4_BITS + 16);
	assert_string_equal(route_ip_text(&t.at[0].via, text), "10.0.0.1");
	assert_int_equal(t.at[1].net.bits, 32);
	assert_string_equal(route_ip_text(&t.at[1].net.ip, text), "fd02::");
	route_clear(&t);
}

static void bad_routes(void **state)
{
	static const char *const texts[] = { "10.2.0.0=10.0.0.1",
					     "10.2.0.0/33=10.0.0.1",
					     "10.2.0.0/16",
					     "10.2.0.0/16=",
					     "10.2.0.0/16=fd00::1",
					     "=10.0.0.1/16",
					     "fd02::/129=fd00::1",
					     "10.2.0.0/-1=10.0.0.1",
					     "10.2.0.0/ 1=10.0.0.1",
					     "10.2.0.0/1x=10.0.0.1",
					     "/=",
					     "," };
	struct route_table t = { 0 };
	char bad[40];

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (route_parse_list(texts[i], &t, bad, sizeof(bad)))
			fail_msg("%s was taken", texts[i]);
	}
	route_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gateways),
		cmocka_unit_test(bad_gateways),
		cmocka_unit_test(routes),
		cmocka_unit_test(bad_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
