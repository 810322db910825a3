/* SPDX-License-Identifier: BSD-3-Clause */
/* Many connections asked for at once: none fails, and none waits for a timer that it need not. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define PORT	   7471
#define BACKLOG	   1024
#define MOST	   4000u
#define TOO_MANY   1500u
#define RTO_US	   200000u
#define LIMIT_US   60000000u
#define CONNECT_US 5000000u /* UWARP_CONNECT_MS */

struct caller {
	struct sim_side side;
	struct burst *of;
};

struct burst {
	struct sim s;
	struct uw_ep *listener;
	struct caller callers[MOST];
	struct sim_side answered[MOST];
	unsigned n, requests, up, failed;
};

static bool on_request(void *ctx, const struct uw_cm_event *ev)
{
	struct burst *b = ctx;

	if (ev->type != UW_CM_CONNECT_REQUEST)
		return true; /* of what was answered */
	assert_in_range(b->requests, 0, b->n - 1);
	b->answered[b->requests++].ep = ev->ep;
	return true;
}

static bool on_outcome(void *ctx, const struct uw_cm_event *ev)
{
	struct caller *c = ctx;

	if (ev->type == UW_CM_ESTABLISHED)
		c->of->up++;
	else if (ev->type != UW_CM_DISCONNECTED)
		c->of->failed++;
	return true;
}

static struct sockaddr_in at(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(addr) };
}

static void listen_for(struct burst *b, int backlog)
{
	struct sockaddr_in here = at(SIM_B, PORT);

	assert_int_equal(uw_ep_create(b->s.e, on_request, b, &b->listener), 0);
	assert_int_equal(uw_ep_bind(b->listener, (struct sockaddr *)&here), 0);
	assert_int_equal(uw_ep_listen(b->listener, backlog), 0);
}

static void call(struct burst *b, struct caller *c)
{
	struct sockaddr_in from = at(SIM_A, 0), to = at(SIM_B, PORT);
	struct uw_cm_param p = { .ird = 1, .ord = 1 };

	c->of = b;
	sim_open_side(&b->s, &c->side, NULL);
	assert_int_equal(uw_ep_create(b->s.e, on_outcome, c, &c->side.ep), 0);
	assert_int_equal(uw_ep_bind(c->side.ep, (struct sockaddr *)&from), 0);
	assert_int_equal(uw_ep_resolve(c->side.ep, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(c->side.ep, uw_qp_num(c->side.qp), &p), 0);
}

static void answer(struct burst *b, struct sim_side *side)
{
	struct uw_cm_param p = { .ird = 1, .ord = 1 };
	struct uw_ep *ep = side->ep;

	sim_open_side(&b->s, side, NULL);
	side->ep = ep;
	uw_ep_set_ctx(ep, NULL);
	assert_int_equal(uw_ep_accept(ep, uw_qp_num(side->qp), &p), 0);
}

static bool first_asked(void *arg)
{
	return ((struct burst *)arg)->requests == 1;
}

static bool all_asked(void *arg)
{
	struct burst *b = arg;

	return b->requests == b->n || b->failed;
}

static bool all_up(void *arg)
{
	struct burst *b = arg;

	return b->up == b->n || b->failed;
}

/* Returns the virtual time from the first SYN to the last Reply. */
static uint64_t run(unsigned n, bool direct)
{
	struct burst *b = calloc(1, sizeof(*b));
	uint64_t start;

	b->n = n;
	sim_open(&b->s, &(struct sim_options){ .depth = 1, .frames = 4 * MOST, .direct = direct });
	listen_for(b, BACKLOG);
	call(b, &b->callers[0]); /* and ARP is through */
	assert_true(sim_until(&b->s, first_asked, b, LIMIT_US));
	start = b->s.now_us;
	for (unsigned i = 1; i < n; i++)
		call(b, &b->callers[i]);
	assert_true(sim_until(&b->s, all_asked, b, LIMIT_US));
	for (unsigned i = 0; i < b->requests; i++)
		answer(b, &b->answered[i]);
	assert_true(sim_until(&b->s, all_up, b, LIMIT_US));
	assert_int_equal(b->failed, 0);
	start = b->s.now_us - start;
	for (unsigned i = 0; i < n; i++) {
		sim_close_side(&b->callers[i].side);
		sim_close_side(&b->answered[i]);
	}
	uw_ep_destroy(b->listener);
	sim_close(&b->s);
	free(b);
	return start;
}

/* More start-up frames at once than a link takes, too. */
static void a_thousand_at_once_wait_for_no_timer(void **state)
{
	(void)state;
	assert_in_range(run(1000, false), 0, RTO_US / 2);
}

/* RFC 9293 §3.10.7.2: a SYN that finds no room is not answered, and comes again. */
static void more_than_may_be_half_open_come_again(void **state)
{
	(void)state;
	assert_in_range(run(TOO_MANY, false), RTO_US / 2, 5 * RTO_US);
}

/* Four thousand over a network: they come again until all of them are in. */
static void four_thousand_of_a_host_come_in_time(void **state)
{
	(void)state;
	assert_in_range(run(MOST, false), RTO_US / 2, CONNECT_US);
}

/* A process of this machine cannot forge addresses: its SYNs find a place at once. */
static void four_thousand_of_a_process_wait_for_no_timer(void **state)
{
	(void)state;
	assert_in_range(run(MOST, true), 0, RTO_US / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_at_once_wait_for_no_timer),
		cmocka_unit_test(more_than_may_be_half_open_come_again),
		cmocka_unit_test(four_thousand_of_a_host_come_in_time),
		cmocka_unit_test(four_thousand_of_a_process_wait_for_no_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
