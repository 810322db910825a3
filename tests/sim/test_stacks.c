/* SPDX-License-Identifier: BSD-3-Clause */
/* Several stacks in one process (doc/adr/0016): what they share, and what goes from one to another.
 * The other tests of this folder run on several, too. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define ALL    (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define STACKS 3u
#define PAIRS  12u
#define ROUNDS 200u
#define PORT   7471

/* All pairs have one CQ, and the receivers one SRQ. */
struct world {
	struct sim s;
	struct uw_pd *pd;
	struct uw_cq *cq;
	struct uw_srq *srq;
	struct sim_side a[PAIRS], b[PAIRS];
	uint64_t out[PAIRS], in[PAIRS * ROUNDS];
	struct uw_mr *mo, *mi;
	unsigned posted; /* receives */
	unsigned limits; /* events */
};

static void on_srq(void *ctx, enum uw_event ev)
{
	assert_int_equal(ev, UW_EVENT_SRQ_LIMIT_REACHED);
	((struct world *)ctx)->limits++;
}

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

static struct world *open_world(void)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct uw_cq_attr ca = { .depth = PAIRS * ROUNDS * 2 };
	struct uw_srq_attr sa = {
		.max_wr = PAIRS * ROUNDS, .max_sge = 1, .event = on_srq, .ctx = w
	};

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
	return w;
}

static void close_world(struct world *w)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		assert_int_equal(uw_qp_destroy(w->a[i].qp), 0);
		assert_int_equal(uw_qp_destroy(w->b[i].qp), 0);
		uw_ep_destroy(w->a[i].ep);
		uw_ep_destroy(w->b[i].ep);
	}
	assert_int_equal(uw_mr_dereg(w->mo), 0);
	assert_int_equal(uw_mr_dereg(w->mi), 0);
	assert_int_equal(uw_srq_destroy(w->srq), 0);
	assert_int_equal(uw_cq_destroy(w->cq), 0);
	assert_int_equal(uw_pd_dealloc(w->pd), 0);
	sim_close(&w->s);
	free(w);
}

static void give_receive(struct world *w)
{
	struct uw_sge sge = { (uintptr_t)&w->in[w->posted], 8, uw_mr_stag(w->mi) };
	struct uw_recv_wr wr = { .wr_id = w->posted, .sg_list = &sge, .num_sge = 1 };
	unsigned done;

	assert_int_equal(uw_srq_post_recv(w->srq, &wr, 1, &done), 0);
	w->posted++;
}

static void send_number(struct world *w, unsigned i, uint64_t n)
{
	struct uw_sge sge = { (uintptr_t)&w->out[i], 8, uw_mr_stag(w->mo) };
	struct uw_send_wr wr = { .wr_id = n,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_SEND,
				 .flags = UW_SEND_SIGNALED };

	w->out[i] = n;
	sim_post_send(&w->a[i], &wr);
}

/* ---- on the virtual clock ----------------------------------------------------------------- */

static void connections_are_on_all_stacks(void **state)
{
	struct world *w = open_world();
	unsigned homes[STACKS] = { 0 }, accepted[STACKS] = { 0 };
	uint64_t handed = 0;

	(void)state;
	for (unsigned i = 0; i < PAIRS; i++) {
		homes[conn_qp_stack(&w->a[i].qp->c)->sched.index]++;
		accepted[conn_qp_stack(&w->b[i].qp->c)->sched.index]++;
	}
	for (unsigned i = 0; i < w->s.e->n_stacks; i++)
		handed += w->s.e->stack[i]->links[0]->stats.handed +
			  w->s.e->stack[i]->links[1]->stats.handed;
	for (unsigned i = 0; i < STACKS; i++) {
		assert_int_equal(homes[i], PAIRS / STACKS); /* in turn */
		assert_true(accepted[i] > 0);		    /* as the port chose */
	}
	/* Two of three answers come on another stack's queue. */
	assert_true(handed > PAIRS);
	close_world(w);
}

/* A Send to a shared receive queue that is empty waits, whatever stack it came to; each receive
 * that is posted goes to one of them. */
static void sends_wait_on_all_stacks_for_one_receive_queue(void **state)
{
	struct world *w = open_world();
	bool seen[PAIRS] = { false };

	(void)state;
	for (unsigned i = 0; i < PAIRS; i++)
		send_number(w, i, i);
	for (unsigned i = 0; i < PAIRS; i++)
		assert_int_equal(sim_wc(&w->s, w->cq).opcode, UW_WC_SEND);
	sim_run_us(&w->s, 100000);
	assert_int_equal(sim_stats(&w->s).rnr_waits, PAIRS);
	for (unsigned i = 0; i < PAIRS; i++) {
		struct uw_wc wc;

		give_receive(w);
		wc = sim_wc(&w->s, w->cq);
		assert_int_equal(wc.status, UW_WC_SUCCESS);
		assert_int_equal(wc.opcode, UW_WC_RECV);
		assert_in_range(w->in[wc.wr_id], 0, PAIRS - 1);
		assert_false(seen[w->in[wc.wr_id]]);
		seen[w->in[wc.wr_id]] = true;
	}
	close_world(w);
}

/* Once, by whichever stack takes the one too many. */
static void the_limit_is_told_once(void **state)
{
	struct world *w = open_world();

	(void)state;
	for (unsigned i = 0; i < PAIRS; i++)
		give_receive(w);
	assert_int_equal(uw_srq_set_limit(w->srq, PAIRS / 2), 0);
	for (unsigned i = 0; i < PAIRS; i++) {
		assert_int_equal(w->limits, i > PAIRS / 2);
		send_number(w, i, i);
		sim_wc(&w->s, w->cq);
		sim_wc(&w->s, w->cq);
	}
	assert_int_equal(w->limits, 1);
	close_world(w);
}

/* Deregistered is out of reach for all. */
static void what_is_deregistered_no_stack_reaches(void **state)
{
	struct world *w = open_world();
	struct uw_mr *mr;
	uint64_t target = 7;
	uint32_t rkey;

	(void)state;
	assert_int_equal(uw_mr_reg(w->pd, &target, 8, (uintptr_t)&target, ALL, &mr), 0);
	rkey = uw_mr_stag(mr);
	assert_int_equal(uw_mr_dereg(mr), 0);
	for (unsigned i = 0; i < PAIRS; i++) {
		struct uw_sge sge = { (uintptr_t)&w->out[i], 8, uw_mr_stag(w->mo) };
		struct uw_send_wr wr = { .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = UW_WR_RDMA_WRITE,
					 .remote_addr = (uintptr_t)&target,
					 .rkey = rkey };

		w->out[i] = 1;
		sim_post_send(&w->a[i], &wr);
	}
	sim_run_us(&w->s, 1000000);
	assert_int_equal(target, 7);
	for (unsigned i = 0; i < PAIRS; i++)
		assert_int_equal(uw_qp_state(w->a[i].qp), UW_QPS_ERR);
	close_world(w);
}

/* ---- the order of Requests ------------------------------------------------------------------ */

#define CALLS 48u

struct calls {
	struct sim_side side[CALLS];
	struct uw_ep *listener, *request[CALLS];
	uint8_t came[CALLS]; /* which Request came, as its private data says */
	unsigned n;
};

static bool on_request(void *ctx, const struct uw_cm_event *ev)
{
	struct calls *k = ctx;

	if (ev->type != UW_CM_CONNECT_REQUEST)
		return true;
	assert_int_equal(ev->param.private_data_len, 1);
	assert_true(k->n < CALLS);
	k->request[k->n] = ev->ep;
	k->came[k->n++] = *(const uint8_t *)ev->param.private_data;
	return true;
}

static void call(struct sim *s, struct sim_side *side, uint8_t number, uint16_t port)
{
	struct sockaddr_storage from = sim_addr(s, SIM_A, 0), to = sim_addr(s, SIM_B, port);
	struct uw_cm_param p = { .private_data = &number, .private_data_len = 1 };

	assert_int_equal(uw_ep_create(s->e, sim_event, side, &side->ep), 0);
	assert_int_equal(uw_ep_bind(side->ep, (struct sockaddr *)&from), 0);
	assert_int_equal(uw_ep_resolve(side->ep, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(side->ep, uw_qp_num(side->qp), &p), 0);
}

static bool first_came(void *arg)
{
	return ((struct calls *)arg)->n == 1;
}

static bool all_came(void *arg)
{
	return ((struct calls *)arg)->n == CALLS;
}

/* The first one has come: ARP knows both ends. */
static struct calls *open_calls(struct sim *s)
{
	struct calls *k = calloc(1, sizeof(*k));
	struct sockaddr_storage any = sim_addr(s, SIM_B, PORT);

	assert_int_equal(uw_ep_create(s->e, on_request, k, &k->listener), 0);
	assert_int_equal(uw_ep_bind(k->listener, (struct sockaddr *)&any), 0);
	assert_int_equal(uw_ep_listen(k->listener, CALLS), 0);
	for (unsigned i = 0; i < CALLS; i++)
		sim_open_side(s, &k->side[i], NULL);
	call(s, &k->side[0], 0, PORT);
	assert_true(sim_until(s, first_came, k, 10000000));
	return k;
}

static void close_calls(struct calls *k)
{
	for (unsigned i = 0; i < CALLS; i++) {
		if (k->request[i])
			uw_ep_destroy(k->request[i]);
		sim_close_side(&k->side[i]);
	}
	uw_ep_destroy(k->listener);
	free(k);
}

/* Some frames take longer: each connection alone would be in order, all of them are not. */
static void requests_come_in_the_order_of_their_connects(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct sim s;
		struct calls *k;

		sim_open(&s, &(struct sim_options){ .reorder_ppm = 300000, .seed = seed });
		k = open_calls(&s);
		for (unsigned i = 1; i < CALLS; i++)
			call(&s, &k->side[i], (uint8_t)i, PORT);
		assert_true(sim_until(&s, all_came, k, 10000000));
		for (unsigned i = 0; i < CALLS; i++)
			assert_int_equal(k->came[i], i);
		close_calls(k);
		sim_close(&s);
	}
}

/* Whoever goes first may go away, and then it is the next one's turn. */
static void whoever_waits_goes_on_when_the_first_goes_away(void **state)
{
	struct sim s;
	struct calls *k;

	(void)state;
	sim_open(&s, &(struct sim_options){ .seed = 1, .delay_us = 1000 });
	k = open_calls(&s);
	for (unsigned i = 1; i < CALLS; i++)
		call(&s, &k->side[i], (uint8_t)i, PORT);
	sim_run_us(&s, 2500); /* TCP is up, and the next Request under way */
	assert_int_equal(k->n, 1);
	for (unsigned i = 1; i < CALLS; i += 2) {
		uw_ep_destroy(k->side[i].ep);
		k->side[i].ep = NULL;
	}
	sim_run_us(&s, 1000000); /* acknowledged late, each; five times ORDER_LIMIT_US */
	assert_in_range(k->n, CALLS / 2, CALLS / 2 + 1); /* that one may have come */
	for (unsigned i = 1; i < CALLS / 2; i++)
		assert_int_equal(k->came[k->n - i], CALLS - 2 * i);
	close_calls(k);
	sim_close(&s);
}

static void what_several_cannot_do_is_refused(void **state)
{
	struct world *w = open_world();
	struct uw_device_attr attr;
	struct uw_engine *e;
	struct uw_config cfg;
	struct uw_mw *mw;

	(void)state;
	uw_engine_query(w->s.e, &attr);
	assert_int_equal(attr.max_mw, 0);
	assert_int_equal(uw_mw_alloc(w->pd, 1, &mw), -EOPNOTSUPP);
	close_world(w);
	assert_int_equal(uw_config_from_env(&cfg), 0);
	assert_int_equal(cfg.stacks, STACKS);
	cfg.threads = UW_THREADS_C2;
	assert_int_equal(uw_engine_open(&cfg, &e), -EINVAL);
	cfg.threads = UW_THREADS_C1;
	strcpy(cfg.transport, "seq");
	assert_int_equal(uw_engine_open(&cfg, &e), -EINVAL);
}

/* ---- on the real one, with the stacks' threads --------------------------------------------- */

struct sender {
	struct world *w;
	unsigned first;
	_Atomic unsigned told[PAIRS]; /* Sends that are complete */
};

static void *send_all(void *arg)
{
	struct sender *t = arg;

	for (unsigned n = 0; n < ROUNDS; n++) {
		for (unsigned i = t->first; i < PAIRS; i += 2) {
			while (atomic_load(&t->told[i]) < n)
				sched_yield();
			send_number(t->w, i, (uint64_t)n * PAIRS + i);
		}
	}
	return NULL;
}

/* Memory comes and goes meanwhile, and so do connections' records. */
static void *disturb(void *arg)
{
	struct world *w = arg;

	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		struct uw_mr *mr;
		struct uw_ep *ep;
		uint64_t v;

		assert_int_equal(uw_mr_reg(w->pd, &v, 8, (uintptr_t)&v, ALL, &mr), 0);
		assert_int_equal(uw_ep_create(w->s.e, NULL, NULL, &ep), 0);
		sched_yield();
		uw_ep_destroy(ep);
		assert_int_equal(uw_mr_dereg(mr), 0);
	}
	return NULL;
}

/* Every Send is received once; those of one connection in their order. */
static void take_all(struct world *w, struct sender *t)
{
	uint64_t last[PAIRS];
	unsigned received = 0, sent = 0;

	for (unsigned i = 0; i < PAIRS; i++)
		last[i] = i;
	while (received < PAIRS * ROUNDS || sent < PAIRS * ROUNDS) {
		struct uw_wc wc;
		int n = uw_cq_poll(w->cq, 1, &wc);

		assert_true(n >= 0);
		if (!n)
			continue;
		assert_int_equal(wc.status, UW_WC_SUCCESS);
		if (wc.opcode == UW_WC_SEND) {
			atomic_fetch_add(&t[wc.wr_id % PAIRS % 2].told[wc.wr_id % PAIRS], 1);
			sent++;
			continue;
		}
		assert_int_equal(w->in[wc.wr_id], last[w->in[wc.wr_id] % PAIRS]);
		last[w->in[wc.wr_id] % PAIRS] += PAIRS;
		received++;
		if (w->posted < PAIRS * ROUNDS)
			give_receive(w);
	}
}

static void threads_share_a_cq_and_a_receive_queue(void **state)
{
	struct world *w = open_world();
	struct sender *t = calloc(2, sizeof(*t));
	pthread_t thread[3];

	(void)state;
	for (unsigned i = 0; i < PAIRS / 2; i++) /* fewer than senders: some wait */
		give_receive(w);
	sim_threads_start(&w->s);
	for (unsigned i = 0; i < 2; i++) {
		t[i].w = w;
		t[i].first = i;
		assert_int_equal(pthread_create(&thread[i], NULL, send_all, &t[i]), 0);
	}
	assert_int_equal(pthread_create(&thread[2], NULL, disturb, w), 0);
	take_all(w, t);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	sim_threads_stop(&w->s);
	close_world(w);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_on_all_stacks),
		cmocka_unit_test(sends_wait_on_all_stacks_for_one_receive_queue),
		cmocka_unit_test(the_limit_is_told_once),
		cmocka_unit_test(what_is_deregistered_no_stack_reaches),
		cmocka_unit_test(requests_come_in_the_order_of_their_connects),
		cmocka_unit_test(whoever_waits_goes_on_when_the_first_goes_away),
		cmocka_unit_test(what_several_cannot_do_is_refused),
		cmocka_unit_test(threads_share_a_cq_and_a_receive_queue),
	};

	setenv("UWARP_STACKS", "3", 1);
	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
