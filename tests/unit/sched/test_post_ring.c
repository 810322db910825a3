/* SPDX-License-Identifier: BSD-3-Clause */
/* The post ring: what is posted is seen to, by the poster or by who has the lock. */
#include "fake.h"

#define POSTERS 3u
#define POSTS	20000u

struct entry {
	struct ring_entry r; /* first */
	struct fake *f;
	unsigned calls;
	bool lock_was_taken;
};

static void on_call(struct ring_entry *r)
{
	struct entry *e = (struct entry *)r;

	e->calls++;
	e->lock_was_taken = !fake_lock_is_free(atomic_load(&r->home));
}

static struct entry entry_of(struct fake *f)
{
	return (struct entry){ .r = { .fn = on_call, .home = &f->s }, .f = f };
}

static void post_later(struct ring_entry *r)
{
	sched_kick_later(sched_push(r));
}

static void a_free_stack_is_run_by_the_poster(void **state)
{
	struct fakes w;
	struct entry e;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	e = entry_of(&w.f[0]);
	sched_post(&e.r);
	assert_int_equal(e.calls, 1);
	assert_true(e.lock_was_taken);
	assert_int_equal(w.f[0].flushes, 1);
	assert_int_equal(w.f[0].s.stats.post_inline, 1);
	assert_true(fake_lock_is_free(&w.f[0].s));
}

static void *post_it(void *arg)
{
	sched_post(arg);
	return NULL;
}

static void what_a_holder_keeps_waiting_he_sees_to(void **state)
{
	struct fakes w;
	struct entry e;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	e = entry_of(&w.f[0]);
	sched_lock(&w.f[0].s);
	fake_in_thread(post_it, &e.r);
	fake_in_thread(post_it, &e.r); /* it is there already */
	assert_int_equal(e.calls, 0);
	assert_false(sched_ring_empty(&w.f[0].s));
	sched_unlock(&w.f[0].s);
	assert_int_equal(e.calls, 1);
	assert_int_equal(w.f[0].s.stats.post_ring, 1);
	assert_int_equal(w.f[0].flushes, 1);
	assert_true(sched_ring_empty(&w.f[0].s));
}

static void who_has_the_lock_is_not_waited_for(void **state)
{
	struct fakes w;
	struct entry e;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	e = entry_of(&w.f[0]);
	sched_kick(sched_push(&e.r));
	assert_int_equal(e.calls, 1);
	atomic_store(&w.f[0].s.lock, TAKEN_BY_ANOTHER);
	sched_kick(sched_push(&e.r));
	assert_int_equal(e.calls, 1);
	sched_unlock(&w.f[0].s);
	assert_int_equal(e.calls, 2);
}

/* Behind those that wait on the ring nobody is run inline: their order would change. */
static void a_ring_that_is_not_empty_is_seen_to_first(void **state)
{
	struct fakes w;
	struct entry a, b;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	a = entry_of(&w.f[0]);
	b = entry_of(&w.f[0]);
	post_later(&a.r);
	sched_post(&b.r);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 1);
	assert_int_equal(w.f[0].s.stats.post_ring, 2);
	assert_int_equal(w.f[0].s.stats.post_inline, 0);
}

static void rouse(void *stack)
{
	atomic_fetch_add(&((struct fake *)stack)->roused, 1);
}

/* Models c1: the RX thread sends, and is woken on the doorbell or in the transport. */
static void it_is_left_to_the_rx_thread(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct entry e;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_C1);
	e = entry_of(f);
	sched_post(&e.r); /* not started: nobody else would */
	assert_int_equal(e.calls, 1);
	atomic_store(&f->s.started, true);
	atomic_store(&f->s.own_doorbell, IO_ASLEEP);
	sched_post(&e.r);
	assert_int_equal(e.calls, 1);
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_AWAKE);
	f->ops.rouse = rouse;
	sched_post(&e.r);
	assert_int_equal(atomic_load(&f->roused), 1);
	sched_lock(&f->s);
	sched_unlock(&f->s);
	assert_int_equal(e.calls, 2);
}

static void a_post_inline_wakes_who_sleeps_for_a_completion(void **state)
{
	struct fakes w;
	struct fake *f = &w.f[0];
	struct entry e;

	(void)state;
	fakes_open(&w, 1, UW_THREADS_ADAPTIVE);
	e = entry_of(f);
	atomic_store(&f->s.own_doorbell, IO_ASLEEP);
	sched_post(&e.r);
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_ASLEEP);
	atomic_store(&f->s.app_sleepers, 1);
	sched_post(&e.r);
	assert_int_equal(atomic_load(&f->s.own_doorbell), IO_AWAKE);
}

/* ---- several stacks ----------------------------------------------------------------------- */

static void later_it_goes_to_its_own_stack(void **state)
{
	struct fakes w;
	struct entry e;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	e = entry_of(&w.f[2]);
	atomic_store(&w.f[2].s.own_doorbell, IO_ASLEEP);
	sched_lock(&w.f[0].s);
	post_later(&e.r);
	assert_int_equal(e.calls, 0);
	assert_int_equal(atomic_load(&w.f[2].s.own_doorbell), IO_AWAKE);
	assert_false(sched_ring_empty(&w.f[2].s));
	sched_unlock(&w.f[0].s);
	assert_int_equal(e.calls, 0);
	assert_true(sched_trylock(&w.f[2].s));
	sched_unlock(&w.f[2].s);
	assert_int_equal(e.calls, 1);
}

/* An entry whose queue has become another stack's is handed on, and never called by the first. */
static void what_has_moved_is_handed_on(void **state)
{
	struct fakes w;
	struct entry e;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	e = entry_of(&w.f[0]);
	post_later(&e.r);
	atomic_store(&e.r.home, &w.f[1].s);
	sched_lock(&w.f[0].s);
	sched_drain(&w.f[0].s);
	sched_unlock(&w.f[0].s);
	assert_int_equal(e.calls, 0);
	assert_false(sched_ring_empty(&w.f[1].s));
	sched_lock(&w.f[1].s);
	sched_unlock(&w.f[1].s);
	assert_int_equal(e.calls, 1);
}

static void all_rings_are_emptied_under_all_locks(void **state)
{
	struct fakes w;
	struct entry e[FAKES];

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	sched_lock_all(&w.f[0].s);
	for (unsigned i = 0; i < FAKES; i++) {
		e[i] = entry_of(&w.f[i]);
		post_later(&e[i].r);
		/* to the one before: the last ring has been emptied when it goes to the first */
		atomic_store(&e[i].r.home, &w.f[(i + FAKES - 1) % FAKES].s);
	}
	sched_drain_all(&w.f[0].s);
	for (unsigned i = 0; i < FAKES; i++) {
		assert_int_equal(e[i].calls, 1);
		assert_false(atomic_load(&e[i].r.queued));
	}
	sched_unlock_all(&w.f[0].s);
}

struct chain {
	struct ring_entry r; /* first */
	struct ring_entry *next;
};

static void wake_the_next(struct ring_entry *r)
{
	struct ring_entry *next = ((struct chain *)r)->next;

	if (next)
		post_later(next);
}

/* What others queue again while the rings are emptied, too. */
static void what_is_forgotten_is_on_no_ring(void **state)
{
	struct fakes w;
	struct chain c[3];

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	for (unsigned i = 0; i < COUNT(c); i++)
		c[i] = (struct chain){ .r = { .fn = wake_the_next, .home = &w.f[0].s },
				       .next = i + 1 < COUNT(c) ? &c[i + 1].r : NULL };
	sched_lock_all(&w.f[0].s);
	post_later(&c[0].r);
	sched_drain_all(&w.f[0].s);
	sched_forget(&c[2].r);
	for (unsigned i = 0; i < COUNT(c); i++)
		assert_false(atomic_load(&c[i].r.queued));
	assert_true(sched_ring_empty(&w.f[0].s));
	sched_forget(&c[2].r); /* it is on none */
	sched_unlock_all(&w.f[0].s);
}

/* ---- threads ------------------------------------------------------------------------------ */

/* A queue: who posts puts something in before; whoever is called takes out all that is there. */
struct queue {
	struct ring_entry r; /* first */
	_Atomic unsigned put;
	unsigned seen; /* under the lock of its home */
};

static void on_queue(struct ring_entry *r)
{
	struct queue *q = (struct queue *)r;

	q->seen = atomic_load_explicit(&q->put, memory_order_relaxed);
}

static void *post_often(void *arg)
{
	struct queue *q = arg;

	for (unsigned i = 0; i < POSTS; i++) {
		atomic_fetch_add_explicit(&q->put, 1, memory_order_relaxed);
		sched_post(&q->r);
	}
	return NULL;
}

/* Whatever post comes last, somebody has looked at its queue after it. */
static void no_post_is_forgotten(enum uw_threads model)
{
	struct fakes w;
	struct queue q[2] = { { .r.fn = on_queue }, { .r.fn = on_queue } };
	pthread_t t[2 * POSTERS];

	fakes_open(&w, 1, model);
	for (unsigned i = 0; i < COUNT(q); i++)
		atomic_store(&q[i].r.home, &w.f[0].s);
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, post_often, &q[i % 2]), 0);
	for (unsigned i = 0; i < COUNT(t); i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < COUNT(q); i++)
		assert_int_equal(q[i].seen, POSTERS * POSTS);
	assert_true(sched_ring_empty(&w.f[0].s));
}

static void no_post_of_any_thread_is_forgotten(void **state)
{
	(void)state;
	no_post_is_forgotten(UW_THREADS_ADAPTIVE);
	no_post_is_forgotten(UW_THREADS_C3);
}

struct mover {
	struct fakes *w;
	struct queue *q;
	_Atomic bool stop;
};

static void *move_it_about(void *arg)
{
	struct mover *m = arg;

	for (unsigned i = 0; !atomic_load(&m->stop); i++) {
		sched_lock_all(&m->w->f[0].s);
		atomic_store_explicit(&m->q->r.home, &m->w->f[i % FAKES].s, memory_order_release);
		sched_unlock_all(&m->w->f[0].s);
	}
	return NULL;
}

/* The same while the queue goes from stack to stack. */
static void no_post_is_forgotten_on_the_way(void **state)
{
	struct fakes w;
	struct queue q = { .r.fn = on_queue };
	struct mover m = { .w = &w, .q = &q };
	pthread_t t[POSTERS], mover;

	(void)state;
	fakes_open(&w, FAKES, UW_THREADS_C3);
	atomic_store(&q.r.home, &w.f[0].s);
	assert_int_equal(pthread_create(&mover, NULL, move_it_about, &m), 0);
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, post_often, &q), 0);
	for (unsigned i = 0; i < COUNT(t); i++)
		pthread_join(t[i], NULL);
	atomic_store(&m.stop, true);
	pthread_join(mover, NULL);
	/* what was handed on is the RX threads', which there are none of here */
	sched_lock_all(&w.f[0].s);
	sched_drain_all(&w.f[0].s);
	sched_unlock_all(&w.f[0].s);
	assert_int_equal(q.seen, POSTERS * POSTS);
	assert_false(atomic_load(&q.r.queued));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_stack_is_run_by_the_poster),
		cmocka_unit_test(what_a_holder_keeps_waiting_he_sees_to),
		cmocka_unit_test(who_has_the_lock_is_not_waited_for),
		cmocka_unit_test(a_ring_that_is_not_empty_is_seen_to_first),
		cmocka_unit_test(it_is_left_to_the_rx_thread),
		cmocka_unit_test(a_post_inline_wakes_who_sleeps_for_a_completion),
		cmocka_unit_test(later_it_goes_to_its_own_stack),
		cmocka_unit_test(what_has_moved_is_handed_on),
		cmocka_unit_test(all_rings_are_emptied_under_all_locks),
		cmocka_unit_test(what_is_forgotten_is_on_no_ring),
		cmocka_unit_test(no_post_of_any_thread_is_forgotten),
		cmocka_unit_test(no_post_is_forgotten_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
