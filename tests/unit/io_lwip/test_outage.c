/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths and peers that take nothing for a while: what is remembered of it, and who ends. */
#include "bed.h"

#include <string.h>

#include "io/lwip/loss_conn.h"
#include "record_sound.h"

#define PORT   7000u
#define SECOND 1000000u
#define STEP   10000u

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

static void acknowledge(struct bed_peer *p, uint32_t ack)
{
	p->ack = ack;
	bed_segment(p, 0, 0, ACK);
	bed_pass(1); /* segments are fitted to the path with the next round of timers */
}

/* ---- a closed window --------------------------------------------------------------------- */

/* Whatever was sent since is answered: nothing new, and no window. */
static void refuse(struct bed_peer *p, unsigned *since)
{
	if (bed.sent == *since)
		return;
	p->window = 0;
	bed_segment(p, 0, 0, ACK);
	*since = bed.sent;
}

/* RFC 9293 §3.8.6.1: "the sending TCP peer must allow the connection to stay open", also where the
 * window was closed in front of octets that were on their way (§3.8.6). */
static void a_peer_that_refuses_is_no_silent_one(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned since = bed.sent;

	(void)state;
	bed_send_full(&p, 3);
	for (unsigned i = 0; i < 295 * SECOND / STEP; i++) {
		refuse(&p, &since);
		bed_pass(STEP);
	}
	assert_false(p.user->closed);
	/* It opens: the peer need not wait for the next repeat, which is seconds away. */
	since = bed.sent;
	p.window = 65535;
	bed_segment(&p, 0, 0, ACK);
	bed_pass(SECOND / 2);
	assert_true(since < bed.sent);
	while (bed.out[since % BED_OUT].seq != p.ack)
		assert_true(++since < bed.sent);
}

/* ... and one that does not answer is. */
static void a_silent_peer_is_given_up(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned since = bed.sent;

	(void)state;
	bed_send_full(&p, 3);
	for (unsigned i = 0; i < 10 * SECOND / STEP; i++) {
		refuse(&p, &since);
		bed_pass(STEP);
	}
	assert_false(p.user->closed);
	bed_pass(100 * SECOND);
	assert_true(p.user->closed);
}

/* What is told of the end has all timeouts since the last ACK, whatever was sent again between. */
static void the_timeouts_are_counted(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	const struct bed_conn *u = p.user;
	unsigned before;

	(void)state;
	bed_send_full(&p, 3);
	bed_pass(SECOND);
	before = u->note[LLP_RTO].times;
	assert_true(before);
	acknowledge(&p, p.ack + BED_MSS);
	bed_pass(100 * SECOND);
	assert_true(u->closed);
	assert_int_equal(u->note[LLP_UNANSWERED].times, 1);
	assert_int_equal(u->note[LLP_TIMEOUTS].times, 1);
	assert_true(u->note[LLP_TIMEOUTS].arg > 3);
	assert_int_equal(u->note[LLP_TIMEOUTS].arg, u->note[LLP_RTO].times - before);
}

/* ---- short messages ---------------------------------------------------------------------- */

#define MESSAGE 84u

static bool send_short(const struct bed_peer *p)
{
	size_t room;
	uint8_t *at = llp_raw.tx_begin(p->user->c, &room);

	if (!at)
		return false;
	memset(at, 7, MESSAGE);
	llp_raw.tx_commit(p->user->c, MESSAGE);
	llp_raw.tx_flush(p->user->c);
	bed_flush();
	return true;
}

/* RFC 5681 §3.1: after a timeout the window is one segment and grows, also where all that is sent
 * is shorter: a message must have room for a whole segment to go. */
static void short_messages_go_together_after_a_timeout(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned together = 0;

	(void)state;
	assert_true(send_short(&p));
	bed_pass(2 * SECOND);
	assert_true(p.user->note[LLP_RTO].times > 0);
	acknowledge(&p, p.ack + MESSAGE);
	for (unsigned i = 0; i < 10; i++) {
		uint32_t n = 1;

		assert_true(send_short(&p));
		if (send_short(&p)) {
			together++;
			n++;
		}
		bed_pass(100);
		acknowledge(&p, p.ack + n * MESSAGE);
	}
	assert_true(together >= 8);
}

/* ---- the path ---------------------------------------------------------------------------- */

/* The user sends, and packets of at most `most` octets of TCP arrive, in order, until all of it is
 * acknowledged. */
static void send_through(struct bed_peer *p, unsigned n, size_t most)
{
	const uint32_t end = p->ack + (uint32_t)bed_send_full(p, n) * n;
	unsigned at = bed.sent - n;

	for (unsigned i = 0; p->ack != end; i++) {
		assert_true(i < 100 * SECOND / STEP);
		for (; at < bed.sent; at++) {
			const struct bed_seg *s = &bed.out[at % BED_OUT];

			if (s->dport == PORT && s->n <= most && s->seq == p->ack)
				acknowledge(p, p->ack + (uint32_t)s->n);
		}
		if (p->ack != end)
			bed_pass(STEP);
	}
}

static size_t segment(struct bed_peer *p)
{
	size_t n = bed_send_full(p, 1);

	acknowledge(p, p->ack + (uint32_t)n);
	return n;
}

/* A path that is dead for some seconds looks like one that takes short packets only (RFC 4821
 * §7.7). When it lives again they are as long as before. */
static void a_dead_path_does_not_become_a_short_one(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 2);
	bed_pass(4 * SECOND);
	assert_true(bed.stats.tcp_black_holes > 0);
	acknowledge(&p, p.ack + 2 * BED_MSS);
	assert_int_equal(segment(&p), BED_MSS);
	assert_int_equal(edge.paths.n, 0);
	/* Also if it is dead again, and again. */
	for (unsigned i = 0; i < 5; i++) {
		bed_send_full(&p, 2);
		bed_pass(4 * SECOND);
		acknowledge(&p, p.ack + 2 * BED_MSS);
	}
	assert_int_equal(segment(&p), BED_MSS);
	assert_int_equal(edge.paths.n, 0);
}

/* One that really takes short ones only is found out, tried once more, and believed then. */
static void a_black_hole_is_remembered(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	uint64_t holes, start;

	(void)state;
	send_through(&p, 1, 1240);
	send_through(&p, 1, 1240);
	assert_int_equal(segment(&p), 1240);
	holes = bed.stats.tcp_black_holes;
	start = bed.now_us;
	for (unsigned i = 0; i < 20; i++)
		send_through(&p, 1, 1240);
	assert_int_equal(bed.stats.tcp_black_holes, holes);
	assert_in_range(bed.now_us - start, 0, SECOND);
	bed_pass(601 * (uint64_t)SECOND);
	assert_int_equal(segment(&p), BED_MSS);
}

/* To twice as much as before, again and again (RFC 5681 §3.1). */
static void open_window(struct bed_peer *p)
{
	for (unsigned n = 10; n < 40; n *= 2) {
		bed_send_full(p, n);
		acknowledge(p, p->ack + n * BED_MSS);
	}
}

/* lwIP keeps what it finds no way for as not sent. If the way is back by the timeout it goes alone
 * (RFC 5681 §3.1), and not with all that is queued behind it: the record grew then while one of its
 * entries was in use (AddressSanitizer would tell). */
static void when_the_way_is_back_one_segment_goes(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	const struct loss *l = &p.user->c->loss->loss;
	const uint32_t mask = bed.link.mask;
	unsigned since;

	(void)state;
	open_window(&p);
	since = bed.sent;
	bed.link.mask = UINT32_MAX;
	bed_send_full(&p, 40);
	while (l->timer != LOSS_RTO_TIMER)
		bed_pass(1000);
	bed_pass(l->deadline_us - bed.now_us - 1);
	assert_int_equal(bed.sent, since);
	bed.link.mask = mask;
	bed_pass(1);
	assert_int_equal(bed.stats.tcp_timeouts, 1);
	assert_int_equal(bed.sent, since + 1);
	assert_int_equal(bed_last(PORT, since)->seq, p.ack);
	assert_true(record_sound(&l->rec));
	for (unsigned i = 0; i < 40; i++) {
		assert_true(since + i < bed.sent);
		assert_int_equal(bed.out[since + i].seq, p.ack);
		acknowledge(&p, p.ack + BED_MSS);
	}
	assert_int_equal(bed.sent, since + 40);
}

/* ---- rest -------------------------------------------------------------------------------- */

static int up_asking(void **state)
{
	(void)state;
	bed_open_asking(4000);
	return 0;
}

/* Memory that a large window needed goes back when nothing is sent any more. */
static void a_silent_connection_gives_memory_back(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	const struct record *r = &p.user->c->loss->loss.rec;
	const uint32_t first = r->size;

	(void)state;
	for (unsigned i = 0; r->size == first; i++) {
		assert_true(i < 20);
		bed_send_full(&p, 8);
		acknowledge(&p, p.ack + 4 * BED_MSS);
		bed_send_full(&p, 4);
		acknowledge(&p, p.ack + 4 * BED_MSS);
	}
	acknowledge(&p, bed_last(PORT, 0)->seq + BED_MSS);
	assert_true(r->size > first);
	bed_pass(5 * SECOND);
	assert_int_equal(r->size, first);
	bed_send_full(&p, 4); /* and it goes on */
	acknowledge(&p, p.ack + 4 * BED_MSS);
	assert_int_equal(record_count(r), 0);
	assert_true(record_sound(r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_peer_that_refuses_is_no_silent_one, up, down),
		cmocka_unit_test_setup_teardown(a_silent_peer_is_given_up, up, down),
		cmocka_unit_test_setup_teardown(the_timeouts_are_counted, up, down),
		cmocka_unit_test_setup_teardown(short_messages_go_together_after_a_timeout, up,
						down),
		cmocka_unit_test_setup_teardown(a_dead_path_does_not_become_a_short_one, up, down),
		cmocka_unit_test_setup_teardown(a_black_hole_is_remembered, up, down),
		cmocka_unit_test_setup_teardown(when_the_way_is_back_one_segment_goes, up, down),
		cmocka_unit_test_setup_teardown(a_silent_connection_gives_memory_back, up_asking,
						down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
