/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection remembers for long: it is right after gigabytes, after silence and on a path
 * that has changed; and no timer is forgotten or left running. */
#include "loss/internal.h"

#include "loss_bed.h"

#define HUGE (1u << 28) /* octets: eight times so many are half of all sequence numbers */

static void ack_marked(uint32_t ack)
{
	const struct loss_ack a = { .ack = ack, .ece = true };

	loss_acked(&l, &a, now);
}

/* Ten segments and their ACK: a round trip of 1 ms is known. */
static void warm_up(void)
{
	send_new(10);
	now += 1000;
	ack_with(10 * MSS, NULL, 0);
}

static unsigned send_lost(void)
{
	unsigned n = 0;

	for (struct sent *s; (s = loss_next(&l, now)); n++)
		loss_resent(&l, s, now);
	return n;
}

/* n times HUGE octets are sent and acknowledged, and nothing happens. */
static void pass_octets(unsigned n)
{
	while (n--) {
		assert_non_null(loss_sent(&l, HUGE, NULL, now));
		now += 1000;
		ack_with(l.nxt, NULL, 0);
	}
}

/* A recovery of the segment at `una` begins, and is not over. */
static void lose_first(void)
{
	const uint32_t una = l.una;
	const struct loss_block b = { una + MSS, una + 4 * MSS };

	send_new(20);
	now += 1000;
	ack_with(una, &b, 1);
	assert_int_equal(l.phase, LOSS_RECOVERY);
}

/* ---- marks, undo ------------------------------------------------------------------------- */

/* RFC 3168 §6.1.2: once in a window of data. The window of the last mark is long past. */
static void a_mark_counts_after_gigabytes(void **state)
{
	(void)state;
	warm_up();
	send_new(2);
	ack_marked(11 * MSS);
	assert_int_equal(l.stats.ece, 1);
	ack_with(l.nxt, NULL, 0);
	pass_octets(9);
	send_new(2);
	ack_marked(l.una + MSS);
	assert_int_equal(l.stats.ece, 2);
}

/* RFC 3708 §3: the D-SACK has to be of octets that were sent again in that recovery. What the
 * network repeats later says nothing about it: the loss was real. */
static void what_is_repeated_later_undoes_nothing(void **state)
{
	uint32_t cwnd;

	(void)state;
	warm_up();
	lose_first();
	assert_int_equal(send_lost(), 1);
	now += 1000;
	ack_with(l.nxt, NULL, 0);
	assert_int_equal(l.phase, LOSS_OPEN);
	send_new(5);
	now += 1000;
	ack_with(l.nxt, NULL, 0);
	cwnd = l.cc.cwnd;
	ack_with(l.nxt, &(struct loss_block){ l.nxt - MSS, l.nxt }, 1);
	assert_int_equal(l.stats.undone, 0);
	assert_int_equal(l.cc.cwnd, cwnd);
}

/* A probe outside of a recovery is none of its repeats. */
static void a_probe_is_not_of_the_recovery(void **state)
{
	const uint32_t first = 10 * MSS;

	(void)state;
	warm_up();
	lose_first();
	send_lost();
	now += 1000;
	ack_with(l.nxt, NULL, 0);
	send_new(1);
	loss_resent(&l, loss_last(&l), now);
	loss_probed(&l, true, now);
	/* the repeat of the recovery was for nothing, as is heard late */
	ack_with(l.una, &(struct loss_block){ first, first + MSS }, 1);
	assert_int_equal(l.stats.undone, 1);
}

/* ---- the RTO ----------------------------------------------------------------------------- */

/* One message, answered after rtt_us. How often it was sent. */
static unsigned exchange(uint64_t rtt_us)
{
	const uint64_t answer = now + rtt_us;
	const uint64_t before = l.stats.sent_again;

	send_new(1);
	while (l.deadline_us < answer) {
		now = l.deadline_us;
		if (loss_timer(&l, now) == LOSS_DUE_PROBE) {
			loss_resent(&l, loss_last(&l), now);
			loss_probed(&l, true, now);
		}
		send_lost();
	}
	now = answer;
	ack_with(l.nxt, NULL, 0);
	now += 50000;
	for (uint64_t n = l.stats.sent_again - before; n; n--) /* RFC 2883 §4 */
		ack_with(l.nxt, &(struct loss_block){ l.nxt - MSS, l.nxt }, 1);
	return (unsigned)(l.stats.sent_again - before) + 1;
}

/* RFC 6298 §5 (5.5 to 5.7), RFC 9293 §3.8.1, "Karn's algorithm": the RTO stays backed off until
 * there is a sample. A path became longer than the RTO, and than the time of a probe: without that
 * no message would be sent once, so none would be a sample, for ever. */
static void a_longer_path_is_learned(void **state)
{
	(void)state;
	warm_up();
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(exchange(1000), 1);
	for (unsigned i = 0; i < 20; i++) /* SRTT takes in an eighth of each sample */
		exchange(90000);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(exchange(90000), 1);
	assert_true(l.rtt.smoothed_us > 50000);
	assert_int_equal(l.rto.backoff, 0);
}

/* Timeouts in a row are those without progress, however long the RTO is. */
static void progress_ends_a_row_of_timeouts(void **state)
{
	(void)state;
	cfg.tlp = false;
	warm_up();
	send_new(1);
	for (unsigned i = 1; i <= 3; i++) {
		now = l.deadline_us;
		loss_timer(&l, now);
		send_lost();
		assert_int_equal(l.rto.unanswered, i);
	}
	ack_with(l.nxt, NULL, 0);
	assert_int_equal(l.rto.unanswered, 0);
	assert_int_equal(l.rto.backoff, 3);
	send_new(1);
	assert_true(l.deadline_us - now > 4 * cfg.rto_min_us);
}

/* ---- pacing ------------------------------------------------------------------------------ */

/* In recovery with much to send again, and pacing lets no more go for now. */
static void be_held(void)
{
	l.paced = true;
	warm_up();
	l.cc.cwnd = l.cc.ssthresh = 500 * MSS;
	l.cc.hystart.done = true;
	send_new(500);
	now += 1000;
	ack_with(10 * MSS, &(struct loss_block){ 310 * MSS, 510 * MSS }, 1);
	assert_int_equal(l.phase, LOSS_RECOVERY);
	l.cc.cwnd = 500 * MSS;
	send_lost();
	assert_true(l.rec.octets[SENT_LOST] > 0);
}

/* What is lost goes when pacing lets it, not with the next ACK or the RTO; also if the caller asks
 * whether anything new may go meanwhile. */
static void lost_segments_go_in_time(void **state)
{
	(void)state;
	be_held();
	assert_true(loss_wake_us(&l) < now + 1000);
	assert_false(loss_may_send(&l, MSS, now));
	assert_true(loss_wake_us(&l) < now + 1000);
	now = loss_wake_us(&l);
	assert_true(send_lost() > 0);
}

/* Pacing held something back that must not go any more: its time is not waited for, or the caller
 * would be woken again and again. */
static void nobody_is_woken_for_nothing(void **state)
{
	(void)state;
	be_held();
	loss_timed_out(&l, now); /* the window is one segment, which goes at once */
	loss_arm(&l);
	assert_int_equal(send_lost(), 1);
	assert_int_equal(loss_room(&l), 0); /* so the caller asks no more */
	now += 5000;
	assert_true(loss_wake_us(&l) > now);
}

/* ---- slow start -------------------------------------------------------------------------- */

/* RFC 9406 §4.2: after silence the round trips are counted anew, whatever was sent since. */
static void hystart_works_after_gigabytes(void **state)
{
	(void)state;
	warm_up();
	l.cc.cwnd = l.cc.ssthresh; /* no loss, no delay: the window is as large as may be */
	pass_octets(10);
	now += 10000000;
	for (unsigned round = 0; round < 12 && !l.cc.hystart.css; round++) {
		send_new(10);
		now += round < 2 ? 1000 : 9000;
		while (l.una != l.nxt)
			ack_with(l.una + MSS, NULL, 0);
	}
	assert_true(l.cc.hystart.css);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(a_mark_counts_after_gigabytes, setup),
	cmocka_unit_test_setup(what_is_repeated_later_undoes_nothing, setup),
	cmocka_unit_test_setup(a_probe_is_not_of_the_recovery, setup),
	cmocka_unit_test_setup(a_longer_path_is_learned, setup),
	cmocka_unit_test_setup(progress_ends_a_row_of_timeouts, setup),
	cmocka_unit_test_setup(lost_segments_go_in_time, setup),
	cmocka_unit_test_setup(nobody_is_woken_for_nothing, setup),
	cmocka_unit_test_setup(hystart_works_after_gigabytes, setup),
};

UWTEST_MAIN(tests)
