/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several stacks, whose QPs, shared receive queues and connections end while other threads post. On
 * the real clock with the stacks' threads; made to be run under TSan and ASan as well.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net.h"

#define ALL	 (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define PAIRS	 12u
#define CYCLES	 8u
#define RECEIVES 1024u
#define PORT	 7471
#define LIMIT	 120u /* seconds: no thread waits for another for ever */

/* The receivers have one SRQ, which is nearly always empty: all of them wait. */
struct world {
	struct sim s;
	struct uw_pd *pd;
	struct uw_cq *cq;
	struct uw_srq *srq;
	struct sim_side a[PAIRS], b[PAIRS];
	uint64_t out[PAIRS], in[RECEIVES]; /* each receive has its own octets */
	struct uw_mr *mo, *mi;
	_Atomic bool stop;
	_Atomic unsigned posted, wanted; /* receives */
};

static void make_qp(struct world *w, struct sim_side *side, struct uw_srq *srq)
{
	struct uw_qp_attr qa = { .max_send_wr = 16,
				 .max_recv_wr = 16,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .send_cq = w->cq,
				 .recv_cq = w->cq,
				 .srq = srq };

	assert_int_equal(uw_qp_create(w->pd, &qa, &side->qp), 0);
}

static void send_number(struct world *w, unsigned i)
{
	struct uw_sge sge = { (uintptr_t)&w->out[i], 8, uw_mr_stag(w->mo) };
	struct uw_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND };

	sim_post_send(&w->a[i], &wr);
}

/* Every pair is connected, and its Sends wait for receives. */
static struct world *open_world(void)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct uw_cq_attr ca = { .depth = 1u << 14 };
	struct uw_srq_attr sa = { .max_wr = RECEIVES, .max_sge = 1 };

	assert_non_null(w);
	sim_open(&w->s, &(struct sim_options){ .rnr_for_ever = true });
	assert_int_equal(uw_pd_alloc(w->s.e, &w->pd), 0);
	assert_int_equal(uw_cq_create(w->s.e, &ca, &w->cq), 0);
	assert_int_equal(uw_srq_create(w->pd, &sa, &w->srq), 0);
	assert_int_equal(uw_mr_reg(w->pd, w->out, sizeof(w->out), (uintptr_t)w->out, ALL, &w->mo),
			 0);
	assert_int_equal(uw_mr_reg(w->pd, w->in, sizeof(w->in), (uintptr_t)w->in, ALL, &w->mi), 0);
	for (unsigned i = 0; i < PAIRS; i++) {
		make_qp(w, &w->a[i], NULL);
		make_qp(w, &w->b[i], w->srq);
		sim_connect_pair(&w->s, &w->a[i], &w->b[i], PORT);
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		for (unsigned k = 0; k < 12; k++)
			send_number(w, i);
	}
	sim_run_us(&w->s, 100000);
	return w;
}

static void close_world(struct world *w)
{
	assert_int_equal(uw_mr_dereg(w->mo), 0);
	assert_int_equal(uw_mr_dereg(w->mi), 0);
	assert_int_equal(uw_srq_destroy(w->srq), 0);
	assert_int_equal(uw_cq_destroy(w->cq), 0);
	assert_int_equal(uw_pd_dealloc(w->pd), 0);
	sim_close(&w->s);
	free(w);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Receives one by one and several at a time: each wakes a QP, which may wake the next. */
static void *post_receives(void *arg)
{
	struct world *w = arg;
	struct uw_sge sge[4];
	struct uw_recv_wr wr[4];
	unsigned done;

	for (unsigned i = 0; !atomic_load(&w->stop); i++) {
		unsigned n = 1 + i % 4, at;

		if (atomic_load(&w->posted) >= atomic_load(&w->wanted)) {
			sched_yield();
			continue;
		}
		at = atomic_fetch_add(&w->posted, n);
		assert_true(at + n <= RECEIVES);
		for (unsigned k = 0; k < n; k++) {
			sge[k] = (struct uw_sge){ (uintptr_t)&w->in[at + k], 8, uw_mr_stag(w->mi) };
			wr[k] = (struct uw_recv_wr){ .sg_list = &sge[k], .num_sge = 1 };
		}
		assert_int_equal(uw_srq_post_recv(w->srq, wr, n, &done), 0);
	}
	return NULL;
}

static void *poll_all(void *arg)
{
	struct world *w = arg;
	struct uw_wc wc[8];

	while (!atomic_load(&w->stop)) {
		int n = uw_cq_poll(w->cq, 8, wc);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			assert_true(wc[i].status == UW_WC_SUCCESS ||
				    wc[i].status == UW_WC_WR_FLUSH_ERR);
	}
	return NULL;
}

/* Other shared queues come and go meanwhile. */
static void *make_srqs(void *arg)
{
	struct world *w = arg;
	struct uw_srq_attr sa = { .max_wr = 8, .max_sge = 1 };

	while (!atomic_load(&w->stop)) {
		struct uw_sge sge = { (uintptr_t)w->in, 8, uw_mr_stag(w->mi) };
		struct uw_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
		struct sim_side side = { 0 };
		struct uw_srq *srq;
		unsigned done;

		assert_int_equal(uw_srq_create(w->pd, &sa, &srq), 0);
		make_qp(w, &side, srq);
		assert_int_equal(uw_srq_post_recv(srq, &wr, 1, &done), 0);
		assert_int_equal(uw_srq_destroy(srq), -EBUSY);
		assert_int_equal(uw_qp_destroy(side.qp), 0);
		assert_int_equal(uw_srq_destroy(srq), 0);
	}
	return NULL;
}

struct part {
	struct world *w;
	unsigned first;
};

/* Every other pair, while some receives are posted, fewer than there are Sends: the receiving QP
 * goes first or its connection does. */
static void *end_pairs(void *arg)
{
	struct part *t = arg;
	struct world *w = t->w;

	for (unsigned i = t->first; i < PAIRS; i += 2) {
		atomic_fetch_add(&w->wanted, 8);
		while (atomic_load(&w->posted) + 6 <
		       atomic_load(&w->wanted)) /* in the midst of it */
			sched_yield();
		if (i / 2 % 2) {
			uw_ep_destroy(w->b[i].ep);
			assert_int_equal(uw_qp_destroy(w->b[i].qp), 0);
		} else {
			assert_int_equal(uw_qp_destroy(w->b[i].qp), 0);
			uw_ep_destroy(w->b[i].ep);
		}
		assert_int_equal(uw_qp_destroy(w->a[i].qp), 0);
		uw_ep_destroy(w->a[i].ep);
	}
	return NULL;
}

static void all_ends_while_others_post(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CYCLES; i++) {
		struct world *w = open_world();
		struct part t[2] = { { w, 0 }, { w, 1 } };
		pthread_t end[2], other[4];

		assert_int_equal(sim_stats(&w->s).rnr_waits, PAIRS);
		sim_threads_start(&w->s);
		assert_int_equal(pthread_create(&other[0], NULL, post_receives, w), 0);
		assert_int_equal(pthread_create(&other[1], NULL, post_receives, w), 0);
		assert_int_equal(pthread_create(&other[2], NULL, poll_all, w), 0);
		assert_int_equal(pthread_create(&other[3], NULL, make_srqs, w), 0);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(pthread_create(&end[k], NULL, end_pairs, &t[k]), 0);
		for (unsigned k = 0; k < 2; k++)
			pthread_join(end[k], NULL);
		atomic_store(&w->stop, true);
		for (unsigned k = 0; k < 4; k++)
			pthread_join(other[k], NULL);
		sim_threads_stop(&w->s);
		assert_null(w->srq->r.first);
		assert_int_equal(sim_stats(&w->s).conn_bad_state, 0);
		close_world(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ends_while_others_post),
	};

	setenv("UWARP_STACKS", "3", 1);
	alarm(LIMIT);
	return cmocka_run_group_tests_name("stacks_end", tests, NULL, NULL);
}
