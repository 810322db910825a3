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

/* ---- the RX thread dozes on the doorbell, and others come to rely on it ---- */

#define LONG_DOZE_US (60 * (uint64_t)1000000)

struct dozer {
	struct bed b;
	pthread_t thread;
	_Atomic int tid;
	_Atomic bool up;
};

static void *doze_long(void *arg)
{
	struct dozer *d = arg;

	atomic_store(&d->tid, gettid());
	doze(d->b.s, LONG_DOZE_US);
	atomic_store(&d->up, true);
	return NULL;
}

static bool sleeps(int tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

/* In the futex: woken, or it sleeps for a minute. */
static void begin_to_doze(struct dozer *d)
{
	memset(d, 0, sizeof(*d));
	open_bed(&d->b, UW_THREADS_ADAPTIVE);
	atomic_store(&d->b.s->own_doorbell, IO_ASLEEP);
	assert_int_equal(pthread_create(&d->thread, NULL, doze_long, d), 0);
	while (!atomic_load(&d->tid) || !atomic_load(&d->b.s->rx_dozes) || !sleeps(d->tid))
		usleep(1000);
}

static bool wakes(struct dozer *d, unsigned tries)
{
	while (!atomic_load(&d->up) && tries--)
		usleep(10000);
	return atomic_load(&d->up);
}

static void end_of_doze(struct dozer *d)
{
	bool woken = wakes(d, 1000);

	sched_futex_wake(&d->b.s->own_doorbell);
	pthread_join(d->thread, NULL);
	close_bed(&d->b);
	assert_true(woken);
}

/* A word that no peer rings any more, since the RX thread is not to be woken for frames. */
static void wait_once(struct bed *b)
{
	assert_int_equal(sched_app_wait_begin(b->s, &b->wait), UW_WAIT_SLEEP);
	sched_app_wait_end(b->s);
}

static void who_ends_its_wait_ends_the_doze_where_others_wait(void **state)
{
	struct dozer d;

	(void)state;
	begin_to_doze(&d);
	sched_app_waits_plainly(d.b.s, true);
	assert_false(wakes(&d, 5)); /* peers ring it */
	wait_once(&d.b);
	end_of_doze(&d);
}

static void who_begins_to_wait_plainly_ends_it(void **state)
{
	struct dozer d;

	(void)state;
	begin_to_doze(&d);
	wait_once(&d.b);
	assert_false(wakes(&d, 5)); /* nobody relies on it */
	sched_app_waits_plainly(d.b.s, true);
	end_of_doze(&d);
}

static void who_begins_to_poll_ends_it_where_others_wait(void **state)
{
	struct dozer d;

	(void)state;
	begin_to_doze(&d);
	sched_app_waits_plainly(d.b.s, true);
	poll_in_vain(&d.b);
	assert_int_equal(word(&d.b), IO_AWAKE);
	end_of_doze(&d);
}

/* ---- the round of the RX thread's timers --------------------------------------------------- */

/* What run() has taken off the links lies in the stack: an ACK that an answer may carry. */
static bool lies_in_the_stack(void *stack, bool links)
{
	return links && ((struct fake *)stack)->runs;
}

static void round_of_timers(struct bed *b)
{
	open_bed(b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b->s, &b->wait), UW_WAIT_SLEEP);
	assert_true(left(b));
	b->t.timers_us = sched_now_us(b->s);
	atomic_store(&b->w.f[0].frames, 1);
}

/* The thread that sleeps has nothing on the links to wake for any more. */
static void it_tells_who_waits_of_the_frames_that_it_took(void **state)
{
	struct bed b;

	(void)state;
	round_of_timers(&b);
	b.w.f[0].ops.pending = lies_in_the_stack;
	assert_true(left(&b));
	assert_int_equal(atomic_load(&b.w.f[0].frames), 0);
	assert_int_equal(word(&b), IO_AWAKE);
	close_bed(&b);
}

static void it_wakes_nobody_for_what_is_done(void **state)
{
	struct bed b;

	(void)state;
	round_of_timers(&b);
	assert_true(left(&b));
	assert_int_equal(atomic_load(&b.w.f[0].frames), 0);
	assert_int_equal(word(&b), IO_ASLEEP_FD);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_waits_for_frames),
		cmocka_unit_test(one_that_goes_away_leaves_others_to_the_rx_thread),
		cmocka_unit_test(one_that_comes_late_leaves_the_next_ones_wait_alone),
		cmocka_unit_test(beside_one_that_polls_it_waits_alone),
		cmocka_unit_test(one_that_arms_its_cqs_does_not_poll),
		cmocka_unit_test(who_ends_its_wait_ends_the_doze_where_others_wait),
		cmocka_unit_test(who_begins_to_wait_plainly_ends_it),
		cmocka_unit_test(who_begins_to_poll_ends_it_where_others_wait),
		cmocka_unit_test(it_tells_who_waits_of_the_frames_that_it_took),
		cmocka_unit_test(it_wakes_nobody_for_what_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
