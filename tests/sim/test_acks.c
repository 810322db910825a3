/* SPDX-License-Identifier: BSD-3-Clause */
/* ACKs of messages that the program is about to answer (doc/adr/0068). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define PORT	 7471
#define LENGTH	 4000u /* three segments of an Ethernet */
#define ROUND_US 10u
#define ROUNDS	 100000u

struct pair {
	struct sim s;
	uint8_t octets[LENGTH];
	struct uw_mr *ma, *mb;
};

static struct stack *the_stack(struct pair *p)
{
	return p->s.e->stack[0];
}

static void open_pair(struct pair *p)
{
	const struct sim_options o = { .seed = 1 };

	memset(p, 0, sizeof(*p));
	sim_open(&p->s, &o);
	p->ma = sim_mr(&p->s.a, p->octets, LENGTH, UW_ACCESS_LOCAL_WRITE);
	p->mb = sim_mr(&p->s.b, p->octets, LENGTH, UW_ACCESS_LOCAL_WRITE);
	sim_listen(&p->s, PORT);
	sim_connect(&p->s, PORT);
	for (unsigned i = 0; i < 8; i++) {
		sim_post_recv(&p->s.a, i, p->octets, LENGTH, p->ma);
		sim_post_recv(&p->s.b, i, p->octets, LENGTH, p->mb);
	}
	sim_settle(&p->s);
}

static void close_pair(struct pair *p)
{
	uw_mr_dereg(p->ma);
	uw_mr_dereg(p->mb);
	sim_close(&p->s);
}

static void send_message(struct sim_side *side, struct uw_mr *mr, uint8_t *octets)
{
	struct uw_sge sge = { (uintptr_t)octets, LENGTH, uw_mr_stag(mr) };
	struct uw_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND };

	sim_post_send(side, &wr);
}

static uint64_t frames_of(const struct pair *p, unsigned end)
{
	return p->s.link[end]->stats.tx_frames;
}

static void a_round(struct pair *p, bool comes_back)
{
	sched_lock(&the_stack(p)->sched);
	engine_sched_ops.run(the_stack(p), comes_back);
	sched_unlock(&the_stack(p)->sched);
}

/* The rounds of a program that polls, until its message is there. */
static void poll_until_it_comes(struct pair *p, struct uw_cq *cq)
{
	struct uw_wc wc;

	for (unsigned i = 0; i < ROUNDS; i++) {
		p->s.now_us += ROUND_US;
		a_round(p, true);
		if (uw_cq_poll(cq, 1, &wc) > 0)
			return;
	}
	fail();
}

static bool is_pending(struct pair *p)
{
	bool any;

	sched_lock(&the_stack(p)->sched);
	any = engine_sched_ops.pending(the_stack(p), true);
	sched_unlock(&the_stack(p)->sched);
	return any;
}

static void an_answer_carries_the_ack(void **state)
{
	struct pair p;
	uint64_t a, b;

	(void)state;
	open_pair(&p);
	a = frames_of(&p, 0);
	b = frames_of(&p, 1);
	for (unsigned i = 0; i < 3; i++) {
		send_message(&p.s.a, p.ma, p.octets);
		poll_until_it_comes(&p, p.s.b.rcq);
		send_message(&p.s.b, p.mb, p.octets);
		poll_until_it_comes(&p, p.s.a.rcq);
	}
	assert_int_equal(frames_of(&p, 0) - a, 3 * 3);
	assert_int_equal(frames_of(&p, 1) - b, 3 * 3);
	close_pair(&p);
}

/* Whoever is about to sleep learns that something is left to do. */
static void without_an_answer_it_goes_alone(void **state)
{
	struct pair p;
	uint64_t b;

	(void)state;
	open_pair(&p);
	b = frames_of(&p, 1);
	assert_false(is_pending(&p));
	send_message(&p.s.a, p.ma, p.octets);
	poll_until_it_comes(&p, p.s.b.rcq);
	assert_int_equal(frames_of(&p, 1), b);
	assert_true(is_pending(&p));
	a_round(&p, false);
	assert_int_equal(frames_of(&p, 1), b + 1);
	sim_settle(&p.s);
	assert_false(is_pending(&p));
	close_pair(&p);
}

/* A call of the kernel for an ACK would keep the rest waiting. */
static void the_rest_of_a_long_message_is_taken_in_before_an_ack(void **state)
{
	const unsigned access = UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE;
	const struct sim_options o = { .seed = 2, .cuts = 64 };
	static uint8_t octets[65536];
	struct pair p = { 0 };
	struct uw_sge sge = { (uintptr_t)octets, sizeof(octets), 0 };
	struct uw_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UW_WR_RDMA_WRITE };
	uint64_t before;

	(void)state;
	sim_open(&p.s, &o);
	p.mb = sim_mr(&p.s.b, octets, sizeof(octets), access);
	p.ma = sim_mr(&p.s.a, octets, sizeof(octets), UW_ACCESS_LOCAL_WRITE);
	sge.lkey = uw_mr_stag(p.ma);
	wr.rkey = uw_mr_stag(p.mb);
	wr.remote_addr = (uintptr_t)octets;
	sim_listen(&p.s, PORT);
	sim_connect(&p.s, PORT);
	for (unsigned i = 0; i < 8; i++) { /* the window opens */
		sim_post_send(&p.s.a, &wr);
		sim_run_us(&p.s, 1000);
	}
	sim_post_send(&p.s.a, &wr);
	p.s.now_us += 1000;
	before = p.s.link[1]->stats.rx_frames;
	a_round(&p, false);
	/* 46 segments and more than one burst of a link */
	assert_int_equal(p.s.link[1]->stats.rx_frames - before, 46);
	close_pair(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_carries_the_ack),
		cmocka_unit_test(without_an_answer_it_goes_alone),
		cmocka_unit_test(the_rest_of_a_long_message_is_taken_in_before_an_ack),
	};

	return sim_run_tests(tests, argc, argv);
}
