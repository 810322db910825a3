/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of the program wait, or poll: which of them takes in the frames. */
#include "wait_bed.h"

static void one_thread_waits_for_frames(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_false(
		sched_app_waits_elsewhere(b.s)); /* this thread may have left its wait by a jump */
	assert_int_equal(of_another_thread(&b), UW_WAIT_PLAINLY);
	sched_app_wait_end(b.s);
	assert_int_equal(of_another_thread(&b), UW_WAIT_SLEEP); /* whoever waits next */
	assert_true(sched_app_waits_elsewhere(b.s));
	close_bed(&b);
}

/* Others wait for what this one has to receive, and it computes. */
static void one_that_goes_away_leaves_others_to_the_rx_thread(void **state)
{
	struct bed b;

	(void)state;
	for (unsigned others = 0; others < 2; others++) {
		open_bed(&b, UW_THREADS_ADAPTIVE);
		sched_app_waits_plainly(b.s, true);
		if (!others)
			sched_app_waits_plainly(b.s, false);
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		sched_app_wait_end(b.s);
		assert_true(left(&b));
		pass(&b, WATCH_US);
		atomic_store(&b.w.f[0].frames, 1);
		assert_false(left(&b));
		assert_int_equal(sched_app_waits_elsewhere(b.s), others);
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait),
				 others ? UW_WAIT_PLAINLY : UW_WAIT_AGAIN);
		pass(&b, WAIT_DOUBT_US);
		atomic_store(&b.w.f[0].frames, 0);
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		close_bed(&b);
	}
}

/* It was rung, and had no CPU for a while: the RX thread took over, and another thread waits now.
 */
static void one_that_comes_late_leaves_the_next_ones_wait_alone(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	sched_app_wait_end(b.s); /* nobody else waits yet */
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_NO_WAITER);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	assert_int_equal(of_another_thread(&b), UW_WAIT_SLEEP);
	sched_app_wait_end(b.s);
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_WAITS);
	assert_int_equal(word(&b), IO_ASLEEP_FD);
	close_bed(&b);
}

static void *poll_in_vain(void *arg)
{
	struct sched *s = ((struct bed *)arg)->s;

	for (unsigned i = 0; i < 4; i++)
		sched_app_poll(s, i > 0);
	return NULL;
}

/* UCX has a thread that waits for events of its own beside the one that polls. */
static void beside_one_that_polls_it_waits_alone(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	fake_in_thread(poll_in_vain, &b);
	b.w.f[0].runs = 0;
	assert_true(sched_app_waits_elsewhere(b.s));
	sched_app_look(b.s, &b.wait, 1000);
	assert_int_equal(b.w.f[0].runs, 0);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_PLAINLY);
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_NO_WAITER);
	pass(&b, WATCH_US); /* that one has stopped */
	assert_false(sched_app_waits_elsewhere(b.s));
	sched_app_look(b.s, &b.wait, 1000);
	assert_true(b.w.f[0].runs > 0);
	poll_in_vain(&b); /* now it is this one */
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	sched_app_wait_end(b.s);
	close_bed(&b);
}

static void *poll_and_arm(void *arg)
{
	struct sched *s = ((struct bed *)arg)->s;

	for (unsigned i = 0; i < 8; i++) {
		sched_app_poll(s, i ? SCHED_POLL_OTHER : SCHED_POLL_FIRST);
		if (i % 2)
			sched_app_sleep(s);
	}
	return NULL;
}

static void *poll_in_vain_and_arm(void *arg)
{
	poll_in_vain(arg);
	sched_app_sleep(((struct bed *)arg)->s);
	return NULL;
}

/* brpc finds both of its CQs empty, arms them, finds them empty once more, and waits. */
static void one_that_arms_its_cqs_does_not_poll(void **state)
{
	void *(*const ways[])(void *) = { poll_and_arm, poll_in_vain_and_arm };
	struct bed b;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_bed(&b, UW_THREADS_ADAPTIVE);
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		sched_app_wait_end(b.s);
		fake_in_thread(ways[i], &b);
		assert_false(sched_app_waits_elsewhere(b.s));
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		sched_app_wait_end(b.s);
		close_bed(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_waits_for_frames),
		cmocka_unit_test(one_that_goes_away_leaves_others_to_the_rx_thread),
		cmocka_unit_test(one_that_comes_late_leaves_the_next_ones_wait_alone),
		cmocka_unit_test(beside_one_that_polls_it_waits_alone),
		cmocka_unit_test(one_that_arms_its_cqs_does_not_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
