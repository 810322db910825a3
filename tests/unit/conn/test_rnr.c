/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends without a receive: who waits, who is woken by which receive, and that no receive is left
 * lying while a QP waits. A Send is played: when its stream goes on, it takes one receive, or waits
 * again.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "world.h"

#define SECOND 1000000u

/* QPs whose connections wait for receives. */
struct bench {
	struct world *w;
	struct rnr_srq srq;
	_Alignas(64) uint8_t slots[WORLD_QUEUE * 64];
	struct world_qp *q[4];
	struct conn *c[4];
	unsigned sends[4];  /* that are still to come on the stream */
	unsigned got[4];    /* receives that it took */
	unsigned order[16]; /* whose they were */
	unsigned n_order;
	_Atomic bool stop;
};

static struct bench *bench; /* for the transport, which is global as well */

static unsigned which(const struct conn_qp *q)
{
	unsigned i = 0;

	while (&bench->q[i]->c != q)
		i++;
	return i;
}

/* What receive.c does while the stream has Sends. */
static void play_stream(struct conn_qp *q)
{
	unsigned i = which(q);

	while (bench->sends[i]) {
		if (!rq_first(q->qp.rq)) {
			if (rnr_wait(q))
				return;
			continue;
		}
		rq_drop(q->qp.rq);
		rq_free(q->qp.rq, 1); /* as if its completion had been polled */
		bench->sends[i]--;
		bench->got[i]++;
		bench->order[bench->n_order++ % COUNT(bench->order)] = i;
	}
}

static void on_resume(struct llp_conn *c)
{
	play_stream(((struct conn *)c->ctx)->qp);
}

/* n QPs, each on its stack (modulo the number of stacks); shared: their receives come from one SRQ.
 */
static struct bench *open_bench(unsigned n_stacks, unsigned n, bool shared)
{
	struct bench *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	bench = b;
	b->w = world_open(n_stacks);
	world_srq(&b->srq, b->slots);
	for (unsigned i = 0; i < n; i++) {
		b->q[i] = world_qp(b->w, 2 + i, shared ? &b->srq : NULL);
		b->c[i] = world_streaming(b->w, i % n_stacks, b->q[i]);
		b->c[i]->llp->on_resume = on_resume;
	}
	return b;
}

static void close_bench(struct bench *b)
{
	for (unsigned i = 0; i < COUNT(b->q); i++) {
		if (b->q[i])
			world_qp_free(b->q[i]);
	}
	for (unsigned i = 0; i < b->w->n; i++)
		assert_int_equal(b->w->stack[i].s.sched.stats.conn_bad_state, 0);
	world_close(b->w);
	free(b);
}

/* A Send comes in on QP i. */
static void send_comes(struct bench *b, unsigned i)
{
	struct stack *s = b->c[i]->stack;

	sched_lock(&s->sched);
	b->sends[i]++;
	play_stream(&b->q[i]->c);
	sched_unlock(&s->sched);
}

/* As uw_srq_post_recv and uw_post_recv do. */
static void post_to_srq(struct bench *b, unsigned n)
{
	while (n--)
		world_post_recv(&b->srq.rq, n);
	if (rnr_is_waited(&b->srq.waited))
		rnr_srq_posted(&b->srq);
}

static void post_to_own(struct bench *b, unsigned i)
{
	world_post_recv(b->q[i]->c.qp.rq, 0);
	if (rnr_is_waited(&b->q[i]->c.rnr))
		sched_post(&b->q[i]->c.ring);
}

/* Whatever was left on the rings: the RX threads', of which there are none here. */
static void run_all(struct bench *b)
{
	for (unsigned k = 0; k < 4; k++) {
		for (unsigned i = 0; i < b->w->n; i++) {
			sched_lock(&b->w->stack[i].s.sched);
			sched_unlock(&b->w->stack[i].s.sched);
		}
	}
}

static bool waits(const struct bench *b, unsigned i)
{
	return b->c[i]->rnr != RNR_NO;
}

/* ---- a receive queue of its own -----------------------------------------------------------------
 */

static void it_waits_for_its_own_receive(void **state)
{
	struct bench *b = open_bench(1, 2, false);

	(void)state;
	send_comes(b, 0);
	assert_true(waits(b, 0));
	assert_true(b->c[0]->llp->paused);
	assert_int_equal(b->w->stack[0].s.sched.stats.rnr_waits, 1);
	post_to_own(b, 1); /* another QP's */
	assert_true(waits(b, 0));
	post_to_own(b, 0);
	assert_false(waits(b, 0));
	assert_int_equal(b->got[0], 1);
	assert_int_equal(b->c[0]->rnr_until_us, 0);
	assert_false(atomic_load(&b->q[0]->c.rnr));
	post_to_own(b, 0); /* nobody waits: nobody is woken */
	assert_int_equal(b->c[0]->llp->resumes, 1);
	close_bench(b);
}

/* The receive comes between the stream's look at the queue and its wait. */
static void a_receive_that_comes_just_then_is_seen(void **state)
{
	struct bench *b = open_bench(1, 1, false);

	(void)state;
	world_post_recv(b->q[0]->c.qp.rq, 0);
	assert_false(rnr_is_waited(&b->q[0]->c.rnr));
	assert_false(rnr_wait(&b->q[0]->c));
	assert_false(waits(b, 0));
	assert_false(atomic_load(&b->q[0]->c.rnr));
	close_bench(b);
}

/* ---- a shared one ------------------------------------------------------------------------- */

static void first_come_first_served(void **state)
{
	struct bench *b = open_bench(1, 4, true);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		send_comes(b, 3 - i);
	for (unsigned i = 0; i < 4; i++) {
		post_to_srq(b, 1);
		run_all(b);
		assert_int_equal(b->n_order, i + 1);
		assert_int_equal(b->order[i], 3 - i);
		assert_int_equal(atomic_load(&b->srq.waited), i < 3);
	}
	assert_null(b->srq.first);
	close_bench(b);
}

/* One post of several: each QP that goes on wakes the next, and none that would find nothing. */
static void one_post_wakes_as_many_as_it_feeds(void **state)
{
	struct bench *b = open_bench(1, 4, true);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		send_comes(b, i);
	post_to_srq(b, 3);
	run_all(b);
	assert_int_equal(b->n_order, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(b->order[i], i);
		assert_false(waits(b, i));
	}
	assert_true(waits(b, 3));
	assert_int_equal(b->c[3]->llp->resumes, 0);
	assert_ptr_equal(b->srq.first, &b->q[3]->c);
	close_bench(b);
}

static void the_chain_goes_from_stack_to_stack(void **state)
{
	struct bench *b = open_bench(3, 4, true);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		send_comes(b, i);
	post_to_srq(b, 4);
	run_all(b);
	assert_int_equal(b->n_order, 4);
	assert_int_equal(rq_count(&b->srq.rq), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_false(waits(b, i));
	close_bench(b);
}

/* One that has several Sends takes what there is, and waits again behind the others. */
static void who_waits_again_is_last(void **state)
{
	struct bench *b = open_bench(1, 2, true);

	(void)state;
	send_comes(b, 0);
	b->sends[0]++;
	send_comes(b, 1);
	post_to_srq(b, 1);
	run_all(b);
	assert_int_equal(b->got[0], 1);
	assert_true(waits(b, 0));
	post_to_srq(b, 1);
	run_all(b);
	assert_int_equal(b->got[1], 1);
	post_to_srq(b, 1);
	run_all(b);
	assert_int_equal(b->got[0], 2);
	assert_int_equal(b->w->stack[0].s.sched.stats.rnr_waits, 3);
	close_bench(b);
}

/* ---- wake-ups that could be lost ---------------------------------------------------------- */

/* It does not join the list, and whoever is on it stays announced. */
static void a_receive_that_comes_just_then_is_seen_by_all(void **state)
{
	struct bench *b = open_bench(1, 2, true);

	(void)state;
	world_post_recv(&b->srq.rq, 0);
	assert_false(rnr_wait(&b->q[0]->c));
	assert_null(b->srq.first);
	assert_false(atomic_load(&b->srq.waited));
	rq_drop(&b->srq.rq);
	send_comes(b, 0);
	world_post_recv(&b->srq.rq, 1); /* posted, and its poster has not looked yet */
	assert_false(rnr_wait(&b->q[1]->c));
	assert_true(rnr_is_waited(&b->srq.waited));
	rnr_srq_posted(&b->srq);
	run_all(b);
	assert_int_equal(b->got[0], 1);
	close_bench(b);
}

static struct bench *second_waits_while_first_is_woken(void)
{
	struct bench *b = open_bench(1, 2, true);

	send_comes(b, 0);
	send_comes(b, 1);
	sched_lock(&b->w->stack[0].s.sched); /* the first one's turn is still to come */
	post_to_srq(b, 1);
	assert_true(b->q[0]->c.rnr_woken);
	assert_ptr_equal(b->srq.first, &b->q[1]->c);
	return b;
}

/* Who was woken and ends before it has gone on passes its receive on. */
static void who_ends_wakes_the_next(void **state)
{
	struct bench *b = second_waits_while_first_is_woken();

	(void)state;
	conn_qp_down(&b->q[0]->c, UW_E_FLUSHED);
	sched_unlock(&b->w->stack[0].s.sched);
	run_all(b);
	assert_int_equal(b->got[0], 0);
	assert_int_equal(b->got[1], 1);
	assert_int_equal(rq_count(&b->srq.rq), 0);
	close_bench(b);
}

static void whose_time_is_over_wakes_the_next(void **state)
{
	struct bench *b = second_waits_while_first_is_woken();

	(void)state;
	b->w->now_us += 2 * SECOND + 1;
	b->c[1]->rnr_until_us += SECOND; /* its own time is not */
	conn_qp_rnr_timer(b->c[0], b->w->now_us);
	assert_int_equal(b->w->stack[0].s.sched.stats.rnr_timeouts, 1);
	sched_unlock(&b->w->stack[0].s.sched);
	run_all(b);
	assert_int_equal(b->got[1], 1);
	close_bench(b);
}

/* The receive that it was woken for is taken by one that never waited: it waits again. */
static void whose_receive_is_taken_waits_again(void **state)
{
	struct bench *b = open_bench(1, 2, true);

	(void)state;
	send_comes(b, 0);
	sched_lock(&b->w->stack[0].s.sched);
	post_to_srq(b, 1);
	assert_null(b->srq.first);
	b->sends[1]++;
	play_stream(&b->q[1]->c);
	assert_int_equal(b->got[1], 1);
	sched_unlock(&b->w->stack[0].s.sched);
	run_all(b);
	assert_int_equal(b->got[0], 0);
	assert_true(waits(b, 0));
	assert_ptr_equal(b->srq.first, &b->q[0]->c);
	post_to_srq(b, 1);
	run_all(b);
	assert_int_equal(b->got[0], 1);
	close_bench(b);
}

/* In the middle of the list, at its end, alone: the others keep their turns. */
static void who_goes_leaves_the_others_their_turns(void **state)
{
	static const unsigned gone[] = { 1, 3, 0 };
	struct bench *b = open_bench(1, 4, true);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		send_comes(b, i);
	for (unsigned i = 0; i < COUNT(gone); i++) {
		conn_qp_down(&b->q[gone[i]]->c, UW_E_FLUSHED);
		assert_true(atomic_load(&b->srq.waited));
	}
	assert_ptr_equal(b->srq.first, &b->q[2]->c);
	conn_qp_down(&b->q[2]->c, UW_E_FLUSHED);
	assert_null(b->srq.first);
	assert_false(atomic_load(&b->srq.waited));
	close_bench(b);
}

/* Before a QP is destroyed, under all locks: whoever is woken by another's going on is on a ring
 * again, and must not be left there. */
static void after_it_went_no_ring_has_it(void **state)
{
	struct bench *b = open_bench(1, 4, true);
	struct sched *s = &b->w->stack[0].s.sched;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		send_comes(b, i);
	sched_lock_all(s);
	post_to_srq(b, 4);
	sched_drain_all(s);
	conn_qp_down(&b->q[2]->c, UW_E_FLUSHED);
	sched_forget(&b->q[2]->c.ring);
	assert_false(atomic_load(&b->q[2]->c.ring.queued));
	sched_unlock_all(s);
	assert_int_equal(b->n_order, 3);
	close_bench(b);
}

#define LOOKS	  400u
#define ENOUGH_US 5000000 /* of a busy machine's time: then fewer do */
#define PATIENT	  100000u /* yields until the thread stands still */

static uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static _Atomic bool stand_still, stands_still;

/* Wherever the thread is: in the middle of a post. */
static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&stands_still, true);
	while (atomic_load(&stand_still))
		;
	atomic_store(&stands_still, false);
}

/* Another thread posts to the SRQ, without a stack lock. */
static void *post_often(void *arg)
{
	struct bench *b = arg;

	while (!atomic_load(&b->stop)) {
		if (rq_outstanding(&b->srq.rq) < WORLD_QUEUE)
			post_to_srq(b, 1);
	}
	return NULL;
}

/* With the locks that it takes to destroy a QP. Returns how many are woken and have not gone on. */
static unsigned look_at_the_woken(struct bench *b)
{
	unsigned n = 0;

	if (atomic_flag_test_and_set(&b->srq.takes.held))
		return 0; /* it stands still with the lock */
	for (unsigned i = 0; i < 4; i++) {
		if (!b->q[i]->c.rnr_woken)
			continue;
		assert_true(atomic_load(&b->q[i]->c.ring.queued));
		n++;
	}
	spin_unlock(&b->srq.takes);
	return n;
}

/* Whoever looks finds a QP that waits on the list or on a ring: never in another thread's hands
 * alone, who may be late. */
static void who_is_woken_is_on_a_ring(void **state)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct bench *b = open_bench(1, 4, true);
	struct sched *s = &b->w->stack[0].s.sched;
	unsigned woken = 0;
	uint64_t until = clock_us() + ENOUGH_US;
	pthread_t t;

	(void)state;
	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned i = 0; i < 4; i++) {
		b->sends[i] = UINT32_MAX / 2;
		play_stream(&b->q[i]->c);
	}
	assert_int_equal(pthread_create(&t, NULL, post_often, b), 0);
	for (unsigned i = 0; i < LOOKS && (!woken || clock_us() < until); i++) {
		sched_lock(s);
		atomic_store(&stand_still, true);
		assert_int_equal(pthread_kill(t, SIGUSR1), 0);
		for (unsigned k = 0; k < PATIENT && !atomic_load(&stands_still); k++)
			sched_yield();
		woken += look_at_the_woken(b);
		atomic_store(&stand_still, false);
		sched_unlock(s);
		while (atomic_load(&stands_still))
			sched_yield();
	}
	atomic_store(&b->stop, true);
	pthread_join(t, NULL);
	assert_true(woken > 0);
	close_bench(b);
}

/* ---- time, and the peer's FIN ------------------------------------------------------------- */

static void it_waits_no_longer_than_allowed(void **state)
{
	struct bench *b = open_bench(1, 1, false);
	struct stack *s = world_stack(b->w, 0);

	(void)state;
	send_comes(b, 0);
	assert_int_equal(b->c[0]->rnr_until_us, b->w->now_us + 2 * SECOND);
	b->w->now_us += 2 * SECOND - 1;
	conn_timers(s, b->w->now_us);
	assert_true(waits(b, 0));
	b->w->now_us += 1;
	conn_timers(s, b->w->now_us);
	assert_int_equal(s->sched.stats.rnr_timeouts, 1);
	assert_int_equal(b->q[0]->c.qp.state, UW_QPS_ERR);
	assert_int_equal(b->q[0]->events[UW_EVENT_QP_FATAL], 1);
	assert_null(b->q[0]->c.conn);
	close_bench(b);
}

static void or_for_ever(void **state)
{
	struct bench *b = open_bench(1, 1, false);

	(void)state;
	b->c[0]->rnr_for_ever = true;
	send_comes(b, 0);
	b->w->now_us += 1000ull * SECOND;
	conn_timers(world_stack(b->w, 0), b->w->now_us);
	assert_true(waits(b, 0));
	post_to_own(b, 0);
	assert_int_equal(b->got[0], 1);
	close_bench(b);
}

/* The FIN waits behind the Sends, though not for ever, and ends the stream behind the last one. */
static void a_fin_waits_behind_the_sends(void **state)
{
	struct bench *b = open_bench(1, 1, false);

	(void)state;
	b->c[0]->rnr_for_ever = true;
	send_comes(b, 0);
	b->sends[0]++;
	conn_llp_user.closed(b->c[0], UW_OK);
	assert_int_equal(b->c[0]->rnr, RNR_WAITS_FIN);
	assert_int_equal(b->c[0]->rnr_until_us, b->w->now_us + SECOND);
	post_to_own(b, 0);
	assert_int_equal(b->got[0], 1);
	assert_int_equal(b->c[0]->rnr, RNR_WAITS_FIN); /* one more Send is before it */
	assert_int_equal(b->c[0]->state, CONN_STREAMING);
	post_to_own(b, 0);
	assert_int_equal(b->got[0], 2);
	assert_int_equal(b->c[0]->state, CONN_ENDED);
	assert_null(b->q[0]->c.conn);
	close_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_waits_for_its_own_receive),
		cmocka_unit_test(a_receive_that_comes_just_then_is_seen),
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(one_post_wakes_as_many_as_it_feeds),
		cmocka_unit_test(the_chain_goes_from_stack_to_stack),
		cmocka_unit_test(who_waits_again_is_last),
		cmocka_unit_test(a_receive_that_comes_just_then_is_seen_by_all),
		cmocka_unit_test(who_ends_wakes_the_next),
		cmocka_unit_test(whose_time_is_over_wakes_the_next),
		cmocka_unit_test(whose_receive_is_taken_waits_again),
		cmocka_unit_test(who_goes_leaves_the_others_their_turns),
		cmocka_unit_test(after_it_went_no_ring_has_it),
		cmocka_unit_test(who_is_woken_is_on_a_ring),
		cmocka_unit_test(it_waits_no_longer_than_allowed),
		cmocka_unit_test(or_for_ever),
		cmocka_unit_test(a_fin_waits_behind_the_sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
