/* SPDX-License-Identifier: BSD-3-Clause */
/* CM-less RC, and rdma_cm's datagrams, when the process ends: its stack goes on for a while, and so
 * may threads of the program. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conn/endpoint.h"
#include "conn/rc/rc.h"
#include "net.h"

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

/* a has the lower address: it is the one that calls. */
static void a_calls_b(struct sim *s)
{
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_B, uw_qp_num(s->b.qp)), 0);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RTS), 0);
}

static struct stack *the_stack(const struct sim *s)
{
	return s->e->stack[0];
}

static bool a_call_waits(void *arg)
{
	return the_stack(arg)->rc.n_calls;
}

static bool a_waits(void *arg)
{
	return the_stack(arg)->rc.list->state == RC_WAITING;
}

static void retire(struct sim *s)
{
	sched_lock_all(&the_stack(s)->sched);
	stack_retire(the_stack(s));
	sched_unlock_all(&the_stack(s)->sched);
}

/* Its connection is freed before its time is over, and so is the caller's before the QP is
 * destroyed. */
static void a_call_that_waits_ends_with_the_stack(void **state)
{
	struct sim *s = open_sim();

	(void)state;
	assert_int_equal(sim_name_peer(s->b.qp, SIM_B, SIM_A, uw_qp_num(s->a.qp) + 1), 0);
	a_calls_b(s);
	assert_true(sim_until(s, a_call_waits, s, 1000000));
	retire(s);
	assert_int_equal(the_stack(s)->rc.n_calls, 0);
	sim_run_us(s, 90000000);
	close_sim(s);
}

/* A thread that polls runs timers until the process is gone. */
static void nobody_calls_over_links_that_are_closed(void **state)
{
	struct sim *s = open_sim();
	unsigned n = the_stack(s)->n_links;

	(void)state;
	a_calls_b(s); /* who does not listen yet */
	sim_run_us(s, 100000);
	assert_true(sim_until(s, a_waits, s, 1000000));
	retire(s);
	the_stack(s)->n_links = 0;
	the_stack(s)->rc.list->l = NULL; /* freed, in a process */
	sim_run_us(s, 10000000);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RESET), 0);
	the_stack(s)->n_links = n;
	close_sim(s);
}

static bool nobody_hears(void *ctx, const struct uw_cm_event *ev)
{
	*(enum uw_cm_event_type *)ctx = ev->type;
	return true;
}

static struct uw_ep *asking(struct sim *s, enum uw_cm_event_type *outcome)
{
	struct sockaddr_storage to = sim_addr(s, SIM_B, 7174);
	const struct uw_cm_param nothing = { 0 };
	struct uw_ep *ep;

	assert_int_equal(uw_ep_create(s->e, nobody_hears, outcome, &ep), 0);
	assert_int_equal(uw_ep_set_datagrams(ep), 0);
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(ep, 0, &nothing), 0);
	return ep;
}

/* Nor is a question of rdma_cm's datagrams asked again over them. */
static void nobody_asks_over_links_that_are_closed(void **state)
{
	enum uw_cm_event_type outcome = UW_CM_ESTABLISHED;
	struct sim *s = open_sim();
	unsigned n = the_stack(s)->n_links;
	struct uw_ep *ep = asking(s, &outcome);

	(void)state;
	retire(s);
	the_stack(s)->n_links = 0;
	ep->l = NULL; /* freed, in a process */
	sim_run_us(s, 60000000);
	assert_int_equal(outcome, UW_CM_UNREACHABLE);
	the_stack(s)->n_links = n;
	uw_ep_destroy(ep);
	close_sim(s);
}

static void nobody_listens_on_links_that_are_closed(void **state)
{
	enum uw_cm_event_type outcome = UW_CM_ESTABLISHED;
	struct sim *s = open_sim();
	struct sockaddr_storage at = sim_addr(s, SIM_B, 7174);
	struct io_link *was = the_stack(s)->links[0];
	unsigned n = the_stack(s)->n_links;
	struct uw_ep *ep;

	(void)state;
	assert_int_equal(uw_ep_create(s->e, nobody_hears, &outcome, &ep), 0);
	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&at), 0);
	retire(s);
	the_stack(s)->n_links = 0;
	the_stack(s)->links[0] = NULL; /* freed, in a process */
	assert_int_equal(uw_ep_listen(ep, 5), -EINVAL);
	the_stack(s)->links[0] = was;
	the_stack(s)->n_links = n;
	uw_ep_destroy(ep);
	close_sim(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_waits_ends_with_the_stack),
		cmocka_unit_test(nobody_calls_over_links_that_are_closed),
		cmocka_unit_test(nobody_asks_over_links_that_are_closed),
		cmocka_unit_test(nobody_listens_on_links_that_are_closed),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
