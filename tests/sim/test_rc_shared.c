/* SPDX-License-Identifier: BSD-3-Clause */
/* CM-less RC where processes share an address: RC_PORT is of one of them alone, and who calls asks
 * for the port of the others' (doc/adr/0048). Here the other process is the link, which refuses a
 * port as if one had it. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/be.h"
#include "conn/rc/rc.h"
#include "net.h"

#define ALL (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)

static bool another_has_it; /* RC_PORT */

static uw_status claim(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)l;
	(void)versions;
	return another_has_it && port == htons(RC_PORT) ? UW_E_ADDR_IN_USE : UW_OK;
}

static void release(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)l;
	(void)port;
	(void)versions;
}

static unsigned claims, releases; /* of QPs, QP 1 apart */
static uint32_t claimed, released;
static bool deaf, away; /* no QP 1; no other QP */

static uw_status claim_qp(struct io_link *l, uint32_t qpn)
{
	(void)l;
	claims += qpn != MAD_QPN;
	claimed = qpn;
	return (qpn == MAD_QPN ? deaf : away) ? UW_E_ADDR_IN_USE : UW_OK;
}

static void release_qp(struct io_link *l, uint32_t qpn)
{
	(void)l;
	released = qpn;
	releases++;
}

/* b's address is shared; with it goes what b's link can. */
static struct sim *open_sim(const struct sim_options *o, bool other)
{
	static struct io_ops ops;
	struct sim *s = calloc(1, sizeof(*s));

	another_has_it = other;
	sim_open(s, o);
	ops = *s->link[1]->ops;
	ops.claim_port = claim;
	ops.release_port = release;
	ops.claim_packets = claim_qp;
	ops.release_packets = release_qp;
	claims = releases = 0;
	deaf = false;
	s->link[1]->ops = &ops;
	s->link[1]->flags |= IO_SHARED;
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_INIT), 0);
	return s;
}

static void close_sim(struct sim *s)
{
	sim_close(s);
	free(s);
}

static void name(struct sim_side *side, uint32_t own, uint32_t addr, uint32_t qpn)
{
	assert_int_equal(sim_name_peer(side->qp, own, addr, qpn), 0);
	assert_int_equal(uw_qp_modify(side->qp, UW_QPS_RTS), 0);
}

/* One octet from a to b. */
static void they_meet(struct sim *s)
{
	uint8_t from = 7, to = 0;
	struct uw_mr *mf = sim_mr(&s->a, &from, 1, ALL), *mt = sim_mr(&s->b, &to, 1, ALL);
	struct uw_sge sge = { (uintptr_t)&from, 1, uw_mr_stag(mf) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	sim_post_recv(&s->b, 1, &to, 1, mt);
	sim_post_send(&s->a, &wr);
	assert_int_equal(sim_wc(s, s->b.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(to, 7);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(uw_mr_dereg(mf), 0);
	assert_int_equal(uw_mr_dereg(mt), 0);
}

/* Frames may be lost, questions and answers among them. */
static void who_calls_asks_for_the_port(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 5; seed++) {
		struct sim *s = open_sim(
			&(struct sim_options){ .drop_ppm = seed ? 100000 : 0, .seed = seed }, true);

		name(&s->a, SIM_A, SIM_B, uw_qp_num(s->b.qp));
		sim_run_us(s, 300000); /* the peer is not there yet: nobody answers */
		assert_int_equal(sim_stats(s).rc_told, 0);
		assert_true(sim_stats(s).rc_asked > 3);
		name(&s->b, SIM_B, SIM_A, uw_qp_num(s->a.qp));
		they_meet(s);
		assert_true(sim_stats(s).rc_told >= 1);
		close_sim(s);
	}
}

static void the_first_process_has_the_usual_port(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, false);

	(void)state;
	name(&s->b, SIM_B, SIM_A, uw_qp_num(s->a.qp));
	name(&s->a, SIM_A, SIM_B, uw_qp_num(s->b.qp));
	they_meet(s);
	assert_int_equal(sim_stats(s).rc_asked, 0);
	assert_int_equal(rc_port_of(s->e->stack[0], s->link[1]), RC_PORT);
	close_sim(s);
}

/* Who has RC_PORT and no such QP does not know whether another process has it: no verdict for
 * ever. */
static void a_qp_that_is_elsewhere_is_looked_for(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, false);

	(void)state;
	name(&s->b, SIM_B, SIM_A, 4711);
	name(&s->a, SIM_A, SIM_B, 4712); /* there is none */
	sim_run_us(s, 3000000);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RTS);
	assert_true(sim_stats(s).rc_asked > 3);
	assert_int_equal(sim_stats(s).rc_told, 0);
	close_sim(s);
}

/* Both QPs are this process's, and the usual port another one's. */
static void own_qps_need_no_question(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, true);

	(void)state;
	name(&s->a, SIM_B, SIM_B, uw_qp_num(s->b.qp));
	name(&s->b, SIM_B, SIM_B, uw_qp_num(s->a.qp));
	they_meet(s);
	assert_int_equal(sim_stats(s).rc_asked, 0);
	close_sim(s);
}

/* A port is believed only from who was asked, with the name of the question. */
static void answers_to_no_question_are_stale(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, true);
	struct stack *st = s->e->stack[0];
	struct mad m = { .kind = MAD_SIDR_REP, .rep = { .space = SIDR_RC, .data = { 0, 80 } } };
	struct roce_packet p = { 0 };
	uint64_t tid;
	struct rc *rc;

	(void)state;
	name(&s->a, SIM_A, SIM_B, uw_qp_num(s->b.qp));
	rc = st->rc.list;
	sim_run_us(s, 200000);
	assert_int_equal(rc->state, RC_WAITING);
	m.request_id = rc->self.qpn;
	m.rep.qpn = rc->peer.qpn;
	tid = rc->ask_tid;
	rc->ask_tid = 0; /* as if it had never asked */
	p.src = rc->peer.addr;
	rc_answered(st, &p, &m);
	rc->ask_tid = tid;
	m.tid = rc->ask_tid ^ 1;
	rc_answered(st, &p, &m);
	m.tid = rc->ask_tid;
	m.request_id++;
	rc_answered(st, &p, &m);
	m.request_id--;
	p.src = uw_ip_v4(htonl(SIM_A));
	rc_answered(st, &p, &m);
	p.src = rc->peer.addr;
	m.rep.qpn = rc->peer.qpn ^ 1;
	rc_answered(st, &p, &m);
	m.rep.qpn = rc->peer.qpn;
	m.rep.status = SIDR_NO_SERVICE;
	rc_answered(st, &p, &m);
	assert_int_equal(rc->peer_port, 0);
	assert_int_equal(sim_stats(s).sidr_rx_stale, 6);
	m.rep.status = SIDR_VALID;
	rc_answered(st, &p, &m);
	assert_int_equal(rc->peer_port, 80);
	/* nobody is there, so it asks anew */
	sim_run_us(s, 1000000);
	assert_int_equal(rc->peer_port, 0);
	close_sim(s);
}

/* A link that tells QPs apart lets an answer out only from who has claimed the QP. */
static void who_may_be_asked_for_claims_its_qp(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, true);

	(void)state;
	name(&s->b, SIM_B, SIM_A, uw_qp_num(s->a.qp));
	assert_int_equal(claims, 1);
	assert_int_equal(claimed, uw_qp_num(s->b.qp));
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RESET), 0);
	assert_int_equal(releases, 1);
	assert_int_equal(released, claimed);
	close_sim(s);
	s = open_sim(&(struct sim_options){ 0 }, true);
	deaf = true; /* no question comes, so there is nothing to answer */
	name(&s->b, SIM_B, SIM_A, uw_qp_num(s->a.qp));
	assert_int_equal(claims, 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RESET), 0);
	assert_int_equal(releases, 0);
	close_sim(s);
}

/* The uwarpd is away when the QP is named, and there again when somebody asks. */
static void what_could_not_be_claimed_is_claimed_when_asked_for(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, true);
	struct mad m = { .kind = MAD_SIDR_REQ, .tid = 1, .request_id = 1 };
	struct roce_packet p = { .src = uw_ip_v4(htonl(SIM_A)), .dst = uw_ip_v4(htonl(SIM_B)) };
	struct stack *st = s->e->stack[0];

	(void)state;
	away = true;
	name(&s->b, SIM_B, SIM_A, uw_qp_num(s->a.qp));
	assert_int_equal(claims, 1);
	away = false;
	uw_put32(m.req.data, uw_qp_num(s->b.qp));
	rc_asked(st, s->b.qp->c.rc->l, &p, &m);
	assert_int_equal(claims, 2);
	rc_asked(st, s->b.qp->c.rc->l, &p, &m);
	assert_int_equal(claims, 2);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RESET), 0);
	assert_int_equal(releases, 1);
	close_sim(s);
}

static bool is_called(void *arg)
{
	return ((struct sim *)arg)->listener.request;
}

static void answer_with_port(struct stack *st, struct rc *rc, uint16_t port)
{
	struct mad m = { .kind = MAD_SIDR_REP,
			 .tid = rc->ask_tid,
			 .request_id = rc->self.qpn,
			 .rep = { .qpn = rc->peer.qpn, .space = SIDR_RC } };
	struct roce_packet p = { .src = rc->peer.addr };

	uw_put16(m.rep.data, port);
	rc_answered(st, &p, &m);
}

/* A process at the address that has not the QP takes the call all the same, and says so. */
static void an_impostor_says(struct sim *s, struct rc *rc, const uint8_t *hello)
{
	struct uw_cm_param p = { .private_data = hello,
				 .private_data_len = sizeof(struct rc_wire) };
	struct sim_side impostor = { 0 };

	sim_run_us(s, 200000);
	s->listener.request = NULL;
	answer_with_port(s->e->stack[0], rc, 7000);
	assert_true(sim_until(s, is_called, s, 1000000));
	sim_open_side(s, &impostor, NULL);
	impostor.ep = s->listener.request;
	uw_ep_set_ctx(impostor.ep, &impostor);
	assert_int_equal(uw_ep_accept(impostor.ep, uw_qp_num(impostor.qp), &p), 0);
	sim_run_us(s, 200000);
	sim_close_side(&impostor);
}

/* Else the call has failed, the QP is untouched, and the one that was meant is looked for. */
static void who_takes_a_call_has_to_be_meant(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 }, true);
	uint32_t here = uw_qp_num(s->a.qp), there = uw_qp_num(s->b.qp);
	const struct rc_hello lies[3] = { { .from = there, .to = here + 1 },
					  { .from = there + 1, .to = here },
					  { .from = there, .to = here, .refusal = RC_ELSEWHERE } };
	uint8_t nonsense[sizeof(struct rc_wire)] = "nonsense", hello[sizeof(struct rc_wire)];
	struct rc *rc;

	(void)state;
	sim_listen(s, 7000);
	name(&s->a, SIM_A, SIM_B, there);
	rc = s->e->stack[0]->rc.list;
	for (unsigned i = 0; i < 4; i++) {
		if (i < 3)
			rc_hello_encode(&lies[i], hello);
		an_impostor_says(s, rc, i < 3 ? hello : nonsense);
		assert_int_equal(rc->state, RC_WAITING);
		assert_int_equal(rc->peer_port, 0);
		assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RTS);
	}
	name(&s->b, SIM_B, SIM_A, here);
	they_meet(s);
	close_sim(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_calls_asks_for_the_port),
		cmocka_unit_test(the_first_process_has_the_usual_port),
		cmocka_unit_test(a_qp_that_is_elsewhere_is_looked_for),
		cmocka_unit_test(own_qps_need_no_question),
		cmocka_unit_test(answers_to_no_question_are_stale),
		cmocka_unit_test(who_takes_a_call_has_to_be_meant),
		cmocka_unit_test(who_may_be_asked_for_claims_its_qp),
		cmocka_unit_test(what_could_not_be_claimed_is_claimed_when_asked_for),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
