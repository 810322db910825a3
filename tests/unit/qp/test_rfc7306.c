/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics and immediate data as work requests: RFC 7306. */
#include <endian.h>

#include "node.h"
#include "qp/qp.h"
#include "ulpdu.h"

#define IMM htobe32(0x01020304)

static struct node a, b;

static void pair(void)
{
	const struct mpa_agreed agreed = node_agreed();
	const struct node_opts all = { .sig_all = true };

	node_init(&a, 1, &all);
	node_init(&b, 2, &all);
	a.mem.r[0].rights |= UW_ACCESS_REMOTE_ATOMIC;
	b.mem.r[0].rights |= UW_ACCESS_REMOTE_ATOMIC;
	nodes_start(&a, &b, &agreed);
}

static uint64_t *word_at(struct node *n, size_t at)
{
	return (uint64_t *)(void *)(n->m + at);
}

static struct uw_send_wr atomic_wr(unsigned op, size_t at, uint64_t compare_add, uint64_t swap)
{
	struct uw_send_wr wr = node_wr_to(&a, op, at, 8, &b, 0);

	wr.compare_add = compare_add;
	wr.swap = swap;
	return wr;
}

/* RFC 7306 §5: done when the answer is here; the original value is in the request's memory. */
static void atomics_complete_with_their_answer(void **state)
{
	struct uw_wc wc;

	(void)state;
	pair();
	assert_int_equal(to_of(b.m) % 8, 0);
	*word_at(&b, 0) = 10;
	node_post(&a, 1, atomic_wr(UW_WR_ATOMIC_FETCH_AND_ADD, 64, 5, 99));
	node_post(&a, 2, atomic_wr(UW_WR_ATOMIC_CMP_AND_SWP, 72, 15, 77));
	node_post(&a, 3, atomic_wr(UW_WR_ATOMIC_CMP_AND_SWP, 80, 15, 88));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_no_wc(&a.scq);
	nodes_run(&a, &b);
	wc = node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode, UW_WC_FETCH_ADD);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(node_wc(&a.scq, 2, UW_WC_SUCCESS).opcode, UW_WC_COMP_SWAP);
	node_wc(&a.scq, 3, UW_WC_SUCCESS);
	assert_int_equal(*word_at(&a, 64), 10);
	assert_int_equal(*word_at(&a, 72), 15);
	assert_int_equal(*word_at(&a, 80), 77);
	assert_int_equal(*word_at(&b, 0), 77);
}

/* RFC 7306 §5.1: FetchAdd has no mask, CmpSwap full ones; what FetchAdd does not use is as the RFC
 * says. */
static void plain_atomics_have_the_masks_of_the_rfc(void **state)
{
	uint8_t seg[NODE_ROOM];
	const uint8_t *x = seg + 20;

	(void)state;
	pair();
	node_post(&a, 1, atomic_wr(UW_WR_ATOMIC_FETCH_AND_ADD, 64, 5, 99));
	assert_int_equal(qp_tx(&a.qp, seg, sizeof(seg)), mpa_fpdu_size(18 + 52));
	assert_int_equal(octets(x, 4), 0);
	assert_true(octets(x + 20, 8) == 5 && octets(x + 28, 8) == 0);
	assert_true(octets(x + 36, 8) == 0 && octets(x + 44, 8) == UINT64_MAX);
	node_post(&a, 2, atomic_wr(UW_WR_ATOMIC_CMP_AND_SWP, 72, 15, 77));
	assert_int_equal(qp_tx(&a.qp, seg, sizeof(seg)), mpa_fpdu_size(18 + 52));
	assert_int_equal(octets(x, 4), 2);
	assert_true(octets(x + 20, 8) == 77 && octets(x + 28, 8) == UINT64_MAX);
	assert_true(octets(x + 36, 8) == 15 && octets(x + 44, 8) == UINT64_MAX);
}

/* RFC 7306 §5: atomics count against ORD, and the fence waits for them. */
static void atomics_are_reads_to_ord_and_fence(void **state)
{
	struct uw_send_wr wr;

	(void)state;
	pair();
	for (unsigned i = 0; i <= NODE_READS; i++)
		node_post(&a, i, atomic_wr(UW_WR_ATOMIC_FETCH_AND_ADD, 64 + 8 * i, 1, 0));
	wr = node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 4, &b, 512);
	wr.flags = UW_SEND_FENCE;
	node_post(&a, 9, wr);
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_int_equal(a.qp.rd.orq.count, NODE_READS);
	assert_int_equal(b.stats.ddp_rx_untagged, NODE_READS);
	nodes_run(&a, &b);
	for (unsigned i = 0; i <= NODE_READS; i++) {
		node_wc(&a.scq, i, UW_WC_SUCCESS);
		assert_int_equal(*word_at(&a, 64 + 8 * i), i);
	}
	node_wc(&a.scq, 9, UW_WC_SUCCESS);
}

/* The sink of an atomic does not hold: that request fails itself, the rest is flushed. */
static void an_atomic_with_a_bad_sink_fails_itself(void **state)
{
	const struct uw_sge bad = sge_of(a.m, 8, 12345);
	struct uw_send_wr wr;

	(void)state;
	pair();
	node_post_recv(&a, 50, 0, 10);
	wr = atomic_wr(UW_WR_ATOMIC_FETCH_AND_ADD, 64, 1, 0);
	wr.sg_list = &bad;
	node_post(&a, 1, wr);
	node_post(&a, 2, atomic_wr(UW_WR_ATOMIC_FETCH_AND_ADD, 64, 1, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_LKEY);
	node_wc(&a.scq, 1, UW_WC_LOC_PROT_ERR);
	node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
	node_wc(&a.rcq, 50, UW_WC_WR_FLUSH_ERR);
}

/* RFC 7306 §8.1: the peer's Terminate about an atomic is its completion. */
static void an_atomic_that_the_peer_refuses_fails_itself(void **state)
{
	(void)state;
	pair();
	b.mem.r[0].rights &= ~(unsigned)UW_ACCESS_REMOTE_ATOMIC;
	node_post(&a, 1, atomic_wr(UW_WR_ATOMIC_FETCH_AND_ADD, 64, 1, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_RDMAP_ACCESS);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	node_wc(&a.scq, 1, UW_WC_REM_ACCESS_ERR);
	assert_int_equal(*word_at(&b, 0), 0);
}

/* RFC 7306 §6: a Write with immediate is a Write and an Immediate Data message, one request and one
 * completion here, one receive without data there. */
static void a_write_with_immediate_is_two_messages(void **state)
{
	struct uw_send_wr wr;
	struct uw_wc wc;
	uint8_t seg[NODE_ROOM];
	size_t n, used, second = mpa_fpdu_size(14 + 300);

	(void)state;
	pair();
	node_post_recv(&b, 50, 20000, 10);
	memset(a.m, 0x33, 300);
	wr = node_wr_to(&a, UW_WR_RDMA_WRITE_WITH_IMM, 0, 300, &b, 1000);
	wr.imm_or_inv = IMM;
	wr.flags = UW_SEND_SOLICITED;
	node_post(&a, 1, wr);
	n = qp_tx(&a.qp, seg, sizeof(seg));
	assert_int_equal(n, second + mpa_fpdu_size(18 + 8));
	assert_int_equal(octets(seg + 2, 2), CTRL_WRITE);
	assert_int_equal(octets(seg + second + 2, 2), CTRL_IMM_SE);
	assert_int_equal(octets(seg + second + 20, 8), 0x0102030400000000ull);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_no_wc(&a.scq);
	const struct uw_span one = { seg, n };

	assert_status(qp_rx(&b.qp, uw_rope_of(&one), &used), UW_OK);
	wc = node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode, UW_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 300);
	assert_int_equal(wc.wc_flags, UW_WC_WITH_IMM);
	assert_true(wc.imm_or_inv == IMM);
	assert_memory_equal(b.m + 1000, a.m, 300);
	assert_int_equal(b.m[20000], 0);
}

/* The two halves in different segments, other requests behind them: the order stays. */
static void a_long_write_with_immediate_completes_once(void **state)
{
	struct uw_send_wr wr;

	(void)state;
	pair();
	for (unsigned i = 0; i < 3; i++)
		node_post_recv(&b, 50 + i, 20000, 10);
	for (unsigned i = 0; i < 3; i++) {
		wr = node_wr_to(&a, UW_WR_RDMA_WRITE_WITH_IMM, 0, 1428 * i, &b, 1000);
		wr.imm_or_inv = i;
		node_post(&a, i, wr);
	}
	nodes_run(&a, &b);
	for (unsigned i = 0; i < 3; i++) {
		struct uw_wc wc = node_wc(&b.rcq, 50 + i, UW_WC_SUCCESS);

		assert_int_equal(wc.imm_or_inv, i);
		assert_int_equal(wc.byte_len, 1428 * i);
		assert_int_equal(node_wc(&a.scq, i, UW_WC_SUCCESS).opcode, UW_WC_RDMA_WRITE);
	}
	assert_no_wc(&a.scq);
	assert_true(sq_empty(&a.qp.sq));
}

/* IBA §10.3.1: SQD is reached when what was begun is done. RFC 7306 §6: the Immediate Data belongs
 * to the Write before it. */
static void draining_waits_for_the_immediate_data(void **state)
{
	uint8_t seg[NODE_ROOM];
	struct uw_send_wr wr;

	(void)state;
	pair();
	a.qp.cm_less = true;
	wr = node_wr_to(&a, UW_WR_RDMA_WRITE_WITH_IMM, 0, 300, &b, 1000);
	node_post(&a, 1, wr);
	node_post(&a, 2, wr);
	assert_int_equal(qp_tx(&a.qp, seg, mpa_fpdu_size(14 + 300)), mpa_fpdu_size(14 + 300));
	assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
	assert_false(qp_drained(&a.qp));
	assert_true(qp_tx_prepare(&a.qp));
	assert_int_equal(qp_tx(&a.qp, seg, sizeof(seg)), mpa_fpdu_size(18 + 8));
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_true(qp_drained(&a.qp));
	assert_false(qp_tx_prepare(&a.qp));
}

/* doc/adr/0004 */
static void a_send_with_immediate_brings_both(void **state)
{
	struct uw_send_wr wr;
	struct uw_wc wc;

	(void)state;
	pair();
	node_post_recv(&b, 50, 0, 5000);
	memset(a.m, 0x44, 3000);
	wr = node_wr(&a, UW_WR_SEND_WITH_IMM, 0, 3000);
	wr.imm_or_inv = IMM;
	node_post(&a, 1, wr);
	nodes_run(&a, &b);
	wc = node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode, UW_WC_RECV);
	assert_int_equal(wc.byte_len, 3000);
	assert_int_equal(wc.wc_flags, UW_WC_WITH_IMM);
	assert_true(wc.imm_or_inv == IMM);
	assert_memory_equal(b.m, a.m, 3000);
	assert_int_equal(node_wc(&a.scq, 1, UW_WC_SUCCESS).opcode, UW_WC_SEND);
}

/* A nudge is a Write of nothing: invisible, and only when there is nothing else to send. */
static void a_nudge_is_invisible(void **state)
{
	(void)state;
	pair();
	assert_false(qp_tx_empty_write(&b.qp)); /* RFC 5044 §7.1.2: not before the first FPDU */
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 4, &b, 0));
	assert_false(qp_tx_empty_write(&a.qp));
	nodes_run(&a, &b);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		struct node *n = i ? &b : &a, *peer = i ? &a : &b;

		assert_true(qp_tx_empty_write(&n->qp));
		assert_false(qp_tx_empty_write(&n->qp)); /* one is enough */
		assert_true(qp_tx_prepare(&n->qp));
		assert_status(node_carry(n, peer, NODE_ROOM), UW_OK);
		assert_no_wc(&n->scq);
		assert_no_wc(&peer->rcq);
	}
	qp_fail(&a.qp, UW_OK);
	assert_false(qp_tx_empty_write(&a.qp));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(atomics_complete_with_their_answer),
	cmocka_unit_test(plain_atomics_have_the_masks_of_the_rfc),
	cmocka_unit_test(atomics_are_reads_to_ord_and_fence),
	cmocka_unit_test(an_atomic_with_a_bad_sink_fails_itself),
	cmocka_unit_test(an_atomic_that_the_peer_refuses_fails_itself),
	cmocka_unit_test(a_write_with_immediate_is_two_messages),
	cmocka_unit_test(a_long_write_with_immediate_completes_once),
	cmocka_unit_test(draining_waits_for_the_immediate_data),
	cmocka_unit_test(a_send_with_immediate_brings_both),
	cmocka_unit_test(a_nudge_is_invisible),
};

UWTEST_MAIN(tests)
