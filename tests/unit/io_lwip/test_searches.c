/* SPDX-License-Identifier: BSD-3-Clause */
/* Anybody may send segments that belong to no connection: for none of them all connections are
 * searched. */
#include "bed.h"

#include <sys/mman.h>

#include "io/lwip/edge.h"
#include "io/lwip/pcb/private.h"

#define FIRST 2000u
#define MOST  ((unsigned)MEMP_NUM_TCP_PCB)

static int up(void **state)
{
	(void)state;
	bed_open_network();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* ---- whoever looks at a connection of the list faults ---------------------------------------- */

static struct tcp_pcb *trap, *active, *ended;

static void set_trap(void)
{
	if (!trap)
		trap = mmap(NULL, sizeof(*trap), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(trap, MAP_FAILED);
	active = tcp_active_pcbs;
	ended = tcp_tw_pcbs;
	tcp_active_pcbs = tcp_tw_pcbs = trap;
}

static void remove_trap(void)
{
	assert_ptr_equal(tcp_active_pcbs, trap);
	assert_ptr_equal(tcp_tw_pcbs, trap);
	tcp_active_pcbs = active;
	tcp_tw_pcbs = ended;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct bed_seg *heard(uint16_t port, uint8_t flags, uint32_t seq)
{
	unsigned since = bed.sent;

	bed_in(&(struct bed_seg){
		.sport = port, .seq = seq, .ack = 77, .flags = flags, .window = 65535 });
	return bed_last(port, since);
}

/* It is up, and has nothing under way. */
static uint32_t one(uint16_t port)
{
	uint32_t isn = heard(port, SYN, 1000)->seq;

	bed_in(&(struct bed_seg){
		.sport = port, .seq = 1001, .ack = isn + 1, .flags = ACK, .window = 65535 });
	return isn;
}

/* Our side closes first, so it is ours that waits. */
static void one_that_waits(uint16_t port)
{
	uint32_t isn = one(port);
	struct bed_conn *u = &bed.conn[(bed.conns - 1) % BED_CONNS];

	llp_raw.close(u->c);
	u->c = NULL;
	bed_flush();
	bed_in(&(struct bed_seg){
		.sport = port, .seq = 1001, .ack = isn + 2, .flags = FIN | ACK, .window = 65535 });
}

static void of_no_connection(void **state)
{
	const uint8_t flags[] = { ACK, RST, RST | ACK, FIN | ACK, SYN | ACK, 0, FIN };

	(void)state;
	one(FIRST);
	one_that_waits(FIRST + 1);
	set_trap();
	for (unsigned i = 0; i < COUNT(flags); i++) {
		const struct bed_seg *answer = heard(50000, flags[i], 1);

		assert_int_equal(answer ? answer->flags & RST : 0,
				 (flags[i] & (RST | ACK)) == ACK ? RST : 0);
	}
	remove_trap();
}

static void of_one_that_waits(void **state)
{
	const struct bed_seg *answer;
	struct tcp_pcb *pcb;

	(void)state;
	one_that_waits(FIRST);
	one_that_waits(FIRST + 1);
	pcb = tcp_tw_pcbs;
	set_trap();
	answer = heard(FIRST + 1, FIN | ACK, 1001);
	assert_non_null(answer);
	assert_int_equal(answer->flags, ACK);
	remove_trap();
	assert_ptr_equal(tcp_tw_pcbs, pcb);
	assert_non_null(pcb->next);
	assert_null(pcb->next->next);
}

static void fill(unsigned waiting)
{
	for (unsigned i = 0; i < waiting; i++)
		one_that_waits((uint16_t)(FIRST + i));
	for (unsigned i = waiting; i < MOST; i++)
		one((uint16_t)(FIRST + i));
	assert_int_equal(edge.flows, MOST);
}

/* lwIP may look now and then for one that it may end. */
static void a_syn_without_room(void **state)
{
	uint64_t dropped;

	(void)state;
	fill(0);
	heard(50000, SYN, 1);
	dropped = bed.stats.tcp_syn_dropped;
	set_trap();
	tcp_tw_pcbs = NULL; /* nobody waits */
	for (uint16_t i = 0; i < 100; i++)
		assert_null(heard((uint16_t)(50000 + i), SYN, 1));
	tcp_tw_pcbs = trap;
	remove_trap();
	assert_int_equal(bed.stats.tcp_syn_dropped - dropped, 100);
	assert_int_equal(edge.flows, MOST);
}

/* One search finds room for many. */
static void those_that_wait_give_way(void **state)
{
	unsigned left;

	(void)state;
	fill(100);
	assert_int_equal(heard(50000, SYN, 1)->flags, SYN | ACK);
	left = edge.flows;
	assert_in_range(MOST - left, 32, 99);
	ended = tcp_tw_pcbs;
	tcp_tw_pcbs = trap; /* the next one needs no search */
	assert_int_equal(heard(50001, SYN, 1)->flags, SYN | ACK);
	tcp_tw_pcbs = ended;
	/* those that have waited for longest */
	assert_int_equal(heard(FIRST + 99, FIN | ACK, 1001)->flags, ACK);
	assert_true(heard(FIRST, FIN | ACK, 1001)->flags & RST);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(of_no_connection),
	TEST(of_one_that_waits),
	TEST(a_syn_without_room),
	TEST(those_that_wait_give_way),
};

UWTEST_MAIN(tests)
