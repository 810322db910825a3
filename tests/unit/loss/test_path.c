/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole transfers over the modelled path: what comes through beside what theory says. */
#include "path.h"
#include "uwtest.h"

#define SEEDS 3u

static struct path_config path_of(uint64_t rtt_us, uint32_t drop_ppm, const struct cc_ops *cc)
{
	struct path_config c = path_default();

	c.rtt_us = rtt_us;
	c.queue = 500;
	c.drop_ppm = drop_ppm;
	c.loss.cc = cc;
	return c;
}

static struct path_result run_done(const struct path_config *c)
{
	struct path_result r = path_run(c);

	assert_true(r.done);
	return r;
}

/* Octets per second that the payload of full segments can have at the link's rate. */
static double line_rate(const struct path_config *c)
{
	return (double)c->bps / 8 * PATH_MSS / (PATH_MSS + 78);
}

static void without_loss_the_link_is_full(void **state)
{
	const struct cc_ops *const all[] = { &cc_cubic, &cc_delay };

	(void)state;
	for (unsigned i = 0; i < COUNT(all); i++) {
		for (uint64_t rtt = 100; rtt <= 10000; rtt *= 10) {
			struct path_config c = path_of(rtt, 0, all[i]);
			struct path_result r;

			c.segments = 60000;
			r = run_done(&c);
			assert_true(path_goodput(&r) > 0.85 * line_rate(&c));
			assert_int_equal(r.stats.timeouts, 0);
		}
	}
}

/* RFC 9438 §4.3 with RFC 5681: at the loss rate p a window has 1.22 / sqrt(p) segments; so much per
 * round trip comes through, give or take what the seed does. */
static void cubic_keeps_what_the_loss_allows(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct path_config c = path_of(1000, 10000, &cc_cubic);
		double theory = 12.2 * PATH_MSS * 1e6 / 1000;
		struct path_result r;

		c.seed = seed;
		r = run_done(&c);
		assert_true(path_goodput(&r) > 0.8 * theory);
		assert_true(path_goodput(&r) < 1.6 * theory);
		/* what was sent again is what was lost, but for a few */
		assert_in_range(r.stats.sent_again, r.dropped, r.dropped + 5);
	}
}

/* Random loss says nothing of the path: with the delay-based control six tenths remain and more. */
static void delay_control_bears_random_loss(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct path_config c = path_of(100, 10000, &cc_delay);
		struct path_result r;

		c.seed = seed;
		r = run_done(&c);
		assert_true(path_goodput(&r) > 0.9 * line_rate(&c));
		c.rtt_us = 1000;
		c.drop_ppm = 50000;
		r = run_done(&c);
		assert_true(path_goodput(&r) > 0.6 * line_rate(&c));
	}
}

/* ... and its queue stays short, though nothing is lost. */
static void delay_control_keeps_the_queue_short(void **state)
{
	struct path_config c = path_of(1000, 0, &cc_delay);
	struct path_result r;

	(void)state;
	c.segments = 100000;
	r = run_done(&c);
	assert_int_equal(r.overflowed, 0);
	assert_in_range(r.worst_queue, 1, 200);
}

/* RFC 8257: with marks from 30 packets on, the queue stays about there, and nothing is lost. */
static void dctcp_keeps_the_queue_at_the_mark(void **state)
{
	struct path_config c = path_of(200, 0, &cc_dctcp);
	struct path_result r;

	(void)state;
	c.mark_at = 30;
	c.segments = 60000;
	r = run_done(&c);
	assert_true(path_goodput(&r) > 0.9 * line_rate(&c));
	assert_int_equal(r.overflowed, 0);
	assert_in_range(r.worst_queue, 30, 100);
	assert_true(r.marked > 100);
}

/* RFC 3168 §6.1.2: a classic control reduces for marks, too: the queue does not overflow. */
static void cubic_answers_marks(void **state)
{
	struct path_config c = path_of(200, 0, &cc_cubic);
	struct path_result r;

	(void)state;
	c.mark_at = 100;
	c.segments = 60000;
	r = run_done(&c);
	assert_int_equal(r.overflowed, 0);
	assert_true(r.stats.ece > 3);
}

/* A queue of 512 packets below a window of megabytes: it overflows, and what overflowed is repaired
 * without a timeout; the link stays full. */
static void an_overflowing_queue_is_survived(void **state)
{
	struct path_config c = path_of(10000, 0, &cc_cubic);
	struct path_result r;

	(void)state;
	c.queue = 512;
	c.segments = 100000;
	r = run_done(&c);
	assert_true(r.overflowed > 0);
	assert_int_equal(r.stats.timeouts, 0);
	assert_true(path_goodput(&r) > 0.85 * line_rate(&c));
}

/* RFC 8985 §6.2 step 4: one in a hundred comes a millisecond late, none is lost. The reordering
 * window learns that: hardly any is sent again, and the link stays full. */
static void lateness_is_not_loss(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct path_config c = path_of(400, 0, &cc_cubic);
		struct path_result r;

		c.reorder_ppm = 10000;
		c.reorder_us = 1000;
		c.segments = 100000;
		c.seed = seed;
		r = run_done(&c);
		assert_in_range(r.twice, 0, r.reordered / 5);
		assert_true(path_goodput(&r) > 0.9 * line_rate(&c));
	}
}

/* RFC 8985 §7: what is lost at the end of a burst is noticed within some round trips, not by the
 * RTO. */
static void the_tail_is_probed(void **state)
{
	struct path_config c = path_of(400, 20000, &cc_cubic);
	struct path_result with, without;

	(void)state;
	c.pause_every = 8;
	c.pause_us = 400000;
	c.ack_every = 1;
	c.segments = 8000;
	with = run_done(&c);
	c.loss.tlp = false;
	without = run_done(&c);
	assert_true(with.stats.probes > 0);
	assert_true(with.stats.timeouts * 4 < without.stats.timeouts);
}

/* RFC 5682: the path stands still for longer than the RTO, then goes on: nothing was lost. */
static void a_stall_is_no_loss(void **state)
{
	struct path_config c = path_of(1000, 0, &cc_cubic);
	struct path_result r;

	(void)state;
	c.stall_at_us = 1050000;
	c.stall_us = 100000;
	r = run_done(&c);
	assert_true(r.stats.timeouts > 0);
	assert_true(r.stats.undone > 0);
}

/* A peer that does not permit SACK: RFC 5681 and RFC 6582. */
static void without_sack_it_is_new_reno(void **state)
{
	struct path_config c = path_of(1000, 1000, &cc_cubic);
	struct path_result r;

	(void)state;
	c.peer_sack = false;
	r = run_done(&c);
	assert_true(path_goodput(&r) > 0.3 * line_rate(&c));
	c.drop_ppm = 20000;
	run_done(&c);
}

/* Everything at once, with segments of all lengths: every octet arrives (path.c asserts it). */
static void nothing_is_ever_lost_for_good(void **state)
{
	const struct cc_ops *const all[] = { &cc_cubic, &cc_dctcp, &cc_delay };

	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct path_config c = path_of(seed % 3 ? 300 : 5000, 30000, all[seed % 3]);

		c.vary = true;
		c.ack_drop_ppm = 50000;
		c.reorder_ppm = 30000;
		c.reorder_us = 700;
		c.queue = 40;
		c.mark_at = seed % 2 ? 20 : 0;
		c.pause_every = 100;
		c.pause_us = seed * 3000;
		c.stall_at_us = 1100000;
		c.stall_us = seed * 10000;
		c.peer_sack = seed % 5 != 0;
		c.segments = 3000;
		c.seed = seed;
		run_done(&c);
	}
}

/* The same seed is the same run. */
static void a_run_repeats(void **state)
{
	struct path_config c = path_of(300, 20000, &cc_cubic);
	struct path_result a, b;

	(void)state;
	c.reorder_ppm = 10000;
	c.reorder_us = 500;
	a = run_done(&c);
	b = run_done(&c);
	assert_memory_equal(&a, &b, sizeof(a));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(without_loss_the_link_is_full),
	cmocka_unit_test(cubic_keeps_what_the_loss_allows),
	cmocka_unit_test(delay_control_bears_random_loss),
	cmocka_unit_test(delay_control_keeps_the_queue_short),
	cmocka_unit_test(dctcp_keeps_the_queue_at_the_mark),
	cmocka_unit_test(cubic_answers_marks),
	cmocka_unit_test(an_overflowing_queue_is_survived),
	cmocka_unit_test(lateness_is_not_loss),
	cmocka_unit_test(the_tail_is_probed),
	cmocka_unit_test(a_stall_is_no_loss),
	cmocka_unit_test(without_sack_it_is_new_reno),
	cmocka_unit_test(nothing_is_ever_lost_for_good),
	cmocka_unit_test(a_run_repeats),
};

UWTEST_MAIN(tests)
