/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends that come before their receives: they wait, and nobody else does (doc/adr/0005). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define ALL    (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define SIZE   (4u << 20)
#define SECOND 1000000u
#define PORT   7471

struct bench {
	struct sim s;
	uint8_t *a, *b;
	struct uw_mr *ma, *mb;
};

static struct bench *start(struct sim_options o)
{
	struct bench *t = calloc(1, sizeof(*t));

	sim_open(&t->s, &o);
	sim_connect(&t->s, PORT);
	t->a = malloc(SIZE);
	t->b = calloc(1, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		t->a[i] = (uint8_t)(i * 31 + (i >> 10));
	t->ma = sim_mr(&t->s.a, t->a, SIZE, ALL);
	t->mb = sim_mr(&t->s.b, t->b, SIZE, ALL);
	return t;
}

static void stop(struct bench *t)
{
	assert_int_equal(uw_mr_dereg(t->ma), 0);
	assert_int_equal(uw_mr_dereg(t->mb), 0);
	sim_close(&t->s);
	free(t->a);
	free(t->b);
	free(t);
}

static void send_at(struct bench *t, uint64_t id, size_t at, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)t->a + at, n, uw_mr_stag(t->ma) };
	struct uw_send_wr wr = { .wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_SEND,
				 .flags = UW_SEND_SIGNALED };

	sim_post_send(&t->s.a, &wr);
}

static void recv_good(struct bench *t, uint64_t id, size_t at, uint32_t n)
{
	struct uw_wc wc = sim_wc(&t->s, t->s.b.rcq);

	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	assert_int_equal(wc.byte_len, n);
	assert_memory_equal(t->b + at, t->a + at, n);
}

static void late_receives(struct sim_options o)
{
	struct bench *t = start(o);

	for (unsigned i = 0; i < 8; i++)
		send_at(t, i, i * 5000, 5000);
	sim_run_us(&t->s, 2 * SECOND);
	assert_false(sim_had(&t->s.a, UW_CM_DISCONNECTED));
	for (unsigned i = 0; i < 8; i++) {
		sim_post_recv(&t->s.b, i, t->b + i * 5000, 5000, t->mb);
		recv_good(t, i, i * 5000, 5000);
	}
	assert_int_equal(sim_stats(&t->s).rnr_timeouts, 0);
	assert_true(sim_stats(&t->s).rnr_waits > 0);
	stop(t);
}

static void test_a_send_waits_for_its_receive(void **state)
{
	(void)state;
	late_receives((struct sim_options){ 0 });
}

static void test_with_markers(void **state)
{
	(void)state;
	late_receives((struct sim_options){ .markers = true });
}

static void test_with_all_faults(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++)
		late_receives((struct sim_options){
			.seed = seed, .drop_ppm = 30000, .dup_ppm = 10000, .reorder_ppm = 30000 });
}

/* The counters count what was taken in, not how often it was offered. */
static void test_what_waits_is_counted_once(void **state)
{
	struct bench *t = start((struct sim_options){ 0 });
	struct uw_stats before = sim_stats(&t->s);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		send_at(t, i, i * 100, 100);
	sim_run_us(&t->s, SECOND);
	for (unsigned i = 0; i < 4; i++) {
		sim_post_recv(&t->s.b, i, t->b + i * 100, 100, t->mb);
		recv_good(t, i, i * 100, 100);
	}
	assert_int_equal(sim_stats(&t->s).ddp_rx_untagged - before.ddp_rx_untagged, 4);
	/* the Writes are what a silent responder gets to see: qp_tx_empty_write */
	assert_int_equal(sim_stats(&t->s).mpa_rx_fpdus - before.mpa_rx_fpdus,
			 4 + sim_stats(&t->s).ddp_rx_tagged - before.ddp_rx_tagged);
	assert_int_equal(sim_stats(&t->s).payload_rx_bytes - before.payload_rx_bytes, 400);
	stop(t);
}

/* 16 MiB against a window of 4: the sender stops, the frames go back, nothing is lost. */
static void more_than_the_window(struct sim_options o)
{
	const uint32_t n = SIZE / 4;
	struct bench *t = start(o);

	for (unsigned i = 0; i < 16; i++)
		send_at(t, i, i % 4 * n, n);
	sim_run_us(&t->s, 5 * SECOND);
	assert_true(sim_stats(&t->s).tcp_rx_bytes < SIZE + 65536);
	assert_in_range(loop_frames_out(t->s.link[0]) + loop_frames_out(t->s.link[1]), 0, 64);
	for (unsigned i = 0; i < 16; i++) {
		memset(t->b + i % 4 * n, 0, n);
		sim_post_recv(&t->s.b, i, t->b + i % 4 * n, n, t->mb);
		recv_good(t, i, i % 4 * n, n);
	}
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(sim_wc(&t->s, t->s.a.scq).status, UW_WC_SUCCESS);
	stop(t);
}

static void test_the_window_closes(void **state)
{
	(void)state;
	more_than_the_window((struct sim_options){ .mtu = 9000 });
}

/* The ACK that opens the window again is lost now and then. */
static void test_the_window_closes_on_a_bad_link(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		more_than_the_window(
			(struct sim_options){ .mtu = 9000, .seed = seed, .drop_ppm = 20000 });
}

/* What B posts goes out, and A's Writes arrived before the Send; all as the stream has it. */
static void test_the_other_direction_goes_on(void **state)
{
	struct bench *t = start((struct sim_options){ 0 });
	struct uw_sge sge = { (uintptr_t)t->b, 100, uw_mr_stag(t->mb) };
	struct uw_send_wr wr = { .wr_id = 5,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_SEND,
				 .flags = UW_SEND_SIGNALED };

	(void)state;
	send_at(t, 1, 0, 100);
	sim_run_us(&t->s, SECOND);
	sim_post_recv(&t->s.a, 9, t->a + 5000, 100, t->ma);
	sim_post_send(&t->s.b, &wr);
	assert_int_equal(sim_wc(&t->s, t->s.a.rcq).wr_id, 9);
	assert_int_equal(sim_wc(&t->s, t->s.b.scq).status, UW_WC_SUCCESS);
	stop(t);
}

static void test_other_connections_go_on(void **state)
{
	struct bench *t = start((struct sim_options){ 0 });
	struct sim_side c = { 0 }, d = { 0 };
	struct uw_mr *mc, *md;
	struct uw_sge sge;
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	(void)state;
	sim_open_side(&t->s, &c, NULL);
	sim_open_side(&t->s, &d, NULL);
	sim_connect_pair(&t->s, &c, &d, PORT);
	mc = sim_mr(&c, t->a, SIZE, ALL);
	md = sim_mr(&d, t->b, SIZE, ALL);
	for (unsigned i = 0; i < 4; i++)
		send_at(t, i, i * (SIZE / 4), SIZE / 4);
	sim_run_us(&t->s, SECOND);
	sge = (struct uw_sge){ (uintptr_t)t->a, SIZE / 2, uw_mr_stag(mc) };
	for (unsigned i = 0; i < 8; i++) {
		sim_post_recv(&d, i, t->b, SIZE / 2, md);
		sim_post_send(&c, &wr);
		assert_int_equal(sim_wc(&t->s, d.rcq).status, UW_WC_SUCCESS);
		assert_int_equal(sim_wc(&t->s, c.scq).status, UW_WC_SUCCESS);
	}
	assert_int_equal(uw_mr_dereg(mc), 0);
	assert_int_equal(uw_mr_dereg(md), 0);
	sim_close_side(&c);
	sim_close_side(&d);
	stop(t);
}

static bool disconnected(void *arg)
{
	return sim_had(arg, UW_CM_DISCONNECTED);
}

/* RFC 5041 §7.1, after the time is over: no buffer, and the peer is told. */
static void test_the_wait_has_a_limit(void **state)
{
	struct bench *t = start((struct sim_options){ .rnr_ms = 3000 });

	(void)state;
	send_at(t, 1, 0, 100);
	sim_run_us(&t->s, 2900000);
	assert_false(sim_had(&t->s.b, UW_CM_DISCONNECTED));
	assert_true(sim_until(&t->s, disconnected, &t->s.a, SECOND));
	assert_true(sim_had(&t->s.b, UW_CM_DISCONNECTED));
	assert_int_equal(t->s.a.qp->c.qp.peer_term.layer, 1);
	assert_int_equal(t->s.a.qp->c.qp.peer_term.etype, 2);
	assert_int_equal(t->s.a.qp->c.qp.peer_term.code, 2);
	assert_int_equal(t->s.b.async[UW_EVENT_QP_FATAL], 1);
	assert_int_equal(sim_stats(&t->s).rnr_timeouts, 1);
	stop(t);
}

static void test_or_none(void **state)
{
	struct bench *t = start((struct sim_options){ .rnr_ms = 3000, .rnr_for_ever = true });

	(void)state;
	send_at(t, 1, 0, 100);
	sim_run_us(&t->s, 100 * SECOND);
	sim_post_recv(&t->s.b, 1, t->b, 100, t->mb);
	recv_good(t, 1, 0, 100);
	stop(t);
}

/* The peer has sent and gone: what it sent is still here for a while. */
static void test_a_fin_waits_behind_it(void **state)
{
	struct bench *t = start((struct sim_options){ 0 });

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		send_at(t, i, i * 100, 100);
	assert_int_equal(uw_ep_disconnect(t->s.a.ep), 0);
	sim_run_us(&t->s, SECOND / 2);
	assert_false(sim_had(&t->s.b, UW_CM_DISCONNECTED));
	for (unsigned i = 0; i < 3; i++) {
		sim_post_recv(&t->s.b, i, t->b + i * 100, 100, t->mb);
		recv_good(t, i, i * 100, 100);
	}
	assert_true(sim_until(&t->s, disconnected, &t->s.b, SECOND / 10));
	stop(t);
}

static void test_but_not_for_long(void **state)
{
	struct bench *t = start((struct sim_options){ .rnr_for_ever = true });

	(void)state;
	send_at(t, 1, 0, 100);
	assert_int_equal(uw_ep_disconnect(t->s.a.ep), 0);
	assert_true(sim_until(&t->s, disconnected, &t->s.b, 2 * SECOND));
	stop(t);
}

/* A posts more than B's window and B posts no receive. B's end hears of A's soon all the same: as a
 * program would that waits for it and nothing else. */
static void ends_behind_a_closed_window(struct sim_options o, int (*end)(struct bench *t))
{
	struct bench *t = start(o);
	struct uw_wc wc;

	for (unsigned i = 0; i < 16; i++)
		send_at(t, i, 0, SIZE / 4);
	sim_run_us(&t->s, 3 * SECOND);
	assert_int_equal(end(t), 0);
	assert_true(sim_until(&t->s, disconnected, &t->s.a, 2 * SECOND));
	assert_true(sim_until(&t->s, disconnected, &t->s.b, 4 * SECOND));
	for (unsigned i = 0; i < 16; i++) {
		wc = sim_wc(&t->s, t->s.a.scq);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(wc.status, UW_WC_WR_FLUSH_ERR);
	stop(t);
}

static int by_disconnect(struct bench *t)
{
	return uw_ep_disconnect(t->s.a.ep);
}

static int by_error(struct bench *t)
{
	return uw_qp_modify(t->s.a.qp, UW_QPS_ERR);
}

static void test_a_disconnect_behind_a_closed_window(void **state)
{
	(void)state;
	for (unsigned direct = 0; direct < 2; direct++)
		ends_behind_a_closed_window(
			(struct sim_options){ .rnr_for_ever = true, .mtu = 9000, .direct = direct },
			by_disconnect);
}

static void test_an_error_behind_a_closed_window(void **state)
{
	(void)state;
	for (unsigned direct = 0; direct < 2; direct++)
		ends_behind_a_closed_window(
			(struct sim_options){ .rnr_for_ever = true, .mtu = 9000, .direct = direct },
			by_error);
}

static void test_destroyed_while_it_waits(void **state)
{
	struct bench *t = start((struct sim_options){ 0 });

	(void)state;
	send_at(t, 1, 0, SIZE / 2);
	sim_run_us(&t->s, SECOND);
	assert_int_equal(uw_qp_destroy(t->s.b.qp), 0);
	t->s.b.qp = NULL;
	assert_true(sim_until(&t->s, disconnected, &t->s.a, SECOND));
	stop(t);
}

/* Two connections wait for one SRQ: whoever came first is served first. */
static void test_srq(void **state)
{
	struct bench *t = start((struct sim_options){ 0 });
	struct sim_side c[2] = { 0 }, d[2] = { 0 };
	struct uw_srq_attr attr = { .max_wr = 16, .max_sge = 1 };
	struct uw_sge sge = { (uintptr_t)t->b, 100, 0 };
	struct uw_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 };
	struct uw_send_wr wr = { .opcode = UW_WR_SEND };
	struct uw_srq *srq;
	struct uw_pd *pd;
	struct uw_mr *mr;
	unsigned done;

	(void)state;
	assert_int_equal(uw_pd_alloc(t->s.e, &pd), 0);
	assert_int_equal(uw_srq_create(pd, &attr, &srq), 0);
	assert_int_equal(uw_mr_reg(pd, t->b, SIZE, (uintptr_t)t->b, ALL, &mr), 0);
	sge.lkey = uw_mr_stag(mr);
	for (unsigned i = 0; i < 2; i++) {
		d[i].pd = pd;
		sim_open_side(&t->s, &c[i], NULL);
		sim_open_side(&t->s, &d[i], srq);
		sim_connect_pair(&t->s, &c[i], &d[i], PORT);
	}
	for (unsigned i = 0; i < 2; i++) {
		sim_post_send(&c[i], &wr);
		sim_run_us(&t->s, SECOND / 10);
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uw_srq_post_recv(srq, &rwr, 1, &done), 0);
		assert_int_equal(sim_wc(&t->s, d[i].rcq).status, UW_WC_SUCCESS);
	}
	/* and one that goes while it waits leaves the others their turn */
	for (unsigned i = 0; i < 2; i++) {
		sim_post_send(&c[i], &wr);
		sim_run_us(&t->s, SECOND / 10);
	}
	assert_int_equal(uw_qp_destroy(d[0].qp), 0);
	d[0].qp = NULL;
	assert_int_equal(uw_srq_post_recv(srq, &rwr, 1, &done), 0);
	assert_int_equal(sim_wc(&t->s, d[1].rcq).status, UW_WC_SUCCESS);
	assert_int_equal(uw_mr_dereg(mr), 0);
	for (unsigned i = 0; i < 2; i++) {
		sim_close_side(&c[i]);
		if (d[i].qp)
			assert_int_equal(uw_qp_destroy(d[i].qp), 0);
		uw_ep_destroy(d[i].ep);
		assert_int_equal(uw_cq_destroy(d[i].scq), 0);
		assert_int_equal(uw_cq_destroy(d[i].rcq), 0);
	}
	assert_int_equal(uw_srq_destroy(srq), 0);
	assert_int_equal(uw_pd_dealloc(pd), 0);
	stop(t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_send_waits_for_its_receive),
		cmocka_unit_test(test_with_markers),
		cmocka_unit_test(test_with_all_faults),
		cmocka_unit_test(test_what_waits_is_counted_once),
		cmocka_unit_test(test_the_window_closes),
		cmocka_unit_test(test_the_window_closes_on_a_bad_link),
		cmocka_unit_test(test_the_other_direction_goes_on),
		cmocka_unit_test(test_other_connections_go_on),
		cmocka_unit_test(test_the_wait_has_a_limit),
		cmocka_unit_test(test_or_none),
		cmocka_unit_test(test_a_fin_waits_behind_it),
		cmocka_unit_test(test_but_not_for_long),
		cmocka_unit_test(test_a_disconnect_behind_a_closed_window),
		cmocka_unit_test(test_an_error_behind_a_closed_window),
		cmocka_unit_test(test_destroyed_while_it_waits),
		cmocka_unit_test(test_srq),
	};

	return sim_run_tests(tests, argc, argv);
}
