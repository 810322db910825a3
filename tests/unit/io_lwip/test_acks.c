/* SPDX-License-Identifier: BSD-3-Clause */
/* How many ACKs a network gets for what came: RFC 5681 §4.2. */
#include "bed.h"

#define OCTETS 500u /* a segment: no MSS option, RFC 9293 §3.7.1 */

static struct bed_peer p;

static int up(void **state)
{
	(void)state;
	bed_open();
	p = bed_connect(40000);
	bed_be_network();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed.link.flags = IO_P2P;
	bed_close();
	return 0;
}

/* n segments in one burst; returns the number of ACKs that they lead to. */
static unsigned acks_of_burst(unsigned n)
{
	unsigned before = bed.sent;

	bed.burst = true;
	while (n--) {
		bed_data(&p, 0, OCTETS);
		p.seq += OCTETS;
	}
	bed.burst = false;
	bed_flush();
	return bed.sent - before;
}

static void one_at_a_time_every_second_is_acknowledged(void **state)
{
	unsigned before = bed.sent;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		bed_data(&p, 0, OCTETS);
		p.seq += OCTETS;
	}
	assert_in_range(bed.sent - before, 4, 8);
}

/* What came faster than it was looked at is acknowledged at the end, all of it. */
static void a_burst_is_acknowledged_once(void **state)
{
	(void)state;
	for (unsigned n = 2; n < 16; n++) {
		assert_int_equal(acks_of_burst(n), 1);
		assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
	}
}

/* A sender that hears nothing for long would send nothing, and then a burst itself. */
static void a_long_burst_is_acknowledged_in_between(void **state)
{
	(void)state;
	assert_in_range(acks_of_burst(32), 2, 3);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
}

/* "A TCP receiver SHOULD send an immediate ACK when the incoming segment fills in all or part of a
 * gap", and a duplicate for each segment out of order. */
static void holes_are_told_at_once(void **state)
{
	unsigned before = bed.sent;

	(void)state;
	bed.burst = true;
	bed_data(&p, OCTETS, OCTETS);
	bed_data(&p, 2 * OCTETS, OCTETS);
	bed_data(&p, 0, OCTETS);
	p.seq += 3 * OCTETS;
	bed.burst = false;
	bed_flush();
	assert_in_range(bed.sent - before, 3, 4);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
}

/* A hole, and the segment that fills it. */
static void fill_a_hole(void)
{
	bed_data(&p, OCTETS, OCTETS);
	bed_data(&p, 0, OCTETS);
	p.seq += 2 * OCTETS;
}

/* Where segments are lost ACKs are, too: one of several for a window comes through, and a segment
 * that is alone under way waits for no timer. When nothing was lost for 256 frames all is as
 * before. */
static void a_lossy_path_hears_more(void **state)
{
	(void)state;
	assert_int_equal(acks_of_burst(1), 0);
	assert_int_equal(acks_of_burst(1), 1);
	fill_a_hole();
	assert_int_equal(acks_of_burst(1), 1);
	assert_int_equal(acks_of_burst(1), 1);
	assert_in_range(acks_of_burst(12), 6, 7);
	for (unsigned i = 0; i < 256; i++)
		acks_of_burst(1);
	assert_int_equal(acks_of_burst(12), 1);
	assert_int_equal(acks_of_burst(1), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(one_at_a_time_every_second_is_acknowledged),
	TEST(a_burst_is_acknowledged_once),
	TEST(a_long_burst_is_acknowledged_in_between),
	TEST(holes_are_told_at_once),
	TEST(a_lossy_path_hears_more),
};

UWTEST_MAIN(tests)
