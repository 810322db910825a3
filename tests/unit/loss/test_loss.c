/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection's sending side, ACK by ACK. */
#include "loss/internal.h"

#include "loss_bed.h"

/* Ten segments and their ACK: a round trip of 1 ms is known. */
static void warm_up(void)
{
	send_new(10);
	now += 1000;
	ack_with(10 * MSS, NULL, 0);
}

/* Where nothing behind it smooths a burst, CUBIC's window goes in parts, too, and within a round
 * trip. */
static void a_paced_window_is_spread(void **state)
{
	const uint32_t window = 500;
	unsigned n = 0;
	uint64_t end;

	(void)state;
	l.paced = true;
	warm_up();
	l.cc.cwnd = l.cc.ssthresh = window * MSS;
	send_new(10);
	now += 1000;
	ack_with(20 * MSS, NULL, 0);
	assert_true(l.pace.rate > 0);
	for (end = now + 1000; n < window; n++) {
		if (!loss_may_send(&l, MSS, now)) {
			assert_true(loss_wake_us(&l) > now && loss_wake_us(&l) <= end);
			now = loss_wake_us(&l);
			assert_true(loss_may_send(&l, MSS, now));
		}
		send_new(1);
	}
	assert_in_range(now, end - 999, end);
	setup(NULL);
	warm_up();
	assert_int_equal(l.pace.rate, 0);
}

static unsigned send_lost(void)
{
	unsigned n = 0;

	for (struct sent *s; (s = loss_next(&l, now)); n++)
		loss_resent(&l, s, now);
	return n;
}

/* RFC 6675 §5 and RFC 6937: a hole below three sacked segments is sent again at once. */
static void a_hole_is_sent_again(void **state)
{
	const struct loss_block b = { 11 * MSS, 14 * MSS };

	(void)state;
	warm_up();
	send_new(20);
	now += 1000;
	ack_with(10 * MSS, &b, 1);
	assert_int_equal(l.phase, LOSS_RECOVERY);
	assert_int_equal(l.recover, 30 * MSS);
	assert_int_equal(loss_next(&l, now)->seq, 10 * MSS);
	assert_int_equal(send_lost(), 1);
	now += 1000;
	ack_with(30 * MSS, NULL, 0);
	assert_int_equal(l.phase, LOSS_OPEN);
	/* RFC 6937 §3: at ssthresh, and this ACK counts */
	assert_in_range(l.cc.cwnd, l.cc.ssthresh, l.cc.ssthresh + 2 * MSS);
	assert_int_equal(l.stats.sent_again, 1);
}

/* RFC 3042 §2: for the first two duplicates a new segment each, though the window is full. */
static void limited_transmit(void **state)
{
	struct loss_block b = { 11 * MSS, 12 * MSS };

	(void)state;
	warm_up();
	while (loss_may_send(&l, MSS, now))
		send_new(1);
	now += 1000;
	ack_with(10 * MSS, &b, 1);
	assert_int_equal(l.phase, LOSS_OPEN);
	assert_true(loss_may_send(&l, MSS, now));
	send_new(1);
	assert_false(loss_may_send(&l, MSS, now));
}

/* RFC 9438 §5.8: whoever sends a window at once when the last one is acknowledged is limited by the
 * window, with every ACK: it grows by a segment in a round trip (§4.3, W_est). */
static void bursts_grow_the_window(void **state)
{
	(void)state;
	warm_up();
	l.cc.hystart.done = true;
	l.cc.cwnd = l.cc.ssthresh = 20 * MSS;
	for (unsigned round = 0; round < 20; round++) {
		while (loss_may_send(&l, MSS, now))
			send_new(1);
		now += 1000;
		while (l.una != l.nxt)
			ack_with(l.una + MSS, NULL, 0);
	}
	assert_in_range(l.cc.cwnd, 38 * MSS, 42 * MSS);
}

/* RFC 9438 §4.6, RFC 5681 §3.1: what was in flight, not what is left of a burst when the loss
 * shows.
 */
static void the_window_after_a_burst_is_that_of_the_burst(void **state)
{
	const struct loss_block b = { 41 * MSS, 44 * MSS };

	(void)state;
	warm_up();
	l.cc.cwnd = 40 * MSS;
	send_new(40);
	now += 1000;
	ack_with(40 * MSS, NULL, 0);
	l.cc.cwnd = 40 * MSS;
	ack_with(40 * MSS, &b, 1);
	assert_int_equal(l.phase, LOSS_RECOVERY);
	assert_int_equal(l.cc.ssthresh, 28 * MSS);
	/* A program that sends little has little in flight: two round trips later that counts. */
	now += 1000;
	ack_with(50 * MSS, NULL, 0);
	for (unsigned round = 0; round < 2; round++) {
		send_new(10);
		now += 1000;
		ack_with(l.nxt, NULL, 0);
	}
	send_new(10);
	assert_int_equal(loss_flight(&l), 10 * MSS);
}

/* RFC 6298 §5.4 to §5.6 */
static void the_rto_sends_the_first_again(void **state)
{
	(void)state;
	cfg.tlp = false;
	warm_up();
	send_new(5);
	assert_int_equal(l.timer, LOSS_RTO_TIMER);
	assert_int_equal(loss_timer(&l, l.deadline_us - 1), LOSS_DUE_NOTHING);
	now = l.deadline_us;
	assert_int_equal(loss_timer(&l, now), LOSS_DUE_SEND);
	assert_int_equal(l.phase, LOSS_TIMEOUT);
	assert_int_equal(l.cc.cwnd, MSS); /* RFC 5681 §3.1 */
	assert_int_equal(loss_next(&l, now)->seq, 10 * MSS);
	assert_int_equal(send_lost(), 1);
	assert_int_equal(l.rto.backoff, 1);
}

/* RFC 5682 §3.1 and RFC 4015 §3.2: the originals arrive after all: everything is as before. */
static void a_spurious_timeout_is_taken_back(void **state)
{
	uint32_t cwnd;

	(void)state;
	cfg.tlp = false;
	warm_up();
	send_new(10);
	cwnd = l.cc.cwnd;
	now = l.deadline_us;
	loss_timer(&l, now);
	send_lost();
	now += 100;
	ack_with(12 * MSS, NULL, 0); /* more than what was repeated */
	assert_int_equal(l.phase, LOSS_OPEN);
	assert_true(l.cc.cwnd >= cwnd);
	assert_int_equal(l.stats.spurious_timeouts, 1);
	assert_int_equal(l.rec.octets[SENT_LOST], 0);
	assert_int_equal(send_lost(), 0);
}

/* The first of 20 segments is lost, three behind it have come; it is sent again. Returns what the
 * window was before. */
static uint32_t lose_the_first_of_20(void)
{
	uint32_t cwnd;

	warm_up();
	send_new(20);
	cwnd = l.cc.cwnd;
	now += 1000;
	ack_with(10 * MSS, &(struct loss_block){ 11 * MSS, 14 * MSS }, 1);
	send_lost();
	return cwnd;
}

/* RFC 3708 §3: the repeat is reported as a duplicate. */
static void a_spurious_recovery_is_taken_back(void **state)
{
	const struct loss_block twice = { 10 * MSS, 11 * MSS };
	uint32_t cwnd;

	(void)state;
	cwnd = lose_the_first_of_20();
	assert_true(l.cc.cwnd < cwnd);
	now += 200;
	ack_with(14 * MSS, NULL, 0); /* it was only late */
	now += 800;
	ack_with(14 * MSS, &twice, 1);
	assert_int_equal(l.stats.undone, 1);
	assert_true(l.cc.cwnd >= cwnd);
}

/* RFC 8985 §7.2 and §7.3: two round trips after the last, and the RTO runs anew. */
static void the_tail_is_probed(void **state)
{
	(void)state;
	warm_up();
	send_new(5);
	assert_int_equal(l.timer, LOSS_PROBE_TIMER);
	now = l.deadline_us;
	assert_in_range(now, 1003000, 1003100);
	assert_int_equal(loss_timer(&l, now), LOSS_DUE_PROBE);
	assert_int_equal(loss_last(&l)->seq, 14 * MSS);
	loss_resent(&l, loss_last(&l), now);
	loss_probed(&l, true, now);
	assert_int_equal(l.timer, LOSS_RTO_TIMER); /* one probe, RFC 8985 §7.2 */
	assert_int_equal(l.deadline_us, now + rto_us(&l.rto, &cfg, &l.rtt));
	now += 1000;
	/* what the probe brought: the last is there, the others are not */
	ack_with(10 * MSS, &(struct loss_block){ 14 * MSS, 15 * MSS }, 1);
	now += 1000;
	loss_timer(&l, now);
	assert_int_equal(l.phase, LOSS_RECOVERY);
	assert_true(send_lost() > 0);
}

/* RFC 8985 §7.2: a probe that would come after the RTO is none. */
static void no_probe_is_as_late_as_the_rto(void **state)
{
	(void)state;
	warm_up();
	cfg.ack_delay_us = 2 * cfg.rto_min_us; /* for which a probe of a lone segment waits */
	send_new(1);
	assert_int_equal(l.timer, LOSS_RTO_TIMER);
	assert_int_equal(l.deadline_us, now + rto_us(&l.rto, &cfg, &l.rtt));
	now = l.deadline_us;
	loss_timer(&l, now);
	assert_int_equal(l.stats.timeouts, 1);
}

/* RFC 9293 §3.10.7.4: of octets that were never sent. */
static void an_ack_of_the_future_is_ignored(void **state)
{
	(void)state;
	send_new(3);
	ack_with(4 * MSS, NULL, 0);
	assert_int_equal(l.una, 0);
	assert_int_equal(record_count(&l.rec), 3);
}

/* RFC 2018 §8 */
static void a_peer_may_forget_what_it_had(void **state)
{
	(void)state;
	warm_up();
	send_new(4);
	ack_with(10 * MSS, &(struct loss_block){ 11 * MSS, 14 * MSS }, 1);
	send_lost();
	now += 500;
	/* The hole is filled, yet what was behind it is gone. */
	ack_with(11 * MSS, NULL, 0);
	for (unsigned i = 0; i < 3 && !l.stats.reneged; i++) {
		now = l.deadline_us;
		loss_timer(&l, now);
		send_lost();
	}
	assert_int_equal(l.stats.reneged, 1);
	assert_int_equal(l.rec.sacked, 0);
}

/* RFC 6582 §3.2: without SACK a partial ACK tells of the next hole. */
static void without_sack_three_duplicates_tell(void **state)
{
	(void)state;
	l.has_sack = false;
	warm_up();
	send_new(10);
	now += 1000;
	for (unsigned i = 0; i < 3; i++)
		ack_with(10 * MSS, NULL, 0);
	assert_int_equal(l.phase, LOSS_RECOVERY);
	assert_int_equal(loss_next(&l, now)->seq, 10 * MSS);
	assert_int_equal(send_lost(), 1);
	now += 1000;
	ack_with(15 * MSS, NULL, 0);
	assert_int_equal(loss_next(&l, now)->seq, 15 * MSS);
}

/* RFC 3168 §6.1.2: once in a window of data, and said by CWR, until which the peer says ECE. */
static void a_mark_reduces_once_in_a_window(void **state)
{
	struct loss_ack a = { .ece = true };
	uint32_t cwnd;

	(void)state;
	warm_up();
	send_new(10);
	a.ack = 11 * MSS;
	loss_acked(&l, &a, now += 1000);
	cwnd = l.cc.cwnd;
	assert_true(l.owes_cwr);
	a.ack = 13 * MSS;
	loss_acked(&l, &a, now);
	assert_int_equal(l.stats.ece, 1);
	assert_true(l.cc.cwnd >= cwnd);
	send_new(1); /* with CWR */
	a.ack = 20 * MSS;
	loss_acked(&l, &a, now += 1000);
	assert_int_equal(l.stats.ece, 1);
	a.ack = 21 * MSS;
	loss_acked(&l, &a, now += 1000);
	assert_int_equal(l.stats.ece, 2);
}

/* RFC 3168 §6.1.2: "a series of dropped and/or CE packets from a single window" reduces once. */
static void a_mark_in_a_recovery_reduces_no_more(void **state)
{
	struct loss_ack a = { .ack = 30 * MSS, .ece = true };

	(void)state;
	lose_the_first_of_20();
	send_new(1); /* with CWR */
	loss_acked(&l, &a, now += 1000);
	assert_int_equal(l.phase, LOSS_OPEN);
	assert_int_equal(l.stats.ece, 0);
	a.ack = 31 * MSS;
	loss_acked(&l, &a, now += 1000);
	assert_int_equal(l.stats.ece, 1);
}

/* The same of a loss that the probe has hidden (RFC 8985 §7.4.2). */
static void a_mark_beside_a_repaired_loss_reduces_no_more(void **state)
{
	struct loss_ack a = { .ack = 21 * MSS, .ece = true };

	(void)state;
	warm_up();
	send_new(10);
	now = l.deadline_us;
	assert_int_equal(loss_timer(&l, now), LOSS_DUE_PROBE);
	loss_resent(&l, loss_last(&l), now);
	loss_probed(&l, true, now);
	now += 1000;
	ack_with(20 * MSS, NULL, 0);
	send_new(2);
	loss_acked(&l, &a, now += 1000);
	assert_int_equal(l.stats.probe_losses, 1);
	assert_int_equal(l.stats.ece, 0);
	assert_true(l.owes_cwr);
}

/* A duplicate that is reported late takes back the recovery it belongs to. What a mark asked for
 * after that recovery stays (RFC 3168 §6.1.2). */
static void a_late_duplicate_does_not_undo_a_mark(void **state)
{
	const struct loss_block twice = { 10 * MSS, 11 * MSS };
	struct loss_ack marked = { .ack = 31 * MSS, .ece = true };
	uint32_t cwnd;

	(void)state;
	lose_the_first_of_20();
	ack_with(30 * MSS, NULL, 0);
	assert_int_equal(l.phase, LOSS_OPEN);
	send_new(2);
	loss_acked(&l, &marked, now += 1000);
	assert_int_equal(l.stats.ece, 1);
	cwnd = l.cc.cwnd;
	ack_with(31 * MSS, &twice, 1);
	assert_int_equal(l.stats.undone, 0);
	assert_int_equal(l.cc.cwnd, cwnd);
}

/* RFC 2861 §2, RFC 5681 §4.1 */
static void after_idleness_the_window_is_smaller(void **state)
{
	(void)state;
	warm_up();
	l.cc.cwnd = 400 * MSS;
	now += 200000; /* several RTOs */
	send_new(1);
	assert_in_range(l.cc.cwnd, 10 * MSS, 50 * MSS);
	assert_true(l.cc.ssthresh >= 300 * MSS);
}

/* A segment longer than the window goes when nothing else is in flight. */
static void the_window_never_locks(void **state)
{
	(void)state;
	l.cc.cwnd = MSS / 2;
	assert_true(loss_may_send(&l, MSS, now));
	send_new(1);
	assert_false(loss_may_send(&l, MSS, now));
}

/* Any ACKs with any blocks at any time: the record stays sound, windows stay in bounds, and what is
 * outstanding is always waited for. */
static void anything_may_come(void **state)
{
	struct prng rng = { 3 };

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		loss_init(&l, &cfg, slot, COUNT(slot), 0xffff0000u, MSS);
		l.has_sack = round % 4;
		for (unsigned i = 0; i < 1000; i++) {
			struct loss_block b[LOSS_BLOCKS];
			struct loss_ack a = { .ack = l.una + prng_below(&rng, 6 * MSS),
					      .block = b,
					      .n_blocks = prng_below(&rng, LOSS_BLOCKS + 1),
					      .plain = prng_below(&rng, 2),
					      .ece = prng_below(&rng, 9) == 0 };

			now += prng_below(&rng, 3000);
			for (unsigned k = 0; k < LOSS_BLOCKS; k++) {
				b[k].left = l.una + prng_below(&rng, 30 * MSS) - 5 * MSS;
				b[k].right = b[k].left + prng_below(&rng, 9 * MSS);
			}
			if (prng_below(&rng, 2))
				a.ack = l.una;
			loss_acked(&l, &a, now);
			if (loss_timer(&l, now) == LOSS_DUE_PROBE) {
				loss_resent(&l, loss_last(&l), now);
				loss_probed(&l, true, now);
			}
			send_lost();
			while (loss_may_send(&l, MSS, now) && record_count(&l.rec) < 40)
				loss_sent(&l, prng_below(&rng, MSS) + 1, NULL, now);
			assert_true(record_sound(&l.rec));
			assert_true(l.cc.cwnd >= 1 && l.cc.cwnd <= 2 * cfg.max_window);
			assert_int_equal(l.deadline_us == UINT64_MAX, !record_count(&l.rec));
		}
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(a_hole_is_sent_again, setup),
	cmocka_unit_test_setup(a_paced_window_is_spread, setup),
	cmocka_unit_test_setup(limited_transmit, setup),
	cmocka_unit_test_setup(bursts_grow_the_window, setup),
	cmocka_unit_test_setup(the_window_after_a_burst_is_that_of_the_burst, setup),
	cmocka_unit_test_setup(the_rto_sends_the_first_again, setup),
	cmocka_unit_test_setup(a_spurious_timeout_is_taken_back, setup),
	cmocka_unit_test_setup(a_spurious_recovery_is_taken_back, setup),
	cmocka_unit_test_setup(the_tail_is_probed, setup),
	cmocka_unit_test_setup(no_probe_is_as_late_as_the_rto, setup),
	cmocka_unit_test_setup(an_ack_of_the_future_is_ignored, setup),
	cmocka_unit_test_setup(a_peer_may_forget_what_it_had, setup),
	cmocka_unit_test_setup(without_sack_three_duplicates_tell, setup),
	cmocka_unit_test_setup(a_mark_reduces_once_in_a_window, setup),
	cmocka_unit_test_setup(a_mark_in_a_recovery_reduces_no_more, setup),
	cmocka_unit_test_setup(a_mark_beside_a_repaired_loss_reduces_no_more, setup),
	cmocka_unit_test_setup(a_late_duplicate_does_not_undo_a_mark, setup),
	cmocka_unit_test_setup(after_idleness_the_window_is_smaller, setup),
	cmocka_unit_test_setup(the_window_never_locks, setup),
	cmocka_unit_test_setup(anything_may_come, setup),
};

UWTEST_MAIN(tests)
