/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour that takes a packet (RFC 1122 §3.3.1.1 and §3.3.1.2). */
#include "io/route/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "io/addr.h"
#include "io/route/options.h"

static struct uw_ip ip(const char *text)
{
	struct route_table t = { 0 };
	char all[80], bad[80];
	struct uw_ip out;

	snprintf(all, sizeof(all), strchr(text, ':') ? "::/0=%s" : "0.0.0.0/0=%s", text);
	assert_true(route_parse_list(all, &t, bad, sizeof(bad)));
	out = t.at[0].via;
	route_clear(&t);
	return out;
}

struct host {
	struct io_link l;
	struct route_table t;
};

/* 10.1.0.1/24 and fd01::1/48, with these routes. */
static struct host host_with(const char *routes)
{
	const struct uw_ip six = ip("fd01::1"), four = ip("10.1.0.1");
	const struct uw_net net = { six, 48 };
	struct host h = { .l = { .mtu = 1500, .mask = htobe32(0xffffff00) } };
	char bad[80];

	h.l.addr = uw_ip_v4_be(&four);
	io_set_ip6(&h.l, &net, 1);
	assert_true(route_parse_list(routes, &h.t, bad, sizeof(bad)));
	route_sort(&h.t);
	return h;
}

static bool goes(struct host *h, const char *to, const char *by)
{
	const struct uw_ip dst = ip(to);
	struct uw_ip hop, want;
	char text[ROUTE_TEXT];

	h->l.routes = &h->t;
	if (!route_next_hop(&h->l, &dst, &hop))
		return !by;
	if (!by)
		return false;
	want = ip(by);
	if (!uw_ip_eq(&hop, &want))
		print_message("%s goes by %s\n", to, route_ip_text(&hop, text));
	return uw_ip_eq(&hop, &want);
}

static void neighbors_need_no_route(void **state)
{
	struct host h = host_with("");

	(void)state;
	assert_true(goes(&h, "10.1.0.77", "10.1.0.77"));
	assert_true(goes(&h, "fd01::77", "fd01::77"));
	assert_true(goes(&h, "fe80::77", "fe80::77"));
	h.l.routes = NULL;
	assert_true(goes(&h, "10.1.0.77", "10.1.0.77"));
}

static void without_a_route_there_is_no_way(void **state)
{
	struct host h = host_with("");

	(void)state;
	assert_true(goes(&h, "10.2.0.1", NULL));
	assert_true(goes(&h, "fd02::1", NULL));
}

static void a_gateway_takes_the_rest(void **state)
{
	struct host h = host_with("0.0.0.0/0=10.1.0.254,::/0=fe80::fe");

	(void)state;
	assert_true(goes(&h, "10.2.0.1", "10.1.0.254"));
	assert_true(goes(&h, "fd02::1", "fe80::fe"));
	assert_true(goes(&h, "10.1.0.77", "10.1.0.77"));
	assert_true(goes(&h, "fd01::77", "fd01::77"));
	route_clear(&h.t);
}

/* RFC 1122 §3.3.1.2, RFC 8504 §5.4: the longest prefix decides; a route to a part of one's own
 * network, too. */
static void the_longest_prefix_decides(void **state)
{
	struct host h =
		host_with("0.0.0.0/0=10.1.0.254,10.2.0.0/16=10.1.0.253,10.2.3.0/24=10.1.0.252,"
			  "10.1.0.64/26=10.1.0.251");

	(void)state;
	assert_true(goes(&h, "10.3.0.1", "10.1.0.254"));
	assert_true(goes(&h, "10.2.0.1", "10.1.0.253"));
	assert_true(goes(&h, "10.2.3.1", "10.1.0.252"));
	assert_true(goes(&h, "10.1.0.70", "10.1.0.251"));
	assert_true(goes(&h, "10.1.0.7", "10.1.0.7"));
	assert_true(goes(&h, "10.2.3.1", "10.1.0.252")); /* remembered */
	route_clear(&h.t);
}

static void the_lower_metric_decides(void **state)
{
	struct route_table t = { 0 };
	struct route r = { .net = { uw_ip_v4(0), UW_IP_V4_BITS }, .metric = 20 };
	const struct uw_ip to = ip("10.9.0.1");

	(void)state;
	route_add(&t, &r);
	r.metric = 10;
	route_add(&t, &r);
	route_sort(&t);
	assert_int_equal(route_find(&t, &to)->metric, 10);
	route_clear(&t);
}

static void more_than_fit_are_dropped(void **state)
{
	struct route_table t = { 0 };
	struct route r = { .net = { .bits = 128 } };

	(void)state;
	for (unsigned i = 0; i < ROUTE_MAX; i++)
		route_add(&t, &r);
	assert_false(t.full);
	route_add(&t, &r);
	assert_true(t.full);
	assert_int_equal(t.n, ROUTE_MAX);
	route_clear(&t);
}

static void tables_are_compared(void **state)
{
	struct host a = host_with("10.2.0.0/16=10.1.0.253"),
		    b = host_with("10.2.0.0/16=10.1.0.253"),
		    c = host_with("10.2.0.0/16=10.1.0.252"), none = host_with("");

	(void)state;
	assert_true(route_same(&a.t, &b.t));
	assert_false(route_same(&a.t, &c.t));
	assert_false(route_same(&a.t, &none.t));
	route_clear(&a.t);
	route_clear(&b.t);
	route_clear(&c.t);
}

static void fix(struct route_table *t, const char *text, uint8_t last)
{
	const struct route_neighbour n = { ip(text), { 2, 0, 0, 0, 0, last } };

	route_add_neighbour(t, &n);
}

/* Neighbours that the administrator has fixed. */
static void neighbours_are_found(void **state)
{
	const struct uw_ip a = ip("10.1.0.9"), b = ip("fd00::9"), c = ip("10.1.0.8");
	struct route_table t = { 0 }, same = { 0 }, other = { 0 };

	(void)state;
	assert_null(route_mac(&t, &a));
	for (unsigned i = 0; i < 2; i++) {
		fix(i ? &same : &t, "10.1.0.9", 1);
		fix(i ? &same : &t, "fd00::9", 2);
		fix(i ? &same : &t, "10.1.0.10", 3);
		fix(&other, i ? "fd00::9" : "10.1.0.9", 1);
	}
	fix(&other, "10.1.0.10", 3);
	route_sort(&t);
	route_sort(&same);
	route_sort(&other);
	assert_int_equal(route_mac(&t, &a)[5], 1);
	assert_int_equal(route_mac(&t, &b)[5], 2);
	assert_null(route_mac(&t, &c));
	assert_true(route_same(&t, &same));
	assert_false(route_same(&t, &other));
	for (unsigned i = 0; i < ROUTE_NEAR_MAX; i++)
		fix(&same, "10.1.0.9", 1);
	assert_true(same.full);
	assert_int_equal(same.n_near, ROUTE_NEAR_MAX);
	route_clear(&t);
	route_clear(&same);
	route_clear(&other);
	assert_null(route_mac(&t, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbors_need_no_route),
		cmocka_unit_test(without_a_route_there_is_no_way),
		cmocka_unit_test(a_gateway_takes_the_rest),
		cmocka_unit_test(the_longest_prefix_decides),
		cmocka_unit_test(the_lower_metric_decides),
		cmocka_unit_test(more_than_fit_are_dropped),
		cmocka_unit_test(tables_are_compared),
		cmocka_unit_test(neighbours_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
