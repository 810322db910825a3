/* SPDX-License-Identifier: BSD-3-Clause */
/* Many connections: each segment finds its own, in whatever order they come, go and are reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/lwip/conn.h"
#include "net.h"

#include "lwip/priv/tcp_priv.h"

#define ALL   (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define PAIRS 150u /* two ends each: the table grows */
#define PORT  7471

struct pair {
	struct sim_side a, b;
	struct uw_mr *ma, *mb;
	uint64_t out, in;
	bool open;
};

struct many {
	struct sim s;
	struct pair pair[PAIRS];
	uint32_t rng;
};

static uint32_t chance(struct many *t, uint32_t n)
{
	t->rng = t->rng * 1664525u + 1013904223u;
	return (t->rng >> 8) % n;
}

static void open_pair(struct many *t, struct pair *p)
{
	memset(p, 0, sizeof(*p));
	sim_open_side(&t->s, &p->a, NULL);
	sim_open_side(&t->s, &p->b, NULL);
	sim_connect_pair(&t->s, &p->a, &p->b, PORT);
	p->ma = sim_mr(&p->a, &p->out, sizeof(p->out), ALL);
	p->mb = sim_mr(&p->b, &p->in, sizeof(p->in), ALL);
	p->open = true;
}

static void close_pair(struct pair *p)
{
	assert_int_equal(uw_mr_dereg(p->ma), 0);
	assert_int_equal(uw_mr_dereg(p->mb), 0);
	sim_close_side(&p->a);
	sim_close_side(&p->b);
	p->open = false;
}

static void send_one(struct many *t, struct pair *p, uint64_t value)
{
	struct uw_sge sge = { (uintptr_t)&p->out, sizeof(p->out), uw_mr_stag(p->ma) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	p->out = value;
	sim_post_recv(&p->b, value, &p->in, sizeof(p->in), p->mb);
	sim_post_send(&p->a, &wr);
	assert_int_equal(sim_wc(&t->s, p->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&t->s, p->b.rcq).wr_id, value);
	assert_int_equal(p->in, value);
}

/* A connection that its user has closed is found until TCP is through with it, and no longer. */
static void nothing_is_left(struct many *t)
{
	assert_true(edge.flows > 0);
	sim_run_us(&t->s, 60000000);
	assert_int_equal(edge.flows, 0);
	assert_null(tcp_active_pcbs);
	assert_null(tcp_tw_pcbs);
}

static void run(struct sim_options o)
{
	struct many *t = calloc(1, sizeof(*t));

	t->rng = (uint32_t)o.seed + 1;
	sim_open(&t->s, &o);
	sim_listen(&t->s, PORT);
	for (unsigned i = 0; i < PAIRS; i++)
		open_pair(t, &t->pair[i]);
	for (unsigned i = 0; i < 3000; i++) {
		struct pair *p = &t->pair[chance(t, PAIRS)];

		if (!p->open)
			open_pair(t, p);
		else if (chance(t, 10) == 0)
			close_pair(p);
		else
			send_one(t, p, i + 1);
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		if (t->pair[i].open)
			close_pair(&t->pair[i]);
	}
	nothing_is_left(t);
	sim_close(&t->s);
	free(t);
}

static void connections_come_and_go_among_others(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++)
		run((struct sim_options){ .seed = seed, .direct = seed % 2 });
}

static void they_do_under_loss_and_reordering_too(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++)
		run((struct sim_options){ .seed = seed,
					  .direct = seed % 2,
					  .drop_ppm = 10000,
					  .reorder_ppm = 20000 });
}

static void they_do_where_nothing_is_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2; seed++)
		run((struct sim_options){ .seed = seed, .direct = true });
}

/* Between processes: there nothing of the last connection can come any more. */
static void the_same_ports_serve_again_at_once(void **state)
{
	struct many t = { 0 };

	(void)state;
	sim_open(&t.s, &(struct sim_options){ .direct = true, .from_port = 7001 });
	sim_listen(&t.s, PORT);
	for (unsigned i = 0; i < 20; i++) {
		open_pair(&t, &t.pair[0]);
		send_one(&t, &t.pair[0], i + 1);
		assert_int_equal(uw_ep_disconnect(t.pair[0].a.ep), 0);
		sim_run_us(&t.s, 100000); /* the end that asked for it waits now */
		assert_true(tcp_tw_pcbs || t.s.e->cfg.stacks > 1);
		close_pair(&t.pair[0]);
	}
	nothing_is_left(&t);
	sim_close(&t.s);
}

/* A SYN that nobody knows is not compared with those that are there: what it opens stands in front
 * of them all the same. */
static void a_new_one_stands_beside_the_others(void **state)
{
	struct edge_lists l;
	struct many t = { 0 };
	struct tcp_pcb *first;

	(void)state;
	sim_open(&t.s, &(struct sim_options){ 0 });
	sim_listen(&t.s, PORT);
	for (unsigned i = 0; i < 3; i++)
		open_pair(&t, &t.pair[i]);
	first = tcp_active_pcbs;
	assert_non_null(first);
	l = edge_lists_hide();
	assert_null(tcp_active_pcbs);
	assert_ptr_equal(l.active, first);
	edge_lists_show(&l);
	assert_ptr_equal(tcp_active_pcbs, first);
	for (unsigned i = 0; i < 3; i++) {
		send_one(&t, &t.pair[i], i + 1);
		close_pair(&t.pair[i]);
	}
	sim_close(&t.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_come_and_go_among_others),
		cmocka_unit_test(they_do_under_loss_and_reordering_too),
		cmocka_unit_test(they_do_where_nothing_is_lost),
		cmocka_unit_test(the_same_ports_serve_again_at_once),
		cmocka_unit_test(a_new_one_stands_beside_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
