/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pthread_cancel of a thread that posts and polls, as rping ends its own: the transport's system
 * calls are cancellation points, and a thread that ended in one would keep the stack lock for ever.
 * On the real clock, over the kernel's TCP and within the process.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define ALL	(UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define CANCELS 40u
#define SECOND	1000000u
#define SIZE	8192u

struct bench {
	struct uw_engine *e;
	struct uw_pd *pd;
	struct sim_side a, b, listener;
	uint8_t *m;
	struct uw_mr *mr;
	_Atomic unsigned polls;
};

static struct sched *sched_of(struct bench *b)
{
	return &b->e->stack[0]->sched;
}

/* Events come in the RX thread, under the lock. */
static bool had(struct bench *b, const struct sim_side *side, enum uw_cm_event_type type)
{
	bool there;

	assert_true(sched_lock_within(sched_of(b), 10 * SECOND));
	there = sim_had(side, type);
	sched_unlock(sched_of(b));
	return there;
}

static void await(struct bench *b, const struct sim_side *side, enum uw_cm_event_type type)
{
	uint64_t until = sim_real_us(NULL) + 20 * SECOND;

	while (!had(b, side, type)) {
		assert_true(sim_real_us(NULL) < until);
		sched_yield();
	}
}

static void open_side(struct bench *b, struct sim_side *side)
{
	const struct uw_cq_attr ca = { .depth = 256 };
	struct uw_qp_attr qa = { .max_send_wr = 64, .max_recv_wr = 64 };

	assert_int_equal(uw_cq_create(b->e, &ca, &side->scq), 0);
	qa.send_cq = qa.recv_cq = side->scq;
	assert_int_equal(uw_qp_create(b->pd, &qa, &side->qp), 0);
}

static void connect_sides(struct bench *b)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct sockaddr_storage at;
	const struct uw_cm_param p = { .ird = 4, .ord = 4 };

	assert_int_equal(uw_ep_create(b->e, sim_event, &b->listener, &b->listener.ep), 0);
	assert_int_equal(uw_ep_bind(b->listener.ep, (struct sockaddr *)&any), 0);
	assert_int_equal(uw_ep_listen(b->listener.ep, 4), 0);
	assert_int_equal(uw_ep_create(b->e, sim_event, &b->a, &b->a.ep), 0);
	uw_ep_local_addr(b->listener.ep, &at);
	((struct sockaddr_in *)&at)->sin_addr.s_addr = b->e->stack[0]->links[0]->addr;
	assert_int_equal(uw_ep_resolve(b->a.ep, NULL, (struct sockaddr *)&at, 5000), 0);
	assert_int_equal(uw_ep_connect(b->a.ep, uw_qp_num(b->a.qp), &p), 0);
	await(b, &b->listener, UW_CM_CONNECT_REQUEST);
	b->b.ep = b->listener.request;
	uw_ep_set_ctx(b->b.ep, &b->b);
	assert_int_equal(uw_ep_accept(b->b.ep, uw_qp_num(b->b.qp), &p), 0);
	await(b, &b->a, UW_CM_ESTABLISHED);
}

static struct bench *open_bench(const char *transport, const char *link)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct uw_config cfg;

	assert_non_null(b);
	assert_int_equal(uw_config_from_env(&cfg), 0);
	strcpy(cfg.transport, transport);
	strcpy(cfg.link, link);
	assert_int_equal(uw_engine_open(&cfg, &b->e), 0);
	assert_int_equal(uw_engine_start(b->e), 0);
	assert_int_equal(uw_pd_alloc(b->e, &b->pd), 0);
	b->m = calloc(2, SIZE);
	assert_int_equal(uw_mr_reg(b->pd, b->m, 2 * SIZE, (uintptr_t)b->m, ALL, &b->mr), 0);
	open_side(b, &b->a);
	open_side(b, &b->b);
	connect_sides(b);
	return b;
}

static void close_side(struct sim_side *side)
{
	assert_int_equal(uw_qp_destroy(side->qp), 0);
	uw_ep_destroy(side->ep);
	assert_int_equal(uw_cq_destroy(side->scq), 0);
}

static void close_bench(struct bench *b)
{
	close_side(&b->a);
	close_side(&b->b);
	uw_ep_destroy(b->listener.ep);
	assert_int_equal(uw_mr_dereg(b->mr), 0);
	assert_int_equal(uw_pd_dealloc(b->pd), 0);
	uw_engine_close(b->e);
	free(b->m);
	free(b);
}

/* Writes, and polls for their completions: every call may send. */
static void *write_for_ever(void *arg)
{
	struct bench *b = arg;
	struct uw_sge sge = { (uintptr_t)b->m, SIZE, uw_mr_stag(b->mr) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)b->m + SIZE,
				 .rkey = uw_mr_stag(b->mr) };
	struct uw_wc wc[8];
	unsigned done;

	for (;;) {
		uw_post_send(b->a.qp, &wr, 1, &done);
		uw_cq_poll(b->a.scq, 8, wc);
		atomic_fetch_add(&b->polls, 1);
		pthread_testcancel();
	}
	return NULL;
}

static void cancel_one(struct bench *b, unsigned polls)
{
	unsigned from = atomic_load(&b->polls);
	void *result;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, write_for_ever, b), 0);
	while (atomic_load(&b->polls) - from < polls)
		sched_yield();
	assert_int_equal(pthread_cancel(t), 0);
	assert_int_equal(pthread_join(t, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(sched_lock_within(sched_of(b), 10 * SECOND));
	sched_unlock(sched_of(b));
}

static void cancelled_it_keeps_no_lock(const char *transport, const char *link)
{
	struct bench *b = open_bench(transport, link);

	for (unsigned i = 0; i < CANCELS; i++)
		cancel_one(b, 1 + i);
	assert_int_equal(uw_qp_state(b->a.qp), UW_QPS_RTS);
	close_bench(b);
}

static void within_the_process(void **state)
{
	(void)state;
	cancelled_it_keeps_no_lock("raw", "loop");
}

static void over_the_kernels_tcp(void **state)
{
	(void)state;
	cancelled_it_keeps_no_lock("socket", "host");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_the_process),
		cmocka_unit_test(over_the_kernels_tcp),
	};

	return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
