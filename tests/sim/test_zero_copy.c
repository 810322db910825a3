/* SPDX-License-Identifier: BSD-3-Clause */
/* UWARP_COPIES=0 (doc/adr/0011): payload goes out of the registered memory, and never out of memory
 * that is the program's again. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define SIZE 300001u
#define ALL  (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)

struct world {
	struct sim s;
	uint8_t *from, *want, *to;
	struct uw_mr *mfrom, *mto;
};

static struct world *open_world(const struct sim_options *o)
{
	struct world *w = calloc(1, sizeof(*w));

	sim_open(&w->s, o);
	sim_connect(&w->s, 7471);
	w->from = malloc(SIZE);
	w->want = malloc(SIZE);
	w->to = calloc(1, SIZE);
	for (uint32_t i = 0, x = (uint32_t)o->seed; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		w->from[i] = w->want[i] = (uint8_t)(x >> 24);
	}
	w->mfrom = sim_mr(&w->s.a, w->from, SIZE, ALL);
	w->mto = sim_mr(&w->s.b, w->to, SIZE, ALL);
	return w;
}

/* The source is gone: whoever reads it now is found by the address sanitizer. */
static void drop_source(struct world *w)
{
	if (!w->from)
		return;
	assert_int_equal(uw_mr_dereg(w->mfrom), 0);
	memset(w->from, 0xee, SIZE);
	free(w->from);
	w->from = NULL;
}

static void close_world(struct world *w)
{
	drop_source(w);
	assert_int_equal(uw_mr_dereg(w->mto), 0);
	sim_close(&w->s);
	free(w->want);
	free(w->to);
	free(w);
}

static void post(struct world *w, uint32_t op, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)w->from, n, uw_mr_stag(w->mfrom) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)w->to,
				 .rkey = uw_mr_stag(w->mto) };

	if (op == UW_WR_SEND)
		sim_post_recv(&w->s.b, 1, w->to, n, w->mto);
	sim_post_send(&w->s.a, &wr);
}

static void succeeds(struct world *w, struct uw_cq *cq)
{
	assert_int_equal(sim_wc(&w->s, cq).status, UW_WC_SUCCESS);
}

static struct uw_stats stats(const struct world *w)
{
	return sim_stats(&w->s);
}

static bool arrived(void *arg)
{
	struct world *w = arg;

	return !memcmp(w->to, w->want, SIZE);
}

static void carry_all(const struct sim_options *o)
{
	struct world *w = open_world(o);
	uint32_t sizes[] = { 16384, 65536, 100003, SIZE };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];

		memset(w->to, 0, SIZE);
		post(w, UW_WR_SEND, n);
		succeeds(w, w->s.b.rcq);
		assert_memory_equal(w->to, w->want, n);
		succeeds(w, w->s.a.scq);
		memset(w->to, 0, SIZE);
		post(w, UW_WR_RDMA_WRITE, n);
		succeeds(w, w->s.a.scq);
		assert_memory_equal(w->to, w->want, n); /* complete means that the peer has it */
	}
	assert_int_equal(stats(w).mpa_rx_crc_errors, 0);
	/* Of each message no more than its end is copied. */
	assert_true(stats(w).payload_tx_copied <= 8 * 1024);
	assert_int_equal(stats(w).payload_rx_copied, stats(w).payload_rx_bytes);
	close_world(w);
}

static void test_large_messages_arrive_and_are_not_copied(void **state)
{
	(void)state;
	carry_all(&(struct sim_options){ .mtu = 9000, .no_crc = true, .zero_copy = true });
	carry_all(&(struct sim_options){ .mtu = 9000, .zero_copy = true });
	carry_all(&(struct sim_options){ .mtu = 65521, .zero_copy = true });
}

static void test_what_is_lost_is_sent_again(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++)
		carry_all(&(struct sim_options){ .mtu = 9000,
						 .no_crc = seed & 1,
						 .zero_copy = true,
						 .drop_ppm = 20000,
						 .dup_ppm = 20000,
						 .reorder_ppm = 50000,
						 .seed = seed });
}

/* RFC 5044 §4.3: an FPDU with markers cannot be one piece of memory. */
static void test_with_markers_all_is_copied(void **state)
{
	struct world *w = open_world(
		&(struct sim_options){ .mtu = 9000, .zero_copy = true, .markers = true });

	(void)state;
	post(w, UW_WR_RDMA_WRITE, SIZE);
	succeeds(w, w->s.a.scq);
	assert_memory_equal(w->to, w->want, SIZE);
	assert_int_equal(stats(w).payload_tx_copied, SIZE);
	close_world(w);
}

static void test_small_messages_and_read_responses_are_copied(void **state)
{
	struct world *w = open_world(&(struct sim_options){ .mtu = 9000, .zero_copy = true });
	struct uw_sge sge = { (uintptr_t)w->to, 100000, uw_mr_stag(w->mto) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_READ,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)w->from,
				 .rkey = uw_mr_stag(w->mfrom) };

	(void)state;
	post(w, UW_WR_RDMA_WRITE, 16383);
	succeeds(w, w->s.a.scq);
	assert_int_equal(stats(w).payload_tx_copied, 16383);
	sim_post_send(&w->s.b, &wr); /* the other way */
	succeeds(w, w->s.b.scq);
	assert_memory_equal(w->to, w->want, 100000);
	assert_int_equal(stats(w).payload_tx_copied, 16383 + 100000);
	close_world(w);
}

/* A list of SGEs: a segment that lies in one of them refers to it, one that does not is copied. */
static void test_a_list_of_pieces_arrives(void **state)
{
	struct world *w = open_world(&(struct sim_options){ .mtu = 9000, .zero_copy = true });
	struct uw_sge sge[4];
	uint32_t at = 0, len[4] = { 50000, 7, 99993, 150001 };
	struct uw_send_wr wr = { .sg_list = sge,
				 .num_sge = 4,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)w->to,
				 .rkey = uw_mr_stag(w->mto) };

	(void)state;
	for (unsigned i = 0; i < 4; at += len[i++])
		sge[i] = (struct uw_sge){ (uintptr_t)w->from + at, len[i], uw_mr_stag(w->mfrom) };
	assert_int_equal(at, SIZE);
	sim_post_send(&w->s.a, &wr);
	succeeds(w, w->s.a.scq);
	assert_memory_equal(w->to, w->want, SIZE);
	assert_true(stats(w).payload_tx_copied > 0);
	assert_true(stats(w).payload_tx_copied < SIZE / 4);
	close_world(w);
}

/* Nothing completes while the peer may not have it. */
static void test_complete_only_when_acknowledged(void **state)
{
	struct world *w = open_world(&(struct sim_options){ .mtu = 9000, .zero_copy = true });
	struct uw_wc wc;

	(void)state;
	loop_set_drop(w->s.link[0], 1000000);
	post(w, UW_WR_RDMA_WRITE, 65536);
	sim_run_us(&w->s, 100000);
	assert_int_equal(uw_cq_poll(w->s.a.scq, 1, &wc), 0);
	loop_set_drop(w->s.link[0], 0);
	succeeds(w, w->s.a.scq);
	assert_memory_equal(w->to, w->want, 65536);
	close_world(w);
}

/* Deregistered and freed while TCP still has to send it again: what was posted arrives as it was.
 */
static void test_deregistered_under_way(void **state)
{
	struct world *w = open_world(&(struct sim_options){ .mtu = 9000, .zero_copy = true });
	uint32_t n = 65536;

	(void)state;
	loop_set_drop(w->s.link[0], 1000000);
	post(w, UW_WR_RDMA_WRITE, n);
	sim_run_us(&w->s, 10000);
	assert_true(sq_empty(&w->s.a.qp->c.qp.sq) == false);
	drop_source(w);
	assert_true(stats(w).payload_tx_copied > 0);
	loop_set_drop(w->s.link[0], 0);
	succeeds(w, w->s.a.scq);
	assert_memory_equal(w->to, w->want, n);
	close_world(w);
}

/* The QP's end flushes requests: their memory is the program's again, while TCP goes on sending
 * what it has. */
static void test_flushed_under_way(void **state)
{
	struct world *w = open_world(&(struct sim_options){ .mtu = 9000, .zero_copy = true });

	(void)state;
	loop_set_drop(w->s.link[0], 1000000);
	post(w, UW_WR_RDMA_WRITE, 65536);
	sim_run_us(&w->s, 10000);
	assert_int_equal(uw_qp_modify(w->s.a.qp, UW_QPS_ERR), 0);
	assert_int_equal(sim_wc(&w->s, w->s.a.scq).status, UW_WC_WR_FLUSH_ERR);
	memset(w->from, 0xee, SIZE); /* registered, but free to be used */
	loop_set_drop(w->s.link[0], 0);
	sim_run_us(&w->s, 5000000);
	for (uint32_t i = 0; i < 65536; i++)
		assert_true(w->to[i] == w->want[i] || !w->to[i]);
	close_world(w);
}

/* Frames that the link has not let go yet when the connection is torn down. */
static void test_aborted_while_the_link_holds_it(void **state)
{
	struct world *w = open_world(
		&(struct sim_options){ .mtu = 9000, .zero_copy = true, .bps = 10000000 });

	(void)state;
	post(w, UW_WR_RDMA_WRITE, SIZE);
	sim_run_us(&w->s, 1000); /* a frame takes 7 ms */
	sched_lock(&w->s.e->stack[0]->sched);
	for (unsigned i = 0; i < w->s.e->n_stacks; i++)
		w->s.e->stack[i]->llp->peer_down(w->s.e->stack[i]->links[0], htonl(SIM_B));
	sched_unlock(&w->s.e->stack[0]->sched);
	assert_int_equal(sim_wc(&w->s, w->s.a.scq).status, UW_WC_WR_FLUSH_ERR);
	drop_source(w);
	sim_run_us(&w->s, 2000000);
	close_world(w);
}

static void test_over_a_slow_link(void **state)
{
	struct world *w = open_world(
		&(struct sim_options){ .mtu = 9000, .zero_copy = true, .bps = 100000000 });

	(void)state;
	post(w, UW_WR_RDMA_WRITE, SIZE);
	assert_true(sim_until(&w->s, arrived, w, 10000000));
	succeeds(w, w->s.a.scq);
	close_world(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large_messages_arrive_and_are_not_copied),
		cmocka_unit_test(test_what_is_lost_is_sent_again),
		cmocka_unit_test(test_with_markers_all_is_copied),
		cmocka_unit_test(test_small_messages_and_read_responses_are_copied),
		cmocka_unit_test(test_a_list_of_pieces_arrives),
		cmocka_unit_test(test_complete_only_when_acknowledged),
		cmocka_unit_test(test_deregistered_under_way),
		cmocka_unit_test(test_flushed_under_way),
		cmocka_unit_test(test_aborted_while_the_link_holds_it),
		cmocka_unit_test(test_over_a_slow_link),
	};

	return cmocka_run_group_tests_name("zero copy", tests, NULL, NULL);
}
