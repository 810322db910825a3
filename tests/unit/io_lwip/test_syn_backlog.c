/* SPDX-License-Identifier: BSD-3-Clause */
/* Floods of SYNs (RFC 4987, RFC 5042 §6.4.2): true clients get in meanwhile. */
#include "bed.h"

#include <endian.h>

#include "io/lwip/edge.h"
#include "io/route/table.h"

#define MOST 1024u /* half open */

/* Other networks are behind the one neighbour. */
static struct route_table routes;

static int up(void **state)
{
	(void)state;
	bed_open_network();
	route_add(&routes,
		  &(struct route){ .net = { uw_ip_v4(htobe32(0x0c000000)), UW_IP_V4_BITS + 8 },
				   .via = uw_ip_v4(htobe32(BED_THEIRS)) });
	route_sort(&routes);
	bed.link.routes = &routes;
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	route_clear(&routes);
	assert_int_equal(edge.half_open, 0);
	return 0;
}

static void syn(uint32_t from, uint16_t port)
{
	bed_in(&(struct bed_seg){
		.from = from, .sport = port, .seq = 1, .flags = SYN, .window = 65535 });
}

static bool connects(uint16_t port)
{
	unsigned before = bed.conns, since = bed.sent;
	const struct bed_seg *answer;

	syn(0, port);
	answer = bed_last(port, since);
	if (!answer)
		return false;
	bed_in(&(struct bed_seg){
		.sport = port, .seq = 2, .ack = answer->seq + 1, .flags = ACK, .window = 65535 });
	return bed.conns == before + 1;
}

/* 10,000 a second, each from another host that does not exist. */
static void forged_addresses(void **state)
{
	struct prng r = { 7 };
	unsigned up = 0;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		syn(0x0b000000u | prng_below(&r, 1u << 24), (uint16_t)(1024 + i));
		bed.now_us += 100;
		if (i % 100 == 0)
			up += connects((uint16_t)(40000 + i));
	}
	assert_in_range(up, 48, 50);
	assert_int_equal(edge.half_open, MOST);
	assert_true(bed.stats.tcp_syn_recycled > 5000 / 2);
	/* It is over 20 s later. */
	bed_pass(25000000);
	assert_int_equal(edge.half_open, 0);
}

/* One host's flood takes that host's places: those that others have asked for stay. */
static void one_host(void **state)
{
	uint32_t isn[20];

	(void)state;
	for (unsigned i = 0; i < COUNT(isn); i++) {
		syn(0x0c000001u + i * 0x100, 5000);
		isn[i] = bed_last(5000, 0)->seq;
	}
	for (unsigned i = 0; i < 5000; i++)
		syn(0x0d000001u, (uint16_t)(1024 + i));
	bed_pass(60000);
	assert_true(connects(50000));
	for (unsigned i = 0; i < COUNT(isn); i++) {
		unsigned before = bed.conns;

		bed_in(&(struct bed_seg){ .from = 0x0c000001u + i * 0x100,
					  .sport = 5000,
					  .seq = 2,
					  .ack = isn[i] + 1,
					  .flags = ACK,
					  .window = 65535 });
		assert_int_equal(bed.conns, before + 1);
	}
}

/* Those that one program opens at once do not fail each other. */
static void true_ones_come_first(void **state)
{
	static uint32_t isn[MOST];

	(void)state;
	for (unsigned i = 0; i < COUNT(isn); i++) {
		syn(0, (uint16_t)(10000 + i));
		isn[i] = bed_last((uint16_t)(10000 + i), 0)->seq;
	}
	for (unsigned i = 0; i < 500; i++)
		syn(0, (uint16_t)(20000 + i));
	for (unsigned i = 0; i < COUNT(isn); i++)
		bed_in(&(struct bed_seg){ .sport = (uint16_t)(10000 + i),
					  .seq = 2,
					  .ack = isn[i] + 1,
					  .flags = ACK,
					  .window = 65535 });
	assert_int_equal(bed.conns, MOST);
	assert_int_equal(bed.stats.tcp_syn_recycled, 0);
	assert_int_equal(bed.stats.tcp_syn_dropped, 500);
}

/* Who shares a host with a flood gets in as the flood's SYNs get old. */
static void beside_a_flood_on_the_same_host(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * MOST; i++)
		syn(0, (uint16_t)(1024 + i));
	assert_false(connects(50000));
	bed_pass(1100000);
	assert_true(connects(50000));
}

/* Between processes of a machine more find a place, and nobody gives way. */
static void processes_have_places_of_their_own(void **state)
{
	(void)state;
	bed_close();
	bed_open();
	for (unsigned i = 0; i < 8 * MOST; i++)
		syn(0, (uint16_t)(1024 + i));
	assert_int_equal(bed.stats.tcp_syn_dropped, 0);
	assert_int_equal(edge.half_open, 0); /* of those that are counted */
	bed_pass(60000);
	assert_false(connects(50000));
	assert_int_equal(bed.stats.tcp_syn_dropped, 1);
	assert_int_equal(bed.stats.tcp_syn_recycled, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(forged_addresses),
	TEST(one_host),
	TEST(true_ones_come_first),
	TEST(beside_a_flood_on_the_same_host),
	TEST(processes_have_places_of_their_own),
};

UWTEST_MAIN(tests)
