/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 5961: who guesses at sequence numbers neither ends a connection nor puts octets into it, nor
 * closes its window. */
#include "bed.h"

#include <string.h>

#define WINDOW	 65535u
#define SNDWND	 65535u
#define LIMIT	 10u /* challenge ACKs in 5 s */
#define LIMIT_US 5000000u

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

/* An answer to the last segment: an ACK of what is expected. */
static void is_challenged(const struct bed_peer *p, unsigned since)
{
	const struct bed_seg *s = bed_last(p->port, since);

	assert_non_null(s);
	assert_int_equal(s->flags, ACK);
	assert_int_equal(s->ack, p->seq);
	assert_int_equal(s->seq, p->ack);
	assert_int_equal(s->n, 0);
}

static void still_works(struct bed_peer *p)
{
	assert_false(p->user->closed);
	assert_int_equal(p->user->got, 0);
	bed_data(p, 0, 10);
	assert_int_equal(p->user->got, 10);
}

/* §3.2 */
static void rst_within_the_window_is_challenged(void **state)
{
	struct bed_peer p = bed_connect(40000);
	unsigned since = bed.sent;

	(void)state;
	bed_segment(&p, 1, 0, RST);
	is_challenged(&p, since);
	since = bed.sent;
	bed_segment(&p, WINDOW, 0, RST | ACK);
	is_challenged(&p, since);
	assert_int_equal(bed.stats.tcp_rx_blind, 2);
	still_works(&p);
}

static void rst_outside_the_window_is_dropped(void **state)
{
	struct bed_peer p = bed_connect(40000);
	unsigned since = bed.sent;

	(void)state;
	bed_segment(&p, (uint32_t)-1, 0, RST);
	bed_segment(&p, WINDOW + 1, 0, RST);
	assert_null(bed_last(p.port, since));
	still_works(&p);
}

static void rst_in_its_place_ends_the_connection(void **state)
{
	struct bed_peer p = bed_connect(40000);

	(void)state;
	bed_segment(&p, 0, 0, RST);
	assert_true(p.user->closed);
	assert_status(p.user->why, UW_E_LLP_CLOSED);
	assert_int_equal(bed.stats.tcp_rx_blind, 0);
}

/* §4.2: irrespective of the sequence number. */
static void syn_is_challenged(void **state)
{
	static const uint32_t at[] = { 0, 1, WINDOW / 2, WINDOW + 5000, (uint32_t)-1 };
	struct bed_peer p = bed_connect(40000);

	(void)state;
	for (unsigned i = 0; i < COUNT(at); i++) {
		unsigned since = bed.sent;

		bed_segment(&p, at[i], i, i & 1 ? SYN | ACK : SYN);
		is_challenged(&p, since);
	}
	still_works(&p);
}

/* §5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT, or its octets are not taken. */
static void data_with_an_ack_out_of_place_is_dropped(void **state)
{
	struct bed_peer p = bed_connect(40000), blind = p;
	unsigned since;

	(void)state;
	blind.ack = p.ack - SNDWND - 1;
	since = bed.sent;
	bed_data(&blind, 0, 100);
	is_challenged(&p, since);
	blind.ack = p.ack + 1;
	since = bed.sent;
	bed_data(&blind, 0, 100);
	is_challenged(&p, since);
	assert_int_equal(p.user->got, 0);
	blind.ack = p.ack - SNDWND;
	bed_data(&blind, 0, 100);
	assert_int_equal(p.user->got, 100);
}

/* The octets that the user could send. */
static uint32_t sends(const struct bed_peer *p)
{
	size_t room;
	uint8_t *at = llp_raw.tx_begin(p->user->c, &room);

	if (!at)
		return 0;
	memset(at, 7, room);
	llp_raw.tx_commit(p->user->c, room);
	llp_raw.tx_flush(p->user->c);
	bed_flush();
	return (uint32_t)room;
}

/* RFC 9293 §3.10.7.4: of a segment outside the window nothing counts, its ACK and its window
 * neither. */
static void an_ack_from_elsewhere_changes_nothing(void **state)
{
	static const uint32_t at[] = { WINDOW + 2, 0x40000000, 0x7ffffff0, 0x80000010, 0xc0000000 };
	struct bed_peer p = bed_connect(40000), blind = p;

	(void)state;
	blind.window = 0;
	for (unsigned i = 0; i < COUNT(at); i++) {
		unsigned since = bed.sent;
		uint32_t n;

		bed_segment(&blind, at[i], 0, ACK);
		is_challenged(&p, since);
		n = sends(&p);
		assert_int_not_equal(n, 0);
		blind.ack = p.ack += n;
		bed_segment(&p, 0, 0, ACK);
	}
	assert_int_equal(bed.stats.tcp_rx_blind, COUNT(at));
	still_works(&p);
}

/* RFC 9293 §3.8.4: a probe repeats an octet or has none; who sends it hears an ACK, each time. */
static void a_probe_is_answered(void **state)
{
	struct bed_peer p = bed_connect(40000);

	(void)state;
	bed_data(&p, 0, 10);
	p.seq += 10;
	for (unsigned i = 0; i < 2 * LIMIT; i++) {
		unsigned since = bed.sent;

		bed_segment(&p, (uint32_t)-1, i % 2, ACK);
		is_challenged(&p, since);
	}
	assert_int_equal(bed.stats.tcp_rx_blind, 0);
	assert_int_equal(p.user->got, 10);
}

/* What a late ACK says is no longer so. */
static void a_late_ack_does_not_count(void **state)
{
	struct bed_peer p = bed_connect(40000), late = p;

	(void)state;
	late.window = 0;
	bed_data(&p, 0, 10);
	p.seq += 10;
	assert_int_not_equal(sends(&p), 0);
	late.ack = p.ack + 1;
	bed_segment(&late, 0, 0, ACK);
	assert_int_not_equal(sends(&p), 0);
	assert_int_equal(bed.stats.tcp_rx_blind, 0);
}

/* RFC 2883 §4: the peer hears what has come twice, as often as it comes, and only then. */
static void octets_that_come_again_are_reported(void **state)
{
	static const uint8_t sack_permitted[] = { 1, 1, 4, 2 };
	struct bed_peer p = bed_connect_with(40000, 65535, sack_permitted, sizeof(sack_permitted));

	(void)state;
	bed_data(&p, 0, 1000);
	p.seq += 1000;
	for (unsigned i = 0; i < 2 * LIMIT; i++) {
		unsigned since = bed.sent;
		const struct bed_seg *s;

		bed_data(&p, (uint32_t)-600, 500);
		is_challenged(&p, since);
		s = bed_last(p.port, since);
		assert_int_equal(s->read.n_blocks, 1);
		assert_int_equal(s->read.block[0].left, p.seq - 600);
		assert_int_equal(s->read.block[0].right, p.seq - 100);
	}
	bed_data(&p, 500, 100); /* behind a hole */
	assert_int_equal(bed_last(p.port, bed.sent - 1)->read.n_blocks, 1);
	assert_int_equal(bed_last(p.port, bed.sent - 1)->read.block[0].left, p.seq + 500);
	bed_data(&p, (uint32_t)-600, 500);
	assert_int_equal(bed_last(p.port, bed.sent - 1)->read.n_blocks, 2);
	assert_int_equal(bed_last(p.port, bed.sent - 1)->read.block[1].left, p.seq + 500);
	assert_int_equal(p.user->got, 1000);
}

/* A peer that has filled the window, and of whose octets one was lost, acknowledges from behind
 * it; lwIP's, after it has probed the closed window, from one octet further. */
static void an_ack_from_the_right_edge_counts(void **state)
{
	struct bed_peer p = bed_connect(40000);

	(void)state;
	for (uint32_t n, at = WINDOW; at < WINDOW + 2; at++) {
		while ((n = sends(&p)))
			p.ack += n;
		bed_segment(&p, at, 0, ACK);
		assert_int_not_equal(n = sends(&p), 0);
		p.ack += n;
	}
}

/* RFC 9293 §3.10.7.4: "if the ACK bit is off, drop the segment and return". */
static void data_without_ack_is_dropped(void **state)
{
	struct bed_peer p = bed_connect(40000);
	unsigned since = bed.sent;

	(void)state;
	bed_segment(&p, 0, 100, PSH);
	bed_segment(&p, 0, 0, FIN);
	assert_null(bed_last(p.port, since));
	still_works(&p);
}

/* §7 */
static void challenges_are_limited_for_each_connection(void **state)
{
	struct bed_peer p = bed_connect(40000), q = bed_connect(40001);
	unsigned since = bed.sent;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		bed_segment(&p, 1, 0, RST);
	assert_int_equal(bed.sent - since, LIMIT);
	since = bed.sent;
	bed_segment(&q, 1, 0, RST);
	is_challenged(&q, since);
	bed_pass(LIMIT_US + 100000);
	since = bed.sent;
	bed_segment(&p, 1, 0, RST);
	is_challenged(&p, since);
	assert_int_equal(bed.stats.tcp_rx_blind, 102);
}

/* RFC 791 §3.2: a piece of a packet is no packet, also the first one, which has TCP's header. */
static void pieces_of_packets_are_dropped_and_counted(void **state)
{
	static const uint16_t piece[] = { 0x2000, 0x0001, 0x2001, 0x1fff };
	struct bed_peer p = bed_connect(40000);
	unsigned since = bed.sent;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bed.fragment = piece[i];
		bed_data(&p, 0, 10);
		bed_segment(&p, 0, 0, RST);
	}
	assert_int_equal(bed.stats.ip_rx_fragments, 8);
	assert_int_equal(bed.stats.ip_rx_unwanted, 0);
	assert_int_equal(bed.sent, since); /* no answer */
	bed.fragment = 0x4000;		   /* DF alone is none */
	still_works(&p);
}

/* RFC 9293 §3.10.7.2: a process that listens where another one did before it knows none of the
 * connections of that one (doc/adr/0031). */
static void octets_of_an_old_connection_are_reset(void **state)
{
	const struct bed_peer p = { .port = 40000, .seq = 5000, .ack = 9000, .window = WINDOW };
	unsigned since = bed.sent;

	(void)state;
	bed_data(&p, 0, 10);
	assert_non_null(bed_last(p.port, since));
	assert_int_equal(bed_last(p.port, since)->flags & (RST | SYN), RST);
	assert_int_equal(bed_last(p.port, since)->seq, p.ack);
	assert_int_equal(bed.conns, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(rst_within_the_window_is_challenged),
	TEST(rst_outside_the_window_is_dropped),
	TEST(rst_in_its_place_ends_the_connection),
	TEST(syn_is_challenged),
	TEST(data_with_an_ack_out_of_place_is_dropped),
	TEST(an_ack_from_elsewhere_changes_nothing),
	TEST(a_probe_is_answered),
	TEST(a_late_ack_does_not_count),
	TEST(octets_that_come_again_are_reported),
	TEST(an_ack_from_the_right_edge_counts),
	TEST(data_without_ack_is_dropped),
	TEST(challenges_are_limited_for_each_connection),
	TEST(pieces_of_packets_are_dropped_and_counted),
	TEST(octets_of_an_old_connection_are_reset),
};

UWTEST_MAIN(tests)
