/* SPDX-License-Identifier: BSD-3-Clause */
/* What UWARP_IP says: one address of IPv4, some of IPv6, and what a link makes of them. */
#include "engine/links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include "uwtest.h"

static struct uw_config config(const char *link, const char *ip)
{
	struct uw_config c = { 0 };

	snprintf(c.link, sizeof(c.link), "%s", link);
	snprintf(c.ip, sizeof(c.ip), "%s", ip);
	return c;
}

static void is(const struct uw_net *n, const char *text, unsigned bits)
{
	char got[INET6_ADDRSTRLEN];

	assert_non_null(inet_ntop(AF_INET6, n->ip.b, got, sizeof(got)));
	assert_string_equal(got, text);
	assert_int_equal(n->bits, bits);
}

static void addresses_of_both_versions(void **state)
{
	struct uw_config c = config("af_packet:x", "fd00::1,10.1.2.3/16,2001:db8::9/48");
	struct link_addr a;

	(void)state;
	assert_int_equal(link_parse_ip(&c, &a), UW_OK);
	assert_int_equal(a.addr, inet_addr("10.1.2.3"));
	assert_int_equal(a.mask, inet_addr("255.255.0.0"));
	assert_int_equal(a.n_ip6, 2);
	is(&a.ip6[0], "fd00::1", 64);
	is(&a.ip6[1], "2001:db8::9", 48);
}

static void an_interface_needs_no_ip4(void **state)
{
	struct uw_config c = config("af_packet:x", "fd00::1");
	struct link_addr a;

	(void)state;
	assert_int_equal(link_parse_ip(&c, &a), UW_OK);
	assert_int_equal(a.addr, 0);
}

static void a_process_has_its_ip4_from_the_end_of_its_ip6(void **state)
{
	static const struct {
		const char *ip, *four, *mask;
	} rows[] = {
		{ "fd00::127.0.0.5", "127.0.0.5", "255.0.0.0" },
		{ "fd00::10.0.0.5", "10.0.0.5", "255.255.255.0" },
		{ "127.0.0.5/16,fd00::127.0.0.5", "127.0.0.5", "255.255.0.0" },
	};
	struct link_addr a;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct uw_config c = config("memif", rows[i].ip);

		assert_int_equal(link_parse_ip(&c, &a), UW_OK);
		assert_int_equal(a.addr, inet_addr(rows[i].four));
		assert_int_equal(a.mask, inet_addr(rows[i].mask));
		assert_int_equal(a.n_ip6, 1);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	static const char *const links[] = { "memif", "af_packet:x" };
	static const char *const bad[] = {
		"x",
		"1.2.3",
		"10.0.0.1/0",
		"10.0.0.1/33",
		"10.0.0.1/",
		"10.0.0.1/-1",
		"10.0.0.1,",
		",10.0.0.1",
		"0.0.0.0",
		"10.0.0.1,10.0.0.2",
		"::",
		"::1",
		"ff02::1",
		"fe80::1",
		"::ffff:10.0.0.1",
		"fd00::1/129",
		"fd00::1/0",
		"fd00::1%lo",
		"fd00::1/6 4",
		"fd00:::1",
		"fd00::1,fd01::1,fd02::1,fd03::1,fd04::1",
	};
	static const char *const between[] = {
		"fd00::1",
		"fd00::224.0.0.1",
		"127.0.0.5,fd00::127.0.0.6",
		"fd00::127.0.0.5,fd01::127.0.0.6",
	};
	struct link_addr a;
	int err = dup(2), null = open("/dev/null", O_WRONLY);

	(void)state;
	dup2(null, 2);
	for (unsigned l = 0; l < 2; l++) {
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct uw_config c = config(links[l], bad[i]);

			assert_int_equal(link_parse_ip(&c, &a), UW_E_INVAL);
		}
	}
	for (unsigned i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		struct uw_config c = config("", between[i]);

		assert_int_equal(link_parse_ip(&c, &a), UW_E_INVAL);
	}
	dup2(err, 2);
	close(err);
	close(null);
}

/* Before the link is up programs ask for GIDs: they are those that it will have. */
static void what_a_link_will_have_is_foreseen(void **state)
{
	struct uw_config c = config("memif", "fd00::127.0.0.5");
	struct io_link l;

	(void)state;
	link_foresee(&c, &l);
	assert_int_equal(l.addr, inet_addr("127.0.0.5"));
	assert_int_equal(l.n_ip6, 3);
	is(&l.ip6[0], "fe80::7577:7f00:5", 64);
	is(&l.ip6[1], "fd00::7f00:5", 64);
	is(&l.ip6[2], "fd75:7761:7270::7f00:5", 64);
	assert_int_equal(l.mtu, 9000);
	assert_int_equal(l.bps, 10000000000);
	c.mtu = 1279;
	c.rate_bps = 1000000;
	link_foresee(&c, &l);
	assert_int_equal(l.n_ip6, 0);
	assert_int_equal(l.mtu, 1279);
	assert_int_equal(l.bps, 1000000);
	c = config("loop", "");
	link_foresee(&c, &l);
	assert_int_equal(l.mtu, 9000);
	c = config("af_packet:x", "10.0.0.1");
	link_foresee(&c, &l);
	assert_int_equal(l.n_ip6, 1);
	assert_int_equal(l.mtu, 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_of_both_versions),
		cmocka_unit_test(an_interface_needs_no_ip4),
		cmocka_unit_test(a_process_has_its_ip4_from_the_end_of_its_ip6),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(what_a_link_will_have_is_foreseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
