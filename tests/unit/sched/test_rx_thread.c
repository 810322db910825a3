/* SPDX-License-Identifier: BSD-3-Clause */
/* What the RX thread decides: when it leaves the stack to the program, how long it sleeps. The file
 * is part of this one, since its decisions are its own. */
#include "sched/rx_thread.c"

#include "fake.h"

static struct rx_thread thread_of(struct fake *f)
{
	return (struct rx_thread){ .s = &f->s, .nap_us = NAP_MIN_US };
}

static void rounds(struct fake *f, unsigned n)
{
	atomic_fetch_add(&f->s.app_rounds, n);
}

static void pass(struct fakes *w, uint64_t us)
{
	atomic_fetch_add(&w->now_us, us);
}

/* ---- does the program drive? -------------------------------------------------------------- */

static void a_program_that_polls_without_a_pause_is_steady(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	atomic_store(&f->s.app_drives, true);
	assert_false(app_drives_steadily(&t)); /* the first look is over all time before */
	rounds(f, STEADY_ROUNDS);
	assert_false(app_drives_steadily(&t)); /* too early to judge */
	pass(&w, WATCH_US);
	assert_true(app_drives_steadily(&t));
	assert_true(atomic_load(&f->s.app_drives_steadily));
	atomic_store(&f->s.app_drives, false); /* it has said that it stops */
	assert_false(app_drives_steadily(&t));
}

/* A program drives, and the RX thread has looked once: that look is over all time before. */
static void open_driving(struct fakes *w, struct rx_thread *t)
{
	fakes_open(w, 1, UW_THREADS_ADAPTIVE);
	atomic_store(&w->f[0].s.app_drives, true);
	*t = thread_of(&w->f[0]);
	app_drives_steadily(t);
}

static bool is_steady_after(struct fakes *w, struct rx_thread *t, unsigned n)
{
	rounds(&w->f[0], n);
	pass(w, WATCH_US);
	return app_drives_steadily(t);
}

/* It looks seldom, since it posts, but it does look. */
static void posts_count_with_a_few_rounds(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t;

	(void)state;
	open_driving(&w, &t);
	atomic_fetch_add(&f->s.app_posts, STEADY_ROUNDS);
	assert_false(is_steady_after(&w, &t, LEAST_ROUNDS - 1));
	assert_false(is_steady_after(&w, &t, LEAST_ROUNDS));
	atomic_fetch_add(&f->s.app_posts, STEADY_ROUNDS - LEAST_ROUNDS);
	assert_true(is_steady_after(&w, &t, LEAST_ROUNDS));
}

/* It may have lost its CPU for a moment. One that stops again soon computes between its polls. */
static void one_that_stops_twice_is_not_trusted_for_a_while(void **state)
{
	struct fakes w;
	struct rx_thread t;
	uint64_t since;

	(void)state;
	open_driving(&w, &t);
	assert_true(is_steady_after(&w, &t, STEADY_ROUNDS));
	since = atomic_load(&w.now_us);
	assert_false(is_steady_after(&w, &t, STEADY_ROUNDS - 1));
	assert_true(is_steady_after(&w, &t, STEADY_ROUNDS));
	assert_false(is_steady_after(&w, &t, STEADY_ROUNDS - 1));
	while (atomic_load(&w.now_us) < since + RECENT_US)
		assert_false(is_steady_after(&w, &t, STEADY_ROUNDS));
	assert_true(is_steady_after(&w, &t, STEADY_ROUNDS));
}

/* Any frame wakes it: it drives as well as one that polls. */
static void a_thread_asleep_on_the_doorbell_counts(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t;

	(void)state;
	open_driving(&w, &t);
	atomic_store(&f->s.app_sleepers, 1);
	atomic_store(&f->s.own_doorbell, IO_ASLEEP);
	pass(&w, WATCH_US);
	assert_true(app_drives_steadily(&t));
	atomic_store(&f->s.own_doorbell, IO_RUNG); /* rung, and it has not come */
	pass(&w, WATCH_US);
	assert_false(app_drives_steadily(&t));
}

static void alone_it_has_a_moment_between_two_polls(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_C2);
	assert_false(app_drives_alone(&t));
	atomic_store(&f->s.app_drives, true);
	rounds(f, 1);
	assert_true(app_drives_alone(&t));
	pass(&w, WATCH_US - 1);
	assert_true(app_drives_alone(&t));
	rounds(f, 1);
	assert_true(app_drives_alone(&t));
	pass(&w, WATCH_US);
	assert_false(app_drives_alone(&t));
	assert_false(atomic_load(&f->s.app_drives)); /* until it polls again */
}

static void the_stack_is_left_to_a_program_that_drives(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_C2);
	assert_false(left_to_program(&t));
	atomic_store(&f->s.app_drives, true);
	rounds(f, 1);
	assert_true(left_to_program(&t));
	assert_int_equal(t.drove_us, atomic_load(&w.now_us));
}

/* It looked now and then: the RX thread looks at the pace of WATCH_US. */
static void a_program_that_drives_now_and_then_is_watched(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);
	uint64_t now = atomic_load(&w.now_us);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	now = atomic_load(&w.now_us);
	assert_false(watch_program(&t, now));
	rounds(f, 1);
	assert_false(watch_program(&t, now)); /* it does not drive any more */
	atomic_store(&f->s.app_drives, true);
	assert_false(watch_program(&t, now)); /* nothing since the last look */
	rounds(f, 1);
	assert_true(watch_program(&t, now));
	assert_int_equal(t.drove_us, now);
}

static void sleep_in_transport_once(void *stack, uint64_t us)
{
	(void)us;
	atomic_fetch_add(&((struct fake *)stack)->slept, 1);
}

static void open_watched(struct fakes *w, struct rx_thread *t)
{
	struct fake *f = &w->f[0];

	fakes_open(w, 1, UW_THREADS_ADAPTIVE);
	f->s.wait = (struct sched_link){ .able = true, .fd = { -1, 0, -1 } };
	atomic_store(&f->s.waiter, SCHED_AWAY);
	*t = thread_of(f);
	t->waits_us = atomic_load(&w->now_us);
}

static bool is_watched(struct fakes *w, struct rx_thread *t)
{
	rounds(&w->f[0], 1);
	return watch_program(t, atomic_load(&w->now_us));
}

/* One that spins on memory meanwhile would get each frame a pause late. */
static void one_that_leaves_frames_is_not_watched_for_a_while(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t;

	(void)state;
	open_watched(&w, &t);
	atomic_store(&f->s.app_drives, true);
	atomic_store(&f->frames, 1);
	assert_true(is_watched(&w, &t)); /* no frame wakes this link's thread */
	assert_true(is_watched(&w, &t));
	f->ops.sleep = sleep_in_transport_once;
	atomic_store(&f->frames, 0);
	assert_true(is_watched(&w, &t)); /* nothing waited */
	atomic_store(&f->frames, 1);
	assert_true(is_watched(&w, &t));
	assert_false(is_watched(&w, &t));
	pass(&w, RECENT_US - 1);
	assert_false(is_watched(&w, &t));
	pass(&w, 1);
	assert_true(is_watched(&w, &t));
}

/* ---- does a program compute behind its posts? ------------------------------------------------ */

static void leave_behind(struct fakes *w, struct rx_thread *t)
{
	struct fake *f = &w->f[0];

	atomic_store(&f->s.held, 1);
	pass(w, WATCH_US);
	assert_false(left_to_program(t)); /* so this thread runs the stack */
	assert_true(atomic_load(&f->s.no_hold));
	atomic_store(&f->s.held, 0);
	atomic_store(&f->s.waiter, SCHED_AWAY);
}

static bool may_hold_after(struct fakes *w, struct rx_thread *t, uint64_t us)
{
	pass(w, us);
	rounds(&w->f[0], 1);
	assert_true(left_to_program(t));
	return sched_may_hold(&w->f[0].s);
}

static void held_posts_left_behind_twice_end_the_holding_for_a_while(void **state)
{
	struct fakes w;
	struct rx_thread t;

	(void)state;
	open_watched(&w, &t);
	assert_true(sched_may_hold(&w.f[0].s));
	leave_behind(&w, &t);
	assert_false(may_hold_after(&w, &t, WATCH_US - 1));
	assert_true(may_hold_after(&w, &t, 1));
	leave_behind(&w, &t); /* 2 * WATCH_US after the first time */
	assert_false(may_hold_after(&w, &t, RECENT_US - 2 * WATCH_US - 1));
	assert_true(may_hold_after(&w, &t, 1));
}

static void a_program_that_left_nothing_behind_may_hold(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t;

	(void)state;
	open_watched(&w, &t);
	pass(&w, WATCH_US);
	assert_false(left_to_program(&t));
	assert_int_equal(atomic_load(&f->s.waiter), SCHED_NO_WAITER);
	assert_false(atomic_load(&f->s.no_hold));
}

static void a_steady_one_is_judged_as_well(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t;

	(void)state;
	open_watched(&w, &t);
	atomic_store(&f->s.waiter, SCHED_NO_WAITER);
	atomic_store(&f->s.app_drives, true);
	t.judged_us = atomic_load(&w.now_us);
	pass(&w, WATCH_US);
	rounds(f, STEADY_ROUNDS);
	assert_true(app_drives_steadily(&t));
	assert_true(sched_may_hold(&f->s));
	atomic_store(&f->s.held, 1);
	pass(&w, WATCH_US);
	assert_false(app_drives_steadily(&t));
	assert_true(atomic_load(&f->s.no_hold));
}

/* ---- sleeping ----------------------------------------------------------------------------- */

static void it_sleeps_until_the_next_timer_and_not_for_ever(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);
	uint64_t now;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	now = atomic_load(&w.now_us);
	assert_int_equal(sleep_us(&t, now), MAX_SLEEP_US);
	f->timer_at_us = now + 12345;
	assert_int_equal(sleep_us(&t, now), 12345);
	f->timer_at_us = now;
	assert_int_equal(sleep_us(&t, now), 1);
	f->timer_at_us = now + MAX_SLEEP_US + 1;
	assert_int_equal(sleep_us(&t, now), MAX_SLEEP_US);
	/* peers do not ring while a program drives, and it may have stopped without a word */
	t.drove_us = now - RECENT_US + 1;
	assert_int_equal(sleep_us(&t, now), LOOK_US);
	t.drove_us = now - RECENT_US;
	assert_int_equal(sleep_us(&t, now), MAX_SLEEP_US);
	t.drove_us = now;
	f->ops.sleep = sleep_in_transport_once; /* wakes all the same */
	assert_int_equal(sleep_us(&t, now), MAX_SLEEP_US);
}

static void it_yields_for_a_while_first(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	for (unsigned i = 0; i < YIELDS_BEFORE_SLEEP; i++)
		assert_false(spun_enough(&t, atomic_load(&w.now_us)));
	assert_true(spun_enough(&t, atomic_load(&w.now_us)));
	/* unless a yield takes long: then it sleeps at once for some time */
	t = thread_of(f);
	f->step_us = LONG_YIELD_US + 1;
	assert_false(spun_enough(&t, atomic_load(&w.now_us)));
	assert_true(spun_enough(&t, atomic_load(&w.now_us)));
	pass(&w, NO_YIELD_US);
	assert_false(spun_enough(&t, atomic_load(&w.now_us)));
}

static void before_it_sleeps_it_looks_once_more(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	f->timer_at_us = 0; /* so that a sleep is short */
	atomic_store(&f->frames, 1);
	sleep_on_doorbell(&t, atomic_load(&w.now_us));
	assert_int_equal(f->s.stats.rx_sleeps, 0);
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_ASLEEP);
	atomic_store(&f->frames, 0);
	sleep_on_doorbell(&t, atomic_load(&w.now_us));
	assert_int_equal(f->s.stats.rx_sleeps, 1);
	assert_false(atomic_load(&f->s.rx_sleeps_long));
	/* another thread has the lock: that one looks */
	atomic_store(&f->s.lock, TAKEN_BY_ANOTHER);
	sleep_on_doorbell(&t, atomic_load(&w.now_us));
	assert_true(atomic_load(&f->s.look));
	assert_int_equal(f->s.stats.rx_sleeps, 1);
}

static void where_nobody_rings_it_naps_longer_and_longer(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	for (uint64_t us = NAP_MIN_US; us < NAP_MAX_US; us *= 2) {
		assert_int_equal(t.nap_us, us);
		nap(&t);
	}
	assert_int_equal(t.nap_us, NAP_MAX_US);
	nap(&t);
	assert_int_equal(t.nap_us, NAP_MAX_US);
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_AWAKE);
}

static void a_transport_that_knows_when_is_slept_in(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	f->ops.sleep = sleep_in_transport_once;
	t.idle_rounds = YIELDS_BEFORE_SLEEP;
	idle(&t);
	assert_int_equal(atomic_load(&f->slept), 1);
	assert_int_equal(f->s.stats.rx_sleeps, 1);
	assert_true(fake_lock_is_free(&f->s));
}

/* ---- where it runs ------------------------------------------------------------------------ */

static void it_moves_only_away_from_its_own_program(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct rx_thread t = thread_of(f);
	uint32_t here = (uint32_t)sched_getcpu();

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	atomic_store(&f->s.own_doorbell, IO_ASLEEP); /* nobody rang */
	move_to_ringing_cpu(&t, atomic_load(&w.now_us));
	assert_int_equal(t.no_move_us, 0);
	atomic_store(&f->s.post_cpu, here + 1000); /* the program is elsewhere */
	atomic_store(&f->s.own_doorbell, IO_RUNG + here + 500);
	move_to_ringing_cpu(&t, atomic_load(&w.now_us));
	assert_int_equal(t.no_move_us, 0);
	assert_int_equal(f->s.stats.rx_moves, 0);
}

/* ---- the thread itself -------------------------------------------------------------------- */

static void on_post(struct ring_entry *r)
{
	(void)r;
}

static bool came(struct fake *f, unsigned runs)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (unsigned i = 0; i < 10000; i++) {
		bool there;

		sched_lock(&f->s);
		there = f->runs >= runs && !atomic_load(&f->frames);
		sched_unlock(&f->s);
		if (there)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* It takes in what comes and what is posted, asleep or not, and ends when it is told to. */
static void threads_of_several_stacks_work_and_end(void **state)
{
	struct fakes w;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C1);
	for (unsigned i = 0; i < FAKES; i++) {
		w.f[i].step_us = 1;
		assert_int_equal(sched_thread_start(&w.f[i].s, true), 0);
		atomic_store(&w.f[i].s.started, true);
	}
	for (unsigned k = 1; k <= 20; k++) {
		for (unsigned i = 0; i < FAKES; i++) {
			atomic_store(&w.f[i].frames, 1);
			sched_wake(&w.f[i].s);
			assert_true(came(&w.f[i], k));
		}
	}
	for (unsigned i = 0; i < FAKES; i++) {
		struct ring_entry r = { .fn = on_post, .home = &w.f[i].s };

		sched_post(&r);
		while (atomic_load(&r.queued))
			sched_yield();
		sched_lock(&w.f[i].s); /* it is not looked at any more */
		sched_unlock(&w.f[i].s);
	}
	for (unsigned i = 0; i < FAKES; i++) {
		sched_thread_stop(&w.f[i].s);
		assert_true(w.f[i].s.stats.drive_rx > 0);
		assert_int_equal(w.f[i].s.stats.post_ring, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_posts_left_behind_twice_end_the_holding_for_a_while),
		cmocka_unit_test(a_program_that_left_nothing_behind_may_hold),
		cmocka_unit_test(a_steady_one_is_judged_as_well),
		cmocka_unit_test(a_program_that_polls_without_a_pause_is_steady),
		cmocka_unit_test(posts_count_with_a_few_rounds),
		cmocka_unit_test(one_that_stops_twice_is_not_trusted_for_a_while),
		cmocka_unit_test(a_thread_asleep_on_the_doorbell_counts),
		cmocka_unit_test(alone_it_has_a_moment_between_two_polls),
		cmocka_unit_test(the_stack_is_left_to_a_program_that_drives),
		cmocka_unit_test(a_program_that_drives_now_and_then_is_watched),
		cmocka_unit_test(one_that_leaves_frames_is_not_watched_for_a_while),
		cmocka_unit_test(it_sleeps_until_the_next_timer_and_not_for_ever),
		cmocka_unit_test(it_yields_for_a_while_first),
		cmocka_unit_test(before_it_sleeps_it_looks_once_more),
		cmocka_unit_test(where_nobody_rings_it_naps_longer_and_longer),
		cmocka_unit_test(a_transport_that_knows_when_is_slept_in),
		cmocka_unit_test(it_moves_only_away_from_its_own_program),
		cmocka_unit_test(threads_of_several_stacks_work_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
