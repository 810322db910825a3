/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: notifies, those that are held back, and what an overflow tells. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "verbs/verbs.h"
#include "world.h"

#define DEPTH	16u
#define RESIZED (64 * DEPTH) /* new memory takes a while */

struct bench {
	struct world *w;
	struct verbs v;
	struct uw_cq *cq;
	unsigned notified, failed;
	unsigned locked;      /* of the notifies: under the stack's lock */
	_Atomic bool entered; /* a notify that stays ... */
	_Atomic bool stays;   /* ... as long as this is set */
};

static void on_notify(void *ctx)
{
	struct bench *b = ctx;

	b->notified++;
	b->locked += atomic_load(&world_stack(b->w, 0)->sched.lock) != SCHED_FREE;
	atomic_store(&b->entered, true);
	while (atomic_load(&b->stays))
		sched_yield();
}

static void on_error(void *ctx)
{
	((struct bench *)ctx)->failed++;
}

static struct bench *open_bench(unsigned n_stacks)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct uw_cq_attr a = {
		.depth = DEPTH, .notify = on_notify, .error = on_error, .ctx = b, .stamps = true
	};

	assert_non_null(b);
	b->w = world_open(n_stacks);
	assert_status(verbs_init(&b->v, &b->w->d), UW_OK);
	assert_int_equal(verbs_make_cq(&b->v, &a, &b->cq), 0);
	return b;
}

static void close_bench(struct bench *b)
{
	assert_int_equal(uw_cq_destroy(b->cq), 0);
	assert_null(b->v.cqs);
	assert_null(b->v.moderated);
	verbs_free(&b->v);
	world_close(b->w);
	free(b);
}

/* As the stack does, under its lock. */
static bool push(struct bench *b, uint32_t qpn, uint64_t wr_id)
{
	struct sched *s = &world_stack(b->w, 0)->sched;
	struct cqe *e;

	sched_lock(s);
	e = cq_begin(&b->cq->cq);
	if (e) {
		e->wc = (struct uw_wc){ .wr_id = wr_id, .qp_num = qpn };
		cq_end_received(&b->cq->cq, e, NULL, false);
	}
	sched_unlock(s);
	return e;
}

static void run(struct bench *b)
{
	struct sched *s = &world_stack(b->w, 0)->sched;

	sched_lock(s);
	verbs_run(&b->v, world_stack(b->w, 0));
	sched_unlock(s);
}

static unsigned take_all(struct bench *b)
{
	struct uw_wc wc[2 * DEPTH];

	return cq_take(&b->cq->cq, COUNT(wc), wc, NULL);
}

/* ---- moderation --------------------------------------------------------------------------------
 */

static void a_notify_comes_at_once(void **state)
{
	struct bench *b = open_bench(1);

	(void)state;
	assert_true(push(b, 2, 1)); /* not armed */
	assert_int_equal(b->notified, 0);
	assert_int_equal(uw_cq_arm(b->cq, false), 0);
	assert_true(push(b, 2, 2));
	assert_true(push(b, 2, 3));
	assert_int_equal(b->notified, 1);
	take_all(b);
	close_bench(b);
}

static void one_that_is_held_back_comes_with_enough_completions(void **state)
{
	struct bench *b = open_bench(1);

	(void)state;
	assert_int_equal(uw_cq_moderate(b->cq, 3, 500), 0);
	assert_int_equal(uw_cq_arm(b->cq, false), 0);
	assert_true(push(b, 2, 1));
	run(b);
	assert_int_equal(b->notified, 0);
	assert_ptr_equal(b->v.moderated, b->cq);
	assert_int_equal(verbs_next_due_us(&b->v, world_stack(b->w, 0)), b->w->now_us + 500);
	assert_true(push(b, 2, 2));
	run(b);
	assert_int_equal(b->notified, 0);
	assert_true(push(b, 2, 3));
	run(b);
	assert_int_equal(b->notified, 1);
	assert_null(b->v.moderated);
	assert_int_equal(verbs_next_due_us(&b->v, world_stack(b->w, 0)), UINT64_MAX);
	run(b);
	assert_int_equal(b->notified, 1);
	close_bench(b);
}

static void or_when_its_time_is_over(void **state)
{
	struct bench *b = open_bench(1);

	(void)state;
	assert_int_equal(uw_cq_moderate(b->cq, 3, 500), 0);
	assert_int_equal(uw_cq_arm(b->cq, false), 0);
	assert_true(push(b, 2, 1));
	b->w->now_us += 499;
	run(b);
	assert_int_equal(b->notified, 0);
	b->w->now_us += 1;
	run(b);
	assert_int_equal(b->notified, 1);
	assert_int_equal(b->cq->due_us, 0);
	close_bench(b);
}

static void a_count_of_0_ends_it(void **state)
{
	struct bench *b = open_bench(1);

	(void)state;
	assert_int_equal(uw_cq_moderate(b->cq, 3, 500), 0);
	assert_int_equal(uw_cq_moderate(b->cq, 0, 500), 0);
	assert_int_equal(uw_cq_arm(b->cq, false), 0);
	assert_true(push(b, 2, 1));
	assert_int_equal(b->notified, 1);
	close_bench(b);
}

/* Several stacks may fill it at once: none counts what is there. */
static void with_several_stacks_none_is_held_back(void **state)
{
	struct bench *b = open_bench(3);

	(void)state;
	assert_int_equal(uw_cq_moderate(b->cq, 3, 500), 0);
	assert_int_equal(uw_cq_arm(b->cq, false), 0);
	assert_true(push(b, 2, 1));
	assert_int_equal(b->notified, 1);
	close_bench(b);
}

static void one_that_is_destroyed_leaves_no_notify_behind(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_cq_attr a = { .depth = 4, .notify = on_notify, .ctx = b };
	struct uw_cq *first = b->cq, *second;

	(void)state;
	assert_int_equal(verbs_make_cq(&b->v, &a, &second), 0);
	assert_int_equal(uw_cq_moderate(first, 3, 500), 0);
	assert_int_equal(uw_cq_moderate(second, 3, 500), 0);
	for (unsigned i = 0; i < 2; i++) {
		b->cq = i ? second : first;
		assert_int_equal(uw_cq_arm(b->cq, false), 0);
		assert_true(push(b, 2, 1));
	}
	assert_int_equal(uw_cq_destroy(first), 0);
	b->w->now_us += 1000;
	run(b);
	assert_int_equal(b->notified, 1); /* the second's */
	close_bench(b);
}

/* ---- forget
 * -------------------------------------------------------------------------------------- */

static void of_others_it_forgets_nothing(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_wc wc[4];

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		assert_true(push(b, 2 + i % 2, i));
	verbs_forget_in_cq(b->cq, 2);
	assert_int_equal(cq_take(&b->cq->cq, 4, wc, NULL), 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(wc[i].qp_num, 3);
		assert_int_equal(wc[i].wr_id, 2 * i + 1);
	}
	close_bench(b);
}

static void one_without_a_channel_stays_silent(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_cq_attr a = { .depth = 4 };
	struct uw_cq *first = b->cq;

	(void)state;
	assert_int_equal(verbs_make_cq(&b->v, &a, &b->cq), 0);
	assert_int_equal(uw_cq_arm(b->cq, false), -EINVAL);
	assert_null(b->cq->cq.notify);
	assert_int_equal(uw_cq_destroy(first), 0);
	close_bench(b);
}

/* ---- overflow -----------------------------------------------------------------------------------
 */

static void an_overflow_is_told_once_and_all_stacks_look(void **state)
{
	struct bench *b = open_bench(3);

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		assert_true(push(b, 2, i));
	assert_int_equal(b->failed, 0);
	assert_false(push(b, 2, DEPTH));
	assert_int_equal(b->failed, 1);
	assert_true(atomic_load(&b->cq->failed));
	for (unsigned i = 0; i < 3; i++) {
		assert_true(atomic_load(&b->v.cq_failed[i]));
		verbs_run(&b->v, world_stack(b->w, i));
		assert_false(atomic_load(&b->v.cq_failed[i]));
	}
	close_bench(b);
}

static void a_resize_keeps_what_is_there(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_wc wc[DEPTH];

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		assert_true(push(b, 2, i));
	assert_int_equal(uw_cq_resize(b->cq, DEPTH - 1), -EINVAL);
	assert_int_equal(uw_cq_resize(b->cq, 4 * DEPTH), 0);
	assert_true(push(b, 2, DEPTH));
	assert_int_equal(cq_take(&b->cq->cq, DEPTH, wc, NULL), DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(take_all(b), 1);
	close_bench(b);
}

static void *resize_often(void *arg)
{
	for (unsigned i = 0; i < 4000; i++)
		assert_int_equal(uw_cq_resize(((struct bench *)arg)->cq, RESIZED << i % 2), 0);
	return NULL;
}

static void two_threads_resize_at_once(void **state)
{
	struct bench *b = open_bench(1);
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, resize_often, b), 0);
	resize_often(b);
	assert_int_equal(pthread_join(other, NULL), 0);
	close_bench(b);
}

/* Whoever is woken may run at once, and wants the lock. */
static void a_notify_comes_when_the_lock_is_free(void **state)
{
	struct bench *b = open_bench(1);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(uw_cq_arm(b->cq, false), 0);
		assert_true(push(b, 2, i));
		assert_int_equal(b->notified, i + 1);
	}
	assert_int_equal(b->locked, 0);
	take_all(b);
	close_bench(b);
}

/* There is room for so many until the lock is let go. */
static void with_too_many_of_them_they_come_under_the_lock(void **state)
{
	struct bench *b = open_bench(1);
	struct sched *s = &world_stack(b->w, 0)->sched;
	unsigned n = 0;

	(void)state;
	sched_lock(s);
	while (!b->locked && n++ < 100) {
		atomic_store(&b->cq->cq.armed, CQ_ANY);
		b->cq->cq.notify(b->cq->cq.ctx);
	}
	sched_unlock(s);
	assert_int_equal(b->locked, AFTER_CALLS);
	assert_int_equal(b->notified, n);
	assert_int_equal(n, AFTER_CALLS + 1);
	close_bench(b);
}

static void *push_one(void *arg)
{
	push(arg, 2, 1);
	return NULL;
}

static void *destroy(void *arg)
{
	struct bench *b = arg;
	int err = uw_cq_destroy(b->cq);

	atomic_store(&b->entered, false);
	return (void *)(intptr_t)err;
}

static void a_cq_is_there_until_its_notify_is_over(void **state)
{
	struct bench *b = open_bench(1);
	const struct timespec moment = { .tv_nsec = 30000000 };
	pthread_t pusher, destroyer;
	void *err;

	(void)state;
	atomic_store(&b->stays, true);
	assert_int_equal(uw_cq_arm(b->cq, false), 0);
	assert_int_equal(pthread_create(&pusher, NULL, push_one, b), 0);
	while (!atomic_load(&b->entered))
		sched_yield();
	assert_int_equal(pthread_create(&destroyer, NULL, destroy, b), 0);
	nanosleep(&moment, NULL);
	assert_true(atomic_load(&b->entered));
	atomic_store(&b->stays, false);
	pthread_join(pusher, NULL);
	pthread_join(destroyer, &err);
	assert_null(err);
	b->cq = NULL;
	verbs_free(&b->v);
	world_close(b->w);
	free(b);
}

/* One CQ for sends and one for receives: a thread that polls them in turn waits by polling. */
static void polled_in_turn_they_drive_as_one(void **state)
{
	struct bench *b = open_bench(1);
	struct sched *s = &world_stack(b->w, 0)->sched;
	struct uw_cq_attr a = { .depth = DEPTH, .ctx = b };
	struct uw_cq *other;
	struct uw_wc wc;

	(void)state;
	assert_int_equal(verbs_make_cq(&b->v, &a, &other), 0);
	s->model = sched_thread_model(UW_THREADS_ADAPTIVE);
	atomic_store(&s->started, true);
	assert_true(push(b, 2, 1));
	assert_int_equal(uw_cq_poll(b->cq, 1, &wc), 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(uw_cq_poll(i % 2 ? b->cq : other, 1, &wc), 0);
	assert_false(atomic_load(&s->app_drives));
	assert_int_equal(uw_cq_poll(b->cq, 1, &wc), 0);
	assert_true(atomic_load(&s->app_drives));
	atomic_store(&s->started, false);
	assert_int_equal(uw_cq_destroy(other), 0);
	close_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notify_comes_when_the_lock_is_free),
		cmocka_unit_test(with_too_many_of_them_they_come_under_the_lock),
		cmocka_unit_test(a_cq_is_there_until_its_notify_is_over),
		cmocka_unit_test(polled_in_turn_they_drive_as_one),
		cmocka_unit_test(a_notify_comes_at_once),
		cmocka_unit_test(one_that_is_held_back_comes_with_enough_completions),
		cmocka_unit_test(or_when_its_time_is_over),
		cmocka_unit_test(a_count_of_0_ends_it),
		cmocka_unit_test(with_several_stacks_none_is_held_back),
		cmocka_unit_test(one_that_is_destroyed_leaves_no_notify_behind),
		cmocka_unit_test(of_others_it_forgets_nothing),
		cmocka_unit_test(one_without_a_channel_stays_silent),
		cmocka_unit_test(an_overflow_is_told_once_and_all_stacks_look),
		cmocka_unit_test(a_resize_keeps_what_is_there),
		cmocka_unit_test(two_threads_resize_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
