/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs over the whole stack, with and without faults below TCP: every octet arrives, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net.h"

#define ALL                                                                                        \
	(UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |                  \
	 UW_ACCESS_REMOTE_ATOMIC)

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

struct buffers {
	uint8_t *a, *b;
	struct uw_mr *ma, *mb;
};

static struct buffers make(struct sim *s, size_t n)
{
	struct buffers b = { .a = calloc(1, n), .b = calloc(1, n) };

	b.ma = sim_mr(&s->a, b.a, n, ALL);
	b.mb = sim_mr(&s->b, b.b, n, ALL);
	return b;
}

static void drop(struct buffers *b)
{
	assert_int_equal(uw_mr_dereg(b->ma), 0);
	assert_int_equal(uw_mr_dereg(b->mb), 0);
	free(b->a);
	free(b->b);
}

static void one_sided(struct sim *s, struct buffers *b, uint32_t op, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)b->a, n, uw_mr_stag(b->ma) };
	struct uw_send_wr wr = { .wr_id = n,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)b->b,
				 .rkey = uw_mr_stag(b->mb) };
	struct uw_wc wc;

	sim_post_send(&s->a, &wr);
	wc = sim_wc(s, s->a.scq);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	assert_int_equal(wc.wr_id, n);
}

/* A Send behind a Write tells when the Write is there (RFC 5040 §5.5). */
static void send_and_recv(struct sim *s, struct buffers *b, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)b->a, n, uw_mr_stag(b->ma) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};
	struct uw_wc wc;

	sim_post_recv(&s->b, 7, b->b, n, b->mb);
	sim_post_send(&s->a, &wr);
	wc = sim_wc(s, s->b.rcq);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	assert_int_equal(wc.byte_len, n);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
}

static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 63, 64, 1000, 1440, 1441, 4096, 65536, 300001 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void all_operations(const struct sim_options *o)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;

	sim_open(s, o);
	sim_connect(s, 7471);
	b = make(s, 300001);
	for (unsigned i = 0; i < N_SIZES; i++) {
		uint32_t n = sizes[i];

		fill(b.a, n, i + 1);
		memset(b.b, 0, n);
		send_and_recv(s, &b, n);
		assert_memory_equal(b.a, b.b, n);

		fill(b.a, n, i + 101);
		one_sided(s, &b, UW_WR_RDMA_WRITE, n);
		if (o->roce && s->e->stack[0]->llp->in_flight) /* doc/adr/0014 */
			assert_memory_equal(b.a, b.b, n);
		send_and_recv(s, &b, 0);
		assert_memory_equal(b.a, b.b, n);

		fill(b.b, n, i + 201);
		one_sided(s, &b, UW_WR_RDMA_READ, n);
		assert_memory_equal(b.a, b.b, n);
	}
	assert_int_equal(sim_stats(s).mpa_rx_crc_errors, 0);
	drop(&b);
	sim_close(s);
	free(s);
}

static void test_all_clean(void **state)
{
	(void)state;
	all_operations(&(struct sim_options){ .mtu = 1500 });
	all_operations(&(struct sim_options){ .mtu = 9000 });
	all_operations(&(struct sim_options){ .mtu = 65521 });
}

static void test_all_without_crc(void **state)
{
	(void)state;
	all_operations(&(struct sim_options){ .mtu = 1500, .no_crc = true });
}

/* RFC 5044 §4.3: markers in both directions, because both ask for them. */
static void test_all_with_markers(void **state)
{
	(void)state;
	all_operations(&(struct sim_options){ .mtu = 1500, .markers = true });
	all_operations(&(struct sim_options){ .mtu = 9000, .markers = true, .drop_ppm = 10000 });
	all_operations(&(struct sim_options){ .mtu = 1500, .markers = true, .no_crc = true });
}

/* RFC 6581 §6: revision 1 without the enhanced word works as before, towards a responder that could
 * do more; and revision 2 without peer-to-peer. */
static void test_all_rev1(void **state)
{
	(void)state;
	all_operations(&(struct sim_options){ .mtu = 1500, .rev1 = true });
	all_operations(&(struct sim_options){ .mtu = 1500, .no_p2p = true });
}

static void test_all_with_faults(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++)
		all_operations(&(struct sim_options){ .mtu = seed & 1 ? 1500 : 9000,
						      .direct = seed > 6,
						      .drop_ppm = 20000,
						      .dup_ppm = 20000,
						      .reorder_ppm = 50000,
						      .seed = seed });
}

/* The header is 20 octets longer, the neighbours find each other by ND, and that may get lost too.
 */
static void test_all_over_ip6(void **state)
{
	(void)state;
	all_operations(&(struct sim_options){ .ip6 = true, .mtu = 1500 });
	all_operations(&(struct sim_options){ .ip6 = true, .mtu = 1280, .markers = true });
	for (uint64_t seed = 1; seed <= 4; seed++)
		all_operations(&(struct sim_options){ .ip6 = true,
						      .mtu = seed & 1 ? 1500 : 9000,
						      .drop_ppm = 20000,
						      .dup_ppm = 20000,
						      .reorder_ppm = 50000,
						      .seed = seed });
}

/* doc/adr/0014: at a Write's completion its octets are in the peer's memory, whatever was lost. */
static void test_a_completed_write_is_there(void **state)
{
	(void)state;
	all_operations(&(struct sim_options){ .roce = true });
	for (uint64_t seed = 1; seed <= 12; seed++)
		all_operations(&(struct sim_options){ .roce = true,
						      .direct = seed > 6,
						      .drop_ppm = 20000,
						      .dup_ppm = 20000,
						      .reorder_ppm = 50000,
						      .seed = seed });
}

/* ... and its ACK comes at once: no timer of TCP's is waited for. */
static void round_trips(bool direct)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;

	sim_open(s, &(struct sim_options){ .roce = true, .direct = direct });
	if (!s->e->stack[0]->llp->in_flight) {
		sim_close(s);
		free(s);
		skip(); /* nor does a completion wait */
	}
	sim_connect(s, 7471);
	b = make(s, 100);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t start = s->now_us;

		one_sided(s, &b, UW_WR_RDMA_WRITE, 100);
		/* 50 us each way; the clock is a step further when it is seen */
		assert_in_range(s->now_us - start, 100, 1200);
	}
	drop(&b);
	sim_close(s);
	free(s);
}

static void test_a_completion_takes_a_round_trip(void **state)
{
	(void)state;
	round_trips(false);
}

static void test_a_completion_takes_a_round_trip_between_processes(void **state)
{
	(void)state;
	round_trips(true);
}

/* The same seed is the same run, to the microsecond. */
static void test_repeats_exactly(void **state)
{
	uint64_t end[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct sim *s = calloc(1, sizeof(*s));
		struct buffers b;

		sim_rewind();
		sim_open(s, &(struct sim_options){ .drop_ppm = 30000, .seed = 42 });
		if (s->wall)
			skip(); /* not what threads and the real clock promise */
		sim_connect(s, 7471);
		b = make(s, 100000);
		one_sided(s, &b, UW_WR_RDMA_READ, 100000);
		end[i] = s->now_us;
		drop(&b);
		sim_close(s);
		free(s);
	}
	assert_int_equal(end[0], end[1]);
}

static void test_private_data(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	assert_int_equal(s->listener.pd_len, 5);
	assert_memory_equal(s->listener.pd_got, "hello", 5);
	assert_int_equal(s->a.pd_len, 7);
	assert_memory_equal(s->a.pd_got, "welcome", 7);
	sim_close(s);
	free(s);
}

static bool both_down(void *arg)
{
	struct sim *s = arg;

	return sim_had(&s->a, UW_CM_DISCONNECTED) && sim_had(&s->b, UW_CM_DISCONNECTED);
}

/* What was posted before the disconnect arrives, then both sides hear of the end (RFC 5044 §7.2).
 */
static void test_disconnect_drains(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	struct uw_sge sge;
	struct uw_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UW_WR_RDMA_WRITE };

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	b = make(s, 200000);
	fill(b.a, 200000, 5);
	sge = (struct uw_sge){ (uintptr_t)b.a, 200000, uw_mr_stag(b.ma) };
	wr.remote_addr = (uintptr_t)b.b;
	wr.rkey = uw_mr_stag(b.mb);
	sim_post_send(&s->a, &wr);
	assert_int_equal(uw_ep_disconnect(s->a.ep), 0);
	assert_true(sim_until(s, both_down, s, 60000000));
	assert_memory_equal(b.a, b.b, 200000);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_ERR);
	assert_int_equal(uw_qp_state(s->b.qp), UW_QPS_ERR);
	drop(&b);
	sim_close(s);
	free(s);
}

static bool a_down(void *arg)
{
	return sim_had(&((struct sim *)arg)->a, UW_CM_DISCONNECTED);
}

/* A Write outside the region: Terminate 1/1/01 (RFC 5041 §7.1), both QPs to error, memory whole. It
 * fails itself where it waits for the peer, and is complete by then where it does not. */
static void bad_write(bool roce)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	struct uw_sge sge;
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_RDMA_WRITE, .flags = UW_SEND_SIGNALED
	};

	sim_open(s, &(struct sim_options){ .roce = roce });
	sim_connect(s, 7471);
	b = make(s, 64);
	fill(b.a, 64, 9);
	sge = (struct uw_sge){ (uintptr_t)b.a, 64, uw_mr_stag(b.ma) };
	wr.remote_addr = (uintptr_t)b.b + 1;
	wr.rkey = uw_mr_stag(b.mb);
	sim_post_send(&s->a, &wr);
	assert_true(sim_until(s, a_down, s, 60000000));
	assert_int_equal(s->a.qp->c.qp.peer_term.layer, 1);
	assert_int_equal(s->a.qp->c.qp.peer_term.etype, 1);
	assert_int_equal(s->a.qp->c.qp.peer_term.code, 1);
	assert_int_equal(s->b.async[UW_EVENT_QP_ACCESS_ERR], 1);
	assert_int_equal(sim_wc(s, s->a.scq).status, roce && s->e->stack[0]->llp->in_flight
							     ? UW_WC_REM_ACCESS_ERR
							     : UW_WC_SUCCESS);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(b.b[i], 0);
	drop(&b);
	sim_close(s);
	free(s);
}

static void test_bad_write_terminates(void **state)
{
	(void)state;
	bad_write(false);
	bad_write(true);
}

/* A read of foreign memory fails the very request (RFC 5040 §5.2). */
static void test_bad_read_fails_request(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	struct uw_sge sge;
	struct uw_send_wr wr = { .wr_id = 3,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_READ,
				 .flags = UW_SEND_SIGNALED };
	struct uw_wc wc;

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	b = make(s, 64);
	sge = (struct uw_sge){ (uintptr_t)b.a, 64, uw_mr_stag(b.ma) };
	wr.remote_addr = (uintptr_t)b.b;
	wr.rkey = uw_mr_stag(b.mb) ^ 1;
	sim_post_send(&s->a, &wr);
	wc = sim_wc(s, s->a.scq);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.status, UW_WC_REM_ACCESS_ERR);
	drop(&b);
	sim_close(s);
	free(s);
}

/* RFC 7306 §6: Write and Immediate Data; the receive tells the Write's length. */
static void test_write_with_imm(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	struct uw_sge sge;
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_WRITE_WITH_IMM,
				 .flags = UW_SEND_SIGNALED,
				 .imm_or_inv = 0x11223344 };
	struct uw_wc wc;

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	b = make(s, 70000);
	for (unsigned i = 0; i < N_SIZES - 1; i++) {
		sge = (struct uw_sge){ (uintptr_t)b.a, sizes[i], uw_mr_stag(b.ma) };
		wr.remote_addr = (uintptr_t)b.b;
		wr.rkey = uw_mr_stag(b.mb);
		fill(b.a, sizes[i], i + 1);
		sim_post_recv(&s->b, 5, b.b, 0, b.mb);
		sim_post_send(&s->a, &wr);
		wc = sim_wc(s, s->b.rcq);
		assert_int_equal(wc.opcode, UW_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.wc_flags, UW_WC_WITH_IMM);
		assert_int_equal(wc.imm_or_inv, 0x11223344);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_memory_equal(b.a, b.b, sizes[i]);
		wc = sim_wc(s, s->a.scq);
		assert_int_equal(wc.opcode, UW_WC_RDMA_WRITE);
		assert_int_equal(wc.status, UW_WC_SUCCESS);
	}
	drop(&b);
	sim_close(s);
	free(s);
}

static void test_send_with_imm(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	struct uw_sge sge;
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_SEND_WITH_IMM,
				 .imm_or_inv = 0xa1b2c3d4 };
	struct uw_wc wc;

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	b = make(s, 5000);
	fill(b.a, 5000, 3);
	sge = (struct uw_sge){ (uintptr_t)b.a, 5000, uw_mr_stag(b.ma) };
	sim_post_recv(&s->b, 5, b.b, 5000, b.mb);
	sim_post_send(&s->a, &wr);
	wc = sim_wc(s, s->b.rcq);
	assert_int_equal(wc.opcode, UW_WC_RECV);
	assert_int_equal(wc.wc_flags, UW_WC_WITH_IMM);
	assert_int_equal(wc.imm_or_inv, 0xa1b2c3d4);
	assert_int_equal(wc.byte_len, 5000);
	assert_memory_equal(b.a, b.b, 5000);
	drop(&b);
	sim_close(s);
	free(s);
}

static uint64_t atomic_op(struct sim *s, struct buffers *b, uint32_t op, uint64_t x, uint64_t swap)
{
	struct uw_sge sge = { (uintptr_t)b->a, 8, uw_mr_stag(b->ma) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)b->b,
				 .rkey = uw_mr_stag(b->mb),
				 .compare_add = x,
				 .swap = swap };
	struct uw_wc wc;
	uint64_t got;

	sim_post_send(&s->a, &wr);
	wc = sim_wc(s, s->a.scq);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode,
			 op == UW_WR_ATOMIC_CMP_AND_SWP ? UW_WC_COMP_SWAP : UW_WC_FETCH_ADD);
	memcpy(&got, b->a, 8);
	return got;
}

/* RFC 7306 §5.1: the original value comes back, in host order, whatever happened. */
static void test_atomics(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	uint64_t *word;

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	b = make(s, 64);
	word = (uint64_t *)(void *)b.b;
	*word = 0x1122334455667788u;
	assert_true(atomic_op(s, &b, UW_WR_ATOMIC_FETCH_AND_ADD, 5, 0) == 0x1122334455667788u);
	assert_true(*word == 0x112233445566778du);
	assert_true(atomic_op(s, &b, UW_WR_ATOMIC_CMP_AND_SWP, 1, 2) == 0x112233445566778du);
	assert_true(*word == 0x112233445566778du);
	assert_true(atomic_op(s, &b, UW_WR_ATOMIC_CMP_AND_SWP, *word, 2) == 0x112233445566778du);
	assert_true(*word == 2);
	drop(&b);
	sim_close(s);
	free(s);
}

/* RFC 7306 §8.2: misaligned: memory untouched, Terminate 0/2/07. */
static void test_misaligned_atomic(void **state)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct buffers b;
	struct uw_sge sge;
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_ATOMIC_FETCH_AND_ADD,
				 .compare_add = 1 };

	(void)state;
	sim_open(s, &(struct sim_options){ 0 });
	sim_connect(s, 7471);
	b = make(s, 64);
	sge = (struct uw_sge){ (uintptr_t)b.a, 8, uw_mr_stag(b.ma) };
	wr.remote_addr = (uintptr_t)b.b + 4;
	wr.rkey = uw_mr_stag(b.mb);
	sim_post_send(&s->a, &wr);
	assert_true(sim_until(s, a_down, s, 60000000));
	assert_int_equal(s->a.qp->c.qp.peer_term.layer, 0);
	assert_int_equal(s->a.qp->c.qp.peer_term.etype, 2);
	assert_int_equal(s->a.qp->c.qp.peer_term.code, 7);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(b.b[i], 0);
	drop(&b);
	sim_close(s);
	free(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_clean),
		cmocka_unit_test(test_all_without_crc),
		cmocka_unit_test(test_all_with_markers),
		cmocka_unit_test(test_all_rev1),
		cmocka_unit_test(test_all_with_faults),
		cmocka_unit_test(test_all_over_ip6),
		cmocka_unit_test(test_a_completed_write_is_there),
		cmocka_unit_test(test_a_completion_takes_a_round_trip),
		cmocka_unit_test(test_a_completion_takes_a_round_trip_between_processes),
		cmocka_unit_test(test_repeats_exactly),
		cmocka_unit_test(test_private_data),
		cmocka_unit_test(test_disconnect_drains),
		cmocka_unit_test(test_bad_write_terminates),
		cmocka_unit_test(test_bad_read_fails_request),
		cmocka_unit_test(test_write_with_imm),
		cmocka_unit_test(test_send_with_imm),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_misaligned_atomic),
	};

	return sim_run_tests(tests, argc, argv);
}
