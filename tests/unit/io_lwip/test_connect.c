/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to somebody who does not answer, or late. */
#include "bed.h"

#include "io/lwip/conn.h"
#include "lwip/def.h"

#define PORT	 7000u /* of theirs */
#define OUR_PORT 33000u
#define MIN_US	 190000u /* the first interval: 200 ms, in ticks of 20 */

static struct bed_conn user;
static uint32_t iss;

static int up(void **state)
{
	const struct llp_addrs a = { .local = uw_ip_v4(lwip_htonl(BED_OURS)),
				     .remote = uw_ip_v4(lwip_htonl(BED_THEIRS)),
				     .lport = lwip_htons(OUR_PORT),
				     .rport = lwip_htons(PORT) };

	(void)state;
	bed_open();
	user = (struct bed_conn){ 0 };
	assert_status(llp_raw.connect(&bed.link, &a, &user, &user.c), UW_OK);
	bed_flush();
	assert_int_equal(bed_last(PORT, 0)->flags, SYN);
	iss = bed_last(PORT, 0)->seq;
	return 0;
}

static int down(void **state)
{
	(void)state;
	if (user.c)
		llp_raw.abort(user.c);
	bed_close();
	return 0;
}

/* RFC 6298 §5.5: the interval doubles. The user says when it has waited long enough. */
static void it_goes_on_with_backoff(void **state)
{
	uint64_t start = bed.now_us, before = start, interval = 0;
	unsigned sent = bed.sent;

	(void)state;
	while (bed.now_us - start < 30000000) {
		bed_pass(10000);
		if (bed.sent == sent)
			continue;
		assert_int_equal(bed.sent, sent + 1);
		assert_int_equal(bed_last(PORT, sent)->flags, SYN);
		assert_in_range(bed.now_us - before, interval ? 2 * interval - 60000 : MIN_US,
				interval ? 2 * interval + 60000 : 300000);
		interval = bed.now_us - before;
		before = bed.now_us;
		sent = bed.sent;
	}
	assert_in_range(sent, 7, 9); /* 0, 0.2, 0.6, 1.4, 3, 6.2, 12.6, 25.4 s */
	assert_false(user.closed);
}

static void a_late_answer_is_an_answer(void **state)
{
	const struct bed_seg *syn;
	unsigned since;

	(void)state;
	bed_pass(4000000);
	syn = bed_last(PORT, 0);
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = OUR_PORT,
				  .seq = 5000,
				  .ack = syn->seq + 1,
				  .flags = SYN | ACK,
				  .window = 65535 });
	assert_true(user.connected);
	/* RFC 6298 §5.7: the first segment is not waited for as long as the last SYN. */
	since = bed.sent;
	{
		size_t room;
		uint8_t *p = llp_raw.tx_begin(user.c, &room);

		assert_non_null(p);
		memset(p, 0, 100);
		llp_raw.tx_commit(user.c, 100);
		llp_raw.tx_flush(user.c);
	}
	bed_flush();
	assert_int_equal(bed_last(PORT, since)->n, 100);
	since = bed.sent;
	bed_pass(500000);
	assert_non_null(bed_last(PORT, since));
	assert_int_equal(bed_last(PORT, since)->n, 100);
}

/* What a peer sends that has an old connection with the same ports. */
static void acknowledge_something_else(void)
{
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = OUR_PORT,
				  .seq = 5000,
				  .ack = iss + 70000,
				  .flags = ACK,
				  .window = 65535 });
}

/* RFC 9293 §3.10.7.3: it hears an RST each time, and the SYN once more, soon. A peer that ignores
 * the RST (RFC 1337), or somebody who only guesses the ports, does not use up the connect. */
static void an_ack_of_something_else_ends_nothing(void **state)
{
	unsigned since = bed.sent, resets = 0, syns = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		acknowledge_something_else();
	for (unsigned i = since; i < bed.sent; i++) {
		resets += bed.out[i].flags & RST ? 1 : 0;
		syns += bed.out[i].flags == SYN;
	}
	assert_int_equal(resets, 100);
	assert_in_range(syns, 1, 3);
	bed_pass(4000000);
	assert_false(user.closed);
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = OUR_PORT,
				  .seq = 5000,
				  .ack = iss + 1,
				  .flags = SYN | ACK,
				  .window = 65535 });
	assert_true(user.connected);
}

/* The peer, or somebody who says so. */
static void answer(uint8_t flags, uint32_t ack, const uint8_t *options, unsigned n)
{
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .dport = OUR_PORT,
				  .seq = 5000,
				  .ack = ack,
				  .flags = flags,
				  .window = 1000,
				  .options = options,
				  .options_n = n });
}

/* RFC 9293 §3.10.7.3: what does not acknowledge our SYN is answered, or dropped, and decides
 * nothing: neither on SACK (RFC 2018 §2) nor on the window scale (RFC 7323 §2.2). */
static void a_forged_syn_decides_nothing(void **state)
{
	/* MSS 100, SACK permitted, window scale 14 */
	static const uint8_t forged[] = { 2, 4, 0, 100, 1, 1, 4, 2, 1, 3, 3, 14 };
	unsigned since = bed.sent;

	(void)state;
	answer(SYN, 0, forged, sizeof(forged));
	assert_int_equal(bed.sent, since);
	answer(SYN | RST, 0, forged, sizeof(forged));
	answer(SYN | RST | ACK, iss + 7, forged, sizeof(forged));
	assert_int_equal(bed.sent, since);
	answer(SYN | ACK, iss + 7, forged, sizeof(forged));
	assert_int_equal(bed.out[since].flags & RST, RST);
	assert_int_equal(bed.out[since].seq, iss + 7);
	assert_int_equal(bed.stats.tcp_rx_blind, 4);
	assert_false(user.connected || user.closed);
	answer(SYN | ACK, iss + 1, NULL, 0);
	assert_true(user.connected);
	assert_int_equal(user.c->pcb->snd_wnd, 1000);
	assert_int_equal(user.c->pcb->flags & (TF_SACK | TF_WND_SCALE), 0);
	answer(ACK, iss + 1, NULL, 0);
	assert_int_equal(user.c->pcb->snd_wnd, 1000);
}

/* RFC 9293 §3.10.7.3: "fifth, if neither of the SYN or RST bits is set, then drop". Octets may
 * overtake the SYN. */
static void octets_before_the_syn_are_dropped(void **state)
{
	unsigned since = bed.sent;

	(void)state;
	answer(ACK, iss + 1, NULL, 0);
	assert_int_equal(bed.sent, since);
	answer(SYN | ACK, iss + 1, NULL, 0);
	assert_true(user.connected);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(it_goes_on_with_backoff),
	TEST(a_late_answer_is_an_answer),
	TEST(an_ack_of_something_else_ends_nothing),
	TEST(a_forged_syn_decides_nothing),
	TEST(octets_before_the_syn_are_dropped),
};

UWTEST_MAIN(tests)
