/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of multicast groups: RFC 2236, RFC 2710. */
#include "io/member/member.h"

#include "base/be.h"
#include "base/sum.h"
#include "io/addr.h"
#include "uwtest.h"

#define SECOND 1000000u
#define NOW    (1000 * SECOND)
#define QUERY4 46
#define QUERY6 86

static struct io_link link;
static struct members members;
static uint32_t drawn; /* what the source of random numbers says */

static uint32_t draw(void *arg)
{
	(void)arg;
	return drawn;
}

static struct uw_ip group4(uint8_t last)
{
	const uint8_t b[4] = { 239, 129, 2, last };
	uint32_t a;

	memcpy(&a, b, 4);
	return uw_ip_v4(a);
}

static struct uw_ip group6(uint8_t last)
{
	return (struct uw_ip){ { 0xff, 0x05, [15] = last } };
}

static int up(void **state)
{
	(void)state;
	link = (struct io_link){ .addr = htobe32(0x0a000001),
				 .mac = { 2, 1, 1, 1, 1, 1 },
				 .mtu = 1500,
				 .flags = IO_NEIGHBOURS };
	io_set_ip6(&link, NULL, 0);
	memset(&members, 0, sizeof(members));
	members.random = draw;
	drawn = 0x80000000;
	return 0;
}

static void join(struct uw_ip g)
{
	assert_true(member_join(&members, &g, NOW));
}

/* How many reports are due, of which this is one. */
static unsigned due(uint64_t now, const struct uw_ip *g)
{
	struct uw_ip one;
	unsigned n = 0, found = 0;

	for (; member_due(&members, now, &one); n++)
		found += uw_ip_eq(&one, g);
	assert_int_equal(found, n != 0);
	return n;
}

/* As if both reports of each new member were sent. */
static void settle(void)
{
	for (unsigned i = 0; i < members.n; i++) {
		members.v[i].due_us = 0;
		members.v[i].again = false;
	}
}

static void sum4(uint8_t *f)
{
	uint8_t *m = f + 38;

	uw_put16(m + 2, 0);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(0, m, 8)));
}

static void sum6(uint8_t *f)
{
	uint8_t *p = f + 14, *m = p + 48;

	uw_put16(m + 2, 0);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(uw_sum_add(24 + 58, p + 8, 32), m, 24)));
}

/* A query by a router, made of a report; group NULL: for all. */
static void query4(uint8_t *f, const struct uw_ip *g, uint8_t tenths)
{
	struct uw_ip any = group4(1);

	assert_int_equal(member_frame(&link, g ? g : &any, false, f), QUERY4);
	f[38] = 0x11;
	f[39] = tenths;
	if (!g)
		memset(f + 42, 0, 4);
	sum4(f);
}

static void query6(uint8_t *f, const struct uw_ip *g, uint16_t ms)
{
	struct uw_ip any = group6(1);

	assert_int_equal(member_frame(&link, g ? g : &any, false, f), QUERY6);
	f[62] = 130;
	uw_put16(f + 66, ms);
	if (!g)
		memset(f + 70, 0, 16);
	sum6(f);
}

static bool came(const uint8_t *f, size_t n)
{
	return member_read(&members, f, n, NOW + 60 * SECOND);
}

/* ---- what is sent ------------------------------------------------------------------------ */

/* RFC 2236 §2, §9: to the group, TTL 1, router alert; a Leave to all routers. */
static void messages_of_igmp(void **state)
{
	static const uint8_t mac[6] = { 1, 0, 0x5e, 1, 2, 7 }, routers[6] = { 1, 0, 0x5e, 0, 0, 2 };
	struct uw_ip g = group4(7);
	uint8_t f[MEMBER_FRAME];

	(void)state;
	assert_int_equal(member_frame(&link, &g, false, f), 46);
	assert_memory_equal(f, mac, 6);
	assert_memory_equal(f + 6, link.mac, 6);
	assert_int_equal(f[14], 0x46);
	assert_int_equal(uw_be16(f + 16), 32);
	assert_int_equal(f[22], 1);
	assert_int_equal(f[23], 2);
	assert_memory_equal(f + 26, &link.addr, 4);
	assert_memory_equal(f + 30, g.b + 12, 4);
	assert_int_equal(uw_be32(f + 34), 0x94040000);
	assert_int_equal(uw_sum_fold(uw_sum_add(0, f + 14, 24)), 0xffff);
	assert_int_equal(f[38], 0x16);
	assert_memory_equal(f + 42, g.b + 12, 4);
	assert_int_equal(uw_sum_fold(uw_sum_add(0, f + 38, 8)), 0xffff);
	member_frame(&link, &g, true, f);
	assert_memory_equal(f, routers, 6);
	assert_int_equal(uw_be32(f + 30), 0xe0000002);
	assert_int_equal(f[38], 0x17);
	assert_memory_equal(f + 42, g.b + 12, 4);
}

/* RFC 2710 §3, §3.8: from the link-local address, hop limit 1, router alert; Done to all routers.
 */
static void messages_of_mld(void **state)
{
	static const uint8_t mac[6] = { 0x33, 0x33, 0, 0, 0, 7 },
			     routers[6] = { 0x33, 0x33, 0, 0, 0, 2 };
	static const uint8_t alert[8] = { 58, 0, 5, 2, 0, 0, 1, 0 };
	struct uw_ip g = group6(7);
	uint8_t f[MEMBER_FRAME];
	uint32_t sum;

	(void)state;
	assert_int_equal(member_frame(&link, &g, false, f), 86);
	assert_memory_equal(f, mac, 6);
	assert_int_equal(uw_be16(f + 18), 32);
	assert_int_equal(f[20], 0);
	assert_int_equal(f[21], 1);
	assert_memory_equal(f + 22, link.ip6[0].ip.b, 16);
	assert_memory_equal(f + 38, g.b, 16);
	assert_memory_equal(f + 54, alert, 8);
	assert_int_equal(f[62], 131);
	assert_memory_equal(f + 70, g.b, 16);
	sum = uw_sum_add(24 + 58, f + 22, 32);
	assert_int_equal(uw_sum_fold(uw_sum_add(sum, f + 62, 24)), 0xffff);
	member_frame(&link, &g, true, f);
	assert_memory_equal(f, routers, 6);
	assert_int_equal(f[53], 2);
	assert_int_equal(f[62], 132);
}

/* ---- when -------------------------------------------------------------------------------- */

/* RFC 2236 §3, RFC 2710 §4: at once, and once more, since the first may be lost. */
static void a_new_member_reports_twice(void **state)
{
	const struct uw_ip groups[] = { group4(7), group6(7) };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		join(groups[i]);
		join(groups[i]); /* is one already */
		assert_int_equal(member_next_us(&members), NOW);
		assert_int_equal(due(NOW, &groups[i]), 1);
		assert_int_equal(due(NOW + 4 * SECOND, &groups[i]), 0);
		assert_int_equal(due(NOW + 6 * SECOND, &groups[i]), 1);
		assert_int_equal(member_next_us(&members), UINT64_MAX);
		assert_true(member_leave(&members, &groups[i]));
		assert_false(member_leave(&members, &groups[i]));
	}
}

/* RFC 2236 §6, RFC 2710 §5 */
static void nobody_tells_of_all_hosts(void **state)
{
	static const struct uw_ip all6 = { { 0xff, 2, [15] = 1 } },
				  host = { { 0xff, 1, [15] = 7 } };
	struct uw_ip all4 = uw_ip_v4(htobe32(0xe0000001));

	(void)state;
	join(all4);
	join(all6);
	join(host);
	assert_int_equal(members.n, 0);
}

static void groups_are_limited(void **state)
{
	struct uw_ip g = group6(0);

	(void)state;
	for (unsigned i = 0; i < MEMBER_GROUPS; i++) {
		uw_put16(g.b + 12, (uint16_t)i);
		join(g);
	}
	g = group4(1);
	assert_false(member_join(&members, &g, NOW));
}

/* RFC 2236 §2.2: within the time that the query names, in tenths of a second; version 1 names none
 * and means ten seconds. */
static void a_query_is_answered_in_time(void **state)
{
	struct uw_ip g = group4(7), h = group6(7);
	uint8_t f[MEMBER_FRAME];

	(void)state;
	join(g);
	join(h);
	settle();
	query4(f, NULL, 100);
	assert_true(came(f, QUERY4));
	assert_int_equal(member_next_us(&members), NOW + 65 * SECOND + 1);
	drawn = 0;
	query4(f, NULL, 0); /* a timer that is to run out sooner goes on, RFC 2236 §3 */
	assert_true(came(f, QUERY4));
	assert_int_equal(member_next_us(&members), NOW + 65 * SECOND + 1);
	query4(f, NULL, 10);
	assert_true(came(f, QUERY4));
	assert_int_equal(member_next_us(&members), NOW + 60 * SECOND + 1);
	assert_int_equal(due(NOW + 61 * SECOND, &g), 1);
	assert_int_equal(member_next_us(&members), UINT64_MAX);
	query4(f, NULL, 0);
	drawn = UINT32_MAX;
	assert_true(came(f, QUERY4));
	assert_int_equal(member_next_us(&members), NOW + 70 * SECOND);
}

/* RFC 2710 §3.4: milliseconds */
static void a_query_of_mld_is_answered_in_time(void **state)
{
	struct uw_ip g = group6(7), h = group4(7);
	uint8_t f[MEMBER_FRAME];

	(void)state;
	join(g);
	join(h);
	settle();
	query6(f, NULL, 3000);
	assert_true(came(f, QUERY6));
	assert_int_equal(member_next_us(&members), NOW + 60 * SECOND + 1500001);
	assert_int_equal(due(NOW + 62 * SECOND, &g), 1);
}

static void a_query_for_one_group(void **state)
{
	const struct uw_ip g[] = { group4(7), group4(8), group6(7), group6(8) };
	uint8_t f[MEMBER_FRAME];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		join(g[i]);
	settle();
	query4(f, &g[1], 10);
	assert_true(came(f, QUERY4));
	assert_int_equal(due(NOW + 62 * SECOND, &g[1]), 1);
	query6(f, &g[3], 1000);
	assert_true(came(f, QUERY6));
	assert_int_equal(due(NOW + 62 * SECOND, &g[3]), 1);
}

/* RFC 2236 §3, RFC 2710 §4: another member has reported. */
static void one_report_is_enough(void **state)
{
	struct uw_ip g = group4(7), h = group6(7);
	uint8_t f[MEMBER_FRAME];

	(void)state;
	join(g);
	member_frame(&link, &g, false, f);
	assert_true(came(f, QUERY4));
	assert_int_equal(member_next_us(&members), UINT64_MAX);
	join(h);
	member_frame(&link, &h, false, f);
	assert_true(came(f, QUERY6));
	assert_int_equal(member_next_us(&members), UINT64_MAX);
}

/* ---- what is wrong ----------------------------------------------------------------------- */

static void bad_messages_are_no_queries(void **state)
{
	/* where, what, and whether the sum is made right again */
	static const struct {
		unsigned at;
		uint8_t value;
		bool repaired;
	} four[] = { { 40, 0xff, false },
		     { 20, 0x20, true },
		     { 38, 0x17, true },
		     { 17, 28, false } },
	  six[] = { { 64, 0xff, false },
		    { 21, 2, true },
		    { 22, 0x20, true },
		    { 62, 132, true },
		    { 19, 31, false } };
	struct uw_ip g = group4(7), h = group6(7);
	uint8_t f[MEMBER_FRAME];

	(void)state;
	join(g);
	join(h);
	settle();
	for (unsigned i = 0; i < COUNT(four); i++) {
		query4(f, NULL, 10);
		f[four[i].at] = four[i].value;
		if (four[i].repaired)
			sum4(f);
		assert_true(came(f, QUERY4));
		assert_int_equal(member_next_us(&members), UINT64_MAX);
	}
	for (unsigned i = 0; i < COUNT(six); i++) {
		query6(f, NULL, 10);
		f[six[i].at] = six[i].value;
		if (six[i].repaired)
			sum6(f);
		assert_true(came(f, QUERY6));
		assert_int_equal(member_next_us(&members), UINT64_MAX);
	}
}

static void messages_that_are_cut_are_no_queries(void **state)
{
	struct uw_ip g = group4(7), h = group6(7);
	uint8_t f[MEMBER_FRAME];

	(void)state;
	join(g);
	join(h);
	settle();
	query4(f, NULL, 10);
	assert_true(came(f, QUERY4 - 2));
	query6(f, NULL, 10);
	assert_true(came(f, QUERY6 - 2));
	assert_int_equal(member_next_us(&members), UINT64_MAX);
}

static void who_leaves_takes_no_other_along(void **state)
{
	struct uw_ip g = group4(7), h = group4(8);

	(void)state;
	join(g);
	join(h);
	assert_true(member_leave(&members, &g));
	assert_int_equal(due(NOW, &h), 1);
	assert_true(member_leave(&members, &h));
	assert_int_equal(member_next_us(&members), UINT64_MAX);
}

static void other_frames_are_none_of_ours(void **state)
{
	uint8_t f[MEMBER_FRAME];

	(void)state;
	query4(f, NULL, 10);
	f[23] = 6;
	assert_false(came(f, QUERY4));
	query6(f, NULL, 10);
	f[62] = 135; /* a neighbour asks */
	assert_false(came(f, QUERY6));
	query6(f, NULL, 10);
	f[62] = 128; /* an echo */
	assert_false(came(f, QUERY6));
	query6(f, NULL, 10);
	f[20] = 58;
	assert_false(came(f, QUERY6));
	for (size_t n = 0; n < 34; n++)
		assert_false(came(f, n));
}

static void random_octets_break_nothing(void **state)
{
	struct prng r = { 5 };
	struct uw_ip g = group4(7), h = group6(7);
	unsigned asked = 0;

	(void)state;
	join(g);
	join(h);
	settle();
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t frame[MEMBER_FRAME], *exact;
		size_t n = i & 1 ? QUERY4 : QUERY6;

		if (i & 1)
			query4(frame, NULL, 10);
		else
			query6(frame, NULL, 10);
		for (unsigned k = prng_below(&r, 3); k--;)
			frame[12 + prng_below(&r, (uint32_t)n - 12)] = (uint8_t)prng_next(&r);
		if (prng_below(&r, 3) == 0)
			n = prng_below(&r, (uint32_t)n + 1);
		exact = malloc(n ? n : 1);
		memcpy(exact, frame, n);
		asked += member_read(&members, exact, n, NOW);
		free(exact);
	}
	assert_true(asked > 1000);
}

#define TEST(fn) cmocka_unit_test_setup(fn, up)

static const struct CMUnitTest tests[] = {
	TEST(messages_of_igmp),
	TEST(messages_of_mld),
	TEST(a_new_member_reports_twice),
	TEST(nobody_tells_of_all_hosts),
	TEST(groups_are_limited),
	TEST(a_query_is_answered_in_time),
	TEST(a_query_of_mld_is_answered_in_time),
	TEST(a_query_for_one_group),
	TEST(one_report_is_enough),
	TEST(bad_messages_are_no_queries),
	TEST(messages_that_are_cut_are_no_queries),
	TEST(who_leaves_takes_no_other_along),
	TEST(other_frames_are_none_of_ours),
	TEST(random_octets_break_nothing),
};

UWTEST_MAIN(tests)
