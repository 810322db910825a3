/* SPDX-License-Identifier: BSD-3-Clause */
/* Explicit congestion notification as the headers say it: RFC 3168 §6.1, RFC 8257 §3.2. */
#include "bed.h"

#include <arpa/inet.h>

#define PORT	 40000u
#define OUR_PORT 50000u
#define ISS	 1000u
#define BOTH	 (ECE | CWR)

enum { NOT_ECT, ECT1, ECT0, CE };

static struct bed_peer p;
static struct bed_conn us; /* a connection that we asked for */

static int up(void **state)
{
	(void)state;
	bed_open_ecn(NULL);
	us = (struct bed_conn){ 0 };
	return 0;
}

static int up_exact(void **state)
{
	(void)state;
	bed_open_ecn(&cc_dctcp);
	return 0;
}

static int up_without(void **state)
{
	(void)state;
	bed_open_network();
	us = (struct bed_conn){ 0 };
	return 0;
}

static int down(void **state)
{
	(void)state;
	if (us.c)
		llp_raw.abort(us.c);
	us.c = NULL;
	bed_close();
	return 0;
}

/* ---- what both sides say ----------------------------------------------------------------- */

static const struct bed_seg *last(void)
{
	return bed_last(PORT, 0);
}

/* A segment of the peer's, with IP's field. The peer goes on after what it says. */
static void in(uint8_t flags, size_t n, uint8_t field)
{
	bed.ecn = field;
	bed_segment(&p, 0, n, ACK | flags);
	bed.ecn = 0;
	p.seq += (uint32_t)n;
}

/* Two of them: the second is acknowledged at once. Returns ECE of that ACK. */
static unsigned echo_of(uint8_t flags, uint8_t field)
{
	unsigned before = bed.sent;

	in(flags, BED_MSS, field);
	in(0, BED_MSS, ECT0);
	assert_true(bed.sent > before);
	assert_int_equal(last()->ack, p.seq);
	assert_int_equal(last()->n, 0);
	assert_int_equal(last()->ecn, NOT_ECT); /* RFC 3168 §6.1.4 */
	return last()->flags & ECE;
}

/* A peer connects, and its SYN has these flags, too. Returns what the answer has besides. */
static unsigned peer_asks(uint8_t flags)
{
	static const uint8_t mss[] = { 2, 4, BED_MSS >> 8, BED_MSS & 255 };

	bed_in(&(struct bed_seg){ .sport = PORT,
				  .seq = ISS,
				  .flags = SYN | flags,
				  .window = 65535,
				  .options = mss,
				  .options_n = sizeof(mss) });
	assert_int_equal(last()->flags & (SYN | ACK), SYN | ACK);
	assert_int_equal(last()->ecn, NOT_ECT); /* RFC 3168 §6.1.1 */
	p = (struct bed_peer){ .port = PORT, .seq = ISS + 1, .ack = last()->seq + 1 };
	p.window = 65535;
	p.user = &bed.conn[bed.conns % BED_CONNS];
	p.user->c = NULL;
	return last()->flags & BOTH;
}

static void peer_is_there(void)
{
	in(0, 0, NOT_ECT);
	assert_non_null(p.user->c);
}

/* We connect. Returns what the SYN asks for. */
static unsigned we_ask(void)
{
	const struct llp_addrs a = { .local = uw_ip_v4(htonl(BED_OURS)),
				     .remote = uw_ip_v4(htonl(BED_THEIRS)),
				     .lport = htons(OUR_PORT),
				     .rport = htons(PORT) };

	assert_status(llp_raw.connect(&bed.link, &a, &us, &us.c), UW_OK);
	bed_flush();
	assert_non_null(last());
	assert_int_equal(last()->flags & ~BOTH, SYN);
	assert_int_equal(last()->ecn, NOT_ECT);
	return last()->flags & BOTH;
}

/* The peer's answer with these flags, too. */
static void peer_answers(uint8_t flags)
{
	p = (struct bed_peer){ .port = PORT, .seq = ISS, .ack = last()->seq + 1, .window = 65535 };
	p.user = &us;
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = OUR_PORT,
				  .seq = ISS,
				  .ack = p.ack,
				  .flags = SYN | ACK | flags,
				  .window = 65535 });
	assert_true(us.connected);
	assert_int_equal(last()->flags, ACK);
}

/* Octets of ours; all that is out is acknowledged at once. Returns IP's field of them. */
static unsigned field_of_ours(void)
{
	bed_send_full(&p, 1);
	assert_true(last()->n > 0);
	return last()->ecn;
}

/* ---- the agreement ------------------------------------------------------------------------ */

static void who_asks_is_told_so(void **state)
{
	(void)state;
	assert_int_equal(peer_asks(BOTH), ECE);
	peer_is_there();
	assert_int_equal(field_of_ours(), ECT0);
}

/* RFC 3168 §6.1.1: only ECE and CWR together ask. Nothing is said, marked or heard then. */
static void not_agreed_with_a_peer_that_asks(uint8_t flags)
{
	assert_int_equal(peer_asks(flags), 0);
	peer_is_there();
	assert_int_equal(field_of_ours(), NOT_ECT);
	assert_int_equal(echo_of(0, CE), 0);
	in(ECE, 0, NOT_ECT);
	bed_send_full(&p, 1);
	assert_int_equal(last()->flags & BOTH, 0);
}

static void who_does_not_ask_gets_none(void **state)
{
	(void)state;
	not_agreed_with_a_peer_that_asks(0);
}

static void half_a_question_is_none(void **state)
{
	(void)state;
	not_agreed_with_a_peer_that_asks(ECE);
}

static void none_where_it_is_switched_off(void **state)
{
	(void)state;
	not_agreed_with_a_peer_that_asks(BOTH);
	assert_int_equal(we_ask(), 0);
}

static void our_question_is_answered(void **state)
{
	(void)state;
	assert_int_equal(we_ask(), BOTH);
	peer_answers(ECE);
	assert_int_equal(field_of_ours(), ECT0);
}

static void a_peer_without_it_gets_none(void **state)
{
	(void)state;
	assert_int_equal(we_ask(), BOTH);
	peer_answers(0);
	assert_int_equal(field_of_ours(), NOT_ECT);
}

/* RFC 3168 §6.1.1: somebody who gives back the bits that came knows nothing of them. */
static void an_answer_that_mirrors_the_question_is_none(void **state)
{
	(void)state;
	assert_int_equal(we_ask(), BOTH);
	peer_answers(BOTH);
	assert_int_equal(field_of_ours(), NOT_ECT);
}

/* RFC 3168 §6.1.1.1: the SYN may have been dropped for its question. An answer to the second is
 * none to the first. */
static void a_syn_that_is_repeated_asks_no_more(void **state)
{
	unsigned before;

	(void)state;
	assert_int_equal(we_ask(), BOTH);
	before = bed.sent;
	bed_pass(300000);
	assert_int_equal(bed.sent, before + 1);
	assert_int_equal(last()->flags, SYN);
	peer_answers(ECE);
	assert_int_equal(field_of_ours(), NOT_ECT);
}

/* ---- the echo ------------------------------------------------------------------------------ */

/* RFC 3168 §6.1.3: every ACK has it, those with octets, too, until the peer has heard of it. */
static void a_mark_is_echoed_until_cwr(void **state)
{
	(void)state;
	peer_asks(BOTH);
	peer_is_there();
	assert_int_equal(echo_of(0, ECT0), 0);
	assert_int_equal(echo_of(0, CE), ECE);
	assert_int_equal(echo_of(0, ECT0), ECE);
	bed_send_full(&p, 1);
	assert_int_equal(last()->flags & BOTH, ECE);
	assert_int_equal(echo_of(CWR, ECT0), 0);
	assert_int_equal(echo_of(0, ECT0), 0);
	bed_send_full(&p, 1);
	assert_int_equal(last()->flags & BOTH, 0);
}

/* The segment with CWR may be marked itself: that is a new mark. */
static void a_mark_on_cwr_is_echoed(void **state)
{
	(void)state;
	peer_asks(BOTH);
	peer_is_there();
	assert_int_equal(echo_of(0, CE), ECE);
	assert_int_equal(echo_of(CWR, CE), ECE);
	assert_int_equal(echo_of(CWR, ECT0), 0);
}

/* RFC 3168 §6.1.4: a pure ACK cannot be marked; one that says so was changed by somebody. */
static void a_mark_without_octets_is_none(void **state)
{
	(void)state;
	peer_asks(BOTH);
	peer_is_there();
	in(0, 0, CE);
	assert_int_equal(echo_of(0, ECT0), 0);
}

/* RFC 8257 §3.2: the ACKs say which octets were marked. */
static void every_mark_is_told_of(void **state)
{
	unsigned before, first;

	(void)state;
	assert_int_equal(peer_asks(BOTH), ECE);
	peer_is_there();
	for (unsigned i = 0; i < 3; i++) {
		uint8_t field = i == 1 ? CE : ECT0;

		in(0, BED_MSS, field);
		in(0, BED_MSS, field);
		assert_int_equal(last()->ack, p.seq);
		assert_int_equal(last()->flags & ECE, field == CE ? ECE : 0);
	}
	/* What is not acknowledged yet is, before what is marked otherwise. */
	in(0, BED_MSS, ECT0);
	first = p.seq;
	before = bed.sent;
	in(0, BED_MSS, CE);
	bed_pass(100000);
	assert_true(bed.sent >= before + 2);
	assert_int_equal(bed.out[before].ack, first);
	assert_int_equal(bed.out[before].flags & ECE, 0);
	assert_int_equal(last()->ack, p.seq);
	assert_int_equal(last()->flags & ECE, ECE);
}

/* ---- the answer to it ---------------------------------------------------------------------- */

/* Sends a segment; returns CWR of it. */
static unsigned cwr_of_next(void)
{
	unsigned before = bed.sent;

	bed_send_full(&p, 1);
	assert_int_equal(bed.sent, before + 1);
	assert_int_equal(last()->ecn, ECT0);
	return last()->flags & CWR;
}

/* Acknowledges all that is out. */
static void acknowledge(uint8_t flags)
{
	p.ack = last()->seq + (uint32_t)last()->n;
	in(flags, 0, NOT_ECT);
}

/* Segments that may be out at once. */
static unsigned window_of_ours(void)
{
	unsigned before = bed.sent;
	size_t room;
	uint8_t *at;

	while ((at = llp_raw.tx_begin(p.user->c, &room)) && bed.sent - before < 64) {
		memset(at, 0, room);
		llp_raw.tx_commit(p.user->c, room);
		llp_raw.tx_flush(p.user->c);
		bed_pass(1000);
	}
	return bed.sent - before;
}

/* RFC 3168 §6.1.2 */
static void a_mark_that_is_heard_reduces_once_in_a_window(void **state)
{
	(void)state;
	peer_asks(BOTH);
	peer_is_there();
	bed_send_full(&p, 8);
	assert_int_equal(last()->flags & CWR, 0);
	p.ack += 6 * BED_MSS;
	in(ECE, 0, NOT_ECT);
	assert_int_equal(cwr_of_next(), CWR);
	assert_int_equal(cwr_of_next(), 0);
	p.ack += BED_MSS; /* of what was out when it reduced */
	in(ECE, 0, NOT_ECT);
	assert_int_equal(cwr_of_next(), 0);
	acknowledge(0);
	assert_int_equal(cwr_of_next(), 0);
	acknowledge(ECE);
	assert_int_equal(cwr_of_next(), CWR);
}

static void less_is_out_after_a_mark(void **state)
{
	unsigned without, with;

	(void)state;
	peer_asks(BOTH);
	peer_is_there();
	for (unsigned i = 0; i < 2; i++) {
		cwr_of_next();
		acknowledge(i ? ECE : 0);
	}
	with = window_of_ours();
	down(state);
	up(state);
	peer_asks(BOTH);
	peer_is_there();
	for (unsigned i = 0; i < 2; i++) {
		cwr_of_next();
		acknowledge(0);
	}
	without = window_of_ours();
	assert_in_range(with, 1, without - 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(who_asks_is_told_so),
	TEST(who_does_not_ask_gets_none),
	TEST(half_a_question_is_none),
	cmocka_unit_test_setup_teardown(none_where_it_is_switched_off, up_without, down),
	TEST(our_question_is_answered),
	TEST(a_peer_without_it_gets_none),
	TEST(an_answer_that_mirrors_the_question_is_none),
	TEST(a_syn_that_is_repeated_asks_no_more),
	TEST(a_mark_is_echoed_until_cwr),
	TEST(a_mark_on_cwr_is_echoed),
	TEST(a_mark_without_octets_is_none),
	cmocka_unit_test_setup_teardown(every_mark_is_told_of, up_exact, down),
	TEST(a_mark_that_is_heard_reduces_once_in_a_window),
	TEST(less_is_out_after_a_mark),
};

UWTEST_MAIN(tests)
