/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts that wait on the post ring for the program's next ones (doc/adr/0071), and a program that
 * ends the connection next: they are sent before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net.h"

#define PORT 7471

/* As over a packet link, and a program that has waited for events and comes back. */
static void hold(struct sim *s, bool on)
{
	struct sched *sched = &s->e->stack[0]->sched;

	sched->wait = (struct sched_link){ .able = on, .fd = { -1, on ? 0 : -1, -1 } };
	atomic_store(&sched->waiter, on ? SCHED_AWAY : SCHED_NO_WAITER);
}

static void disconnect(struct sim_side *side)
{
	assert_int_equal(uw_ep_disconnect(side->ep), 0);
}

static void to_error(struct sim_side *side)
{
	assert_int_equal(uw_qp_modify(side->qp, UW_QPS_ERR), 0);
}

static void to_reset(struct sim_side *side)
{
	assert_int_equal(uw_qp_modify(side->qp, UW_QPS_RESET), 0);
}

static void destroy_qp(struct sim_side *side)
{
	assert_int_equal(uw_qp_destroy(side->qp), 0);
	side->qp = NULL;
}

static void destroy_ep(struct sim_side *side)
{
	uw_ep_destroy(side->ep);
	side->ep = NULL;
}

static void arrives(bool roce, void (*end)(struct sim_side *side))
{
	const struct uw_send_wr wr = { .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED };
	const struct uw_recv_wr rwr = { .wr_id = 1 };
	struct sim s;
	unsigned done;

	sim_open(&s, &(struct sim_options){ .seed = 1, .roce = roce });
	sim_connect(&s, PORT);
	assert_int_equal(uw_post_recv(s.b.qp, &rwr, 1, &done), 0);
	hold(&s, true);
	sim_post_send(&s.a, &wr);
	assert_false(sched_ring_empty(&s.e->stack[0]->sched)); /* it waits */
	end(&s.a);
	hold(&s, false);
	assert_int_equal(sim_wc(&s, s.b.rcq).status, UW_WC_SUCCESS);
	sim_close(&s);
}

static void what_waits_is_sent_before_the_end(void **state)
{
	void (*const ends[])(struct sim_side * side) = { disconnect, to_error, to_reset, destroy_qp,
							 destroy_ep };

	(void)state;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		arrives(false, ends[i]);
		arrives(true, ends[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_is_sent_before_the_end),
	};

	return sim_run_tests(tests, argc, argv);
}
