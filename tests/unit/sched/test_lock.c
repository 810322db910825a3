/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack lock: who gets it, what happens when it is let go, and thread cancellation. */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "fake.h"

#define TURNS 20000u

/* ---- taking it ---------------------------------------------------------------------------- */

static void it_has_one_holder(void **state)
{
	struct fakes w;
	struct sched *s = &w.f[0].s;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(s);
	assert_false(sched_trylock(s));
	assert_false(sched_lock_within(s, 1000));
	assert_int_equal(atomic_load(&s->waiters), 0);
	sched_unlock(s);
	assert_true(fake_lock_is_free(s));
	assert_true(sched_trylock(s));
	sched_unlock(s);
	assert_true(sched_lock_within(s, 1000));
	sched_unlock(s);
	assert_true(fake_lock_is_free(s));
}

struct counter {
	struct sched *s;
	unsigned n;
};

static void *count(void *arg)
{
	struct counter *c = arg;

	for (unsigned i = 0; i < TURNS; i++) {
		sched_lock(c->s);
		c->n++;
		sched_unlock(c->s);
	}
	return NULL;
}

static void it_excludes_all_others(void **state)
{
	struct fakes w;
	struct counter c = { .s = &w.f[0].s };
	pthread_t t[3];

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, count, &c), 0);
	for (unsigned i = 0; i < COUNT(t); i++)
		pthread_join(t[i], NULL);
	assert_int_equal(c.n, COUNT(t) * TURNS);
	assert_true(fake_lock_is_free(c.s));
	assert_int_equal(atomic_load(&c.s->waiters), 0);
}

/* ---- letting it go ------------------------------------------------------------------------ */

static void *ask(void *arg)
{
	assert_false(sched_trylock_or_ask(arg));
	return NULL;
}

/* A sleeper that did not get the lock has its holder look for frames. */
static void the_holder_looks_for_who_could_not(void **state)
{
	struct fakes w;
	struct sched *s = &w.f[0].s;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(s);
	fake_in_thread(ask, s);
	assert_int_equal(w.f[0].runs, 0);
	sched_unlock(s);
	assert_int_equal(w.f[0].runs, 1);
	assert_true(w.f[0].lock_was_taken);
	assert_int_equal(s->stats.lock_looks, 1);
	sched_lock(s);
	sched_unlock(s);
	assert_int_equal(w.f[0].runs, 1); /* once */
}

/* A burst of the link. */
static unsigned run_two(void *stack, bool comes_back)
{
	struct fake *f = stack;

	(void)comes_back;
	f->runs++;
	atomic_fetch_sub(&f->frames, 2);
	return 2;
}

/* Nobody rings for what came before the sleeper said that it sleeps. */
static void who_asked_is_woken_if_frames_are_left(void **state)
{
	struct fakes w;
	struct sched *s = &w.f[0].s;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	w.f[0].ops.run = run_two;
	for (unsigned frames = 2; frames < 4; frames++) {
		atomic_store(&w.f[0].frames, frames);
		sched_lock(s);
		fake_in_thread(ask, s);
		atomic_store(&s->own_doorbell, IO_ASLEEP);
		sched_unlock(s);
		assert_int_equal(atomic_load(&s->own_doorbell), frames > 2 ? IO_AWAKE : IO_ASLEEP);
	}
}

struct later {
	struct sched *s;
	unsigned calls;
	bool lock_was_free;
};

static void later(void *arg)
{
	struct later *l = arg;

	l->calls++;
	l->lock_was_free = fake_lock_is_free(l->s);
}

static void deferred_calls_are_made_without_the_lock(void **state)
{
	struct fakes w;
	struct later l = { .s = &w.f[0].s };

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(l.s);
	for (unsigned i = 0; i < AFTER_CALLS; i++)
		assert_true(sched_defer(l.s, later, &l));
	assert_false(sched_defer(l.s, later, &l));
	assert_int_equal(l.calls, 0);
	sched_unlock(l.s);
	assert_int_equal(l.calls, AFTER_CALLS);
	assert_true(l.lock_was_free);
	sched_lock(l.s);
	sched_unlock(l.s);
	assert_int_equal(l.calls, AFTER_CALLS);
}

/* So that those that come do not overtake them. */
static void those_that_fill_it_are_made_at_once(void **state)
{
	struct fakes w;
	struct later l = { .s = &w.f[0].s };

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(l.s);
	for (unsigned i = 0; i < AFTER_CALLS; i++)
		assert_true(sched_defer_in_row(l.s, later, &l));
	assert_int_equal(l.calls, 0);
	assert_true(sched_defer_in_row(l.s, later, &l));
	assert_int_equal(l.calls, AFTER_CALLS);
	sched_unlock(l.s);
	assert_int_equal(l.calls, AFTER_CALLS + 1);
}

struct slow {
	struct sched *s;
	unsigned made;	    /* calls behind the slow one */
	bool slow_was_over; /* when they were made */
	sem_t in, on;	    /* the slow one is being made; it may end */
	_Atomic bool over;
};

static void slow_call(void *arg)
{
	struct slow *c = arg;

	sem_post(&c->in);
	sem_wait(&c->on);
	atomic_store(&c->over, true);
}

static void call_behind(void *arg)
{
	struct slow *c = arg;

	c->made++;
	c->slow_was_over = atomic_load(&c->over);
}

static void *defer_slow(void *arg)
{
	struct slow *c = arg;

	sched_lock(c->s);
	assert_true(sched_defer_in_row(c->s, slow_call, c));
	sched_unlock(c->s);
	return NULL;
}

/* As an event of a channel, which the program expects before those that come later. */
static void a_call_does_not_overtake_one_that_is_being_made(void **state)
{
	struct fakes w;
	struct slow c = { .s = &w.f[0].s };
	pthread_t t;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sem_init(&c.in, 0, 0);
	sem_init(&c.on, 0, 0);
	assert_int_equal(pthread_create(&t, NULL, defer_slow, &c), 0);
	sem_wait(&c.in);
	sched_lock(c.s);
	for (unsigned i = 0; i < AFTER_CALLS; i++)
		assert_true(sched_defer_in_row(c.s, call_behind, &c));
	assert_false(sched_defer_in_row(c.s, call_behind, &c));
	sched_unlock(c.s);
	assert_int_equal(c.made, 0);
	sem_post(&c.on);
	pthread_join(t, NULL);
	assert_int_equal(c.made, AFTER_CALLS);
	assert_true(c.slow_was_over);
}

static void wish(void *arg)
{
	atomic_store(&((struct later *)arg)->s->look, true);
}

/* What was asked for while the lock was being let go is looked at once more. */
static void it_looks_again_after_letting_go(void **state)
{
	struct fakes w;
	struct later l = { .s = &w.f[0].s };

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(l.s);
	assert_true(sched_defer(l.s, wish, &l));
	sched_unlock(l.s);
	assert_int_equal(w.f[0].runs, 1);
	assert_true(fake_lock_is_free(l.s));
}

static void count_once(void *arg)
{
	struct counter *c = arg;

	sched_lock(c->s);
	c->n++;
	sched_unlock(c->s);
}

static void deferred_calls_may_take_the_lock(void **state)
{
	struct fakes w;
	struct counter c = { .s = &w.f[0].s };

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(c.s);
	assert_true(sched_defer(c.s, count_once, &c));
	sched_unlock(c.s);
	assert_int_equal(c.n, 1);
}

/* ---- peers to wake ------------------------------------------------------------------------ */

static void peers_are_woken_when_it_is_free(void **state)
{
	_Atomic uint32_t bell[AFTER_WAKES + 1] = { 0 };
	struct fakes w;
	struct sched *s = &w.f[0].s;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	sched_lock(s);
	for (unsigned i = 0; i < AFTER_WAKES; i++)
		sched_wake_peer(s, &(struct io_ring){ .word = &bell[i] }, IO_ASLEEP);
	assert_int_equal(s->after.n_wakes, AFTER_WAKES);
	/* no room: the others are woken at once */
	sched_wake_peer(s, &(struct io_ring){ .word = &bell[AFTER_WAKES] }, IO_ASLEEP);
	assert_int_equal(s->after.n_wakes, 1);
	assert_ptr_equal(s->after.wakes[0].ring.word, &bell[AFTER_WAKES]);
	sched_unlock(s);
	assert_int_equal(s->after.n_wakes, 0);
}

struct sleeper {
	_Atomic uint32_t word;
	_Atomic bool ended;
};

static void *sleep_on(void *arg)
{
	struct sleeper *p = arg;

	while (atomic_load(&p->word) == IO_ASLEEP)
		sched_futex_wait(&p->word, IO_ASLEEP, 10000000);
	atomic_store(&p->ended, true);
	return NULL;
}

/* As a link does it: the word changes, and its sleeper is woken once the lock is free. */
static void a_sleeping_peer_wakes_up(void **state)
{
	struct sleeper p = { .word = IO_ASLEEP };
	struct fakes w;
	struct sched *s = &w.f[0].s;
	pthread_t t;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	assert_int_equal(pthread_create(&t, NULL, sleep_on, &p), 0);
	sched_lock(s);
	atomic_store(&p.word, IO_RUNG);
	sched_wake_peer(s, &(struct io_ring){ .word = &p.word }, IO_ASLEEP);
	sched_unlock(s);
	pthread_join(t, NULL);
	assert_true(atomic_load(&p.ended));
}

static void only_a_sleeping_doorbell_is_rung(void **state)
{
	struct fakes w;
	struct sched *s = &w.f[0].s;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	atomic_store(&s->own_doorbell, IO_ASLEEP);
	sched_wake(s);
	assert_int_equal(atomic_load(&s->own_doorbell), IO_AWAKE);
	atomic_store(&s->own_doorbell, IO_RUNG + 3);
	sched_wake(s);
	assert_int_equal(atomic_load(&s->own_doorbell), IO_RUNG + 3);
}

/* ---- several stacks ----------------------------------------------------------------------- */

static void *take_none(void *arg)
{
	struct fakes *w = arg;

	for (unsigned i = 0; i < FAKES; i++)
		assert_false(sched_trylock(&w->f[i].s));
	return NULL;
}

static void all_stacks_are_locked_at_once(void **state)
{
	struct fakes w;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	assert_true(sched_is_one_of_several(&w.f[2].s));
	sched_lock_all(&w.f[2].s); /* whichever is named */
	fake_in_thread(take_none, &w);
	sched_unlock_all(&w.f[1].s);
	for (unsigned i = 0; i < FAKES; i++) {
		assert_true(fake_lock_is_free(&w.f[i].s));
		assert_int_equal(w.f[i].flushes, 1);
	}
}

static void *lock_all_often(void *arg)
{
	struct fakes *w = arg;

	for (unsigned i = 0; i < TURNS / 10; i++) {
		sched_lock_all(&w->f[i % FAKES].s);
		sched_unlock_all(&w->f[i % FAKES].s);
	}
	return NULL;
}

/* In the order of their index, whoever does it: else this would never end. */
static void threads_that_lock_all_do_not_wait_for_each_other_for_ever(void **state)
{
	struct fakes w;
	pthread_t t[3];

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	alarm(60);
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, lock_all_often, &w), 0);
	for (unsigned i = 0; i < COUNT(t); i++)
		pthread_join(t[i], NULL);
	alarm(0);
	for (unsigned i = 0; i < FAKES; i++)
		assert_int_equal(w.f[i].flushes, COUNT(t) * (TURNS / 10));
}

/* ---- cancellation ------------------------------------------------------------------------- */

struct victim {
	struct fakes w;
	void (*take)(struct victim *v);
	void (*let_go)(struct victim *v);
	sem_t holds, cancelled;
	_Atomic bool past; /* a cancellation point, with the lock */
};

static void take_one(struct victim *v)
{
	sched_lock(&v->w.f[0].s);
}

static void try_one(struct victim *v)
{
	assert_true(sched_trylock(&v->w.f[0].s));
}

static void take_one_within(struct victim *v)
{
	assert_true(sched_lock_within(&v->w.f[0].s, 1000));
}

static void take_all(struct victim *v)
{
	sched_lock_all(&v->w.f[0].s);
}

static void let_one_go(struct victim *v)
{
	sched_unlock(&v->w.f[0].s);
}

static void let_all_go(struct victim *v)
{
	sched_unlock_all(&v->w.f[0].s);
}

static void *be_cancelled(void *arg)
{
	struct victim *v = arg;

	v->take(v);
	sem_post(&v->holds);
	while (sem_wait(
		&v->cancelled)) /* a cancellation point, as a transport's system calls are */
		assert_int_equal(errno, EINTR);
	pthread_testcancel();
	atomic_store(&v->past, true);
	v->let_go(v);
	pthread_testcancel(); /* now it may end */
	return NULL;
}

/* A thread is cancelled while it holds the lock, in a cancellation point: it ends once it has let
 * it go, and others get it. */
static void cancel_holder(void (*take)(struct victim *), void (*let_go)(struct victim *))
{
	struct victim *v = calloc(1, sizeof(*v));
	void *result;
	pthread_t t;

	assert_non_null(v);
	fakes_open(&v->w, FAKES, UW_THREADS_ADAPTIVE);
	v->take = take;
	v->let_go = let_go;
	sem_init(&v->holds, 0, 0);
	sem_init(&v->cancelled, 0, 0);
	assert_int_equal(pthread_create(&t, NULL, be_cancelled, v), 0);
	sem_wait(&v->holds);
	assert_int_equal(pthread_cancel(t), 0);
	sem_post(&v->cancelled);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(atomic_load(&v->past));
	for (unsigned i = 0; i < FAKES; i++)
		assert_true(fake_lock_is_free(&v->w.f[i].s));
	free(v);
}

static void a_holder_is_not_cancelled(void **state)
{
	(void)state;
	cancel_holder(take_one, let_one_go);
	cancel_holder(try_one, let_one_go);
	cancel_holder(take_one_within, let_one_go);
	cancel_holder(take_all, let_all_go);
}

static int cancel_state(void)
{
	int was;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &was);
	pthread_setcancelstate(was, NULL);
	return was;
}

static void *lock_all_to_fork(void *s)
{
	bool got = sched_lock_all_to_fork(s);

	if (got)
		sched_unlock_all(s);
	return got ? s : NULL;
}

/* Who holds one, as a signal handler on top of it does, is not to wait for it, and takes none. */
static void a_fork_does_not_wait_for_its_own_thread(void **state)
{
	struct fakes w;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_ADAPTIVE);
	for (unsigned i = 0; i < FAKES; i++) {
		sched_lock(&w.f[i].s);
		assert_null(lock_all_to_fork(&w.f[0].s));
		for (unsigned k = 0; k < FAKES; k++)
			assert_int_equal(fake_lock_is_free(&w.f[k].s), k != i);
		/* also while another thread waits for it */
		atomic_fetch_or(&w.f[i].s.lock, SCHED_WANTED);
		assert_null(lock_all_to_fork(&w.f[0].s));
		sched_unlock(&w.f[i].s);
	}
	assert_non_null(lock_all_to_fork(&w.f[0].s));
}

/* Who does not get the lock, or had cancellation off before, finds it as it was. */
static void the_state_of_cancellation_comes_back(void **state)
{
	struct fakes w;
	struct sched *s = &w.f[0].s;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_ADAPTIVE);
	atomic_store(&s->lock, TAKEN_BY_ANOTHER);
	assert_false(sched_trylock(s));
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	assert_false(sched_lock_within(s, 100));
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	assert_false(sched_trylock_or_ask(s));
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	atomic_store(&s->lock, SCHED_FREE);
	sched_lock_all(s);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	sched_unlock_all(s);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sched_lock_all(s);
	sched_unlock_all(s);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

/* ---- fork --------------------------------------------------------------------------------- */

static void post_later(struct ring_entry *r)
{
	sched_kick_later(sched_push(r));
}

static void never(struct ring_entry *r)
{
	(void)r;
	fail();
}

static void a_forked_child_starts_with_free_locks_and_nothing_to_do(void **state)
{
	struct ring_entry r = { .fn = never };
	_Atomic uint32_t bell = 0;
	struct sched_ops nothing = { 0 };
	struct fakes w;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_ADAPTIVE);
	atomic_store(&w.f[1].s.started, true);
	atomic_store(&w.f[1].s.app_drives, true);
	atomic_store(&w.f[1].s.doorbell, &bell);
	sched_lock_all(&w.f[0].s);
	atomic_store(&r.home, &w.f[1].s);
	post_later(&r); /* another thread's, in the middle of a post */
	sched_wake_peer(&w.f[2].s, &(struct io_ring){ .word = &bell }, IO_ASLEEP);
	assert_true(sched_defer_in_row(&w.f[0].s, later, NULL));
	atomic_store(&w.f[0].s.row.busy, true); /* by a thread that the child does not have */
	sched_after_fork(&w.f[0].s, &nothing);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	for (unsigned i = 0; i < FAKES; i++) {
		struct sched *s = &w.f[i].s;

		assert_true(fake_lock_is_free(s));
		assert_true(sched_ring_empty(s));
		assert_ptr_equal(s->ops, &nothing);
		assert_ptr_equal(atomic_load(&s->doorbell), &s->own_doorbell);
		assert_false(atomic_load(&s->started) || atomic_load(&s->app_drives));
		assert_int_equal(s->after.n_wakes + s->after.n_calls, 0);
		assert_false(after_row_is_due(&s->row) || atomic_load(&s->row.busy));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_one_holder),
		cmocka_unit_test(it_excludes_all_others),
		cmocka_unit_test(the_holder_looks_for_who_could_not),
		cmocka_unit_test(who_asked_is_woken_if_frames_are_left),
		cmocka_unit_test(deferred_calls_are_made_without_the_lock),
		cmocka_unit_test(those_that_fill_it_are_made_at_once),
		cmocka_unit_test(a_call_does_not_overtake_one_that_is_being_made),
		cmocka_unit_test(it_looks_again_after_letting_go),
		cmocka_unit_test(deferred_calls_may_take_the_lock),
		cmocka_unit_test(peers_are_woken_when_it_is_free),
		cmocka_unit_test(a_sleeping_peer_wakes_up),
		cmocka_unit_test(only_a_sleeping_doorbell_is_rung),
		cmocka_unit_test(all_stacks_are_locked_at_once),
		cmocka_unit_test(threads_that_lock_all_do_not_wait_for_each_other_for_ever),
		cmocka_unit_test(a_holder_is_not_cancelled),
		cmocka_unit_test(the_state_of_cancellation_comes_back),
		cmocka_unit_test(a_fork_does_not_wait_for_its_own_thread),
		cmocka_unit_test(a_forked_child_starts_with_free_locks_and_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
