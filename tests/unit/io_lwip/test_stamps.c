/* SPDX-License-Identifier: BSD-3-Clause */
/* The timestamps option on connections, RFC 7323: every segment has it or none, whatever it is. */
#include "bed.h"

#include <arpa/inet.h>

#include "base/be.h"
#include "loss/stamp.h"

#define ISS   1000u
#define PORT  40000u
#define START 5000u /* the peer's clock in its SYN */

static struct bed_peer p;
static uint32_t clock_ms; /* the peer's */

static int up(void **state)
{
	(void)state;
	bed_open_stamps();
	clock_ms = START;
	return 0;
}

static int up_between(void **state)
{
	(void)state;
	bed_open_stamps_between();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* A segment of the peer's with a TSval. */
static void in(uint8_t flags, uint32_t at, const void *data, size_t n, uint32_t value)
{
	uint8_t options[16] = { 1, 1, 8, 10 };
	const struct bed_seg *last = bed_last(PORT, 0);

	uw_put32(options + 4, value);
	uw_put32(options + 8, last ? last->read.value : 0);
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .seq = p.seq + at,
				  .ack = flags & ACK ? p.ack : 0,
				  .flags = flags,
				  .window = p.window,
				  .data = data,
				  .n = n,
				  .options = options,
				  .options_n = 12 });
}

static void connect_stamped(void)
{
	uint8_t options[20] = { 2, 4, BED_MSS >> 8, BED_MSS & 255, 1, 1, 4, 2, 1, 1, 8, 10 };
	const struct bed_seg *answer;

	uw_put32(options + 12, clock_ms);
	p = (struct bed_peer){ .port = PORT, .seq = ISS + 1, .window = 65535 };
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .seq = ISS,
				  .flags = SYN,
				  .window = 65535,
				  .options = options,
				  .options_n = sizeof(options) });
	answer = bed_last(PORT, 0);
	assert_int_equal(answer->flags, SYN | ACK);
	assert_true(answer->read.stamped);
	assert_int_equal(answer->read.echo, START);
	p.ack = answer->seq + 1;
	p.user = &bed.conn[0];
	in(ACK, 0, NULL, 0, ++clock_ms);
	assert_non_null(p.user->c);
}

/* RFC 7323 §3.2: "TSopt MUST be sent in every non-RST segment". RFC 5044 §4.5: the EMSS is what is
 * left, for every segment. */
static void every_segment_has_it(void **state)
{
	const struct bed_seg *s;
	unsigned from;

	(void)state;
	connect_stamped();
	from = bed.sent;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(bed_send_full(&p, 1), BED_MSS - STAMP_OCTETS);
		s = bed_last(PORT, from);
		assert_int_equal(s->n, BED_MSS - STAMP_OCTETS);
		assert_int_equal(s->read.echo, START + 1);
	}
	in(ACK, 0, "x", 1, ++clock_ms);
	p.seq++;
	in(ACK, 0, NULL, 0, ++clock_ms);
	in(ACK, 0, "y", 1, ++clock_ms);
	p.seq++;
	bed_pass(2000000);		 /* probes, timeouts */
	in(ACK, 50, "z", 1, ++clock_ms); /* a hole: SACK */
	assert_int_equal(bed_last(PORT, from)->read.n_blocks, 1);
	llp_raw.close(p.user->c);
	p.user->c = NULL;
	bed_pass(100000);
	for (unsigned i = from; i < bed.sent; i++) {
		assert_true(bed.out[i].read.stamped);
		assert_int_equal(bed.out[i].options_n % 4, 0);
	}
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

/* RFC 7323 §5.3: an old one is answered and dropped; §5.2: an RST is not looked at. */
static void an_old_segment_is_dropped(void **state)
{
	unsigned since;

	(void)state;
	connect_stamped();
	clock_ms += 10;
	in(ACK, 0, "x", 1, clock_ms);
	p.seq++;
	assert_int_equal(p.user->got, 1);
	since = bed.sent;
	in(ACK, 0, "o", 1, clock_ms - 5);
	assert_int_equal(p.user->got, 1);
	assert_int_equal(bed.stats.tcp_rx_old, 1);
	assert_int_equal(bed_last(PORT, since)->flags, ACK);
	assert_int_equal(bed_last(PORT, since)->read.echo, clock_ms);
	in(ACK, 0, "y", 1, clock_ms);
	assert_int_equal(p.user->got, 2);
	p.seq++;
	in(RST, 0, NULL, 0, clock_ms - 5);
	assert_true(p.user->closed);
}

/* RFC 9293 §3.1: a damaged segment is discarded, and so is what it says of the time: remembered, it
 * would refuse all that comes for 24 days (RFC 7323 §5.5). */
static void a_damaged_segment_changes_nothing(void **state)
{
	(void)state;
	connect_stamped();
	bed.damaged = true;
	in(ACK, 0, "x", 1, clock_ms + (1u << 30));
	bed.damaged = false;
	assert_int_equal(p.user->got, 0);
	in(ACK, 0, "x", 1, ++clock_ms);
	assert_int_equal(p.user->got, 1);
	assert_int_equal(bed.stats.tcp_rx_old, 0);
}

/* RFC 7323 §3.2 */
static void a_segment_without_is_dropped_in_silence(void **state)
{
	unsigned since;

	(void)state;
	connect_stamped();
	since = bed.sent;
	bed_data(&p, 0, 10);
	assert_int_equal(p.user->got, 0);
	assert_null(bed_last(PORT, since));
	in(ACK, 0, "0123456789", 10, ++clock_ms);
	assert_int_equal(p.user->got, 10);
}

/* RFC 7323 §3.2: only if both SYNs have it. */
static void who_does_not_ask_gets_none(void **state)
{
	(void)state;
	p = bed_connect(PORT);
	assert_false(bed_last(PORT, 0)->read.stamped);
	assert_int_equal(bed_send_full(&p, 1), BED_MSS);
	assert_false(bed_last(PORT, 0)->read.stamped);
	bed_data(&p, 0, 10);
	assert_int_equal(p.user->got, 10);
}

/* Somebody who knows the ports only, and says that it is late. */
static void forge(uint8_t flags, uint32_t ack)
{
	static const uint8_t options[] = { 1, 1, 8, 10, 0x70, 0, 0, 0, 0, 0, 0, 0 };

	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = 50000,
				  .seq = 4711,
				  .ack = ack,
				  .flags = flags,
				  .window = 65535,
				  .options = options,
				  .options_n = sizeof(options) });
}

static void we_ask(bool agreed, bool forged)
{
	const struct llp_addrs a = { .local = uw_ip_v4(htonl(BED_OURS)),
				     .remote = uw_ip_v4(htonl(BED_THEIRS)),
				     .lport = htons(50000),
				     .rport = htons(PORT) };
	static struct bed_conn us;
	uint8_t options[] = { 1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 0, 0 };
	const struct bed_seg *s;

	us = (struct bed_conn){ 0 };
	assert_status(llp_raw.connect(&bed.link, &a, &us, &us.c), UW_OK);
	bed_flush();
	s = bed_last(PORT, 0);
	assert_int_equal(s->flags, SYN);
	assert_true(s->read.stamped);
	uw_put32(options + 8, s->read.value);
	p = (struct bed_peer){ .port = PORT, .seq = ISS, .ack = s->seq + 1, .user = &us };
	if (forged) {
		forge(SYN, 0);
		forge(SYN | ACK, p.ack + 4711);
	}
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = 50000,
				  .seq = ISS,
				  .ack = p.ack,
				  .flags = SYN | ACK,
				  .window = 65535,
				  .options = options,
				  .options_n = agreed ? sizeof(options) : 0 });
	assert_true(us.connected);
	s = bed_last(PORT, 0);
	assert_int_equal(s->flags, ACK);
	assert_int_equal(s->read.stamped, agreed);
	if (agreed)
		assert_int_equal(s->read.echo, 0x100);
	bed_send_full(&p, 1);
	assert_int_equal(bed_last(PORT, 0)->read.stamped, agreed);
	llp_raw.abort(us.c);
}

/* Between processes nothing is lost or old: neither asked for nor answered. */
static void none_between_processes(void **state)
{
	const struct llp_addrs a = { .local = uw_ip_v4(htonl(BED_OURS)),
				     .remote = uw_ip_v4(htonl(BED_THEIRS)),
				     .lport = htons(50000),
				     .rport = htons(PORT) };
	uint8_t options[20] = { 2, 4, BED_MSS >> 8, BED_MSS & 255, 1, 1, 4, 2, 1, 1, 8, 10 };
	static struct bed_conn us;

	(void)state;
	us = (struct bed_conn){ 0 };
	assert_status(llp_raw.connect(&bed.link, &a, &us, &us.c), UW_OK);
	bed_flush();
	assert_int_equal(bed_last(PORT, 0)->flags, SYN);
	assert_false(bed_last(PORT, 0)->read.stamped);
	llp_raw.abort(us.c);
	bed_in(&(struct bed_seg){ .sport = PORT + 1,
				  .seq = ISS,
				  .flags = SYN,
				  .window = 65535,
				  .options = options,
				  .options_n = sizeof(options) });
	assert_int_equal(bed_last(PORT + 1, 0)->flags, SYN | ACK);
	assert_false(bed_last(PORT + 1, 0)->read.stamped);
}

static void asked_and_agreed(void **state)
{
	(void)state;
	we_ask(true, false);
}

static void asked_and_not_answered(void **state)
{
	(void)state;
	we_ask(false, false);
}

/* RFC 9293 §3.10.7.3: the ACK is looked at first. Remembered, a forged value would refuse the true
 * answer (RFC 7323 §5.3), and all of its repeats. */
static void a_forged_syn_says_nothing_of_it(void **state)
{
	(void)state;
	we_ask(true, true);
	we_ask(false, true);
}

/* lwIP puts the octet of a probe where the option goes. RFC 9293 §3.8.6.1. */
static void a_probe_of_a_closed_window_has_the_right_octet(void **state)
{
	unsigned since;
	size_t n;

	(void)state;
	connect_stamped();
	p.window = 2000;
	in(ACK, 0, "x", 1, ++clock_ms);
	p.seq++;
	n = bed_send_full(&p, 1);
	since = bed.sent;
	p.ack += (uint32_t)n;
	p.window = 1; /* shrinks below what is queued next */
	in(ACK, 0, "x", 1, ++clock_ms);
	p.seq++;
	for (unsigned i = 0; i < 400 && !llp_raw.in_flight(p.user->c); i++) {
		size_t room;
		uint8_t *at = llp_raw.tx_begin(p.user->c, &room);

		if (at) {
			memset(at, 0x77, room);
			llp_raw.tx_commit(p.user->c, room);
			llp_raw.tx_flush(p.user->c);
		}
		bed_pass(10000);
	}
	p.window = 0;
	in(ACK, 0, "x", 1, ++clock_ms);
	p.seq++;
	bed_pass(3000000);
	for (unsigned i = since; i < bed.sent; i++) {
		assert_true(bed.out[i].read.stamped);
		if (bed.out[i].n)
			assert_int_equal(bed.out[i].first, 0x77);
	}
	assert_int_equal(bed_last(PORT, since)->n, 1);
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

/* RFC 9293 §3.8.6.2.1: a segment that a small window cuts. The option is in front of each piece,
 * and the octets go on where the last piece ended. */
static void the_pieces_of_a_segment_follow_each_other(void **state)
{
	enum { OCTETS = 200 };
	uint32_t first;
	uint8_t *at = NULL;
	size_t room;

	(void)state;
	connect_stamped();
	first = p.ack;
	p.window = 30;
	for (unsigned i = 0; i < 2; i++) { /* newer than what the window was said with last */
		in(ACK, 0, "x", 1, ++clock_ms);
		p.seq++;
	}
	for (unsigned i = 0; i < 400 && !at; i++) {
		bed_pass(10000);
		at = llp_raw.tx_begin(p.user->c, &room);
	}
	assert_non_null(at);
	assert_in_range(OCTETS, 1, room);
	for (unsigned i = 0; i < OCTETS; i++)
		at[i] = (uint8_t)i;
	llp_raw.tx_commit(p.user->c, OCTETS);
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	for (unsigned i = 0; i < 4000 && p.ack - first < OCTETS; i++) {
		const struct bed_seg *s = bed_last(PORT, 0);

		if (s->n && s->seq == p.ack) {
			assert_in_range(s->n, 1, p.window);
			assert_true(s->read.stamped);
			assert_int_equal(s->first, p.ack - first);
			p.ack += (uint32_t)s->n;
			in(ACK, 0, NULL, 0, ++clock_ms);
		}
		bed_pass(10000);
	}
	assert_int_equal(p.ack - first, OCTETS);
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(every_segment_has_it),
	TEST(an_old_segment_is_dropped),
	TEST(a_damaged_segment_changes_nothing),
	TEST(a_segment_without_is_dropped_in_silence),
	TEST(who_does_not_ask_gets_none),
	cmocka_unit_test_setup_teardown(none_between_processes, up_between, down),
	TEST(asked_and_agreed),
	TEST(asked_and_not_answered),
	TEST(a_forged_syn_says_nothing_of_it),
	TEST(a_probe_of_a_closed_window_has_the_right_octet),
	TEST(the_pieces_of_a_segment_follow_each_other),
};

UWTEST_MAIN(tests)
