/* SPDX-License-Identifier: BSD-3-Clause */
/* CM-less RC: a QP that names itself as its peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net.h"

#define ALL (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)

static struct sim *open_sim(void)
{
	struct sim *s = calloc(1, sizeof(*s));

	sim_open(s, &(struct sim_options){ 0 });
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_INIT), 0);
	return s;
}

static void close_sim(struct sim *s)
{
	sim_close(s);
	free(s);
}

static void post(struct sim_side *side, uint32_t op, uint64_t id)
{
	struct uw_send_wr wr = { .wr_id = id, .opcode = op, .flags = UW_SEND_SIGNALED };

	sim_post_send(side, &wr);
}

/* One operation of 8 octets of a QP that names itself. */
static void to_itself(struct sim *s, uint32_t op, uint8_t *from, uint8_t *to, struct uw_mr *m)
{
	struct uw_sge sge = { (uintptr_t)from, 8, uw_mr_stag(m) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)to,
				 .rkey = uw_mr_stag(m) };

	sim_post_send(&s->a, &wr);
}

static void a_qp_may_name_itself(void **state)
{
	struct sim *s = open_sim();
	uint8_t b[64] = "12345678";
	struct uw_mr *m = sim_mr(&s->a, b, sizeof(b), ALL);
	struct uw_wc wc;

	(void)state;
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_A, uw_qp_num(s->a.qp)), 0);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RTR);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RTS), 0);
	to_itself(s, UW_WR_RDMA_WRITE, b, b + 8, m);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	to_itself(s, UW_WR_RDMA_READ, b + 16, b + 8, m);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	/* a Send waits for its receive, and what is behind it, too */
	to_itself(s, UW_WR_SEND, b, NULL, m);
	to_itself(s, UW_WR_SEND, b + 16, NULL, m);
	sim_run_us(s, 1000000);
	assert_int_equal(uw_cq_poll(s->a.scq, 1, &wc), 0);
	sim_post_recv(&s->a, 1, b + 24, 8, m);
	assert_int_equal(sim_wc(s, s->a.rcq).wr_id, 1);
	sim_post_recv(&s->a, 2, b + 32, 8, m);
	assert_int_equal(sim_wc(s, s->a.rcq).wr_id, 2);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	assert_memory_equal(b, "1234567812345678123456781234567812345678", 40);
	/* memory that it may not write */
	to_itself(s, UW_WR_RDMA_WRITE, b, b + 60, m);
	assert_int_not_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_ERR);
	assert_int_equal(uw_mr_dereg(m), 0);
	close_sim(s);
}

/* A QP that names itself and one with a peer, whose receives come from one SRQ. Both have a Send
 * that waits for one, the QP that names itself first. */
struct sharers {
	struct sim *s;
	struct uw_pd *pd;
	struct uw_srq *srq;
	struct sim_side self, other; /* a is the other's peer */
};

static void both_wait(struct sharers *sh)
{
	struct uw_srq_attr attr = { .max_wr = 16, .max_sge = 1 };
	struct sim *s = sh->s = open_sim();
	struct sim_side *v[] = { &sh->self, &sh->other };

	assert_int_equal(uw_pd_alloc(s->e, &sh->pd), 0);
	assert_int_equal(uw_srq_create(sh->pd, &attr, &sh->srq), 0);
	for (unsigned i = 0; i < 2; i++) {
		v[i]->pd = sh->pd;
		sim_open_side(s, v[i], sh->srq);
		assert_int_equal(uw_qp_modify(v[i]->qp, UW_QPS_INIT), 0);
	}
	assert_int_equal(sim_name_peer(sh->self.qp, SIM_B, SIM_B, uw_qp_num(sh->self.qp)), 0);
	assert_int_equal(sim_name_peer(sh->other.qp, SIM_B, SIM_A, uw_qp_num(s->a.qp)), 0);
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_B, uw_qp_num(sh->other.qp)), 0);
	assert_int_equal(uw_qp_modify(sh->self.qp, UW_QPS_RTS), 0);
	assert_int_equal(uw_qp_modify(sh->other.qp, UW_QPS_RTS), 0);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RTS), 0);
	post(&sh->self, UW_WR_SEND, 1);
	post(&s->a, UW_WR_SEND, 2);
	sim_run_us(s, 1000000);
	assert_int_equal(sim_stats(s).rnr_waits, 1); /* the other's */
}

static void post_to_both(struct sharers *sh, unsigned n)
{
	const struct uw_recv_wr v[2] = { { .wr_id = 1 }, { .wr_id = 2 } };
	unsigned done;

	assert_int_equal(uw_srq_post_recv(sh->srq, v, n, &done), 0);
}

static void close_sharers(struct sharers *sh)
{
	struct sim_side *v[] = { &sh->self, &sh->other };

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uw_qp_destroy(v[i]->qp), 0);
		assert_int_equal(uw_cq_destroy(v[i]->scq), 0);
		assert_int_equal(uw_cq_destroy(v[i]->rcq), 0);
	}
	assert_int_equal(uw_srq_destroy(sh->srq), 0);
	assert_int_equal(uw_pd_dealloc(sh->pd), 0);
	close_sim(sh->s);
}

static void who_names_itself_leaves_others_their_receive(void **state)
{
	struct sharers sh = { 0 };

	(void)state;
	both_wait(&sh);
	post_to_both(&sh, 2);
	assert_int_equal(sim_wc(sh.s, sh.self.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(sh.s, sh.other.rcq).status, UW_WC_SUCCESS);
	close_sharers(&sh);
}

/* As when its CQ overflows. */
static void who_names_itself_and_fails_waits_no_more(void **state)
{
	struct sharers sh = { 0 };
	struct sched *first;

	(void)state;
	both_wait(&sh);
	first = &sh.s->e->stack[0]->sched;
	sched_lock_all(first);
	conn_qp_down(&sh.self.qp->c, UW_E_NOMEM);
	sched_unlock_all(first);
	post_to_both(&sh, 1);
	assert_int_equal(sim_wc(sh.s, sh.other.rcq).status, UW_WC_SUCCESS);
	close_sharers(&sh);
}

/* UCX destroys the QP of a closed endpoint when it has heard that. */
static void the_last_receive_is_announced_without_a_stream(void **state)
{
	struct sharers sh = { 0 };
	const unsigned *n = &sh.other.async[UW_EVENT_QP_LAST_WQE_REACHED];

	(void)state;
	both_wait(&sh);
	post_to_both(&sh, 2);
	assert_int_equal(sim_wc(sh.s, sh.other.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(uw_qp_destroy(sh.s->a.qp), 0); /* the peer leaves first */
	sh.s->a.qp = NULL;
	sim_run_us(sh.s, 1000000);
	assert_int_equal(uw_qp_state(sh.other.qp), UW_QPS_RTS);
	assert_int_equal(*n, 0);
	assert_int_equal(uw_qp_modify(sh.other.qp, UW_QPS_ERR), 0);
	assert_int_equal(*n, 1);
	/* and the one that names itself */
	assert_int_equal(uw_qp_modify(sh.self.qp, UW_QPS_ERR), 0);
	assert_int_equal(sh.self.async[UW_EVENT_QP_LAST_WQE_REACHED], 1);
	close_sharers(&sh);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_qp_may_name_itself),
		cmocka_unit_test(who_names_itself_leaves_others_their_receive),
		cmocka_unit_test(who_names_itself_and_fails_waits_no_more),
		cmocka_unit_test(the_last_receive_is_announced_without_a_stream),
	};

	return sim_run_tests(tests, argc, argv);
}
