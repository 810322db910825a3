/* SPDX-License-Identifier: BSD-3-Clause */
/* Long segments: the link cuts them, and each FPDU is a segment of the wire (RFC 5044 §5), also
 * when it is sent again. */
#include "bed.h"

#include "base/be.h"
#include "io/lwip/conn.h"
#include "io/lwip/nif.h"
#include "loss/seq.h"

#define PORT 40000u
#define ISS  1000u

static struct bed_peer p;
static unsigned sent; /* segments that the user has sent, each filled with its number */

static int up(void **state)
{
	/* MSS, SACK permitted, window scale 7 */
	static const uint8_t options[] = {
		2, 4, BED_MSS >> 8, BED_MSS & 255, 1, 1, 4, 2, 1, 3, 3, 7
	};

	(void)state;
	bed_open_cutting();
	bed.longs = bed.long_out = sent = 0;
	p = bed_connect_with(PORT, 65535, options, sizeof(options));
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	assert_int_equal(bed.stats.tcp_assertions, 0);
	return 0;
}

/* As many full segments as there is room for, at most n, and then one of `rest` octets. */
static unsigned burst(unsigned n, size_t rest)
{
	unsigned done = 0;
	size_t room;
	uint8_t *at;

	for (; done < n && (at = llp_raw.tx_begin(p.user->c, &room)); done++) {
		assert_int_equal(room, BED_MSS);
		memset(at, (int)(sent++ & 255), room);
		llp_raw.tx_commit(p.user->c, room);
	}
	if (done == n && rest && (at = llp_raw.tx_begin(p.user->c, &room))) {
		memset(at, 0xee, rest);
		llp_raw.tx_commit(p.user->c, rest);
	}
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	return done;
}

static void acknowledge(unsigned segments)
{
	p.ack += segments * BED_MSS;
	bed_segment(&p, 0, 0, ACK);
}

/* The peer has what is between a and b (octets from p.ack on), and what is before p.ack. */
static void sack(uint32_t a, uint32_t b)
{
	uint8_t options[12] = { 1, 1, 5, 10 };

	uw_put32(options + 4, p.ack + a);
	uw_put32(options + 8, p.ack + b);
	bed_in(&(struct bed_seg){ .sport = PORT,
				  .seq = p.seq,
				  .ack = p.ack,
				  .flags = ACK,
				  .window = p.window,
				  .options = options,
				  .options_n = sizeof(options) });
}

/* The connection sends long segments from now on; nothing is outstanding. */
static void warm_up(void)
{
	unsigned n = burst(5, 0);

	assert_int_equal(n, 5);
	acknowledge(n);
	bed.longs = 0;
	bed.sent = 0;
}

static void each_segment_is_one_of_the_wire(void **state)
{
	uint32_t first;

	(void)state;
	warm_up();
	first = p.ack;
	assert_int_equal(burst(9, 100), 9);
	assert_int_equal(bed.longs, 1);
	assert_int_equal(bed.sent, 10);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(bed.out[i].seq, first + i * BED_MSS);
		assert_int_equal(bed.out[i].n, i < 9 ? BED_MSS : 100);
		assert_int_equal(bed.out[i].first, i < 9 ? 5 + i : 0xee);
		assert_int_equal(bed.out[i].flags, i < 9 ? ACK : ACK | PSH);
	}
	acknowledge(9);
	p.ack += 100;
	bed_segment(&p, 0, 0, ACK);
}

/* Several segments, the last one of `rest` octets, asked for and committed at once. */
static void commit_many(unsigned n, size_t rest)
{
	size_t room, each;
	uint8_t *at = llp_raw.tx_begin_many(p.user->c, &room, &each);

	assert_non_null(at);
	assert_int_equal(each, BED_MSS);
	assert_int_equal(room % BED_MSS, 0);
	assert_in_range(room, n * BED_MSS + (rest ? BED_MSS : 0), IO_LONG_MAX);
	for (unsigned i = 0; i < n; i++)
		memset(at + i * BED_MSS, (int)(sent++ & 255), BED_MSS);
	memset(at + n * BED_MSS, 0xee, rest);
	llp_raw.tx_commit(p.user->c, n * BED_MSS + rest);
}

static void several_are_committed_at_once(void **state)
{
	uint64_t before;
	uint32_t first;

	(void)state;
	warm_up();
	first = p.ack;
	before = bed.stats.tcp_tx_segments;
	commit_many(3, 0);
	commit_many(4, 100); /* grows the same one */
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	assert_int_equal(bed.stats.tcp_tx_segments - before, 8);
	assert_int_equal(bed.longs, 1);
	assert_int_equal(bed.sent, 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(bed.out[i].seq, first + i * BED_MSS);
		assert_int_equal(bed.out[i].n, i < 7 ? BED_MSS : 100);
		assert_int_equal(bed.out[i].first, i < 7 ? 5 + i : 0xee);
	}
	acknowledge(7);
	p.ack += 100;
	bed_segment(&p, 0, 0, ACK);
}

/* Its record has to be cut before the first of them is. */
static void of_several_only_what_is_missing_is_sent_again(void **state)
{
	uint32_t first;

	(void)state;
	warm_up();
	first = p.ack;
	commit_many(6, 0);
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	bed.sent = 0;
	sack(BED_MSS, 6 * BED_MSS);
	assert_in_range(bed.sent, 1, 1);
	assert_int_equal(bed.out[0].seq, first);
	assert_int_equal(bed.out[0].n, BED_MSS);
	acknowledge(6);
}

static void only_bulk_commits_several(void **state)
{
	size_t room, each;

	(void)state;
	assert_null(llp_raw.tx_begin_many(p.user->c, &room, &each));
	warm_up();
	assert_non_null(llp_raw.tx_begin_many(p.user->c, &room, &each));
	llp_raw.tx_commit(p.user->c, 0);
	assert_int_equal(bed.long_out, 0);
}

/* What is short and alone does not take the memory of a long one, and is not cut. */
static void a_short_one_stays_alone(void **state)
{
	(void)state;
	warm_up();
	assert_int_equal(burst(0, 100), 0);
	assert_int_equal(bed.longs, 0);
	assert_int_equal(bed.long_out, 0);
	assert_int_equal(bed.out[0].n, 100);
	p.ack += 100;
	bed_segment(&p, 0, 0, ACK);
}

static void commit(size_t n, uint8_t with)
{
	size_t room;
	uint8_t *at = llp_raw.tx_begin(p.user->c, &room);

	assert_non_null(at);
	memset(at, with, n);
	llp_raw.tx_commit(p.user->c, n);
}

/* 64 KiB for a few octets would be a waste: only who sends much gets them. */
static void only_bulk_takes_the_memory(void **state)
{
	(void)state;
	assert_int_equal(burst(3, 0), 3);
	assert_int_equal(bed.long_out, 0);
	acknowledge(3);
	warm_up();
	assert_int_equal(burst(1, 0), 1);
	assert_int_equal(bed.long_out, 1);
	acknowledge(1);
	for (unsigned i = 0; i < 4; i++) {
		burst(0, 100);
		p.ack += 100;
		bed_segment(&p, 0, 0, ACK);
	}
	assert_int_equal(burst(1, 0), 1);
	assert_int_equal(bed.long_out, 0);
	acknowledge(1);
}

static bool is_bulk(void)
{
	size_t room, each;
	bool bulk = llp_raw.tx_begin_many(p.user->c, &room, &each);

	if (bulk)
		llp_raw.tx_commit(p.user->c, 0);
	return bulk;
}

/* Messages of some segments, of which the last is at least half full. */
static void short_messages_in_a_row_are_bulk_too(void **state)
{
	static const size_t last[] = { BED_MSS / 2, BED_MSS / 2 - 1 };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < 4; i++) {
			commit(BED_MSS, 1);
			commit(last[k], 2);
			p.ack += BED_MSS + (uint32_t)last[k];
		}
		llp_raw.tx_flush(p.user->c);
		bed_flush();
		bed_segment(&p, 0, 0, ACK);
		assert_int_equal(is_bulk(), k == 0);
	}
	/* half full, and behind nothing that is full */
	assert_int_equal(burst(4, 0), 4);
	acknowledge(4);
	assert_true(is_bulk());
	for (unsigned i = 0; i < 4; i++)
		commit(BED_MSS / 2, 3);
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	p.ack += 4 * (BED_MSS / 2);
	bed_segment(&p, 0, 0, ACK);
	assert_false(is_bulk());
}

/* Behind one that is not full another would begin where the link does not cut. */
static void a_long_one_ends_with_a_short_one(void **state)
{
	static const size_t n[] = { BED_MSS, BED_MSS, 100, BED_MSS, BED_MSS };
	uint32_t seq;

	(void)state;
	warm_up();
	seq = p.ack;
	for (unsigned i = 0; i < 5; i++)
		commit(n[i], (uint8_t)(0x40 + i));
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	assert_int_equal(bed.sent, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(bed.out[i].seq, seq);
		assert_int_equal(bed.out[i].n, n[i]);
		assert_int_equal(bed.out[i].first, 0x40 + i);
		seq += (uint32_t)n[i];
	}
	p.ack = seq;
	bed_segment(&p, 0, 0, ACK);
}

/* An ACK for a part of it makes room for as much. */
static void acks_of_parts_count(void **state)
{
	unsigned n, more;

	(void)state;
	warm_up();
	n = burst(1000, 0);
	assert_in_range(n, 10, 100);
	assert_int_equal(bed.longs, 1);
	acknowledge(n - 1);
	more = burst(1000, 0);
	assert_in_range(more, n - 1, 2 * n);
	acknowledge(1 + more);
}

static void only_what_is_missing_is_sent_again(void **state)
{
	unsigned since;

	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	since = bed.sent;
	p.ack += 2 * BED_MSS; /* the third is lost */
	sack(BED_MSS, 8 * BED_MSS);
	assert_int_equal(bed.out[since].seq, p.ack);
	assert_int_equal(bed.out[since].n, BED_MSS);
	assert_int_equal(bed.out[since].first, 5 + 2);
	assert_int_equal(bed.out[since].flags, ACK); /* PSH is the last one's */
	assert_int_equal(bed.sent, since + 1);
	acknowledge(8);
}

/* RFC 5681 §3.2: in the recovery segments are single, since each may have to go again. */
static void in_a_recovery_all_are_single(void **state)
{
	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	bed.longs = 0;
	sack(BED_MSS, 9 * BED_MSS); /* the first is lost */
	assert_in_range(burst(6, 0), 1, 6);
	assert_int_equal(bed.longs, 0);
	assert_int_equal(bed.long_out, 0);
	acknowledge(sent - 5);
}

/* The first piece of what was sent last is freed while the others are not acknowledged: nobody
 * looks at it any more (AddressSanitizer would tell). */
static void what_was_cut_is_not_the_last(void **state)
{
	uint32_t first;

	(void)state;
	warm_up();
	first = p.ack;
	assert_int_equal(burst(10, 0), 10);
	sack(BED_MSS, 2 * BED_MSS);
	acknowledge(9);
	bed.sent = 0;
	assert_in_range(burst(2, 0), 1, 2);
	assert_int_equal(bed.out[0].seq, first + 10 * BED_MSS);
	assert_int_equal(bed.out[0].first, 5 + 10);
	p.ack = first;
	acknowledge(sent - 5);
}

#define LINK_QUEUE 256u /* frames that io/lwip keeps for a link that takes none */

/* The link is behind, so a long segment stays in lwIP's queue and is cut there. When it has gone
 * after all, the last one is its last piece, and the first may be freed before (AddressSanitizer
 * would tell). */
static void what_was_cut_in_the_queue_is_not_the_last(void **state)
{
	(void)state;
	while (p.ack - ISS < 60 * BED_MSS) { /* the window grows */
		unsigned n = burst(20, 0);

		acknowledge(n);
	}
	bed.stuck = true;
	for (unsigned i = 0; i < LINK_QUEUE; i++)
		commit(4, 0x11);
	for (unsigned i = 0; i < 8; i++)
		commit(BED_MSS, 0x22);
	llp_raw.tx_flush(p.user->c);
	assert_int_equal(bed.long_out, 0); /* there was one, and it is cut */
	bed.stuck = false;
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	p.ack += LINK_QUEUE * 4;
	acknowledge(6); /* two pieces, and two are under way */
	bed.sent = 0;
	assert_int_equal(burst(1, 0), 1);
	assert_int_equal(bed.out[0].seq, p.ack + 2 * BED_MSS);
	acknowledge(3);
}

/* A peer may acknowledge any octet. What goes again begins where the FPDU does. */
static void an_ack_within_a_segment(void **state)
{
	unsigned since;

	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	p.ack += 2 * BED_MSS + 100;
	bed_segment(&p, 0, 0, ACK);
	since = bed.sent;
	bed_pass(2000000);
	assert_int_equal(bed.out[since + 1].seq, p.ack - 100);
	assert_int_equal(bed.out[since + 1].n, BED_MSS);
	assert_int_equal(bed.out[since + 1].first, 5 + 2);
	p.ack += 8 * BED_MSS - 100;
	bed_segment(&p, 0, 0, ACK);
}

/* Room for what is queued comes back once for each octet that is acknowledged, also for those at
 * the front of a long segment that is cut. Otherwise it was used up after some hundred losses, and
 * the connection went on with one segment at a time. */
static void room_comes_back(void **state)
{
	const struct tcp_pcb *pcb = p.user->c->pcb;

	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	assert_int_equal(pcb->snd_buf, TCP_SND_BUF - 10 * BED_MSS);
	p.ack += 2 * BED_MSS + 100; /* within the third, which is lost */
	bed_segment(&p, 0, 0, ACK);
	sack(BED_MSS - 100, 8 * BED_MSS - 100);
	p.ack += 8 * BED_MSS - 100;
	bed_segment(&p, 0, 0, ACK);
	assert_int_equal(pcb->snd_buf, TCP_SND_BUF);
}

static void a_timeout_sends_the_first_that_is_missing(void **state)
{
	unsigned since;

	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	acknowledge(3);
	since = bed.sent;
	bed_pass(2000000);
	/* the tail loss probe is the last one, alone (RFC 8985 §7.3) */
	assert_int_equal(bed.out[since].first, 5 + 9);
	assert_int_equal(bed.out[since].n, BED_MSS);
	assert_int_equal(bed.out[since + 1].seq, p.ack);
	assert_int_equal(bed.out[since + 1].first, 5 + 3);
	assert_int_equal(bed.out[since + 1].n, BED_MSS);
	assert_int_equal(bed.frames, 7); /* of what is acknowledged no piece was made */
	acknowledge(7);
}

/* RFC 1122 §4.2.3.5: R2. */
static void who_never_acknowledges_is_given_up(void **state)
{
	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	bed_pass(30000000);
	assert_false(p.user->closed);
	bed_pass(30000000);
	assert_true(p.user->closed);
}

/* There is no memory for the segments of the wire: it is sent again as it was. */
static void without_memory_all_of_it_goes_again(void **state)
{
	unsigned since;

	(void)state;
	warm_up();
	assert_int_equal(burst(10, 0), 10);
	since = bed.sent;
	bed.pool = bed.frames;
	bed_pass(50000);
	assert_true(bed.sent > since);
	assert_int_equal(bed.out[since].seq, p.ack);
	assert_int_equal(bed.out[since].first, 5);
	bed.pool = 100000;
	acknowledge(10);
	assert_int_equal(burst(5, 0), 5);
	acknowledge(5);
}

/* A peer that loses at random, and says what it has: each octet arrives as it was sent. */
struct sink {
	struct prng rng;
	uint8_t has[4096]; /* 1: the segment with this number came */
	unsigned next;	   /* the first that did not */
	uint32_t first;	   /* sequence number of segment 0 */
	unsigned seen;	   /* entries of bed.out that it has seen */
};

static void take(struct sink *k, const struct bed_seg *s)
{
	unsigned i = (s->seq - k->first) / BED_MSS;

	assert_int_equal((s->seq - k->first) % BED_MSS, 0);
	assert_int_equal(s->n, BED_MSS);
	assert_int_equal(s->first, i & 255);
	if (prng_below(&k->rng, 20))
		k->has[i] = 1;
	while (k->has[k->next])
		k->next++;
}

static void answer(struct sink *k)
{
	unsigned a = k->next, b;

	p.ack = k->first + k->next * BED_MSS;
	while (a < sent && !k->has[a])
		a++;
	for (b = a; b < sent && k->has[b];)
		b++;
	if (a < b)
		sack((a - k->next) * BED_MSS, (b - k->next) * BED_MSS);
	else
		bed_segment(&p, 0, 0, ACK);
}

static void under_loss_all_arrives_as_it_was(void **state)
{
	static struct sink k;

	(void)state;
	k = (struct sink){ .rng = { 5 }, .first = p.ack };
	for (unsigned round = 0; k.next < 4000; round++) {
		assert_in_range(round, 0, 20000);
		if (sent < 4000)
			burst(sent < 3940 ? 60 : 4000 - sent, 0);
		for (; k.seen < bed.sent; k.seen++) {
			if (bed.out[k.seen % BED_OUT].n)
				take(&k, &bed.out[k.seen % BED_OUT]);
			if (k.seen % 7 == 0)
				answer(&k);
		}
		bed_pass(1000);
		answer(&k);
	}
	assert_in_range(bed.longs, 20, 4000);
}

/* ---- to ourselves ------------------------------------------------------------------------ */

/* A link with two IPv6 addresses, and a connection from the one to the other. */
static void connect_own_addresses(struct bed_conn *us)
{
	const struct llp_place at = { .addr = { { 0 } }, .port = lwip_htons(BED_PORT) };
	struct llp_addrs a = { .lport = lwip_htons(PORT), .rport = lwip_htons(BED_PORT) };

	llp_raw.unlisten(bed.ls);
	llp_raw.remove_link(&bed.link);
	bed.link.n_ip6 = 2;
	for (unsigned i = 0; i < 2; i++) {
		bed.link.ip6[i] = (struct uw_net){ .ip = { { 0x20, 0x01 } }, .bits = 64 };
		bed.link.ip6[i].ip.b[15] = (uint8_t)(i + 1);
	}
	llp_raw.add_link(&bed.link);
	assert_status(llp_raw.listen(&bed.link, &at, 16, &bed, &bed.ls), UW_OK);
	a.local = bed.link.ip6[0].ip;
	a.remote = bed.link.ip6[1].ip;
	assert_status(llp_raw.connect(&bed.link, &a, us, &us->c), UW_OK);
	bed_pass(50000);
	assert_true(us->connected);
}

/* They are copied into frames of the link, which nobody cuts (AddressSanitizer would tell). */
static void none_to_another_address_of_our_own(void **state)
{
	struct bed_conn us = { 0 };
	size_t n = 0, room;

	(void)state;
	bed_open_cutting();
	connect_own_addresses(&us);
	for (unsigned i = 0; i < 60; i++) {
		uint8_t *at = llp_raw.tx_begin(us.c, &room);

		if (at) {
			memset(at, (int)i, room);
			llp_raw.tx_commit(us.c, room);
			n += room;
		}
		assert_int_equal(bed.long_out, 0);
		if (i % 12 == 11) {
			llp_raw.tx_flush(us.c);
			bed_pass(1000);
		}
	}
	bed_pass(10000);
	assert_in_range(n, 40 * 1400, 60 * BED_MSS);
	assert_int_equal(bed.conn[0].got, n);
	llp_raw.abort(us.c);
}

static void what_no_frame_has_room_for_is_refused(void **state)
{
	struct io_frame *f;
	struct pbuf *q;

	(void)state;
	bed_open_cutting();
	f = bed.link.ops->alloc_long(&bed.link);
	f->len = 3000;
	q = edge_wrap_tx(f);
	assert_int_equal(edge_nif_send_self(&edge.links[0].nif, q), ERR_MEM);
	assert_int_equal(edge.links[0].self_n, 0);
	pbuf_free(q);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_teardown(none_to_another_address_of_our_own, down),
	cmocka_unit_test_teardown(what_no_frame_has_room_for_is_refused, down),
	cmocka_unit_test_setup_teardown(each_segment_is_one_of_the_wire, up, down),
	cmocka_unit_test_setup_teardown(several_are_committed_at_once, up, down),
	cmocka_unit_test_setup_teardown(of_several_only_what_is_missing_is_sent_again, up, down),
	cmocka_unit_test_setup_teardown(only_bulk_commits_several, up, down),
	cmocka_unit_test_setup_teardown(a_short_one_stays_alone, up, down),
	cmocka_unit_test_setup_teardown(only_bulk_takes_the_memory, up, down),
	cmocka_unit_test_setup_teardown(short_messages_in_a_row_are_bulk_too, up, down),
	cmocka_unit_test_setup_teardown(a_long_one_ends_with_a_short_one, up, down),
	cmocka_unit_test_setup_teardown(acks_of_parts_count, up, down),
	cmocka_unit_test_setup_teardown(in_a_recovery_all_are_single, up, down),
	cmocka_unit_test_setup_teardown(what_was_cut_is_not_the_last, up, down),
	cmocka_unit_test_setup_teardown(what_was_cut_in_the_queue_is_not_the_last, up, down),
	cmocka_unit_test_setup_teardown(an_ack_within_a_segment, up, down),
	cmocka_unit_test_setup_teardown(room_comes_back, up, down),
	cmocka_unit_test_setup_teardown(only_what_is_missing_is_sent_again, up, down),
	cmocka_unit_test_setup_teardown(a_timeout_sends_the_first_that_is_missing, up, down),
	cmocka_unit_test_setup_teardown(who_never_acknowledges_is_given_up, up, down),
	cmocka_unit_test_setup_teardown(without_memory_all_of_it_goes_again, up, down),
	cmocka_unit_test_setup_teardown(under_loss_all_arrives_as_it_was, up, down),
};

UWTEST_MAIN(tests)
