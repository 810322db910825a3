/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() while other threads make, poll and post: the child finds every object whole and no lock
 * held, gets back what it posts as flushed, and ends; the parent goes on.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "conn/endpoint.h"
#include "net.h"

#define FORKS 60u
#define LIMIT 20u /* seconds that a child has: it waits for nobody */

struct bench {
	struct sim s;
	struct uw_srq *srq;
	struct uw_qp *qp; /* receives from srq */
	_Atomic bool stop;
	_Atomic unsigned made;
};

static struct bench *open_bench(void)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct uw_srq_attr sa = { .max_wr = 16, .max_sge = 1 };
	struct uw_qp_attr qa = { 0 };

	assert_non_null(b);
	sim_open(&b->s, &(struct sim_options){ 0 });
	sim_connect(&b->s, 7471);
	assert_int_equal(uw_srq_create(b->s.b.pd, &sa, &b->srq), 0);
	qa.send_cq = b->s.b.scq;
	qa.recv_cq = b->s.b.rcq;
	qa.srq = b->srq;
	assert_int_equal(uw_qp_create(b->s.b.pd, &qa, &b->qp), 0);
	return b;
}

static void close_bench(struct bench *b)
{
	assert_int_equal(uw_qp_destroy(b->qp), 0);
	assert_int_equal(uw_srq_destroy(b->srq), 0);
	sim_close(&b->s);
	free(b);
}

/* ---- the child: no assertion of cmocka's, since it has the parent's tests ----------------------
 */

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			_exit(__LINE__ % 100 + 1);                                                 \
	} while (0)

static void every_qp_is_whole(struct uw_engine *e)
{
	for (uint32_t i = 0; i < e->verbs.qps.n; i++) {
		struct uw_qp *qp = e->verbs.qps.v[i].what;

		CHECK(!qp || (qp->scq && qp->rcq && uw_qp_state(qp) == UW_QPS_ERR));
	}
}

static void what_it_posts_is_flushed(struct uw_qp *qp, struct uw_cq *cq)
{
	const struct uw_recv_wr wr = { .wr_id = 77 };
	struct uw_wc wc;
	unsigned done;

	while (uw_cq_poll(cq, 1, &wc) == 1)
		;
	CHECK(!uw_post_recv(qp, &wr, 1, &done));
	do
		CHECK(uw_cq_poll(cq, 1, &wc) == 1);
	while (wc.wr_id != 77);
	CHECK(wc.status == UW_WC_WR_FLUSH_ERR);
}

static void be_the_child(void *arg)
{
	struct bench *b = arg;
	const struct uw_recv_wr wr = { .wr_id = 1 };
	const struct uw_send_wr swr = { .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED };
	struct uw_wc wc;
	unsigned done;
	int err;

	alarm(LIMIT);
	uw_engine_fork(b->s.e, UW_FORK_CHILD);
	every_qp_is_whole(b->s.e);
	while (uw_cq_poll(b->s.b.scq, 1, &wc) == 1)
		;
	what_it_posts_is_flushed(b->s.b.qp, b->s.b.rcq);
	err = uw_post_send(b->s.b.qp, &swr, 1, &done);
	CHECK(!err || err == -ENOMEM);
	err = uw_srq_post_recv(b->srq, &wr, 1, &done);
	CHECK(!err || err == -ENOMEM);
	CHECK(!uw_qp_destroy(b->qp));
	CHECK(!uw_srq_destroy(b->srq));
	CHECK(!uw_qp_destroy(b->s.b.qp));
	_exit(0);
}

/* The child, which does not return. */
static void fork_to(struct uw_engine *e, void (*child)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	uw_engine_fork(e, UW_FORK_PREPARE);
	pid = fork();
	if (!pid)
		child(arg);
	uw_engine_fork(e, UW_FORK_PARENT);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0); /* else a signal, or the line of a CHECK modulo 100 */
}

static void fork_once(struct bench *b)
{
	fork_to(b->s.e, be_the_child, b);
}

/* ---- the parent --------------------------------------------------------------------------------
 */

static void *make_qps(void *arg)
{
	struct bench *b = arg;
	struct uw_qp_attr qa = { .send_cq = b->s.a.scq, .recv_cq = b->s.a.rcq };
	struct uw_qp *v[4];

	while (!atomic_load(&b->stop)) {
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(uw_qp_create(b->s.a.pd, &qa, &v[i]), 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(uw_qp_destroy(v[i]), 0);
		atomic_fetch_add(&b->made, 4);
	}
	return NULL;
}

/* Each of them is in the midst of a queue's lock as often as it can. */
static void *poll_and_post(void *arg)
{
	struct bench *b = arg;
	const struct uw_recv_wr wr = { .wr_id = 5 };
	struct uw_wc wc[4];
	unsigned done;

	while (!atomic_load(&b->stop)) {
		uw_srq_post_recv(b->srq, &wr, 1, &done);
		uw_post_recv(b->s.b.qp, &wr, 1, &done);
		assert_true(uw_cq_poll(b->s.b.rcq, 4, wc) >= 0);
		assert_true(uw_cq_poll(b->s.b.scq, 4, wc) >= 0);
	}
	return NULL;
}

static void a_child_finds_everything_whole(void **state)
{
	struct bench *b = open_bench();
	pthread_t t[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i ? make_qps : poll_and_post, b), 0);
	for (unsigned i = 0; i < FORKS; i++) {
		unsigned before = atomic_load(&b->made);

		while (atomic_load(&b->made) == before)
			sched_yield();
		fork_once(b);
	}
	atomic_store(&b->stop, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	close_bench(b);
}

static void end_at_once(void *arg)
{
	struct bench *b = arg;

	alarm(LIMIT);
	uw_engine_fork(b->s.e, UW_FORK_CHILD);
	_exit(0);
}

/* A signal handler forks on top of a thread that runs the stack, whose lock it must not wait for.
 */
static void a_handler_forks_on_top_of_the_stack(void **state)
{
	struct bench *b = open_bench();
	struct uw_engine *e = b->s.e;

	(void)state;
	for (unsigned i = 0; i < e->n_stacks; i++) {
		struct sched *s = &e->stack[i]->sched;

		sched_lock(s);
		fork_to(e, end_at_once, b);
		assert_false(sched_trylock(s)); /* the thread goes on where it was */
		sched_unlock(s);
		assert_true(sched_trylock(s));
		sched_unlock(s);
	}
	fork_once(b);
	close_bench(b);
}

/* Whoever had it in the parent does not exist in the child. */
static void a_child_inherits_no_lock(void **state)
{
	struct bench *b = open_bench();
	struct spin *v[] = { &b->s.b.rcq->lock,	    &b->s.b.scq->lock,	   &b->s.b.rcq->pushes,
			     &b->s.b.qp->c.sq_lock, &b->s.b.qp->c.rq_lock, &b->srq->lock,
			     &b->srq->r.takes };

	(void)state;
	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		spin_lock(v[i]);
	fork_once(b);
	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		spin_unlock(v[i]);
	close_bench(b);
}

/* ---- while connections begin ----------------------------------------------------------------- */

#define PAIRS 12u

struct pairs {
	struct sim s;
	struct sim_side side[PAIRS];
};

static void destroy_endpoints(void *arg)
{
	struct pairs *p = arg;

	alarm(LIMIT);
	uw_engine_fork(p->s.e, UW_FORK_CHILD);
	for (unsigned i = 0; i < PAIRS; i++)
		uw_ep_destroy(p->side[i].ep);
	_exit(0);
}

/* Several stacks send their Requests in the order of their connects (doc/adr/0054). */
static bool one_waits_for_its_turn(void *arg)
{
	const struct pairs *p = arg;

	for (unsigned i = 0; i < PAIRS; i++) {
		if (p->side[i].ep->conn->waits_for)
			return true;
	}
	return p->s.e->n_stacks == 1;
}

static void begin(struct pairs *p, struct sim_side *side)
{
	const struct sockaddr_storage to = sim_addr(&p->s, SIM_B, 7471);
	const struct uw_cm_param param = { .ird = 4, .ord = 4 };

	sim_open_side(&p->s, side, NULL);
	assert_int_equal(uw_ep_create(p->s.e, sim_event, side, &side->ep), 0);
	assert_int_equal(uw_ep_resolve(side->ep, NULL, (const struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(side->ep, uw_qp_num(side->qp), &param), 0);
}

/* A turn that comes in the child, as it destroys what was before, is nobody's. */
static void a_child_may_destroy_what_waits_for_its_turn(void **state)
{
	struct pairs *p = calloc(1, sizeof(*p));

	(void)state;
	sim_open(&p->s, &(struct sim_options){ .delay_us = 200 });
	sim_listen(&p->s, 7471);
	for (unsigned i = 0; i < PAIRS; i++)
		begin(p, &p->side[i]);
	assert_true(sim_until(&p->s, one_waits_for_its_turn, p, 100000));
	fork_to(p->s.e, destroy_endpoints, p);
	for (unsigned i = 0; i < PAIRS; i++)
		sim_close_side(&p->side[i]);
	sim_close(&p->s);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_forks_on_top_of_the_stack),
		cmocka_unit_test(a_child_inherits_no_lock),
		cmocka_unit_test(a_child_finds_everything_whole),
		cmocka_unit_test(a_child_may_destroy_what_waits_for_its_turn),
	};

	return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
