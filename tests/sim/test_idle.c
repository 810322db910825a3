/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of which nothing is under way: they cost no timer, and lose nothing by that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#include "lwip/priv/tcp_priv.h"

#define ALL	     (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define PAIRS	     100u
#define PORT	     7471
#define KEEPALIVE_MS 2000u
#define ALL_LOST     1000000u

struct pair {
	struct sim_side a, b;
	struct uw_mr *ma, *mb;
	uint64_t out, in;
};

struct idle {
	struct sim s;
	struct pair pair[PAIRS];
};

static struct idle *open_with(struct sim_options o)
{
	struct idle *t = calloc(1, sizeof(*t));

	setenv("UWARP_KEEPALIVE_MS", "2000", 1);
	o.depth = 4;
	sim_open(&t->s, &o);
	sim_listen(&t->s, PORT);
	for (unsigned i = 0; i < PAIRS; i++) {
		struct pair *p = &t->pair[i];

		sim_open_side(&t->s, &p->a, NULL);
		sim_open_side(&t->s, &p->b, NULL);
		sim_connect_pair(&t->s, &p->a, &p->b, PORT);
		p->ma = sim_mr(&p->a, &p->out, sizeof(p->out), ALL);
		p->mb = sim_mr(&p->b, &p->in, sizeof(p->in), ALL);
	}
	return t;
}

static struct idle *open_all(void)
{
	return open_with((struct sim_options){ 0 });
}

static void close_all(struct idle *t)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		assert_int_equal(uw_mr_dereg(t->pair[i].ma), 0);
		assert_int_equal(uw_mr_dereg(t->pair[i].mb), 0);
		sim_close_side(&t->pair[i].a);
		sim_close_side(&t->pair[i].b);
	}
	sim_close(&t->s);
	free(t);
}

static void post(struct pair *p, uint64_t value)
{
	struct uw_sge sge = { (uintptr_t)&p->out, sizeof(p->out), uw_mr_stag(p->ma) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	p->out = value;
	sim_post_recv(&p->b, value, &p->in, sizeof(p->in), p->mb);
	sim_post_send(&p->a, &wr);
}

static void expect(struct idle *t, struct pair *p, uint64_t value)
{
	assert_int_equal(sim_wc(&t->s, p->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&t->s, p->b.rcq).wr_id, value);
	assert_int_equal(p->in, value);
}

static void set_drop(struct idle *t, uint32_t ppm)
{
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(t->s.link[i], ppm);
}

static unsigned living(const struct idle *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PAIRS; i++)
		n += !sim_had(&t->pair[i].a, UW_CM_DISCONNECTED) &&
		     !sim_had(&t->pair[i].b, UW_CM_DISCONNECTED);
	return n;
}

static uint64_t frames(const struct idle *t)
{
	return t->s.link[0]->stats.tx_frames + t->s.link[1]->stats.tx_frames;
}

/* Until somebody has been silent for too long. */
static void they_need_no_timer(void **state)
{
	struct idle *t = open_all();

	(void)state;
	sim_run_us(&t->s, 500000);
	assert_in_range(t->s.e->stack[0]->llp->next_timer_us(), 100000, 2000000);
	close_all(t);
}

static void one_that_sends_is_timed_again(void **state)
{
	struct idle *t = open_all();

	(void)state;
	sim_run_us(&t->s, 500000);
	for (unsigned i = 0; i < PAIRS; i += 7) {
		set_drop(t, ALL_LOST);
		post(&t->pair[i], i + 1);
		assert_in_range(t->s.e->stack[0]->llp->next_timer_us(), 1, 10000);
		sim_run_us(&t->s, 100000);
		set_drop(t, 0);
		expect(t, &t->pair[i], i + 1);
	}
	close_all(t);
}

static unsigned listed(void)
{
	unsigned n = 0;

	for (const struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next)
		n++;
	return n;
}

/* At lwIP's next slow tick most of those that had their turn since the last would be in cold
 * memory. */
static void of_those_that_take_turns_lwip_lists_the_last_ones(void **state)
{
	struct idle *t = open_with((struct sim_options){ .direct = true, .delay_us = 1 });
	unsigned most = 0;

	(void)state;
	sim_run_us(&t->s, 500000);
	assert_int_equal(listed(), 0);
	for (unsigned i = 0; i < PAIRS; i++) {
		post(&t->pair[i], i + 1);
		expect(t, &t->pair[i], i + 1);
		most = listed() > most ? listed() : most;
	}
	assert_in_range(most, 2, 32); /* 50 that way */
	sim_run_us(&t->s, 100000);
	assert_int_equal(listed(), 0);
	close_all(t);
}

/* RFC 1122 §4.2.3.6: one question for each time of silence, and none for those who speak. */
static void a_silent_peer_is_asked_and_stays(void **state)
{
	struct idle *t = open_all();
	uint64_t before;

	(void)state;
	sim_run_us(&t->s, 500000);
	before = frames(t);
	sim_run_us(&t->s, 10 * KEEPALIVE_MS * 1000);
	assert_int_equal(living(t), PAIRS);
	/* a question and an answer: about ten of each, of one end at least, of both at most */
	assert_in_range(frames(t) - before, 2 * 7 * PAIRS, 2 * 2 * 12 * PAIRS);
	post(&t->pair[3], 3);
	expect(t, &t->pair[3], 3);
	close_all(t);
}

static void a_dead_peer_is_found_out(void **state)
{
	struct idle *t = open_all();

	(void)state;
	sim_run_us(&t->s, 500000);
	set_drop(t, ALL_LOST);
	sim_run_us(&t->s, KEEPALIVE_MS * 1000 / 2);
	assert_int_equal(living(t), PAIRS);
	sim_run_us(&t->s, 5 * KEEPALIVE_MS * 1000);
	assert_int_equal(living(t), 0);
	set_drop(t, 0);
	close_all(t);
}

/* doc/failures.md: twice the time of silence that leads to the first question. */
static void a_dead_peer_is_found_out_soon(void **state)
{
	struct idle *t = open_all();

	(void)state;
	sim_run_us(&t->s, 500000);
	set_drop(t, ALL_LOST);
	sim_run_us(&t->s, 3 * KEEPALIVE_MS * 1000 / 2);
	assert_int_equal(living(t), PAIRS);
	sim_run_us(&t->s, (KEEPALIVE_MS / 2 + 250) * 1000);
	assert_int_equal(living(t), 0);
	set_drop(t, 0);
	close_all(t);
}

/* An outage that ends before the last question does no harm. */
static void a_peer_that_comes_back_stays(void **state)
{
	struct idle *t = open_all();

	(void)state;
	sim_run_us(&t->s, 500000);
	set_drop(t, ALL_LOST);
	sim_run_us(&t->s, 5 * KEEPALIVE_MS * 1000 / 4);
	set_drop(t, 0);
	sim_run_us(&t->s, 5 * KEEPALIVE_MS * 1000);
	assert_int_equal(living(t), PAIRS);
	close_all(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_need_no_timer),
		cmocka_unit_test(one_that_sends_is_timed_again),
		cmocka_unit_test(of_those_that_take_turns_lwip_lists_the_last_ones),
		cmocka_unit_test(a_silent_peer_is_asked_and_stays),
		cmocka_unit_test(a_dead_peer_is_found_out),
		cmocka_unit_test(a_dead_peer_is_found_out_soon),
		cmocka_unit_test(a_peer_that_comes_back_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
