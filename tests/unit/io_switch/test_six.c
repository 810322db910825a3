/* SPDX-License-Identifier: BSD-3-Clause */
/* Each client has its own flows of IPv6, and no other. */
#include "datagram_frame.h"
#include "frame6.h"

static void a_client_sends_from_its_port(void **state)
{
	struct octets f = segment6(true, ALICES, OUTSIDE, 100);
	struct switch_result r = from(ALICE, &f);

	(void)state;
	assert_int_equal(r.verdict, SWITCH_TO_PORT);
	assert_int_equal(r.tcp, L4_AT);
	assert_int_equal(r.headers, L4_AT + 20);
	assert_int_equal(r.segments, 1);
	memcpy(f.h + FROM_AT, local6, 16);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
}

/* The port of IPv4 is another one. */
static void not_from_another_ones(void **state)
{
	struct octets f = segment6(true, BOBS, OUTSIDE, 100),
		      g = segment6(true, NOBODYS, OUTSIDE, 1);

	(void)state;
	assert_drop(from(ALICE, &f), source_port);
	assert_drop(from(ALICE, &g), source_port);
	assert_int_equal(from(BOB, &f).verdict, SWITCH_TO_PORT);
	f = segment(true, BOBS, OUTSIDE, 100);
	assert_drop(from(BOB, &f), source_port);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
}

static void not_with_another_address(void **state)
{
	struct octets f = segment6(true, ALICES, OUTSIDE, 100);

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		struct octets g = f;

		g.h[FROM_AT + i]++;
		assert_drop(from(ALICE, &g), source_addr);
	}
	f.h[11]++;
	assert_drop(from(ALICE, &f), source_mac);
}

static void without_addresses_nothing_goes(void **state)
{
	struct octets f = segment6(true, ALICES, OUTSIDE, 100),
		      g = segment(true, BOBS, OUTSIDE, 100),
		      h = segment6(false, OUTSIDE, ALICES, 1);

	(void)state;
	table.n_ip6 = 0;
	assert_drop(from(ALICE, &f), source_addr);
	assert_drop(came(&h), target);
	table.addr = 0;
	assert_drop(from(ALICE, &g), source_addr);
	uw_put32(g.h + 26, 0);
	assert_drop(from(ALICE, &g), source_addr);
}

/* RFC 8200 §4: behind any other next header, an extension header among them, could be anything. */
static void no_headers_in_between(void **state)
{
	struct octets f = segment6(true, ALICES, OUTSIDE, 100),
		      g = segment6(false, OUTSIDE, ALICES, 100);

	(void)state;
	for (unsigned next = 0; next < 256; next++) {
		f.h[NEXT_AT] = g.h[NEXT_AT] = (uint8_t)next;
		if (next == NEXT_TCP)
			continue;
		assert_int_equal(from(ALICE, &f).verdict, SWITCH_DROP);
		assert_int_equal(came(&g).verdict, SWITCH_DROP);
	}
	f.h[NEXT_AT] = g.h[NEXT_AT] = NEXT_FRAGMENT;
	assert_drop(from(ALICE, &f), fragment);
	assert_drop(came(&g), fragment);
	f = segment6(true, ALICES, OUTSIDE, 100);
	f.h[14] = 0x40;
	assert_drop(from(ALICE, &f), protocol);
}

static void lengths_fit(void **state)
{
	struct octets f = segment6(true, ALICES, OUTSIDE, 100), g;

	(void)state;
	for (uint32_t len = 0; len < f.len; len++) {
		g = f;
		g.len = len;
		assert_drop(from(ALICE, &g), length);
	}
	g = f;
	g.h[L4_AT + 12] = 0x40; /* a TCP header of 16 octets */
	assert_drop(from(ALICE, &g), length);
	g.h[L4_AT + 12] = 0xf0;
	assert_int_equal(from(ALICE, &g).verdict, SWITCH_TO_PORT);
	uw_put16(g.h + 18, 59); /* the packet ends inside the TCP header */
	assert_drop(from(ALICE, &g), length);
	uw_put16(g.h + 18, 0); /* a jumbogram (RFC 2675) */
	assert_drop(from(ALICE, &g), length);
	g = segment6(true, ALICES, OUTSIDE, MTU - 60);
	assert_int_equal(from(ALICE, &g).verdict, SWITCH_TO_PORT);
	g = segment6(true, ALICES, OUTSIDE, MTU - 59);
	assert_drop(from(ALICE, &g), length);
}

static void merged_frames(void **state)
{
	struct octets f = segment6(true, ALICES, OUTSIDE, 1800);

	(void)state;
	f.gso_size = MTU - 60;
	assert_int_equal(from(ALICE, &f).segments, 2);
	f.gso_size = MTU - 59; /* longer than the link allows */
	assert_drop(from(ALICE, &f), merge);
	f.gso_size = 28; /* 65 of them */
	assert_drop(from(ALICE, &f), merge);
	f.gso_size = 1000;
	f.len++; /* octets behind the packet */
	assert_drop(from(ALICE, &f), merge);
}

static void targets(void **state)
{
	static const uint8_t none[][16] = {
		{ 0 }, { [15] = 1 }, { [10] = 0xff, 0xff, 10, 0, 0, 2 }, { 0xff, 2, [15] = 1 }
	};
	struct octets f = segment6(true, ALICES, OUTSIDE, 100), g;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		g = f;
		memcpy(g.h + TO_AT, none[i], 16);
		assert_drop(from(ALICE, &g), target);
	}
	f.h[0] |= 1;
	assert_drop(from(ALICE, &f), target);
}

static void clients_reach_each_other(void **state)
{
	struct octets f = segment6(true, ALICES, BOBS, 100);

	(void)state;
	memcpy(f.h + TO_AT, local6, 16);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(from(ALICE, &f).client, BOB);
	uw_put16(f.h + L4_AT + 2, NOBODYS);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_ANSWER);
}

static void what_comes_goes_to_its_holder(void **state)
{
	struct octets f = segment6(false, OUTSIDE, ALICES, 1900);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(came(&f).client, ALICE);
	f.h[0] |= 1;
	assert_drop(came(&f), target);
	f.h[0] &= (uint8_t)~1;
	uw_put16(f.h + L4_AT + 2, NOBODYS);
	assert_drop(came(&f), no_holder);
	table.own = true;
	assert_int_equal(came(&f).verdict, SWITCH_ANSWER);
	f.h[TO_AT + 15]++;
	assert_drop(came(&f), target);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static void clients_ask_for_neighbours(void **state)
{
	struct octets f = solicit(true), g = f;

	(void)state;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	g.len -= 8; /* without an option */
	uw_put16(g.h + 18, 24);
	assert_int_equal(from(ALICE, &g).verdict, SWITCH_TO_PORT);
	memcpy(f.h, their_mac, 6); /* RFC 4861 §7.3.3: to the neighbour alone */
	assert_drop(from(ALICE, &f), target);
	memcpy(f.h + TO_AT, their6, 16);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
}

/* Whoever hears a solicitation believes whose the address and the MAC are. */
static void nobody_asks_in_anothers_name(void **state)
{
	struct octets f = solicit(true), g = f;

	(void)state;
	g.h[TARGET_AT + 18 + 5]++;
	assert_drop(from(ALICE, &g), source_mac);
	g = f;
	g.h[TARGET_AT + 16] = 2; /* of the target */
	assert_drop(from(ALICE, &g), source_mac);
	g = f;
	g.h[FROM_AT + 15]++;
	assert_drop(from(ALICE, &g), source_addr);
	memset(g.h + FROM_AT, 0, 16); /* RFC 4862 §5.4.2: as who wants the address */
	assert_drop(from(ALICE, &g), source_addr);
	g = f;
	g.len += 8; /* one option more */
	uw_put16(g.h + 18, 40);
	assert_drop(from(ALICE, &g), source_mac);
}

static void only_solicitations_are_sent(void **state)
{
	struct octets f = solicit(true), g = f;

	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		g.h[L4_AT] = (uint8_t)type;
		assert_int_equal(from(ALICE, &g).verdict,
				 type == 135 ? SWITCH_TO_PORT : SWITCH_DROP);
	}
	g = f;
	g.h[HOPS_AT] = 254;
	assert_drop(from(ALICE, &g), protocol);
	g = f;
	g.gso_size = 10;
	assert_drop(from(ALICE, &g), merge);
	g = f;
	g.len = L4_AT + 23;
	assert_drop(from(ALICE, &g), length);
	g = f;
	g.len = MTU + 15; /* padding that no link takes */
	assert_drop(from(ALICE, &g), length);
}

/* RFC 4291 §2.7.1, RFC 2464 §7 */
static void a_solicitation_goes_to_its_target(void **state)
{
	static const unsigned at[] = { 0, 2, 5, TO_AT, TO_AT + 12, TO_AT + 15, TARGET_AT + 15 };
	struct octets f = solicit(true);

	(void)state;
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct octets g = f;

		g.h[at[i]] ^= 4;
		assert_drop(from(ALICE, &g), target);
	}
	memcpy(f.h + 3, our6 + 13, 3);
	memcpy(f.h + TO_AT + 13, our6 + 13, 3);
	memcpy(f.h + TARGET_AT, our6, 16);
	assert_drop(from(ALICE, &f), target);
}

static void all_hear_the_advertisements(void **state)
{
	static const uint8_t all_nodes[16] = { 0xff, 2, [15] = 1 };
	struct octets f = packet6(false, NEXT_ICMP6, 32);

	(void)state;
	f.h[L4_AT] = 136;
	assert_drop(came(&f), protocol); /* RFC 4861 §7.1.2: over a router */
	f.h[HOPS_AT] = 255;
	assert_int_equal(came(&f).verdict, SWITCH_TO_ALL);
	memcpy(f.h + TO_AT, all_nodes, 16);
	assert_int_equal(came(&f).verdict, SWITCH_TO_ALL);
	f.h[TO_AT + 15]++;
	assert_drop(came(&f), target);
	f.len = L4_AT + 23;
	assert_drop(came(&f), length);
}

static void who_asks_for_us_is_answered_if_nobody_else_does(void **state)
{
	struct octets f = solicit(false);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_DROP);
	table.own = true;
	assert_int_equal(came(&f).verdict, SWITCH_ANSWER);
	f.h[HOPS_AT] = 64;
	assert_drop(came(&f), protocol);
	f.h[HOPS_AT] = 255;
	f.h[TARGET_AT + 15]++;
	assert_drop(came(&f), target);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* RFC 4443 §2.4(d) */
static void an_error_goes_to_whose_segment_it_quotes(void **state)
{
	struct octets f = error6(2, ALICES), g = error6(1, BOBS), h = error6(2, NOBODYS);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(came(&f).client, ALICE);
	assert_int_equal(came(&g).client, BOB);
	assert_drop(came(&h), no_holder);
	h = f;
	h.h[TARGET_AT + 8 + 15]++; /* not from us */
	assert_drop(came(&h), target);
	h = f;
	h.h[TO_AT + 15]++;
	assert_drop(came(&h), target);
	h = f;
	h.h[TARGET_AT + 6] = NEXT_FRAGMENT;
	assert_drop(came(&h), protocol);
	h = f;
	h.h[L4_AT] = 129; /* an echo's reply */
	assert_drop(came(&h), protocol);
	f.len = TARGET_AT + 43;
	assert_drop(came(&f), length);
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static struct switch_qps qps;

static struct octets datagram6(bool out, uint32_t source, uint32_t dest)
{
	struct octets four = datagram(out, UD_SEND, source, dest, 100),
		      f = packet6(out, NEXT_UDP, four.len - 34);

	memcpy(f.h + L4_AT, four.h + 34, four.len - 34);
	return f;
}

static void datagrams_belong_to_qps(void **state)
{
	struct octets f = datagram6(true, ALICES_QP, 99), g = datagram6(false, 99, BOBS_QP);

	(void)state;
	qps.holder[ALICES_QP] = ALICE;
	qps.holder[BOBS_QP] = BOB;
	table.qps = &qps;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	assert_drop(from(BOB, &f), source_qp);
	assert_int_equal(came(&g).client, BOB);
	g.h[TO_AT + 15]++;
	assert_drop(came(&g), target);
	g = datagram6(true, ALICES_QP, BOBS_QP);
	memcpy(g.h + TO_AT, local6, 16);
	assert_int_equal(from(ALICE, &g).client, BOB);
	f.h[TO_AT] = 0xff;
	assert_drop(from(ALICE, &f), target);
	f = datagram6(true, ALICES_QP, 99);
	f.h[FROM_AT + 15]++;
	assert_drop(from(ALICE, &f), source_addr);
	f = datagram6(true, ALICES_QP, 99);
	f.h[NEXT_AT] = NEXT_FRAGMENT;
	assert_drop(from(ALICE, &f), fragment);
}

#define TEST(fn) cmocka_unit_test_setup(fn, table6_up)

static const struct CMUnitTest tests[] = {
	TEST(a_client_sends_from_its_port),
	TEST(not_from_another_ones),
	TEST(not_with_another_address),
	TEST(without_addresses_nothing_goes),
	TEST(no_headers_in_between),
	TEST(lengths_fit),
	TEST(merged_frames),
	TEST(targets),
	TEST(clients_reach_each_other),
	TEST(what_comes_goes_to_its_holder),
	TEST(clients_ask_for_neighbours),
	TEST(nobody_asks_in_anothers_name),
	TEST(only_solicitations_are_sent),
	TEST(a_solicitation_goes_to_its_target),
	TEST(all_hear_the_advertisements),
	TEST(who_asks_for_us_is_answered_if_nobody_else_does),
	TEST(an_error_goes_to_whose_segment_it_quotes),
	TEST(datagrams_belong_to_qps),
};

UWTEST_MAIN(tests)
