/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts in a row: which of them wait for more, for how long, and who sends them. */
#include "fake.h"

#define SMALL	 64u
#define LONG	 65536u	 /* two of them wait, with a few small ones */
#define ENOUGH	 147456u /* for one */
#define SWITCHES 20000u

struct entry {
	struct ring_entry r; /* first */
	unsigned calls;
};

struct bed {
	struct fakes w;
	struct sched *s;
	struct entry e;
	_Atomic uint32_t events;
	struct uw_wait wait;
};

static void on_call(struct ring_entry *r)
{
	((struct entry *)r)->calls++;
}

/* A stack over sockets, and a program that has waited for events and comes back. */
static void open_bed(struct bed *b)
{
	fakes_open(&b->w, 1, UW_THREADS_ADAPTIVE);
	b->s = &b->w.f[0].s;
	b->e = (struct entry){ .r = { .fn = on_call, .home = b->s } };
	atomic_store(&b->events, 0);
	b->wait = (struct uw_wait){ .events = &b->events };
	b->s->wait = (struct sched_link){ .able = true, .fd = { -1, 0, -1 } };
	atomic_store(&b->s->started, true);
	atomic_store(&b->s->waiter, SCHED_AWAY);
}

static void post(struct bed *b, uint32_t octets)
{
	sched_post_octets(&b->e.r, octets);
}

static void a_poll_sends_what_waits(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	post(&b, SMALL);
	post(&b, SMALL);
	assert_int_equal(b.e.calls, 0);
	sched_app_poll(b.s, SCHED_POLL_FIRST);
	assert_int_equal(b.e.calls, 1);
	assert_true(b.w.f[0].flushes > 0);
	assert_int_equal(b.s->stats.post_held, 1);
	assert_int_equal(atomic_load(&b.s->held), 0);
	sched_app_poll(b.s, SCHED_POLL_FIRST);
	assert_int_equal(b.e.calls, 1);
	assert_int_equal(b.s->stats.post_held, 1);
}

static void a_wait_sends_what_waits(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	post(&b, SMALL);
	sched_app_look(b.s, &b.wait, 0);
	assert_int_equal(b.e.calls, 1);
}

static void enough_is_sent_at_once(void **state)
{
	struct bed b;
	unsigned posts = 0;

	(void)state;
	open_bed(&b);
	post(&b, ENOUGH);
	assert_int_equal(b.e.calls, 1);
	post(&b, SMALL);
	post(&b, LONG);
	post(&b, SMALL);
	post(&b, LONG);
	assert_int_equal(b.e.calls, 1);
	post(&b, LONG); /* what waits goes along */
	assert_int_equal(b.e.calls, 2);
	assert_true(sched_ring_empty(b.s));
	for (; b.e.calls == 2; posts++)
		post(&b, SMALL);
	assert_in_range(posts, 2, 72);
	assert_int_equal(atomic_load(&b.s->held), 0);
}

/* A server answers one client after the other: no answer begins in a frame of its own. */
static void the_next_queue_waits_while_enough_is_sent(void **state)
{
	struct bed b;
	struct entry next;

	(void)state;
	open_bed(&b);
	next = (struct entry){ .r = { .fn = on_call, .home = b.s } };
	post(&b, LONG);
	post(&b, LONG);
	sched_post_octets(&next.r, LONG);
	assert_int_equal(b.e.calls, 1);
	assert_int_equal(next.calls, 0);
	sched_app_poll(b.s, SCHED_POLL_FIRST);
	assert_int_equal(next.calls, 1);
	sched_post_octets(&next.r, ENOUGH);
	assert_int_equal(next.calls, 2);
	assert_true(sched_ring_empty(b.s));
}

/* Who looks after a program that nobody watches, that sleeps, or that computed behind its posts? */
static void else_nothing_waits(void **state)
{
	struct bed b;
	const struct sched_link without = { .able = true, .fd = { -1, -1, -1 } };
	const struct sched_link with = { .able = true, .fd = { -1, 0, -1 } };

	(void)state;
	open_bed(&b);
	assert_true(sched_may_hold(b.s));
	atomic_store(&b.s->waiter, SCHED_WAITS);
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->app_drives, true);
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->app_drives_steadily, true);
	assert_true(sched_may_hold(b.s));
	atomic_store(&b.s->waiter, SCHED_WAITS); /* that judgement is from before */
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	atomic_store(&b.s->app_sleepers, 1);
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->app_sleepers, 0);
	atomic_store(&b.s->plain_waits, 1);
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->plain_waits, 0);
	atomic_store(&b.s->no_hold, true);
	assert_false(sched_may_hold(b.s));
	atomic_store(&b.s->no_hold, false);
	b.s->wait = without;
	assert_false(sched_may_hold(b.s));
	b.s->wait = with;
	assert_true(sched_may_hold(b.s));
}

static void short_posts_count(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	post(&b, SMALL);
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	post(&b, SMALL);
	post(&b, LONG);
	assert_int_equal(atomic_load(&b.s->app_posts), 2);
}

/* The RX thread has taken over between the question and the post. */
static void nobody_watches_any_more(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	assert_true(sched_may_hold(b.s));
	atomic_store(&b.s->waiter, SCHED_NO_WAITER);
	post(&b, SMALL);
	assert_int_equal(b.e.calls, 1);
	assert_true(sched_ring_empty(b.s));
}

/* ---- a thread that waits for frames (doc/adr/0072) ----------------------------------------- */

/* Another thread of the program sleeps on the link's descriptors. */
static void open_bed_with_waiter(struct bed *b)
{
	open_bed(b);
	atomic_store(&b->s->waiter, SCHED_WAITS);
	atomic_store(&b->s->own_doorbell, IO_ASLEEP_FD);
	b->s->wait.ring = doorbell_ring_of(&b->s->own_doorbell, -1);
}

static void the_first_in_a_while_is_sent_at_once(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_waiter(&b);
	sched_post(&b.e.r);
	atomic_fetch_add(&b.w.now_us, 1000);
	sched_post(&b.e.r);
	assert_int_equal(b.e.calls, 2);
	assert_int_equal(b.s->stats.post_inline, 2);
	assert_int_equal(atomic_load(&b.s->own_doorbell), IO_ASLEEP_FD);
}

static void those_soon_after_it_are_left_to_who_waits(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_waiter(&b);
	sched_post(&b.e.r);
	for (unsigned i = 0; i < 5; i++) {
		atomic_fetch_add(&b.w.now_us, 10);
		sched_post(&b.e.r);
	}
	assert_int_equal(b.e.calls, 1);
	assert_int_equal(atomic_load(&b.s->own_doorbell), IO_AWAKE); /* it was rung */
	sched_app_look(b.s, &b.wait, 0);
	assert_int_equal(b.e.calls, 2);
	assert_true(sched_ring_empty(b.s));
}

/* As when the RX thread last looked, another thread polled without pause. Nobody would send what it
 * holds now, if it computes next. */
static void a_thread_that_polls_beside_it_holds_nothing(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_waiter(&b);
	atomic_store(&b.s->app_drives, true);
	atomic_store(&b.s->app_drives_steadily, true);
	for (unsigned i = 1; i <= 3; i++) {
		atomic_fetch_add(&b.w.now_us, 1000);
		post(&b, SMALL);
		assert_int_equal(b.e.calls, i);
	}
	assert_int_equal(atomic_load(&b.s->held), 0);
}

static void *post_elsewhere(void *arg)
{
	post(arg, SMALL);
	return NULL;
}

/* Another thread waits for completions alone. It would not send what a third one posts; who polls
 * without pause sends its own posts. */
static void who_polls_beside_one_that_waits_alone_holds(void **state)
{
	struct bed b;

	(void)state;
	open_bed(&b);
	sched_app_waits_plainly(b.s, true);
	for (unsigned i = 0; i < 4; i++)
		sched_app_poll(b.s, i > 0);
	atomic_store(&b.s->app_drives_steadily, true);
	fake_in_thread(post_elsewhere, &b);
	assert_int_equal(b.e.calls, 1);
	post(&b, SMALL);
	assert_int_equal(b.e.calls, 1);
	sched_app_poll(b.s, SCHED_POLL_AGAIN);
	assert_int_equal(b.e.calls, 2);
}

/* A descriptor of the program's own ends the wait: it may compute, and not look at the stack. */
static void one_that_stops_waiting_sends_them(void **state)
{
	struct bed b;

	(void)state;
	for (unsigned others_wait = 0; others_wait < 2; others_wait++) {
		open_bed_with_waiter(&b);
		atomic_store(&b.s->plain_waits, others_wait);
		sched_post(&b.e.r);
		sched_post(&b.e.r);
		assert_int_equal(b.e.calls, 1);
		sched_app_wait_end(b.s);
		assert_int_equal(b.e.calls, 2);
		assert_true(sched_ring_empty(b.s));
	}
}

static void a_wait_does_not_begin_before_them(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_waiter(&b);
	sched_post(&b.e.r);
	sched_post(&b.e.r);
	atomic_store(&b.s->waiter, SCHED_AWAY);
	assert_int_equal(sched_app_wait_begin(b.s, &b.wait), UW_WAIT_AGAIN);
	assert_int_equal(b.e.calls, 2);
}

/* A frame costs no system call there. */
static void over_shared_memory_all_are_sent_at_once(void **state)
{
	struct bed b;

	(void)state;
	open_bed_with_waiter(&b);
	b.s->wait.fd[1] = -1;
	sched_post(&b.e.r);
	sched_post(&b.e.r);
	assert_int_equal(b.e.calls, 2);
}

/* A queue and the thread that puts something into it before each post. */
struct poster {
	struct ring_entry r; /* first */
	_Atomic unsigned put;
	_Atomic bool stop;
	unsigned seen; /* under the lock */
};

static void on_queue(struct ring_entry *r)
{
	struct poster *p = (struct poster *)r;

	p->seen = atomic_load_explicit(&p->put, memory_order_relaxed);
}

static void *post_often(void *arg)
{
	struct poster *p = arg;

	while (!atomic_load(&p->stop)) {
		atomic_fetch_add_explicit(&p->put, 1, memory_order_relaxed);
		sched_post(&p->r);
	}
	return NULL;
}

/* As whoever changes the state does: the state first, then the ring. */
static void become(struct sched *s, enum sched_waiter state)
{
	atomic_store(&s->waiter, state);
	if (!sched_ring_empty(s) && sched_trylock(s))
		sched_unlock(s);
}

static void no_post_stays_behind_one_that_stops_waiting(void **state)
{
	struct bed b;
	struct poster p = { .r.fn = on_queue };
	pthread_t t;

	(void)state;
	open_bed_with_waiter(&b);
	atomic_store(&p.r.home, b.s);
	assert_int_equal(pthread_create(&t, NULL, post_often, &p), 0);
	for (unsigned i = 0; i < SWITCHES; i++) {
		become(b.s, SCHED_WAITS);
		atomic_store(&b.s->own_doorbell, IO_ASLEEP_FD);
		become(b.s, i % 2 ? SCHED_AWAY : SCHED_NO_WAITER);
	}
	atomic_store(&p.stop, true);
	pthread_join(t, NULL);
	assert_int_equal(p.seen, atomic_load(&p.put));
	assert_true(sched_ring_empty(b.s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_sends_what_waits),
		cmocka_unit_test(a_wait_sends_what_waits),
		cmocka_unit_test(enough_is_sent_at_once),
		cmocka_unit_test(the_next_queue_waits_while_enough_is_sent),
		cmocka_unit_test(else_nothing_waits),
		cmocka_unit_test(nobody_watches_any_more),
		cmocka_unit_test(short_posts_count),
		cmocka_unit_test(the_first_in_a_while_is_sent_at_once),
		cmocka_unit_test(those_soon_after_it_are_left_to_who_waits),
		cmocka_unit_test(a_thread_that_polls_beside_it_holds_nothing),
		cmocka_unit_test(who_polls_beside_one_that_waits_alone_holds),
		cmocka_unit_test(one_that_stops_waiting_sends_them),
		cmocka_unit_test(a_wait_does_not_begin_before_them),
		cmocka_unit_test(over_shared_memory_all_are_sent_at_once),
		cmocka_unit_test(no_post_stays_behind_one_that_stops_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
