/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>

#include "base/ip.h"
#include "uwtest.h"

static struct uw_ip ip(const char *text)
{
	struct uw_ip a = { { 0 } };
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) == 1)
		return uw_ip_v4(in.s_addr);
	assert_int_equal(inet_pton(AF_INET6, text, a.b), 1);
	return a;
}

static void an_ipv4_address_is_a_mapped_one(void **state)
{
	struct uw_ip a = ip("10.1.2.3"), b = ip("::ffff:10.1.2.3");

	(void)state;
	assert_true(uw_ip_eq(&a, &b));
	assert_true(uw_ip_is_v4(&a));
	assert_int_equal(uw_ip_v4_be(&a), inet_addr("10.1.2.3"));
}

static void versions_are_told_apart(void **state)
{
	static const char *const six[] = { "::",	 "::1",		"::10.1.2.3",
					   "fe80::1",	 "2001:db8::1", "::fffe:10.1.2.3",
					   "1::ffff:a:b" };

	(void)state;
	for (unsigned i = 0; i < sizeof(six) / sizeof(six[0]); i++) {
		struct uw_ip a = ip(six[i]);

		assert_false(uw_ip_is_v4(&a));
	}
}

static void every_octet_counts(void **state)
{
	struct uw_ip a = ip("2001:db8:1:2:3:4:5:6");

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		struct uw_ip b = a;

		b.b[i] ^= 0x10;
		assert_false(uw_ip_eq(&a, &b));
		assert_true(uw_ip_hash(&a) != uw_ip_hash(&b));
	}
}

static void special_addresses_of_both_versions(void **state)
{
	static const struct {
		const char *text;
		bool any, loopback, local;
	} rows[] = {
		{ "::", true, false, false },	       { "0.0.0.0", true, false, false },
		{ "::1", false, true, false },	       { "127.0.0.1", false, true, false },
		{ "127.0.0.2", false, false, false },  { "::2", false, false, false },
		{ "::7f00:1", false, false, false },   { "fe80::1", false, false, true },
		{ "febf::", false, false, true },      { "fec0::1", false, false, false },
		{ "::fffe:0:0", false, false, false }, { "169.254.0.1", false, false, false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct uw_ip a = ip(rows[i].text);

		assert_int_equal(uw_ip_is_any(&a), rows[i].any);
		assert_int_equal(uw_ip_is_loopback(&a), rows[i].loopback);
		assert_int_equal(uw_ip_is_link_local(&a), rows[i].local);
	}
}

static void a_network_has_what_begins_like_it(void **state)
{
	static const struct {
		const char *net;
		uint8_t bits;
		const char *in, *out;
	} rows[] = {
		{ "10.0.0.1", UW_IP_V4_BITS + 24, "10.0.0.255", "10.0.1.1" },
		{ "10.0.0.1", UW_IP_V4_BITS + 23, "10.0.1.1", "10.0.2.1" },
		{ "10.0.0.1", UW_IP_V4_BITS + 32, "10.0.0.1", "10.0.0.0" },
		{ "10.0.0.1", UW_IP_V4_BITS + 8, "10.255.0.1", "11.0.0.1" },
		{ "fd00::1", 64, "fd00::ffff:1", "fd00:0:0:1::1" },
		{ "fd00::1", 7, "fc00::", "fe00::1" },
		{ "::1", 1, "7f00::", "8000::" },
		/* not of the other version, though its first bits are the same */
		{ "::1", 16, "::2", "10.0.0.1" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct uw_net n = { ip(rows[i].net), rows[i].bits };
		struct uw_ip in = ip(rows[i].in), out = ip(rows[i].out);

		assert_true(uw_net_has(&n, &in));
		assert_false(uw_net_has(&n, &out));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv4_address_is_a_mapped_one),
		cmocka_unit_test(versions_are_told_apart),
		cmocka_unit_test(every_octet_counts),
		cmocka_unit_test(special_addresses_of_both_versions),
		cmocka_unit_test(a_network_has_what_begins_like_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
