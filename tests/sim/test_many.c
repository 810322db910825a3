/* SPDX-License-Identifier: BSD-3-Clause */
/* Many connections: each segment finds its own, in whatever order they come, go and are reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_come_and_go_among_others),
		cmocka_unit_test(they_do_under_loss_and_reordering_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
