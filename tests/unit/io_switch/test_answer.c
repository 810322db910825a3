/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said for an address that nobody else has. */
#include "io/switch/answer.h"

#include "frame6.h"

enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

static uint8_t out[SWITCH_ANSWER_MAX];

static uint32_t answer(const struct octets *o)
{
	struct switch_frame f = frame_of(o);

	return switch_answer(&table, &f, out);
}

static uint16_t sum(const uint8_t *p, unsigned n, uint32_t s)
{
	for (unsigned i = 0; i < n; i += 2)
		s += uw_be16(p + i);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

/* RFC 826 */
static void an_arp_reply(void **state)
{
	struct octets f = arp(false, 1);

	(void)state;
	assert_int_equal(answer(&f), 60);
	assert_memory_equal(out, their_mac, 6);
	assert_memory_equal(out + 6, our_mac, 6);
	assert_int_equal(uw_be16(out + 12), 0x0806);
	assert_int_equal(uw_be16(out + 20), 2);
	assert_memory_equal(out + 22, our_mac, 6);
	assert_int_equal(uw_be32(out + 28), OURS);
	assert_memory_equal(out + 32, their_mac, 6);
	assert_int_equal(uw_be32(out + 38), THEIRS);
}

static void check_reset(void)
{
	assert_memory_equal(out, their_mac, 6);
	assert_int_equal(uw_be32(out + 26), OURS);
	assert_int_equal(uw_be32(out + 30), THEIRS);
	assert_int_equal(uw_be16(out + 34), NOBODYS);
	assert_int_equal(uw_be16(out + 36), OUTSIDE);
	assert_int_equal(sum(out + 14, 20, 0), 0xffff);
	assert_int_equal(sum(out + 34, 20, sum(out + 26, 8, 6 + 20)), 0xffff);
}

/* RFC 9293 §3.10.7.1 */
static void a_reset_of_a_syn(void **state)
{
	struct octets f = segment(false, OUTSIDE, NOBODYS, 0);

	(void)state;
	f.h[47] = SYN;
	uw_put32(f.h + 38, 0xffffffff);
	f.len = 60;
	assert_int_equal(answer(&f), 60);
	check_reset();
	assert_int_equal(out[47], RST | ACK);
	assert_int_equal(uw_be32(out + 38), 0);
	assert_int_equal(uw_be32(out + 42), 0);
}

/* RFC 9293 §3.10.7.1 */
static void a_reset_of_anything_else(void **state)
{
	struct octets f = segment(false, OUTSIDE, NOBODYS, 10);

	(void)state;
	uw_put32(f.h + 42, 77);
	assert_int_equal(answer(&f), 60);
	check_reset();
	assert_int_equal(out[47], RST);
	assert_int_equal(uw_be32(out + 38), 77);
	f.h[47] = FIN;
	uw_put32(f.h + 38, 1000);
	assert_int_equal(answer(&f), 60);
	assert_int_equal(uw_be32(out + 42), 1011);
	f.h[47] = RST | ACK;
	assert_int_equal(answer(&f), 0);
}

/* RFC 9293 §3.10.7.1. The client is told by the shared address itself. */
static void a_reset_for_a_client(void **state)
{
	struct octets f = segment(true, ALICES, NOBODYS, 0);

	(void)state;
	f.h[47] = SYN;
	uw_put32(f.h + 30, OURS);
	uw_put32(f.h + 38, 1000);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_ANSWER);
	assert_int_equal(answer(&f), 60);
	assert_memory_equal(out, our_mac, 6);
	assert_int_equal(uw_be32(out + 26), OURS);
	assert_int_equal(uw_be32(out + 30), OURS);
	assert_int_equal(uw_be16(out + 34), NOBODYS);
	assert_int_equal(uw_be16(out + 36), ALICES);
	assert_int_equal(out[47], RST | ACK);
	assert_int_equal(uw_be32(out + 42), 1001);
	assert_int_equal(sum(out + 34, 20, sum(out + 26, 8, 6 + 20)), 0xffff);
}

/* RFC 9293 §3.10.7.1, over IPv6 */
static void a_reset_over_ip6(void **state)
{
	struct octets f = segment6(false, OUTSIDE, NOBODYS, 10);

	(void)state;
	f.h[L4_AT + 13] = SYN;
	uw_put32(f.h + L4_AT + 4, 1000);
	assert_int_equal(answer(&f), L4_AT + 20);
	assert_memory_equal(out, their_mac, 6);
	assert_memory_equal(out + 6, our_mac, 6);
	assert_int_equal(uw_be16(out + 12), 0x86dd);
	assert_int_equal(out[14] >> 4, 6);
	assert_int_equal(uw_be16(out + 18), 20);
	assert_int_equal(out[NEXT_AT], NEXT_TCP);
	assert_memory_equal(out + FROM_AT, our6, 16);
	assert_memory_equal(out + TO_AT, their6, 16);
	assert_int_equal(uw_be16(out + L4_AT), NOBODYS);
	assert_int_equal(uw_be16(out + L4_AT + 2), OUTSIDE);
	assert_int_equal(out[L4_AT + 13], RST | ACK);
	assert_int_equal(uw_be32(out + L4_AT + 8), 1011);
	assert_int_equal(sum(out + L4_AT, 20, sum(out + FROM_AT, 32, 6 + 20)), 0xffff);
}

static void check_advertisement(const uint8_t *to, uint8_t flags)
{
	assert_int_equal(uw_be16(out + 18), 32);
	assert_int_equal(out[HOPS_AT], 255);
	assert_memory_equal(out + FROM_AT, our6, 16);
	assert_memory_equal(out + TO_AT, to, 16);
	assert_int_equal(out[L4_AT], 136);
	assert_int_equal(out[L4_AT + 1], 0);
	assert_int_equal(out[L4_AT + 4], flags);
	assert_memory_equal(out + TARGET_AT, our6, 16);
	assert_int_equal(uw_be16(out + TARGET_AT + 16), 0x0201);
	assert_memory_equal(out + TARGET_AT + 18, our_mac, 6);
	assert_int_equal(sum(out + L4_AT, 32, sum(out + FROM_AT, 32, 58 + 32)), 0xffff);
}

/* RFC 4861 §4.4, §7.2.4: solicited, override. Who has no address yet is answered by all nodes'. */
static void a_neighbor_advertisement(void **state)
{
	static const uint8_t all_nodes[16] = { 0xff, 2, [15] = 1 };
	struct octets f = solicit(false);

	(void)state;
	assert_int_equal(answer(&f), L4_AT + 32);
	assert_memory_equal(out, their_mac, 6);
	check_advertisement(their6, 0x60);
	memset(f.h + FROM_AT, 0, 16);
	assert_int_equal(answer(&f), L4_AT + 32);
	assert_memory_equal(out, "\x33\x33\0\0\0\1", 6);
	check_advertisement(all_nodes, 0x20);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(a_reset_for_a_client, table_up),
	cmocka_unit_test_setup(a_reset_over_ip6, table6_up),
	cmocka_unit_test_setup(a_neighbor_advertisement, table6_up),
	cmocka_unit_test_setup(an_arp_reply, table_up),
	cmocka_unit_test_setup(a_reset_of_a_syn, table_up),
	cmocka_unit_test_setup(a_reset_of_anything_else, table_up),
};

UWTEST_MAIN(tests)
