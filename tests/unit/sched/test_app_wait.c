/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that wait in poll() or the like: who is rung, and what the RX thread makes
 * of it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wait_bed.h"

static bool was_rung(const struct bed *b)
{
	struct pollfd p = { .fd = b->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Instead of libc's. */
static _Atomic unsigned yields;

int sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	return (int)syscall(SYS_sched_yield);
}

/* ---- sleeping and ringing ------------------------------------------------------------------ */

/* A program may wait by asking in a loop: others need the core meanwhile. */
static void who_asks_in_vain_yields(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	atomic_store(&yields, 0);
	for (unsigned i = 0; i < 40; i++)
		sched_app_look(b.s, &b.wait, 0);
	assert_in_range(atomic_load(&yields), 2, 20);
	atomic_store(&yields, 0);
	for (unsigned i = 0; i < 40; i++) { /* it gets what it asks for */
		atomic_store(&b.w.f[0].frames, 1);
		sched_app_look(b.s, &b.wait, 0);
	}
	assert_int_equal(atomic_load(&yields), 0);
	for (unsigned i = 0; i < 40; i++) {
		atomic_fetch_add(&b.events, 1);
		sched_app_look(b.s, &b.wait, 0);
	}
	assert_int_equal(atomic_load(&yields), 0);
	close_bed(&b);
}

static void a_peer_rings_the_descriptor(void **state)
{
	struct bed b;
	uint32_t was;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_true(sched_app_can_wait(b.s));
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_int_equal(b.wait.fd[0], b.fd);
	assert_int_equal(word(&b), IO_ASLEEP_FD);
	assert_false(was_rung(&b));
	was = doorbell_swap(&b.s->own_doorbell);
	assert_int_equal(was, IO_ASLEEP_FD);
	assert_int_equal(doorbell_swap(&b.s->own_doorbell), IO_AWAKE); /* once */
	doorbell_wake(&b.s->wait.ring, was);
	assert_true(was_rung(&b));
	sched_app_wait_end(b.s);
	assert_true(word(&b) >= IO_RUNG);
	close_bed(&b);
}

static void work_of_this_process_rings_it_as_well(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	sched_wake(b.s);
	assert_true(was_rung(&b));
	assert_int_equal(word(&b), IO_AWAKE);
	close_bed(&b);
}

static void frames_that_came_before_are_no_sleep(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	atomic_store(&b.w.f[0].frames, 1);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_AGAIN);
	assert_int_equal(word(&b), IO_AWAKE);
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_AWAY);
	close_bed(&b);
}

/* Frames ended its sleep, and another thread has the lock for as long as this test lets it. */
static void a_wait_for_the_lock_ends(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	b.wait.slept = true;
	sched_lock(b.s);
	assert_int_equal(of_another_thread(&b), UW_WAIT_SLEEP);
	assert_int_equal(b.s->stats.lock_waits, 0);
	assert_true(atomic_load(&b.s->look));
	sched_unlock(b.s);
	assert_int_equal(b.w.f[0].runs,
			 1); /* the holder looks: nobody rang for frames before that */
	close_bed(&b);
}

struct holder {
	struct sched *s;
	_Atomic bool holds;
};

/* It lets the lock go as soon as somebody sleeps for it, and does not yield before. */
static void *hold_until_wanted(void *arg)
{
	struct holder *h = arg;

	sched_lock(h->s);
	atomic_store(&h->holds, true);
	while (!(atomic_load(&h->s->lock) & SCHED_WANTED))
		;
	sched_unlock(h->s);
	return NULL;
}

#define TRIES 1000u /* the sleep is so short that the holder may not get a CPU meanwhile */

/* A thread that went to sleep on sockets with frames in them would be back at once. */
static void after_frames_it_sleeps_for_the_lock(void **state)
{
	struct bed b;
	pthread_t t;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	for (unsigned i = 0; i < TRIES && !b.s->stats.lock_waits; i++) {
		struct holder h = { .s = b.s };

		assert_int_equal(pthread_create(&t, NULL, hold_until_wanted, &h), 0);
		while (!atomic_load(&h.holds))
			sched_yield();
		b.wait.slept = true;
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		sched_app_wait_end(b.s);
		sched_lock(b.s); /* it is wanted now in any case */
		sched_unlock(b.s);
		pthread_join(t, NULL);
	}
	assert_int_equal(b.s->stats.lock_waits, 1);
	close_bed(&b);
}

static void nobody_says_futex_while_it_sleeps(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_true(sched_say_asleep(b.s));
	assert_int_equal(word(&b), IO_ASLEEP);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_false(sched_say_asleep(b.s));
	assert_int_equal(word(&b), IO_ASLEEP_FD);
	/* One who polls has been rung in its place and goes to sleep now. */
	atomic_store(&b.s->own_doorbell, IO_RUNG);
	assert_false(sched_say_asleep(b.s));
	assert_int_equal(word(&b), IO_ASLEEP_FD);
	close_bed(&b);
}

static void another_file_under_its_number_is_not_written(void **state)
{
	struct bed b;
	char octet;
	int p[2];

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(pipe2(p, O_NONBLOCK), 0);
	assert_int_equal(dup2(p[1], b.fd), b.fd);
	doorbell_wake(&b.s->wait.ring, IO_ASLEEP_FD);
	assert_int_equal(read(p[0], &octet, 1), -1);
	close(p[0]);
	close(p[1]);
	close_bed(&b);
}

static void an_rx_thread_that_receives_everything_goes_on(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_C3);
	assert_false(sched_app_can_wait(b.s));
	close_bed(&b);
	open_bed(&b, UW_THREADS_C2);
	assert_true(sched_app_can_wait(b.s));
	close_bed(&b);
}

/* ---- looking ------------------------------------------------------------------------------- */

static void a_look_takes_in_what_is_there(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	atomic_store(&b.w.f[0].frames, 3);
	b.w.f[0].step_us = 1;
	sched_app_look(b.s, &b.wait, 0);
	assert_int_equal(b.w.f[0].runs, 1);
	assert_true(fake_lock_is_free(b.s));
	close_bed(&b);
}

/* By it polls tell a program that polls before each wait from one that has waited once. */
static void a_wait_notes_when_it_begins_and_ends(void **state)
{
	struct bed b;
	uint64_t at;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	at = b.w.now_us;
	sched_app_look(b.s, &b.wait, 0); /* a question, no wait */
	assert_int_equal(atomic_load(&b.s->waited_us), 0);
	sched_app_look(b.s, &b.wait, UINT64_MAX);
	assert_int_equal(atomic_load(&b.s->waited_us), at);
	pass(&b, 500);
	sched_app_wait_done(b.s, &b.wait);
	assert_int_equal(atomic_load(&b.s->waited_us), at + 500);
	close_bed(&b);
}

/* Waits that end soon after a sleep are worth a look, those that last are not. */
static void looks_grow_and_shrink(void **state)
{
	struct bed b;
	unsigned runs;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	b.w.f[0].step_us = 1;
	b.wait.began_us = b.w.now_us;
	b.wait.slept = true;
	atomic_fetch_add(&b.events, 1);
	sched_app_wait_done(b.s, &b.wait);
	b.wait = (struct uw_wait){ .events = &b.events, .seen = 1 };
	runs = b.w.f[0].runs;
	sched_app_look(b.s, &b.wait, UINT64_MAX);
	assert_true(b.w.f[0].runs - runs > 4);
	pass(&b, 2000);
	sched_app_wait_done(b.s, &b.wait);
	runs = b.w.f[0].runs;
	sched_app_look(b.s, &b.wait, UINT64_MAX);
	assert_int_equal(b.w.f[0].runs - runs, 1);
	close_bed(&b);
}

/* ---- the RX thread ------------------------------------------------------------------------- */

static void it_keeps_away_while_the_program_comes_back(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_false(left(&b));
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		assert_true(left(&b));
		sched_app_wait_end(b.s);
		pass(&b, WATCH_US);
		assert_true(left(&b));
	}
	atomic_fetch_add(&b.s->app_rounds, 1); /* it polls */
	pass(&b, WATCH_US);
	assert_true(left(&b));
	assert_int_equal(b.s->stats.take_overs, 0);
	close_bed(&b);
}

static void it_takes_over_from_one_that_went_away(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	pass(&b, OFTEN_US);
	for (unsigned i = 0; i < 6; i++) {
		uint64_t away_us = i < 4 ? WATCH_US : BUSY_US;

		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		assert_true(left(&b));
		sched_app_wait_end(b.s);
		assert_true(left(&b));
		atomic_store(&b.w.f[0].frames, 1);
		pass(&b, away_us);
		assert_false(left(&b));
		assert_int_equal(atomic_load(&b.s->waiter), SCHED_NO_WAITER);
		atomic_store(&b.w.f[0].frames, 0);
	}
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_true(left(&b));
	sched_app_wait_end(b.s);
	/* It came a little late four times, and twice it computed: for a while it is served by the
	 * RX thread. */
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_PLAINLY);
	pass(&b, WAIT_DOUBT_US);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	close_bed(&b);
}

/* A peer that has the descriptor may read it as well; a thread may leave its sleep by a jump. */
static void it_takes_over_from_one_that_does_not_hear(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_true(left(&b));
	pass(&b, MAX_SLEEP_US);
	assert_true(left(&b)); /* nobody has rung */
	atomic_store(&b.w.f[0].frames, 1);
	assert_int_equal(doorbell_swap(&b.s->own_doorbell), IO_ASLEEP_FD);
	assert_true(left(&b));
	assert_false(atomic_load(&b.s->rx_sleeps_long) && !b.t.rung_us);
	pass(&b, WATCH_US);
	assert_false(left(&b));
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_NO_WAITER);
	assert_int_equal(b.s->stats.take_overs, 1);
	close_bed(&b);
}

/* siglongjmp() out of the handler of a signal that came during the sleep */
static void one_that_jumped_out_waits_again(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	sched_app_wait_end(b.s);
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_AWAY);
	close_bed(&b);
}

static void timers_run_while_the_program_sleeps(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	b.w.f[0].timer_at_us = b.w.now_us + 20000;
	assert_true(left(&b));
	assert_int_equal(b.w.f[0].timers, 0);
	pass(&b, 20000);
	assert_true(left(&b));
	assert_int_equal(b.w.f[0].timers, 1);
	assert_true(b.w.f[0].comes_back); /* so an ACK that an answer may carry is left */
	close_bed(&b);
}

static void its_long_sleep_ends_with_the_programs(void **state)
{
	struct bed b;
	uint32_t before;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_true(left(&b));
	assert_false(atomic_load(&b.s->rx_sleeps_long));
	pass(&b, LOOK_US);
	assert_true(left(&b));
	assert_true(atomic_load(&b.s->rx_sleeps_long));
	before = atomic_load(&b.s->handover);
	sched_app_wait_end(b.s);
	assert_false(atomic_load(&b.s->rx_sleeps_long));
	assert_int_not_equal(atomic_load(&b.s->handover), before);
	close_bed(&b);
}

/* ---- links with sockets -------------------------------------------------------------------- */

static void nothing_rouses(void *stack)
{
	atomic_fetch_add(&((struct fake *)stack)->roused, 1);
}

static void no_sleep(void *stack, uint64_t us)
{
	(void)us;
	atomic_fetch_add(&((struct fake *)stack)->slept, 1);
}

/* What becomes readable there is none of this test's. */
static void open_bed_with_sockets(struct bed *b)
{
	open_bed(b, UW_THREADS_ADAPTIVE);
	b->s->wait.fd[1] = b->fd;
	b->w.f[0].ops.sleep = no_sleep;
	b->w.f[0].ops.rouse = nothing_rouses;
}

/* A frame would wake both. */
static void a_wait_calls_the_rx_thread_out_of_the_link(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_sockets(&b);
	atomic_store(&b.s->rx_in_transport, true);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_int_equal(b.wait.fd[1], b.fd);
	assert_int_equal(atomic_load(&b.w.f[0].roused), 1);
	sleep_in_transport(&b.t, sched_now_us(b.s));
	assert_int_equal(atomic_load(&b.w.f[0].slept), 0);
	sched_app_wait_end(b.s);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_int_equal(atomic_load(&b.w.f[0].roused), 1); /* it is not there any more */
	sched_app_wait_end(b.s);
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	sleep_in_transport(&b.t, sched_now_us(b.s));
	assert_int_equal(atomic_load(&b.w.f[0].slept), 1);
	close_bed(&b);
}

static void frames_that_nobody_takes_count_as_a_ring(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_sockets(&b);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_true(left(&b));
	pass(&b, MAX_SLEEP_US);
	assert_true(left(&b)); /* nothing has come */
	atomic_store(&b.w.f[0].frames, 1);
	assert_true(left(&b));
	pass(&b, WATCH_US);
	assert_false(left(&b));
	assert_int_equal(atomic_load(&b.s->waiter), SCHED_NO_WAITER);
	assert_int_equal(b.s->stats.take_overs, 1);
	close_bed(&b);
}

/* A cable came back and a retransmission was due at once, of which nobody told it; or another
 * thread of the program posts. */
static void a_timer_that_another_thread_sets_is_not_late(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_sockets(&b);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_true(left(&b));
	pass(&b, LOOK_US);
	assert_true(left(&b));
	assert_true(atomic_load(&b.s->rx_sleeps_long));
	assert_true(sleep_long(&b.t, MAX_SLEEP_US) <= TIMER_US);
	b.w.f[0].timer_at_us = sched_now_us(b.s);
	pass(&b, TIMER_US);
	assert_true(left(&b));
	pass(&b, TIMER_US);
	assert_true(left(&b));
	assert_int_equal(b.w.f[0].timers, 1);
	close_bed(&b);
}

static void *sleep_on_the_word(void *arg)
{
	struct bed *b = arg;

	sched_futex_wait(&b->s->own_doorbell, IO_ASLEEP, 30000000);
	return NULL;
}

/* A uwarpd's client: the RX thread sleeps on the word, and would be late with timers. */
static void a_wait_calls_the_rx_thread_off_the_word(void **state)
{
	struct bed b;
	pthread_t rx;
	uint64_t begin;

	(void)state;
	open_bed_with_sockets(&b);
	atomic_store(&b.s->own_doorbell, IO_ASLEEP);
	assert_int_equal(pthread_create(&rx, NULL, sleep_on_the_word, &b), 0);
	usleep(20000);
	begin = clock_us();
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
	assert_int_equal(word(&b), IO_ASLEEP_FD);
	pthread_join(rx, NULL);
	assert_true(clock_us() - begin < 20000000);
	close_bed(&b);
}

#define SLEEPS	  3000u
#define ENOUGH_US 5000000 /* of a busy machine's time: then fewer do */
#define STAYS_MS  10000	  /* longer than any machine is busy */

static _Atomic bool rx_sleeps;
static _Atomic unsigned stayed; /* sleeps that nobody ended */

static void sleep_on_the_bell(void *stack, uint64_t us)
{
	struct fake *f = stack;
	struct pollfd p = { .fd = f->s.wait.fd[1], .events = POLLIN };
	uint64_t rings;

	(void)us;
	atomic_store(&rx_sleeps, true);
	if (!poll(&p, 1, STAYS_MS))
		atomic_fetch_add(&stayed, 1);
	if (read(p.fd, &rings, sizeof(rings)) < 0)
		assert_int_equal(errno, EAGAIN);
	atomic_store(&rx_sleeps, false);
}

static void ring_the_bell(void *stack)
{
	const uint64_t one = 1;

	assert_int_equal(write(((struct fake *)stack)->s.wait.fd[1], &one, sizeof(one)),
			 sizeof(one));
}

static void *sleep_often(void *arg)
{
	struct bed *b = arg;

	while (!atomic_load(&b->s->stop))
		sleep_in_transport(&b->t, sched_now_us(b->s));
	return NULL;
}

/* Whenever a thread waits, the RX thread leaves the link, and does not come back. */
static void it_never_sleeps_there_beside_one_that_waits(void **state)
{
	struct bed b;
	pthread_t rx;
	uint64_t until = clock_us() + ENOUGH_US;

	(void)state;
	open_bed_with_sockets(&b);
	b.w.f[0].ops.sleep = sleep_on_the_bell;
	b.w.f[0].ops.rouse = ring_the_bell;
	assert_int_equal(pthread_create(&rx, NULL, sleep_often, &b), 0);
	for (unsigned i = 0; i < SLEEPS && clock_us() < until && !atomic_load(&stayed); i++) {
		assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_SLEEP);
		while (atomic_load(&rx_sleeps))
			sched_yield();
		sched_app_wait_end(b.s);
		atomic_store(&b.s->waiter, SCHED_NO_WAITER);
		if (i % 3)
			sched_yield();
	}
	atomic_store(&b.s->stop, true);
	ring_the_bell(&b.w.f[0]);
	pthread_join(rx, NULL);
	assert_int_equal(atomic_load(&stayed), 0);
	close_bed(&b);
}

/* ---- nothing is lost ----------------------------------------------------------------------- */

#define RINGS 20000u

static _Atomic unsigned put, rung; /* frames that the peer has sent, and rung for */
static _Atomic unsigned polled;	   /* the poller's rounds */

/* A peer that rings as lanes do: frames, fence, the word. */
static void *ring_often(void *arg)
{
	struct bed *b = arg;
	uint64_t until = clock_us() + ENOUGH_US;

	for (unsigned i = 0; i < RINGS && clock_us() < until; i++) {
		while (atomic_load(&b->w.f[0].frames))
			sched_yield();
		atomic_fetch_add(&put, 1);
		atomic_store(&b->w.f[0].frames, 1);
		atomic_thread_fence(memory_order_seq_cst);
		doorbell_wake(&b->s->wait.ring, doorbell_swap(&b->s->own_doorbell));
		atomic_fetch_add(&rung, 1);
	}
	return NULL;
}

/* Another thread of the program drives now and then, and stops. */
static void *poll_often(void *arg)
{
	struct bed *b = arg;

	while (!atomic_load(&b->s->stop)) {
		for (unsigned i = 0; i < 6; i++)
			sched_app_poll(b->s, i > 0);
		sched_app_busy(b->s);
		/* long ago: the clock stands still */
		atomic_store(&b->s->poller, 0);
		atomic_fetch_add(&polled, 1);
		sched_yield();
	}
	return NULL;
}

/* A frame that the peer is through with, that nobody is told of and that the poller leaves. */
static bool is_lost(struct bed *b)
{
	unsigned frame = atomic_load(&rung), rounds = atomic_load(&polled);

	if (!atomic_load(&b->w.f[0].frames) || atomic_load(&put) != frame)
		return false;
	while (atomic_load(&polled) - rounds < 2)
		sched_yield();
	return atomic_load(&put) == frame && !was_rung(b) && atomic_load(&b->w.f[0].frames);
}

static void no_ring_is_lost(void **state)
{
	struct bed b;
	pthread_t peer, poller;
	unsigned lost = 0, sleeps = 0;

	(void)state;
	open_bed(&b, UW_THREADS_ADAPTIVE);
	assert_int_equal(pthread_create(&poller, NULL, poll_often, &b), 0);
	assert_int_equal(pthread_create(&peer, NULL, ring_often, &b), 0);
	while (pthread_tryjoin_np(peer, NULL)) {
		struct pollfd p = { .fd = b.fd, .events = POLLIN };
		uint64_t rings;

		sched_app_look(b.s, &b.wait, 0);
		if (sched_app_wait_begin(b.s, &b.wait) != UW_WAIT_SLEEP)
			continue;
		sleeps++;
		/* 20 ms without a ring: nothing may have been waiting, but for what just came */
		lost += !poll(&p, 1, 20) && is_lost(&b);
		sched_app_wait_end(b.s);
		if (was_rung(&b) && read(b.fd, &rings, sizeof(rings)) < 0)
			assert_int_equal(errno, EAGAIN);
	}
	atomic_store(&b.s->stop, true);
	pthread_join(poller, NULL);
	assert_int_equal(lost, 0);
	assert_true(sleeps > 10);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_in_vain_yields),
		cmocka_unit_test(a_peer_rings_the_descriptor),
		cmocka_unit_test(work_of_this_process_rings_it_as_well),
		cmocka_unit_test(frames_that_came_before_are_no_sleep),
		cmocka_unit_test(a_wait_for_the_lock_ends),
		cmocka_unit_test(after_frames_it_sleeps_for_the_lock),
		cmocka_unit_test(nobody_says_futex_while_it_sleeps),
		cmocka_unit_test(another_file_under_its_number_is_not_written),
		cmocka_unit_test(an_rx_thread_that_receives_everything_goes_on),
		cmocka_unit_test(a_look_takes_in_what_is_there),
		cmocka_unit_test(a_wait_notes_when_it_begins_and_ends),
		cmocka_unit_test(looks_grow_and_shrink),
		cmocka_unit_test(it_keeps_away_while_the_program_comes_back),
		cmocka_unit_test(it_takes_over_from_one_that_went_away),
		cmocka_unit_test(it_takes_over_from_one_that_does_not_hear),
		cmocka_unit_test(one_that_jumped_out_waits_again),
		cmocka_unit_test(timers_run_while_the_program_sleeps),
		cmocka_unit_test(its_long_sleep_ends_with_the_programs),
		cmocka_unit_test(a_wait_calls_the_rx_thread_out_of_the_link),
		cmocka_unit_test(a_wait_calls_the_rx_thread_off_the_word),
		cmocka_unit_test(frames_that_nobody_takes_count_as_a_ring),
		cmocka_unit_test(a_timer_that_another_thread_sets_is_not_late),
		cmocka_unit_test(it_never_sleeps_there_beside_one_that_waits),
		cmocka_unit_test(no_ring_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
