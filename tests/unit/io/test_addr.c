/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/addr.h"

#include <arpa/inet.h>

#include "uwtest.h"

static struct uw_ip ip(const char *text)
{
	struct uw_ip a;

	assert_int_equal(inet_pton(AF_INET6, text, a.b), 1);
	return a;
}

static void is(const struct uw_net *n, const char *text)
{
	struct uw_ip want = ip(text);

	assert_true(uw_ip_eq(&n->ip, &want));
	assert_int_equal(n->bits, 64);
}

static void a_process_has_two_that_end_as_its_own(void **state)
{
	struct io_link l = { .addr = inet_addr("127.0.0.5"), .mtu = 9000, .flags = IO_P2P };

	(void)state;
	io_set_ip6(&l, NULL, 0);
	assert_int_equal(l.n_ip6, 2);
	is(&l.ip6[0], "fe80::7577:127.0.0.5");
	is(&l.ip6[1], "fd75:7761:7270::127.0.0.5");
	for (unsigned i = 0; i < l.n_ip6; i++) {
		assert_true(io_ends_in(&l.ip6[i], l.addr));
		assert_true(io_has(&l, &l.ip6[i].ip));
	}
}

static void a_host_has_what_it_was_given(void **state)
{
	const struct uw_net given = { ip("2001:db8::9"), 64 };
	struct io_link l = { .addr = inet_addr("10.1.2.3"), .mtu = 1500 };

	(void)state;
	io_set_ip6(&l, &given, 1);
	assert_int_equal(l.n_ip6, 2);
	is(&l.ip6[0], "fe80::7577:10.1.2.3");
	is(&l.ip6[1], "2001:db8::9");
	l.addr = 0; /* without IPv4 */
	io_set_ip6(&l, &given, 1);
	is(&l.ip6[0], "fe80::7577:0:9");
}

/* RFC 8200 §5 */
static void a_short_mtu_has_none(void **state)
{
	const struct uw_net given = { ip("2001:db8::9"), 64 };
	struct io_link l = { .addr = inet_addr("10.1.2.3"), .mtu = 1279 };
	struct uw_ip to = ip("2001:db8::1"), from;

	(void)state;
	io_set_ip6(&l, &given, 1);
	assert_int_equal(l.n_ip6, 0);
	assert_false(io_source_for(&l, &to, &from));
}

static void nothing_is_taken_twice_or_too_much(void **state)
{
	struct uw_net given[IO_IP6_MAX + 2];
	struct io_link l = { .addr = inet_addr("127.0.0.5"), .mtu = 9000, .flags = IO_P2P };

	(void)state;
	for (unsigned i = 0; i < IO_IP6_MAX + 2; i++)
		given[i] = (struct uw_net){ ip("fd00::127.0.0.5"), 64 };
	io_set_ip6(&l, given, IO_IP6_MAX + 2);
	assert_int_equal(l.n_ip6, 3);
	for (unsigned i = 0; i < IO_IP6_MAX + 2; i++)
		given[i].ip.b[8] = (uint8_t)i;
	io_set_ip6(&l, given, IO_IP6_MAX + 2);
	assert_int_equal(l.n_ip6, IO_IP6_MAX);
}

static void one_speaks_from_the_same_network(void **state)
{
	static const struct {
		const char *to, *from;
	} rows[] = {
		{ "fd00::7", "fd00::127.0.0.5" },
		{ "fe80::7", "fe80::7577:127.0.0.5" },
		{ "fd75:7761:7270::7", "fd75:7761:7270::127.0.0.5" },
		{ "2001:db8::7", "fd00::127.0.0.5" },
		{ "::1", "fd00::127.0.0.5" },
		{ "::ffff:127.0.0.9", "::ffff:127.0.0.5" },
	};
	const struct uw_net given = { ip("fd00::127.0.0.5"), 64 };
	struct io_link l = { .addr = inet_addr("127.0.0.5"), .mtu = 9000, .flags = IO_P2P };

	(void)state;
	io_set_ip6(&l, &given, 1);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct uw_ip to = ip(rows[i].to), want = ip(rows[i].from), from;

		assert_true(io_source_for(&l, &to, &from));
		assert_true(uw_ip_eq(&from, &want));
		assert_false(io_has(&l, &to));
		assert_true(io_has(&l, &from));
	}
}

/* doc/adr/0038 */
static void the_kernels_are_taken_as_they_are(void **state)
{
	const struct uw_net all[] = { { ip("fe80::b"), 64 }, { ip("fd00::5"), 64 } };
	struct io_link l = { .addr = inet_addr("10.0.0.5"), .mtu = 1279 };

	(void)state;
	io_share_ip6(&l, all, 2);
	assert_true(!l.n_ip6 && !io_shared_versions(&l));
	l.mtu = 1280;
	l.flags = IO_SHARED;
	io_share_ip6(&l, all, 2);
	assert_int_equal(l.n_ip6, 2);
	is(&l.ip6[0], "fe80::b");
	is(&l.ip6[1], "fd00::5");
	assert_int_equal(io_shared_versions(&l), IO_V4 | IO_V6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_has_two_that_end_as_its_own),
		cmocka_unit_test(a_host_has_what_it_was_given),
		cmocka_unit_test(a_short_mtu_has_none),
		cmocka_unit_test(nothing_is_taken_twice_or_too_much),
		cmocka_unit_test(one_speaks_from_the_same_network),
		cmocka_unit_test(the_kernels_are_taken_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
