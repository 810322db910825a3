/* SPDX-License-Identifier: BSD-3-Clause */
/* When a program is told that its peer has ended the connection: after it has read what was
 * completed before, and not later than that lets the event wait (conn/end_event.h). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conn/end_event.h"
#include "net.h"

#define PORT	7471
#define MS	1000u
#define ARRIVES (5 * MS)
/* A wait ends with the second round of timers at the latest. */
#define WAITED (2 * END_EVENT_US + ARRIVES)

/* A message of no octets needs no memory. */
static void tell(struct sim_side *from, struct sim_side *to)
{
	const struct uw_send_wr wr = { .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED };
	const struct uw_recv_wr rwr = { .wr_id = 1 };
	unsigned done;

	assert_int_equal(uw_post_recv(to->qp, &rwr, 1, &done), 0);
	sim_post_send(from, &wr);
}

/* a is told something, and does not look; then b ends the connection. */
static void open_and_end(struct sim *s)
{
	const struct sim_options o = { .seed = 1 };

	sim_open(s, &o);
	sim_connect(s, PORT);
	tell(&s->b, &s->a);
	sim_run_us(s, ARRIVES);
	assert_int_equal(uw_ep_disconnect(s->b.ep), 0);
	sim_run_us(s, ARRIVES);
}

static bool told(const struct sim *s)
{
	return sim_had(&s->a, UW_CM_DISCONNECTED);
}

static void test_after_what_came_before(void **state)
{
	struct sim s;
	struct uw_wc wc;

	(void)state;
	open_and_end(&s);
	assert_false(told(&s));
	assert_int_equal(sim_stats(&s).cm_end_waited, 1);
	wc = sim_wc(&s, s.a.rcq);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	sim_run_us(&s, MS);
	assert_true(told(&s));
	sim_close(&s);
}

static void test_not_for_ever(void **state)
{
	struct sim s;

	(void)state;
	open_and_end(&s);
	assert_false(told(&s));
	sim_run_us(&s, WAITED);
	assert_true(told(&s));
	assert_int_equal(sim_wc(&s, s.a.rcq).status, UW_WC_SUCCESS);
	sim_close(&s);
}

/* As libfabric's ofi_rxm: its own Send is completed by the ACK that comes with the peer's FIN. */
static void test_after_an_acknowledged_send(void **state)
{
	const struct sim_options o = { .seed = 1, .roce = true };
	struct sim s;

	(void)state;
	sim_open(&s, &o);
	sim_connect(&s, PORT);
	tell(&s.a, &s.b);
	(void)sim_wc(&s, s.b.rcq);
	assert_int_equal(uw_ep_disconnect(s.b.ep), 0);
	sim_run_us(&s, ARRIVES);
	assert_false(told(&s));
	assert_int_equal(sim_wc(&s, s.a.scq).status, UW_WC_SUCCESS);
	sim_run_us(&s, MS);
	assert_true(told(&s));
	sim_close(&s);
}

static void test_nothing_to_read(void **state)
{
	const struct sim_options o = { .seed = 1 };
	struct sim s;

	(void)state;
	sim_open(&s, &o);
	sim_connect(&s, PORT);
	tell(&s.b, &s.a);
	(void)sim_wc(&s, s.a.rcq);
	assert_int_equal(uw_ep_disconnect(s.b.ep), 0);
	sim_run_us(&s, ARRIVES);
	assert_true(told(&s));
	assert_int_equal(sim_stats(&s).cm_end_waited, 0);
	sim_close(&s);
}

/* Whoever asks for the end hears of it at once, also while the peer's waits. */
static void test_the_program_asks(void **state)
{
	struct sim s;

	(void)state;
	open_and_end(&s);
	assert_true(sim_had(&s.b, UW_CM_DISCONNECTED));
	assert_false(told(&s));
	assert_int_equal(uw_ep_disconnect(s.a.ep), -ENOTCONN);
	assert_true(told(&s));
	sim_close(&s);
}

static void test_the_qp_is_destroyed(void **state)
{
	struct sim s;

	(void)state;
	open_and_end(&s);
	assert_false(told(&s));
	uw_qp_destroy(s.a.qp);
	s.a.qp = NULL;
	assert_true(told(&s));
	sim_close(&s);
}

static void test_the_endpoint_is_destroyed(void **state)
{
	struct sim s;

	(void)state;
	open_and_end(&s);
	uw_ep_destroy(s.a.ep);
	s.a.ep = NULL;
	sim_run_us(&s, WAITED);
	assert_false(told(&s));
	sim_close(&s);
}

/* ---- what is posted then ------------------------------------------------------------------- */

/* a has a receive posted, and its peer leaves. */
static void open_and_leave(struct sim *s, bool roce)
{
	const struct sim_options o = { .seed = 1, .roce = roce };
	const struct uw_recv_wr wr = { .wr_id = 1 };
	unsigned done;

	sim_open(s, &o);
	sim_connect(s, PORT);
	assert_int_equal(uw_post_recv(s->a.qp, &wr, 1, &done), 0);
	assert_int_equal(uw_ep_disconnect(s->b.ep), 0);
	sim_run_us(s, ARRIVES);
	assert_true(told(s));
	assert_true(sim_had(&s->b, UW_CM_DISCONNECTED));
}

static void test_an_rnics_is_flushed(void **state)
{
	struct sim s;

	(void)state;
	open_and_leave(&s, false);
	assert_int_equal(uw_qp_state(s.a.qp), UW_QPS_ERR);
	assert_int_equal(sim_wc(&s, s.a.rcq).status, UW_WC_WR_FLUSH_ERR);
	sim_close(&s);
}

/* IBA volume 1, §12.6.2: with RoCE the program is told, and nothing else happens. */
static void test_as_roce_it_stays(void **state)
{
	struct sim s;
	struct uw_wc wc;

	(void)state;
	open_and_leave(&s, true);
	sim_run_us(&s, WAITED);
	assert_int_equal(uw_qp_state(s.a.qp), UW_QPS_RTS);
	assert_int_equal(uw_cq_poll(s.a.rcq, 1, &wc), 0);
	assert_int_equal(uw_qp_modify(s.a.qp, UW_QPS_ERR), 0);
	assert_int_equal(sim_wc(&s, s.a.rcq).status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(uw_qp_modify(s.a.qp, UW_QPS_RESET), 0);
	sim_close(&s);
}

static void test_as_roce_a_request_fails(void **state)
{
	const struct uw_send_wr wr = { .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED };
	struct sim s;

	(void)state;
	open_and_leave(&s, true);
	sim_post_send(&s.a, &wr);
	sim_post_send(&s.a, &wr);
	assert_int_equal(sim_wc(&s, s.a.scq).status, UW_WC_RETRY_EXC_ERR);
	assert_int_equal(sim_wc(&s, s.a.scq).status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(sim_wc(&s, s.a.rcq).status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(uw_qp_state(s.a.qp), UW_QPS_ERR);
	sim_close(&s);
}

static void test_only_so_many_wait(void **state)
{
	enum { PAIRS = END_EVENTS_MAX + 2 };
	const struct sim_options o = { .seed = 1 };
	struct sim_side *side = calloc(2 * PAIRS, sizeof(*side));
	struct sim s;
	unsigned n = 0;

	(void)state;
	sim_open(&s, &o);
	sim_connect(&s, PORT);
	for (unsigned i = 0; i < PAIRS; i++) {
		sim_open_side(&s, &side[i], NULL);
		sim_open_side(&s, &side[PAIRS + i], NULL);
		sim_connect_pair(&s, &side[i], &side[PAIRS + i], PORT);
		tell(&side[PAIRS + i], &side[i]);
	}
	sim_run_us(&s, ARRIVES);
	for (unsigned i = 0; i < PAIRS; i++)
		assert_int_equal(uw_ep_disconnect(side[PAIRS + i].ep), 0);
	sim_run_us(&s, ARRIVES);
	for (unsigned i = 0; i < PAIRS; i++)
		n += sim_had(&side[i], UW_CM_DISCONNECTED);
	if (s.e->n_stacks == 1)
		assert_int_equal(n, PAIRS - END_EVENTS_MAX);
	sim_run_us(&s, WAITED);
	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		assert_true(sim_had(&side[i], UW_CM_DISCONNECTED));
		sim_close_side(&side[i]);
	}
	sim_close(&s);
	free(side);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_what_came_before),
		cmocka_unit_test(test_not_for_ever),
		cmocka_unit_test(test_after_an_acknowledged_send),
		cmocka_unit_test(test_nothing_to_read),
		cmocka_unit_test(test_the_program_asks),
		cmocka_unit_test(test_the_qp_is_destroyed),
		cmocka_unit_test(test_the_endpoint_is_destroyed),
		cmocka_unit_test(test_an_rnics_is_flushed),
		cmocka_unit_test(test_as_roce_it_stays),
		cmocka_unit_test(test_as_roce_a_request_fails),
		cmocka_unit_test(test_only_so_many_wait),
	};

	return sim_run_tests(tests, argc, argv);
}
