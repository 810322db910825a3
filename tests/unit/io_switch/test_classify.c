/* SPDX-License-Identifier: BSD-3-Clause */
/* Each client has its own flows, and no other. */
#include "frame.h"

static void a_client_sends_from_its_port(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 100);
	struct switch_result r = from(ALICE, &f);

	(void)state;
	assert_int_equal(r.verdict, SWITCH_TO_PORT);
	assert_int_equal(r.tcp, 34);
	assert_int_equal(r.headers, 54);
	assert_int_equal(r.segments, 1);
}

static void not_from_another_ones(void **state)
{
	struct octets f = segment(true, BOBS, OUTSIDE, 100), g = segment(true, NOBODYS, OUTSIDE, 1);

	(void)state;
	assert_drop(from(ALICE, &f), source_port);
	assert_drop(from(ALICE, &g), source_port);
	assert_int_equal(from(BOB, &f).verdict, SWITCH_TO_PORT);
}

static void not_with_another_address(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 100), g = f;

	(void)state;
	f.h[29]++;
	assert_drop(from(ALICE, &f), source_addr);
	g.h[11]++;
	assert_drop(from(ALICE, &g), source_mac);
}

/* Everything that is no TCP is the kernel's. */
static void nothing_but_tcp(void **state)
{
	static const uint16_t types[] = { 0x86dd, 0x8100, 0x88cc, 0x0000, 0x05dc };
	struct octets f = segment(true, ALICES, OUTSIDE, 100);

	(void)state;
	for (unsigned protocol = 0; protocol < 256; protocol++) {
		f.h[23] = (uint8_t)protocol;
		assert_int_equal(from(ALICE, &f).verdict,
				 protocol == 6 ? SWITCH_TO_PORT : SWITCH_DROP);
	}
	f.h[23] = 6;
	for (unsigned i = 0; i < 5; i++) {
		uw_put16(f.h + 12, types[i]);
		assert_drop(from(ALICE, &f), protocol);
	}
}

/* A fragment shows no port, or only once. */
static void no_fragments(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 100),
		      g = segment(false, OUTSIDE, ALICES, 9);

	(void)state;
	f.h[20] = g.h[20] = 0x20;
	assert_drop(from(ALICE, &f), fragment);
	assert_drop(came(&g), fragment);
	f.h[20] = 0;
	f.h[21] = 1;
	assert_drop(from(ALICE, &f), fragment);
	f.h[21] = 0;
	f.h[20] = 0x40; /* do not fragment */
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
}

/* The ports lie where the IP header's length says. */
static void options_of_ip(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 100);

	(void)state;
	f.h[14] = 0x46;
	f.h[50] = 0x50;
	assert_drop(from(ALICE, &f), source_port);
	uw_put16(f.h + 38, ALICES);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	assert_int_equal(from(ALICE, &f).tcp, 38);
	f.h[14] = 0x44;
	assert_drop(from(ALICE, &f), protocol);
}

static void lengths_fit(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 100), g;

	(void)state;
	for (uint32_t len = 0; len < 154; len++) {
		g = f;
		g.len = len;
		assert_drop(from(ALICE, &g), length);
	}
	g = f;
	g.h[46] = 0x40; /* a TCP header of 16 octets */
	assert_drop(from(ALICE, &g), length);
	g.h[46] = 0xf0;
	assert_int_equal(from(ALICE, &g).verdict, SWITCH_TO_PORT);
	uw_put16(g.h + 16, 79); /* the packet ends inside the TCP header */
	assert_drop(from(ALICE, &g), length);
	g = segment(true, ALICES, OUTSIDE, MTU - 40);
	assert_int_equal(from(ALICE, &g).verdict, SWITCH_TO_PORT);
	g = segment(true, ALICES, OUTSIDE, MTU - 39);
	assert_drop(from(ALICE, &g), length);
}

static void merged_frames(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 1800);

	(void)state;
	f.gso_size = 1000;
	assert_int_equal(from(ALICE, &f).segments, 2);
	f.gso_size = 28; /* 65 of them */
	assert_drop(from(ALICE, &f), merge);
	f.gso_size = 29;
	assert_int_equal(from(ALICE, &f).segments, 63);
	f.gso_size = MTU - 39; /* longer than the link allows */
	assert_drop(from(ALICE, &f), merge);
	f.gso_size = 1000;
	f.len++; /* octets behind the packet */
	assert_drop(from(ALICE, &f), merge);
	f.len--;
	table.merges = false;
	assert_drop(from(ALICE, &f), merge);
}

static void targets(void **state)
{
	struct octets f = segment(true, ALICES, OUTSIDE, 100);

	(void)state;
	f.h[0] |= 1; /* to all at once */
	assert_drop(from(ALICE, &f), target);
	f.h[0] &= (uint8_t)~1;
	uw_put32(f.h + 30, 0xe0000001);
	assert_drop(from(ALICE, &f), target);
	uw_put32(f.h + 30, 0x7f000001);
	assert_drop(from(ALICE, &f), target);
}

static void clients_reach_each_other(void **state)
{
	struct octets f = segment(true, ALICES, BOBS, 100);

	(void)state;
	uw_put32(f.h + 30, OURS);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(from(ALICE, &f).client, BOB);
	uw_put16(f.h + 36, NOBODYS);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_ANSWER);
}

static void what_comes_goes_to_its_holder(void **state)
{
	struct octets f = segment(false, OUTSIDE, BOBS, 100);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(came(&f).client, BOB);
	uw_put16(f.h + 36, NOBODYS);
	assert_drop(came(&f), no_holder);
	table.own = true;
	assert_int_equal(came(&f).verdict, SWITCH_ANSWER);
	f.h[33]++;
	assert_drop(came(&f), target);
}

/* RC without rdma_cm finds nobody at its usual port, and asks (doc/adr/0048). */
static void who_calls_the_port_of_rc_is_refused(void **state)
{
	struct octets f = segment(false, OUTSIDE, SWITCH_RC_PORT, 0);

	(void)state;
	assert_drop(came(&f), no_holder); /* the kernel answers */
	table.refuses6 = true;
	assert_drop(came(&f), no_holder);
	table.refuses = true;
	assert_int_equal(came(&f).verdict, SWITCH_ANSWER);
	uw_put16(f.h + 36, NOBODYS);
	assert_drop(came(&f), no_holder);
}

/* The kernel hands up merged frames, which no MTU bounds, and short frames with padding. */
static void what_comes_may_be_merged_or_padded(void **state)
{
	struct octets f = segment(false, OUTSIDE, BOBS, 1900), g = segment(false, OUTSIDE, BOBS, 0);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_TO_CLIENT);
	g.len = 60;
	assert_int_equal(came(&g).verdict, SWITCH_TO_CLIENT);
}

static void clients_ask_for_neighbours(void **state)
{
	struct octets f = arp(true, 1), g;

	(void)state;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	g = arp(true, 2); /* nobody may answer for others */
	assert_drop(from(ALICE, &g), protocol);
	g = f;
	g.h[31]++;
	assert_drop(from(ALICE, &g), source_addr);
	g = f;
	g.h[27]++;
	assert_drop(from(ALICE, &g), source_mac);
	g = f;
	g.len = 41;
	assert_drop(from(ALICE, &g), protocol);
	g = f;
	g.h[19] = 16;
	assert_drop(from(ALICE, &g), protocol);
}

static void all_hear_the_replies(void **state)
{
	struct octets f = arp(false, 2), g = arp(false, 1);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_TO_ALL);
	assert_int_equal(came(&g).verdict, SWITCH_DROP);
	table.own = true;
	assert_int_equal(came(&g).verdict, SWITCH_ANSWER);
	g.h[41]++;
	assert_drop(came(&g), target);
}

#define TEST(fn) cmocka_unit_test_setup(fn, table_up)

static const struct CMUnitTest tests[] = {
	TEST(a_client_sends_from_its_port),
	TEST(not_from_another_ones),
	TEST(not_with_another_address),
	TEST(nothing_but_tcp),
	TEST(no_fragments),
	TEST(options_of_ip),
	TEST(lengths_fit),
	TEST(merged_frames),
	TEST(targets),
	TEST(clients_reach_each_other),
	TEST(what_comes_goes_to_its_holder),
	TEST(who_calls_the_port_of_rc_is_refused),
	TEST(what_comes_may_be_merged_or_padded),
	TEST(clients_ask_for_neighbours),
	TEST(all_hear_the_replies),
};

UWTEST_MAIN(tests)
