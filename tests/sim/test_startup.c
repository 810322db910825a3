/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may speak first, and what happens when the peer is silent. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "conn/endpoint.h"
#include "net.h"

#define SECOND	 1000000u
#define NUDGES	 5u
#define ALL_LOST 1000000u

struct bench {
	struct sim s;
	uint8_t a[64], b[64];
	struct uw_mr *ma, *mb;
};

static struct bench *open_bench(const struct sim_options *o)
{
	struct bench *t = calloc(1, sizeof(*t));

	sim_open(&t->s, o);
	sim_connect(&t->s, 7471);
	t->ma = sim_mr(&t->s.a, t->a, sizeof(t->a), UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE);
	t->mb = sim_mr(&t->s.b, t->b, sizeof(t->b), UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE);
	return t;
}

static void close_bench(struct bench *t)
{
	assert_int_equal(uw_mr_dereg(t->ma), 0);
	assert_int_equal(uw_mr_dereg(t->mb), 0);
	sim_close(&t->s);
	free(t);
}

static void post(struct sim_side *side, uint8_t *p, struct uw_mr *mr, uint32_t opcode, uint64_t to,
		 uint32_t rkey)
{
	struct uw_sge sge = { (uintptr_t)p, 64, uw_mr_stag(mr) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = to,
				 .rkey = rkey };

	sim_post_send(side, &wr);
}

/* The responder's program sends first. */
static void b_sends(struct bench *t)
{
	sim_post_recv(&t->s.a, 1, t->a, sizeof(t->a), t->ma);
	post(&t->s.b, t->b, t->mb, UW_WR_SEND, 0, 0);
}

static void a_writes(struct bench *t)
{
	post(&t->s.a, t->a, t->ma, UW_WR_RDMA_WRITE, (uintptr_t)t->b, uw_mr_stag(t->mb));
}

static void a_received(struct bench *t)
{
	assert_int_equal(sim_wc(&t->s, t->s.a.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&t->s, t->s.b.scq).status, UW_WC_SUCCESS);
}

static uint64_t fpdus(const struct bench *t)
{
	return sim_stats(&t->s).mpa_tx_fpdus;
}

/* RFC 5044 §7.1.2: the responder sends nothing before it has validated one FPDU. */
static void a_responder_waits_for_the_first_fpdu(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ .no_p2p = true });

	(void)state;
	b_sends(t);
	sim_run_us(&t->s, 60 * SECOND);
	assert_int_equal(fpdus(t), 0);
	a_writes(t);
	a_received(t);
	close_bench(t);
}

/* doc/rfc/deviations.md, M28: only as long as the administrator says. */
static void a_responder_that_may_speaks_after_a_silence(void **state)
{
	struct bench *t =
		open_bench(&(struct sim_options){ .no_p2p = true, .speak_first_ms = 500 });

	(void)state;
	b_sends(t);
	sim_run_us(&t->s, SECOND / 3);
	assert_int_equal(fpdus(t), 0);
	sim_run_us(&t->s, SECOND / 3);
	assert_int_equal(fpdus(t), 1);
	a_received(t);
	close_bench(t);
}

/* What is sent long after the start of the connection has to wait no longer than that either. */
static void a_responder_that_may_speaks_later_too(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ .rev1 = true, .speak_first_ms = 500 });

	(void)state;
	sim_run_us(&t->s, 10 * SECOND);
	assert_int_equal(fpdus(t), 0);
	b_sends(t);
	sim_run_us(&t->s, SECOND);
	assert_int_equal(fpdus(t), 1);
	a_received(t);
	close_bench(t);
}

/* RFC 6581 §9.2: peer-to-peer needs no such leave, the initiator's RTR opens the way. */
static void a_peer_to_peer_responder_speaks_at_once(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ 0 });

	(void)state;
	b_sends(t);
	sim_run_us(&t->s, SECOND / 100);
	a_received(t);
	close_bench(t);
}

/* conn.c, nudge: a responder that may not have looked at its stream yet gets something to look at,
 * a few times. */
static void a_silent_peer_is_nudged_a_few_times(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ .no_p2p = true });

	(void)state;
	sim_run_us(&t->s, SECOND);
	assert_int_equal(fpdus(t), 0); /* we have said nothing that could lie there */
	a_writes(t);
	sim_run_us(&t->s, SECOND / 200);
	assert_int_equal(fpdus(t), 1);
	sim_run_us(&t->s, 60 * SECOND);
	assert_int_equal(fpdus(t), 1 + NUDGES);
	assert_int_equal(sim_wc(&t->s, t->s.a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(uw_qp_state(t->s.b.qp), UW_QPS_RTS);
	close_bench(t);
}

static void a_peer_that_spoke_is_not_nudged(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ .no_p2p = true });

	(void)state;
	a_writes(t);
	sim_run_us(&t->s, SECOND / 1000);
	b_sends(t);
	a_received(t);
	sim_run_us(&t->s, 60 * SECOND);
	assert_int_equal(fpdus(t), 2);
	close_bench(t);
}

/* RFC 1122 §4.2.3.6: who only waits learns that the other host is gone. */
static void a_peer_that_died_is_noticed_by_one_that_waits(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ 0 });

	(void)state;
	a_writes(t);
	sim_run_us(&t->s, SECOND);
	loop_set_drop(t->s.link[1], ALL_LOST);
	sim_run_us(&t->s, 2 * SECOND);
	assert_int_equal(uw_qp_state(t->s.a.qp), UW_QPS_RTS);
	sim_run_us(&t->s, 30 * SECOND);
	assert_int_equal(uw_qp_state(t->s.a.qp), UW_QPS_ERR);
	assert_true(sim_had(&t->s.a, UW_CM_DISCONNECTED));
	loop_set_drop(t->s.link[1], 0);
	close_bench(t);
}

static void a_peer_that_only_has_nothing_to_say_is_not_taken_for_dead(void **state)
{
	struct bench *t = open_bench(&(struct sim_options){ 0 });

	(void)state;
	sim_run_us(&t->s, 60 * SECOND);
	assert_int_equal(uw_qp_state(t->s.a.qp), UW_QPS_RTS);
	b_sends(t);
	a_received(t);
	close_bench(t);
}

/* ---- what a callback leaves for later ------------------------------------------------------ */

struct left {
	struct uw_stack *stack;
	unsigned asked, done, while_locked;
};

static void done_later(void *arg)
{
	struct left *l = arg;

	l->done++;
	if (atomic_load(&((struct stack *)l->stack)->sched.lock) != SCHED_FREE)
		l->while_locked++;
}

static bool leave_it(void *ctx, const struct uw_cm_event *ev)
{
	struct left *l = ctx;

	l->stack = ev->stack;
	assert_true(atomic_load(&((struct stack *)ev->stack)->sched.lock) != SCHED_FREE);
	while (uw_later(ev->stack, done_later, l))
		l->asked++;
	assert_int_equal(l->done, 0);
	return true;
}

/* As often as it was asked for, and as many as there is room for. */
static void what_a_callback_leaves_is_done_without_the_lock(void **state)
{
	struct sim s;
	struct left l = { 0 };
	struct sockaddr_storage to;
	struct uw_cm_param p = { 0 };
	struct uw_ep *ep;

	(void)state;
	sim_open(&s, &(struct sim_options){ 0 });
	to = sim_addr(&s, SIM_B, 1); /* nobody listens there */
	assert_int_equal(uw_ep_create(s.e, leave_it, &l, &ep), 0);
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(ep, uw_qp_num(s.a.qp), &p), 0);
	sim_run_us(&s, 10 * SECOND);
	assert_int_equal(l.asked, AFTER_CALLS);
	assert_int_equal(l.done, l.asked);
	assert_int_equal(l.while_locked, 0);
	uw_ep_destroy(ep);
	sim_close(&s);
}

/* ---- one QP, one connection ------------------------------------------------------------------ */

static struct uw_ep *resolved(struct sim *s, struct sim_side *side)
{
	struct sockaddr_storage to = sim_addr(s, SIM_B, 7471);

	assert_int_equal(uw_ep_create(s->e, sim_event, side, &side->ep), 0);
	assert_int_equal(uw_ep_resolve(side->ep, NULL, (struct sockaddr *)&to, 1000), 0);
	return side->ep;
}

static bool reaches_nobody(struct io_link *l, const struct uw_ip *to)
{
	(void)l;
	(void)to;
	return false;
}

/* As a packet link that knows the address for a uwarpd's; such a link has one stack. */
static void an_address_that_the_link_does_not_reach(void **state)
{
	struct sockaddr_storage to;
	const struct io_ops *before;
	struct uw_ep *ep;
	struct io_ops ops;
	struct sim s;

	(void)state;
	sim_open(&s, &(struct sim_options){ 0 });
	if (s.e->n_stacks > 1) {
		sim_close(&s);
		skip();
	}
	before = s.link[0]->ops;
	ops = *before;
	ops.reaches = reaches_nobody;
	s.link[0]->ops = &ops;
	to = sim_addr(&s, SIM_B, 7471);
	assert_int_equal(uw_ep_create(s.e, sim_event, &s.a, &ep), 0);
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&to, 1000), -EHOSTUNREACH);
	uw_ep_destroy(ep);
	s.link[0]->ops = before;
	sim_close(&s);
}

static bool is_over(void *arg)
{
	return sim_had(arg, UW_CM_CONNECT_ERROR);
}

/* While its first connect is under way it cannot be given to another; and the first one's endpoint
 * does not hold on to it when it is destroyed. */
static void a_qp_is_not_given_to_a_second_connect(void **state)
{
	struct sim_side first = { 0 }, second = { 0 };
	const struct uw_cm_param p = { .ird = 4, .ord = 4 };
	struct stack *home;
	struct sim s;

	(void)state;
	sim_open(&s, &(struct sim_options){ 0 });
	sim_listen(&s, 7471);
	resolved(&s, &first);
	resolved(&s, &second);
	assert_int_equal(uw_ep_connect(first.ep, uw_qp_num(s.a.qp), &p), 0);
	home = conn_qp_stack(&s.a.qp->c);
	assert_int_equal(uw_ep_connect(second.ep, uw_qp_num(s.a.qp), &p), -EINVAL);
	assert_ptr_equal(conn_qp_stack(&s.a.qp->c), home); /* it has not moved */
	assert_int_equal(second.ep->state, EP_RESOLVED);
	assert_int_equal(uw_qp_destroy(s.a.qp), 0);
	s.a.qp = NULL;
	assert_null(first.ep->conn->claimed);
	while (!s.listener.request)
		sim_run_us(&s, 1000);
	uw_ep_set_ctx(s.listener.request, &s.b);
	s.b.ep = s.listener.request;
	assert_int_equal(uw_ep_accept(s.b.ep, uw_qp_num(s.b.qp), &p), 0);
	assert_true(sim_until(&s, is_over, &first, 60 * SECOND));
	assert_false(sim_had(&first, UW_CM_ESTABLISHED));
	uw_ep_destroy(first.ep);
	uw_ep_destroy(second.ep);
	sim_close(&s);
}

/* ---- a request that the program does not take ------------------------------------------------ */

static bool is_rejected(void *arg)
{
	return sim_had(arg, UW_CM_REJECTED);
}

/* It has no memory for it, or enough of them: the peer hears so at once, and what was made for the
 * request is no more. */
static void a_request_that_is_not_taken_is_rejected(void **state)
{
	const struct uw_cm_param p = { .ird = 4, .ord = 4 };
	struct sim s;

	(void)state;
	sim_open(&s, &(struct sim_options){ 0 });
	sim_listen(&s, 7471);
	s.listener.declines = true;
	for (unsigned i = 1; i <= 20; i++) {
		struct sim_side side = { 0 };

		resolved(&s, &side);
		assert_int_equal(uw_ep_connect(side.ep, uw_qp_num(s.a.qp), &p), 0);
		assert_true(sim_until(&s, is_rejected, &side, SECOND));
		assert_int_equal(sim_stats(&s).cm_not_taken, i);
		assert_int_equal(side.ep->stack->domain->n_eps, 2); /* the listener and this */
		uw_ep_destroy(side.ep);
	}
	s.listener.declines = false;
	sim_connect(&s, 7471);
	sim_close(&s);
}

/* ---- a neighbour that is not known yet ------------------------------------------------------- */

enum { AT_ONCE = 100 };

static bool all_were_heard(void *arg)
{
	return sim_stats(arg).cm_not_taken == AT_ONCE;
}

/* No SYN is lost while the first one's ARP, or neighbour discovery, is under way: lwIP would repeat
 * it only after 200 ms. */
static void connects_in_a_row_wait_for_the_neighbour_together(void **state)
{
	const struct uw_cm_param p = { .ird = 4, .ord = 4 };

	(void)state;
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		struct sim_side *side = calloc(AT_ONCE, sizeof(*side));
		struct sim s;

		sim_open(&s, &(struct sim_options){ .ip6 = ip6 });
		sim_listen(&s, 7471);
		s.listener.declines = true;
		for (unsigned i = 0; i < AT_ONCE; i++) {
			sim_open_side(&s, &side[i], NULL);
			resolved(&s, &side[i]);
		}
		for (unsigned i = 0; i < AT_ONCE; i++)
			assert_int_equal(uw_ep_connect(side[i].ep, uw_qp_num(side[i].qp), &p), 0);
		assert_true(sim_until(&s, all_were_heard, &s, SECOND / 10));
		for (unsigned i = 0; i < AT_ONCE; i++)
			sim_close_side(&side[i]);
		sim_close(&s);
		free(side);
	}
}

/* ---- what is said of a start-up that nobody answers ------------------------------------------ */

enum { SYN_MOST = 14 + 20 + 60 }; /* Ethernet, IPv4 and TCP with all options */

static struct {
	struct io_ops ops;
	const struct io_ops *under;
	struct io_link *back;
} quiet;

/* The way breaks with the first octets of the stream. */
static unsigned tx_short(struct io_link *l, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (v[i]->len > SYN_MOST)
			loop_set_drop(quiet.back, ALL_LOST);
		if (v[i]->len > SYN_MOST)
			l->ops->free(v[i]);
		else
			assert_int_equal(quiet.under->tx(l, &v[i], 1), 1);
	}
	return n;
}

/* Connect to a program that accepts nothing, and return what was printed by the end. */
static const char *unanswered(bool lost)
{
	static char said[512];
	const struct uw_cm_param p = { .private_data = said, .private_data_len = 40 };
	int old = dup(2), file = memfd_create("stderr", MFD_CLOEXEC);
	struct sim_side side = { 0 };
	const struct io_ops *ops;
	struct sim s;

	memset(said, 0, sizeof(said));
	sim_open(&s, &(struct sim_options){ .connect_ms = 5000, .direct = true });
	sim_listen(&s, 7471);
	resolved(&s, &side);
	ops = quiet.under = s.link[0]->ops;
	quiet.ops = *ops;
	quiet.ops.tx = tx_short;
	quiet.back = s.link[1];
	if (lost)
		s.link[0]->ops = &quiet.ops;
	assert_int_equal(uw_ep_connect(side.ep, uw_qp_num(s.a.qp), &p), 0);
	dup2(file, 2);
	assert_true(sim_until(&s, is_over, &side, 60 * SECOND));
	dup2(old, 2);
	s.link[0]->ops = ops;
	assert_true(pread(file, said, sizeof(said) - 1, 0) > 0);
	assert_int_equal(!s.listener.request, lost);
	if (s.listener.request)
		uw_ep_destroy(s.listener.request);
	uw_ep_destroy(side.ep);
	sim_close(&s);
	close(old);
	close(file);
	return said;
}

static void it_is_said_whether_the_request_arrived(void **state)
{
	(void)state;
	assert_non_null(strstr(unanswered(false), "has our MPA Request"));
	assert_non_null(strstr(unanswered(true), "acknowledged nothing"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_responder_waits_for_the_first_fpdu),
		cmocka_unit_test(a_responder_that_may_speaks_after_a_silence),
		cmocka_unit_test(a_responder_that_may_speaks_later_too),
		cmocka_unit_test(a_peer_to_peer_responder_speaks_at_once),
		cmocka_unit_test(a_silent_peer_is_nudged_a_few_times),
		cmocka_unit_test(a_peer_that_spoke_is_not_nudged),
		cmocka_unit_test(a_peer_that_died_is_noticed_by_one_that_waits),
		cmocka_unit_test(a_qp_is_not_given_to_a_second_connect),
		cmocka_unit_test(a_request_that_is_not_taken_is_rejected),
		cmocka_unit_test(connects_in_a_row_wait_for_the_neighbour_together),
		cmocka_unit_test(it_is_said_whether_the_request_arrived),
		cmocka_unit_test(what_a_callback_leaves_is_done_without_the_lock),
		cmocka_unit_test(an_address_that_the_link_does_not_reach),
		cmocka_unit_test(a_peer_that_only_has_nothing_to_say_is_not_taken_for_dead),
	};

	if (argc > 1) /* one test alone, for looking closely */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
