/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that poll: when they run the stack, and how they stop. */
#include "fake.h"

#define TO_DRIVE       4u  /* empty polls in a row until the program counts as one that drives */
#define PER_CLOCK      16u /* rounds between two looks at the clock */
#define TO_YIELD       64u
#define MISSED_TO_WAIT 64u

static void open_started(struct fakes *w, enum uw_threads model)
{
	fakes_open(w, 1, model);
	atomic_store(&w->f[0].s.started, true);
}

static void poll_empty(struct fake *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sched_app_poll(&f->s, i > 0);
}

static bool drives(struct fake *f)
{
	return atomic_load(&f->s.app_drives);
}

static void a_poll_of_an_empty_cq_runs_the_stack(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	atomic_store(&f->frames, 5);
	poll_empty(f, 1);
	assert_int_equal(f->runs, 1);
	assert_true(f->lock_was_taken);
	assert_int_equal(f->s.stats.drive_app, 1);
	assert_int_equal(atomic_load(&f->s.app_rounds), 6); /* the round and its frames */
	assert_true(fake_lock_is_free(&f->s));
}

static void not_before_there_is_a_link_nor_where_the_rx_thread_does_it(void **state)
{
	static const enum uw_threads models[] = { UW_THREADS_C1, UW_THREADS_C3 };
	struct fakes w;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	poll_empty(&w.f[0], 10);
	assert_int_equal(w.f[0].runs, 0);
	for (unsigned i = 0; i < COUNT(models); i++) {
		open_started(&w, models[i]);
		poll_empty(&w.f[0], 10);
		assert_int_equal(w.f[0].runs, 0);
		assert_false(drives(&w.f[0]));
	}
}

static void who_has_the_lock_does_it(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	atomic_store(&f->s.lock, TAKEN_BY_ANOTHER);
	poll_empty(f, 10);
	assert_int_equal(f->runs, 0);
	assert_true(drives(f)); /* it waits by polling all the same */
}

static void *poll_until_it_waits(void *arg)
{
	poll_empty(arg, MISSED_TO_WAIT);
	return NULL;
}

#define TRIES 1000u

/* One poller sleeps for the lock that this thread has, for LOOK_US at most: where this thread gets
 * no CPU for so long, in vain. */
static void free_it_for_a_sleeper(struct fake *f)
{
	unsigned runs = f->runs;
	pthread_t poller;

	sched_lock(&f->s);
	poll_empty(f, MISSED_TO_WAIT - 1);
	assert_int_equal(f->s.stats.lock_waits, 0);
	assert_false(atomic_load(&f->s.lock) & SCHED_WANTED);
	assert_false(pthread_create(&poller, NULL, poll_until_it_waits, f));
	while (!(atomic_load(&f->s.lock) & SCHED_WANTED))
		sched_yield();
	assert_int_equal(f->runs, runs);
	sched_unlock(&f->s);
	assert_false(pthread_join(poller, NULL));
	assert_int_equal(f->runs, runs + f->s.stats.lock_waits);
	assert_true(fake_lock_is_free(&f->s));
}

/* The holder may have lost this core to the poller: it gets the core at once, and the poller its
 * look when the lock is free. */
static void who_finds_it_locked_too_often_sleeps_for_it(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	for (unsigned i = 0; i < TRIES; i++) {
		open_started(&w, UW_THREADS_ADAPTIVE);
		poll_empty(f, 1); /* it finds it free: that counts anew */
		free_it_for_a_sleeper(f);
		if (f->s.stats.lock_waits)
			break;
	}
	assert_int_equal(f->s.stats.lock_waits, 1);
}

static void a_few_empty_polls_in_a_row_are_driving(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	poll_empty(f, TO_DRIVE - 1);
	assert_false(drives(f));
	poll_empty(f, TO_DRIVE - 1); /* of another CQ: counted anew */
	assert_false(drives(f));
	sched_app_poll(&f->s, SCHED_POLL_AGAIN);
	assert_true(drives(f));
	open_started(&w, UW_THREADS_C2); /* nobody else does it */
	poll_empty(f, 1);
	assert_true(drives(f));
}

/* Peers need not ring, and the RX thread must not sleep for long: nobody tells it of the end. */
/* What may be left undone for the next call: only where the RX thread watches. */
static void who_drives_is_expected_back(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	for (unsigned i = 0; i < TO_DRIVE; i++) {
		sched_app_poll(&f->s, i > 0);
		assert_false(f->comes_back);
	}
	sched_app_poll(&f->s, SCHED_POLL_AGAIN);
	assert_true(f->comes_back);
	sched_lock(&f->s);
	sched_run(&f->s);
	sched_unlock(&f->s);
	assert_false(f->comes_back); /* any other thread */
	atomic_store(&f->s.app_drives, false);
	atomic_store(&f->s.waiter, SCHED_AWAY);
	sched_app_poll(&f->s, SCHED_POLL_FIRST);
	assert_true(f->comes_back);
}

static void who_drives_is_awake(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	atomic_store(&f->s.own_doorbell, IO_ASLEEP);
	atomic_store(&f->s.rx_sleeps_long, true);
	poll_empty(f, TO_DRIVE);
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_AWAKE);
	assert_false(atomic_load(&f->s.rx_sleeps_long));
}

static void the_clock_is_read_now_and_then(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	poll_empty(f, PER_CLOCK - 1);
	assert_int_equal(f->timers, 0);
	poll_empty(f, 1);
	assert_int_equal(f->timers, 1);
	poll_empty(f, PER_CLOCK);
	assert_int_equal(f->timers, 1); /* not within TIMER_US */
	atomic_fetch_add(&w.now_us, TIMER_US);
	poll_empty(f, PER_CLOCK);
	assert_int_equal(f->timers, 2);
}

/* It goes away with a completion: peers ring again, and what came in between is taken in. */
static void who_stops_looks_once_more(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	poll_empty(f, TO_DRIVE);
	atomic_store(&f->frames, 1);
	sched_app_busy(&f->s);
	assert_false(drives(f));
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_ASLEEP);
	assert_int_equal(f->runs, TO_DRIVE + 1);
	assert_int_equal(atomic_load(&f->frames), 0);
	sched_app_busy(&f->s); /* it does not drive */
	assert_int_equal(f->runs, TO_DRIVE + 1);
}

/* ... or, if another thread has the lock, that one does. */
static void who_cannot_look_asks(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	poll_empty(f, TO_DRIVE);
	atomic_store(&f->s.lock, TAKEN_BY_ANOTHER);
	sched_app_busy(&f->s);
	assert_true(atomic_load(&f->s.look));
	assert_int_equal(f->runs, TO_DRIVE);
}

static void who_drives_steadily_comes_back(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	poll_empty(f, TO_DRIVE);
	atomic_store(&f->s.app_drives_steadily, true);
	sched_app_busy(&f->s);
	assert_true(drives(f));
	open_started(&w, UW_THREADS_C2);
	poll_empty(f, 1);
	sched_app_busy(&f->s);
	assert_true(drives(f));
}

/* It arms its CQ and sleeps: the RX thread, which kept away from a steady one, takes over at once.
 */
static void who_sleeps_hands_over(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	sched_app_sleep(&f->s); /* it does not drive */
	assert_int_equal(atomic_load(&f->s.handover), 0);
	poll_empty(f, TO_DRIVE);
	sched_app_sleep(&f->s);
	assert_false(drives(f));
	assert_int_equal(atomic_load(&f->s.handover), 0);
	poll_empty(f, TO_DRIVE);
	atomic_store(&f->s.app_drives_steadily, true);
	sched_app_sleep(&f->s);
	assert_false(drives(f));
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_ASLEEP);
	assert_int_equal(atomic_load(&f->s.handover), 1);
}

static bool always(void *stack, bool links)
{
	(void)stack;
	(void)links;
	return true;
}

/* A yield that took long: another thread needs this core. The next time it sleeps on the doorbell,
 * unless there is something to do. */
static void where_a_yield_costs_a_time_slice_it_sleeps(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_started(&w, UW_THREADS_ADAPTIVE);
	f->step_us = LONG_YIELD_US + 1;
	poll_empty(f, TO_YIELD);
	assert_int_equal(f->s.stats.app_sleeps, 0);
	for (unsigned i = 0; i < TO_YIELD; i++)
		sched_app_poll(&f->s, SCHED_POLL_AGAIN);
	assert_int_equal(f->s.stats.app_sleeps, 1);
	assert_int_equal(atomic_load(&f->s.app_sleepers), 0);
	for (unsigned i = 0; i < 8 * TO_YIELD; i++) /* its news may come by shared memory, too */
		sched_app_poll(&f->s, SCHED_POLL_OTHER);
	assert_int_equal(f->s.stats.app_sleeps, 1);
	for (unsigned i = 0; i < 8 * TO_YIELD; i++)
		sched_app_poll(&f->s, SCHED_POLL_AGAIN);
	assert_true(f->s.stats.app_sleeps > 1);
	f->s.stats.app_sleeps = 0;
	f->ops.pending = always;
	for (unsigned i = 0; i < TO_YIELD; i++)
		sched_app_poll(&f->s, SCHED_POLL_AGAIN);
	assert_int_equal(f->s.stats.app_sleeps, 0);
}

/* Over sockets the RX thread receives for a program that polls with pauses; a peer that rings is
 * better left to the program. One that waited a moment ago is likely to wait again (doc/adr/0075).
 */
static void who_polls_long_after_a_wait_waits_no_longer(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	for (int sockets = 0; sockets < 2; sockets++) {
		open_started(&w, UW_THREADS_ADAPTIVE);
		f->s.wait = (struct sched_link){ .able = true, .fd = { -1, sockets - 1, -1 } };
		atomic_store(&f->s.waiter, SCHED_AWAY);
		atomic_store(&f->s.waited_us, w.now_us + 1); /* by another thread's clock */
		poll_empty(f, TO_YIELD);
		assert_int_equal(atomic_load(&f->s.waiter), SCHED_AWAY);
		atomic_store(&f->s.waited_us, w.now_us);
		poll_empty(f, 8 * TO_YIELD);
		atomic_fetch_add(&w.now_us, 9999);
		poll_empty(f, TO_YIELD);
		assert_int_equal(atomic_load(&f->s.waiter), SCHED_AWAY);
		atomic_fetch_add(&w.now_us, 1);
		poll_empty(f, TO_DRIVE - 1);
		assert_int_equal(atomic_load(&f->s.waiter), SCHED_AWAY);
		poll_empty(f, TO_DRIVE);
		assert_int_equal(atomic_load(&f->s.waiter), sockets ? SCHED_NO_WAITER : SCHED_AWAY);
	}
}

/* ---- polls that find something (doc/adr/0071) ---------------------------------------------- */

static void open_with_sockets(struct fakes *w)
{
	open_started(w, UW_THREADS_ADAPTIVE);
	w->f[0].s.wait = (struct sched_link){ .able = true, .fd = { -1, 0, -1 } };
	sched_app_sleep(&w->f[0].s); /* forget what this thread did before */
}

/* n polls, each finds something, with so many short posts and microseconds before it */
static void poll_busily(struct fakes *w, unsigned n, unsigned posts, uint64_t us)
{
	for (unsigned i = 0; i < n; i++) {
		atomic_fetch_add(&w->f[0].s.app_posts, posts);
		atomic_fetch_add(&w->now_us, us);
		sched_app_busy(&w->f[0].s);
	}
}

static void who_posts_and_finds_something_each_time_drives(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_with_sockets(&w);
	poll_busily(&w, TO_DRIVE, 10, 200);
	assert_int_equal(f->runs, 0);
	assert_false(drives(f));
	poll_busily(&w, 10, 10, 200);
	assert_in_range(f->runs, 9, 10);
	assert_true(drives(f));	     /* polls that find something do not end that */
	poll_busily(&w, 100, 10, 1); /* a round is enough in so short a time */
	assert_in_range(f->runs, 9, 12);
	assert_true(fake_lock_is_free(&f->s));
}

static void else_polls_that_find_something_receive_nothing(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];

	(void)state;
	open_with_sockets(&w);
	poll_busily(&w, 50, 0, 200); /* it posts nothing, or long ones */
	assert_int_equal(f->runs, 0);
	poll_busily(&w, 50, 10, 2000); /* with pauses */
	assert_int_equal(f->runs, 0);
	atomic_store(&f->s.waiter, SCHED_AWAY); /* it waits for events */
	poll_busily(&w, 50, 10, 200);
	assert_int_equal(f->runs, 0);
	atomic_store(&f->s.waiter, SCHED_NO_WAITER);
	for (unsigned i = 0; i < 50; i++) { /* it arms the CQ after each */
		poll_busily(&w, 1, 10, 200);
		sched_app_sleep(&f->s);
	}
	assert_int_equal(f->runs, 0);
	f->s.wait.fd[1] = -1; /* over shared memory */
	poll_busily(&w, 50, 10, 200);
	assert_int_equal(f->runs, 0);
	assert_false(drives(f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_of_an_empty_cq_runs_the_stack),
		cmocka_unit_test(not_before_there_is_a_link_nor_where_the_rx_thread_does_it),
		cmocka_unit_test(who_has_the_lock_does_it),
		cmocka_unit_test(who_finds_it_locked_too_often_sleeps_for_it),
		cmocka_unit_test(a_few_empty_polls_in_a_row_are_driving),
		cmocka_unit_test(who_drives_is_expected_back),
		cmocka_unit_test(who_drives_is_awake),
		cmocka_unit_test(the_clock_is_read_now_and_then),
		cmocka_unit_test(who_stops_looks_once_more),
		cmocka_unit_test(who_cannot_look_asks),
		cmocka_unit_test(who_drives_steadily_comes_back),
		cmocka_unit_test(who_sleeps_hands_over),
		cmocka_unit_test(who_polls_long_after_a_wait_waits_no_longer),
		cmocka_unit_test(where_a_yield_costs_a_time_slice_it_sleeps),
		cmocka_unit_test(who_posts_and_finds_something_each_time_drives),
		cmocka_unit_test(else_polls_that_find_something_receive_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
