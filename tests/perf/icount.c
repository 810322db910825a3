/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * N messages between two QPs of the simulated world: one thread, a virtual clock, no card. The same
 * arguments execute the same instructions every time, so that counting them (tools/icount) shows
 * what a message costs and when that changes.
 *
 *   icount send|list|event|write|read|reads OCTETS N
 *   icount atomic|atomics 8 N
 *   icount send|write|read OCTETS N CONNECTIONS [AT_ONCE]
 *
 * list, reads, atomics: Sends, Reads, FetchAdds that are posted together, so that small ones share
 * segments, as their responses do.
 * event: Sends one by one, and both ends arm their CQ before each and are told, as programs do that
 * sleep on a completion channel.
 * CONNECTIONS: the messages go over each of them in turn, AT_ONCE under way in all, and what one
 * took of the CPU's time is told: what cold memory costs is not in the instructions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../sim/net.h"

enum { AT_ONCE = 16, PORT = 7471 };

struct pair {
	struct sim_side a, b;
};

struct run {
	struct sim s;
	uint8_t *buf[2];
	struct uw_mr *mr[2];
	uint32_t op, octets;
	bool list, event;
	unsigned n, at_once;
	unsigned pairs; /* 0: one, that of s */
	struct pair *pair;
	unsigned turn;
};

/* All that are at one end share its objects. */
static void open_side(struct sim_side *side, const struct sim_side *with)
{
	struct uw_qp_attr qa = { .max_send_wr = 64,
				 .max_recv_wr = 64,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .send_cq = with->scq,
				 .recv_cq = with->rcq };

	assert_int_equal(uw_qp_create(with->pd, &qa, &side->qp), 0);
}

static void open_pairs(struct run *r)
{
	r->pair = calloc(r->pairs, sizeof(*r->pair));
	assert_non_null(r->pair);
	for (unsigned i = 0; i < r->pairs; i++) {
		open_side(&r->pair[i].a, &r->s.a);
		open_side(&r->pair[i].b, &r->s.b);
		sim_connect_pair(&r->s, &r->pair[i].a, &r->pair[i].b, PORT);
	}
}

static void close_pairs(struct run *r)
{
	for (unsigned i = 0; i < r->pairs; i++) {
		assert_int_equal(uw_qp_destroy(r->pair[i].a.qp), 0);
		assert_int_equal(uw_qp_destroy(r->pair[i].b.qp), 0);
		uw_ep_destroy(r->pair[i].a.ep);
		uw_ep_destroy(r->pair[i].b.ep);
	}
	free(r->pair);
}

static unsigned told; /* events */

static void note_event(void *ctx)
{
	(void)ctx;
	told++;
}

static void open_run(struct run *r)
{
	struct sim_options o = {
		.mtu = 9000, .seed = 1, .direct = true, .reads = r->list ? AT_ONCE : 0
	};
	unsigned all = UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |
		       UW_ACCESS_REMOTE_ATOMIC;

	o.notify = r->event ? note_event : NULL;
	if (r->pairs) {
		o.delay_us = 1;
		o.cq_depth = 4096;
	}
	sim_open(&r->s, &o);
	if (r->pairs)
		open_pairs(r);
	else
		sim_connect(&r->s, PORT);
	for (int i = 0; i < 2; i++) {
		r->buf[i] = calloc(1, r->octets);
		r->mr[i] = sim_mr(i ? &r->s.b : &r->s.a, r->buf[i], r->octets, all);
	}
}

static void close_run(struct run *r)
{
	close_pairs(r);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(uw_mr_dereg(r->mr[i]), 0);
		free(r->buf[i]);
	}
	sim_close(&r->s);
}

static void expect(struct run *r, struct uw_cq *cq, unsigned n)
{
	while (n--)
		assert_int_equal(sim_wc(&r->s, cq).status, UW_WC_SUCCESS);
}

static void post_list(struct run *r, const struct uw_send_wr *wr, unsigned n)
{
	struct uw_send_wr v[AT_ONCE];
	unsigned done;

	for (unsigned i = 0; i < n; i++)
		v[i] = *wr;
	assert_int_equal(uw_post_send(r->s.a.qp, v, n, &done), 0);
}

static void arm_both(struct run *r)
{
	assert_int_equal(uw_cq_arm(r->s.a.scq, false), 0);
	assert_int_equal(uw_cq_arm(r->s.b.rcq, false), 0);
}

static void some(struct run *r, unsigned n)
{
	struct uw_sge sge = { (uintptr_t)r->buf[0], r->octets, uw_mr_stag(r->mr[0]) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = r->op,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)r->buf[1],
				 .rkey = uw_mr_stag(r->mr[1]) };

	if (r->event)
		arm_both(r);
	for (unsigned i = 0; i < n; i++) {
		struct pair *p = r->pairs ? &r->pair[r->turn++ % r->pairs] : NULL;

		if (r->op == UW_WR_SEND)
			sim_post_recv(p ? &p->b : &r->s.b, i, r->buf[1], r->octets, r->mr[1]);
		if (!r->list)
			sim_post_send(p ? &p->a : &r->s.a, &wr);
	}
	if (r->list)
		post_list(r, &wr, n);
	if (r->op == UW_WR_SEND)
		expect(r, r->s.b.rcq, n);
	expect(r, r->s.a.scq, n);
	if (r->op == UW_WR_RDMA_WRITE) /* no completion tells that the peer has them */
		sim_run_us(&r->s, 500);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void test_run(void **state)
{
	struct run *r = *state;
	unsigned n = r->n;
	uint64_t since;

	open_run(r);
	since = cpu_ns();
	for (; n > r->at_once; n -= r->at_once)
		some(r, r->at_once);
	some(r, n);
	assert_int_equal(told, r->event ? 2 * r->n : 0);
	if (r->pairs)
		print_message("%.1f ns\n", (double)(cpu_ns() - since) / r->n);
	close_run(r);
}

static int op_of(const char *name, struct run *r)
{
	static const struct {
		const char *name;
		uint32_t op;
		bool list;
	} ops[] = { { "send", UW_WR_SEND, false },
		    { "list", UW_WR_SEND, true },
		    { "event", UW_WR_SEND, false },
		    { "write", UW_WR_RDMA_WRITE, false },
		    { "read", UW_WR_RDMA_READ, false },
		    { "reads", UW_WR_RDMA_READ, true },
		    { "atomic", UW_WR_ATOMIC_FETCH_AND_ADD, false },
		    { "atomics", UW_WR_ATOMIC_FETCH_AND_ADD, true } };

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(name, ops[i].name)) {
			r->op = ops[i].op;
			r->list = ops[i].list;
			r->event = !strcmp(name, "event");
			return 0;
		}
	return -1;
}

int main(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof(*r));
	int failed;

	if (!r || argc < 4 || argc > 6 || op_of(argv[1], r) || atoi(argv[2]) < 1 ||
	    atoi(argv[3]) < 1 || (argc > 4 && (r->list || r->event))) {
		fprintf(stderr, "usage: icount send|list|event|write|read|reads OCTETS N\n"
				"       icount atomic|atomics 8 N\n"
				"       icount send|write|read OCTETS N CONNECTIONS [AT_ONCE]\n");
		return 2;
	}
	r->octets = (uint32_t)atoi(argv[2]);
	r->n = (unsigned)atoi(argv[3]);
	r->pairs = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	r->at_once = argc > 5 ? (unsigned)atoi(argv[5]) : r->event ? 1 : AT_ONCE;
	const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(test_run, r) };
	failed = cmocka_run_group_tests_name("icount", tests, NULL, NULL);
	free(r);
	return failed;
}
