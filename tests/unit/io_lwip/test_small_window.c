/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer whose window is below a segment gets its octets: RFC 9293 §3.8.6.2.1. */
#include "bed.h"

#define OCTETS 500u /* a segment: no MSS option, RFC 9293 §3.7.1 */

static int up(void **state)
{
	(void)state;
	bed_open();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* Said with octets that are newer than what the window was said with last. */
static void set_window(struct bed_peer *p, uint16_t window)
{
	bed_data(p, 0, 1);
	p->seq++;
	p->window = window;
	bed_data(p, 0, 1);
	p->seq++;
}

/* The user tries for as long as it has not sent them. */
static bool try_to_send(struct bed_conn *u)
{
	size_t room;
	uint8_t *p = llp_raw.tx_begin(u->c, &room);

	if (!p)
		return false;
	assert_true(room >= OCTETS);
	memset(p, 1, OCTETS);
	llp_raw.tx_commit(u->c, OCTETS);
	llp_raw.tx_flush(u->c);
	bed_flush();
	return true;
}

static void all_arrives_in_pieces(uint16_t window)
{
	struct bed_peer p = bed_connect(40000);
	uint32_t first = p.ack;
	uint64_t start = bed.now_us;
	bool sent = false;

	set_window(&p, window);
	assert_false(try_to_send(p.user));
	while (p.ack - first < OCTETS) {
		const struct bed_seg *s = bed_last(p.port, 0);

		bed_pass(10000);
		assert_in_range(bed.now_us - start, 0, 20000000);
		if (!sent)
			sent = try_to_send(p.user);
		if (s->n && s->seq == p.ack) {
			assert_in_range(s->n, 1, window);
			p.ack += (uint32_t)s->n;
			bed_segment(&p, 0, 0, ACK);
		}
	}
	/* "0.1 to 1.0 seconds", and not at once */
	assert_in_range(bed.now_us - start, 100000, 20000000);
	assert_int_equal(bed.stats.tcp_assertions, 0);
	/* When the window opens it is as before. */
	set_window(&p, 65535);
	assert_true(try_to_send(p.user));
	assert_int_equal(bed_last(p.port, 0)->n, OCTETS);
}

static void test_100(void **state)
{
	(void)state;
	all_arrives_in_pieces(100);
}

static void test_499(void **state)
{
	(void)state;
	all_arrives_in_pieces(499);
}

/* An ACK of the first piece alone, and a flush right behind it: the segment that was cut is gone.
 */
static void a_flush_between_the_pieces(void **state)
{
	struct bed_peer p = bed_connect(40000);
	const struct bed_seg *s;
	unsigned since;

	(void)state;
	set_window(&p, 200);
	for (unsigned i = 0; i < 100 && !try_to_send(p.user); i++)
		bed_pass(10000);
	since = bed.sent;
	for (unsigned i = 0; i < 100 && !bed_last(p.port, since); i++)
		bed_pass(10000);
	s = bed_last(p.port, since);
	assert_non_null(s);
	assert_int_equal(s->n, 200);
	p.ack += 200;
	p.window = 65535;
	bed_segment(&p, 0, 0, ACK); /* the rest goes */
	llp_raw.tx_flush(p.user->c);
	for (unsigned i = 0; i < 3; i++)
		assert_true(try_to_send(p.user));
	p.ack += OCTETS - 200;
	bed_segment(&p, 0, 0, ACK);
	assert_true(try_to_send(p.user));
	bed_flush();
	assert_int_equal(bed_last(p.port, 0)->n, OCTETS);
}

/* A connection whose peer never had a larger window, nor announces longer segments. */
static struct bed_peer connect_to_tiny(uint16_t window, uint16_t mss)
{
	const uint8_t option[] = { 2, 4, (uint8_t)(mss >> 8), (uint8_t)mss };

	return bed_connect_with(40000, window, option, sizeof(option));
}

/* There is room for an FPDU (RFC 5044 §4.5), or its sender would try for ever; and it arrives. */
static void fpdus_reach_a_tiny_peer(uint16_t window, uint16_t mss)
{
	struct bed_peer p = connect_to_tiny(window, mss);
	uint32_t first = p.ack;
	uint8_t *at = NULL;
	size_t room;

	for (unsigned i = 0; i < 100 && !at; i++) {
		bed_pass(10000);
		at = llp_raw.tx_begin(p.user->c, &room);
	}
	assert_non_null(at);
	assert_in_range(room, LLP_ROOM_LEAST, mss < LLP_ROOM_LEAST ? LLP_ROOM_LEAST : 536);
	memset(at, 1, LLP_ROOM_LEAST);
	llp_raw.tx_commit(p.user->c, LLP_ROOM_LEAST);
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	for (unsigned i = 0; i < 4000 && p.ack - first < LLP_ROOM_LEAST; i++) {
		const struct bed_seg *s = bed_last(p.port, 0);

		if (s->n && s->seq == p.ack) {
			p.ack += (uint32_t)s->n;
			bed_segment(&p, 0, 0, ACK);
		}
		bed_pass(10000);
	}
	assert_int_equal(p.ack - first, LLP_ROOM_LEAST);
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

static void a_tiny_window_from_the_start(void **state)
{
	(void)state;
	fpdus_reach_a_tiny_peer(10, 1460);
}

static void a_window_of_an_octet(void **state)
{
	(void)state;
	fpdus_reach_a_tiny_peer(1, 1460);
}

static void segments_of_an_octet(void **state)
{
	(void)state;
	fpdus_reach_a_tiny_peer(65535, 1);
}

/* RFC 9293 §3.8.6: a peer SHOULD NOT take its window back, and we MUST bear that it does. What was
 * out beyond the new edge is not lost, and all of it arrives when the window opens again. */
static void a_window_that_is_taken_back(void **state)
{
	struct bed_peer p;
	uint32_t first;

	(void)state;
	bed_be_network();
	p = bed_connect(40000);
	first = p.ack;
	for (unsigned i = 0; i < 5; i++)
		assert_true(try_to_send(p.user));
	p.ack += OCTETS;
	for (uint16_t window = 3 * OCTETS; window; window = (uint16_t)(window / 2)) {
		p.window = window;
		bed_segment(&p, 0, 0, ACK);
		bed_pass(1000000);
		assert_false(p.user->closed);
	}
	p.window = 0;
	bed_segment(&p, 0, 0, ACK);
	bed_pass(10000000);
	assert_false(p.user->closed);
	p.window = 65535;
	for (unsigned i = 0; i < 100 && p.ack - first < 5 * OCTETS; i++) {
		unsigned since = bed.sent;

		bed_segment(&p, 0, 0, ACK);
		bed_pass(500000);
		for (unsigned k = since; k < bed.sent; k++) {
			const struct bed_seg *s = &bed.out[k % BED_OUT];

			if (s->dport == p.port && s->seq == p.ack)
				p.ack += (uint32_t)s->n;
		}
	}
	assert_int_equal(p.ack - first, 5 * OCTETS);
	bed_segment(&p, 0, 0, ACK);
	assert_true(try_to_send(p.user));
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

/* RFC 7413 §4.2.2: who does not know the option takes no octets of a SYN. They come again. */
static void octets_in_a_syn_come_again(void **state)
{
	static const uint8_t cookie[] = { 34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1 };
	struct bed_peer p = { .port = 40000, .seq = 1, .window = 65535 };
	const struct bed_seg *answer;
	uint8_t octets[600] = { 0 };

	(void)state;
	bed_in(&(struct bed_seg){ .sport = p.port,
				  .flags = SYN,
				  .window = p.window,
				  .options = cookie,
				  .options_n = sizeof(cookie),
				  .data = octets,
				  .n = sizeof(octets) });
	answer = bed_last(p.port, 0);
	assert_int_equal(answer->flags, SYN | ACK);
	assert_int_equal(answer->ack, 1);
	p.ack = answer->seq + 1;
	p.user = &bed.conn[bed.conns];
	bed_segment(&p, 0, 0, ACK);
	assert_non_null(p.user->c);
	assert_int_equal(p.user->got, 0);
	bed_data(&p, 0, sizeof(octets));
	assert_int_equal(p.user->got, sizeof(octets));
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

/* We have closed, the peer has acknowledged all and our FIN, and its window is small, since its
 * program posts receives late. An RST would take from that program what its side still holds. */
static void who_has_it_all_is_not_reset(void **state)
{
	struct bed_peer p = bed_connect(40000);
	unsigned since;

	(void)state;
	assert_true(try_to_send(p.user));
	since = bed.sent;
	llp_raw.close(p.user->c);
	p.user->c = NULL;
	bed_flush();
	assert_int_equal(bed_last(p.port, since)->flags & FIN, FIN);
	p.ack += OCTETS + 1;
	p.window = 100;
	bed_segment(&p, 0, 0, ACK);
	since = bed.sent;
	bed_pass(10000000);
	assert_null(bed_last(p.port, since));
	assert_int_equal(bed.stats.tcp_stalled, 0);
	bed_segment(&p, 0, 0, FIN | ACK); /* its program is done: an orderly end */
	assert_int_equal(bed_last(p.port, since)->flags, ACK);
}

/* RFC 9293 §3.8.6.1: one that acknowledges nothing more does not keep us for ever. */
static void who_takes_nothing_is_reset(void **state)
{
	struct bed_peer p = bed_connect(40000);
	unsigned since;

	(void)state;
	assert_true(try_to_send(p.user));
	set_window(&p, 0);
	since = bed.sent;
	llp_raw.close(p.user->c);
	p.user->c = NULL;
	for (unsigned i = 0; i < 100 && !bed.stats.tcp_stalled; i++) {
		bed_pass(100000);
		bed_segment(&p, 0, 0, ACK);
	}
	assert_int_equal(bed.stats.tcp_stalled, 1);
	assert_int_equal(bed_last(p.port, since)->flags & RST, RST);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(test_100),
	TEST(test_499),
	TEST(a_flush_between_the_pieces),
	TEST(a_tiny_window_from_the_start),
	TEST(a_window_of_an_octet),
	TEST(segments_of_an_octet),
	TEST(a_window_that_is_taken_back),
	TEST(octets_in_a_syn_come_again),
	TEST(who_has_it_all_is_not_reset),
	TEST(who_takes_nothing_is_reset),
};

UWTEST_MAIN(tests)
