/* SPDX-License-Identifier: BSD-3-Clause */
/* How many ACKs a network gets for what came: RFC 5681 §4.2. */
#include "bed.h"

#define OCTETS 500u  /* a segment: no MSS option, RFC 9293 §3.7.1 */
#define MERGED 1400u /* three of them */

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

/* What a card or the kernel has merged counts as the segments that it was. */
static void merged_segments_are_acknowledged_at_the_end_of_a_burst(void **state)
{
	unsigned before = bed.sent;

	(void)state;
	bed.burst = true;
	for (unsigned i = 0; i < 32; i++) {
		llp_raw.flush_links();
		assert_int_equal(bed.sent, before);
		bed_data(&p, 0, MERGED);
		p.seq += MERGED;
	}
	llp_raw.flush_links();
	assert_int_equal(bed.sent, before + 1); /* of 96 segments, which is too many to wait */
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
	bed_data(&p, 0, MERGED);
	p.seq += MERGED;
	bed.burst = false;
	bed_flush();
	assert_int_equal(bed.sent, before + 2);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
}

/* ---- an ACK that is left for an answer ------------------------------------------------------ */

/* A message of three segments comes, and the program hears of it. Returns how many ACKs it led to.
 */
static unsigned acks_of_message(void)
{
	unsigned before = bed.sent;

	bed.burst = true;
	bed_data(&p, 0, MERGED);
	p.seq += MERGED;
	llp_raw.acks(LLP_ACKS_URGENT);
	llp_raw.flush_links();
	bed.burst = false;
	return bed.sent - before;
}

/* RFC 9293 §3.8.6.3: an ACK goes with an answer that is about to come. */
static void an_answer_carries_the_ack(void **state)
{
	unsigned before = bed.sent;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(acks_of_message(), 0);
		assert_true(llp_raw.acks_left());
		bed_send_full(&p, 1);
		llp_raw.flush_links();
		assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
		assert_false(llp_raw.acks_left());
		p.ack += (uint32_t)bed_last(p.port, 0)->n;
		bed_segment(&p, 0, 0, ACK);
	}
	assert_int_equal(bed.sent, before + 100);
}

static void a_round(enum llp_acks which)
{
	llp_raw.acks(which);
	llp_raw.flush_links();
}

/* The program may look twice whether there is more, and answer then. */
static void it_is_left_for_a_few_rounds(void **state)
{
	unsigned before;

	(void)state;
	assert_int_equal(acks_of_message(), 0);
	assert_true(llp_raw.next_timer_us() > 1000); /* nobody is woken for it */
	before = bed.sent;
	a_round(LLP_ACKS_URGENT);
	a_round(LLP_ACKS_URGENT);
	assert_int_equal(bed.sent, before);
	assert_true(llp_raw.acks_left());
	a_round(LLP_ACKS_URGENT);
	assert_int_equal(bed.sent, before + 1);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
	assert_false(llp_raw.acks_left());
}

/* A stream has its ACKs at once, and so has who does not answer. Another look is made later. */
static void without_an_answer_the_next_are_not_left(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(acks_of_message(), 0);
		a_round(LLP_ACKS_ALL);
		assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(acks_of_message(), 1);
	}
}

static void none_is_left_where_a_segment_is_missing(void **state)
{
	(void)state;
	fill_a_hole();
	bed_flush();
	assert_int_equal(acks_of_message(), 1);
	for (unsigned i = 0; i < 256; i++)
		acks_of_burst(2);
	assert_int_equal(acks_of_message(), 0);
}

/* RoCE's requests are done when their ACK comes: with the answer is soon enough. */
static void it_is_left_where_the_peer_waits_for_it(void **state)
{
	(void)state;
	llp_raw.ack_promptly(p.user->c);
	assert_int_equal(acks_of_message(), 0);
	a_round(LLP_ACKS_ALL);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
}

/* ---- ... that another thread gives ------------------------------------------------------------
 */

#define SOON	299u
#define PATIENT 1000u /* microseconds */

static void answer(void)
{
	bed_send_full(&p, 1);
	llp_raw.flush_links();
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
	p.ack += (uint32_t)bed_last(p.port, 0)->n;
	bed_segment(&p, 0, 0, ACK);
}

/* n messages whose ACKs go alone, each with an answer `us` later. */
static void answered_after(unsigned n, uint64_t us)
{
	for (unsigned i = 0; i < n; i++) {
		acks_of_message();
		a_round(LLP_ACKS_ALL);
		bed.now_us += us;
		answer();
	}
}

/* No ACK of the next message goes in many rounds. */
static bool is_left_for_long(void)
{
	unsigned before = bed.sent;

	acks_of_message();
	for (unsigned i = 0; i < 20; i++)
		a_round(LLP_ACKS_URGENT);
	return bed.sent == before;
}

/* The thread that waits may sleep: an ACK that is left so does not keep it awake. It goes when its
 * time is over, and the next ones at once. */
static void it_waits_for_an_answer_that_came_soon_before(void **state)
{
	(void)state;
	answered_after(8, SOON);
	assert_true(is_left_for_long());
	assert_false(llp_raw.acks_left());
	assert_in_range(llp_raw.next_timer_us(), 1, PATIENT);
	answer();
	assert_true(is_left_for_long());
	bed.now_us += PATIENT - 1;
	assert_int_equal(llp_raw.next_timer_us(), 1);
	a_round(LLP_ACKS_URGENT);
	assert_int_not_equal(bed_last(p.port, 0)->ack, p.seq);
	bed.now_us++;
	assert_true(llp_raw.acks_left());
	a_round(LLP_ACKS_URGENT);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
	answer();
	assert_false(is_left_for_long());
}

/* As a post of another thread sends it: without a round. */
static void answer_by_a_post(void)
{
	size_t room = 0;
	uint8_t *at = llp_raw.tx_begin(p.user->c, &room);

	assert_non_null(at);
	memset(at, 0, room);
	llp_raw.tx_commit(p.user->c, room);
	llp_raw.tx_flush(p.user->c);
	llp_raw.flush_links();
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq);
	p.ack += (uint32_t)bed_last(p.port, 0)->n;
}

/* The next message comes before any round has seen that an answer carried the ACK of the last one.
 */
static void the_time_of_each_begins_anew(void **state)
{
	(void)state;
	answered_after(8, SOON);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(is_left_for_long());
		bed.now_us += PATIENT - 1;
		answer_by_a_post();
	}
}

static void it_does_not_wait_for_one_that_comes_late_or_not(void **state)
{
	(void)state;
	answered_after(7, SOON);
	assert_false(is_left_for_long());
	bed.now_us += SOON + 1;
	answer();
	answered_after(7, SOON);
	assert_false(is_left_for_long());
	a_round(LLP_ACKS_ALL);
	answered_after(8, SOON);
	assert_true(is_left_for_long()); /* and this is the eighth */
}

static void much_does_not_wait(void **state)
{
	(void)state;
	answered_after(8, SOON);
	acks_of_message();
	assert_int_equal(acks_of_message(), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(one_at_a_time_every_second_is_acknowledged),
	TEST(a_burst_is_acknowledged_once),
	TEST(a_long_burst_is_acknowledged_in_between),
	TEST(holes_are_told_at_once),
	TEST(a_lossy_path_hears_more),
	TEST(merged_segments_are_acknowledged_at_the_end_of_a_burst),
	TEST(an_answer_carries_the_ack),
	TEST(it_is_left_for_a_few_rounds),
	TEST(without_an_answer_the_next_are_not_left),
	TEST(none_is_left_where_a_segment_is_missing),
	TEST(it_is_left_where_the_peer_waits_for_it),
	TEST(it_waits_for_an_answer_that_came_soon_before),
	TEST(the_time_of_each_begins_anew),
	TEST(it_does_not_wait_for_one_that_comes_late_or_not),
	TEST(much_does_not_wait),
};

UWTEST_MAIN(tests)
