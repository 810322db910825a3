/* SPDX-License-Identifier: BSD-3-Clause */
/* States, completions, flushing, shared receive queues. */
#include "qp/qp.h"

#include "node.h"
#include "ulpdu.h"

static struct node a, b;

static void pair(const struct node_opts *opts)
{
	const struct mpa_agreed agreed = node_agreed();

	node_init(&a, 1, opts);
	node_init(&b, 2, opts);
	nodes_start(&a, &b, &agreed);
}

/* The Terminate that n has to send, and nothing after it; its layer, type and code. */
static unsigned terminate_of(struct node *n)
{
	uint8_t seg[200];
	size_t size;

	assert_int_equal(n->qp.state, UW_QPS_ERR);
	assert_true(qp_tx_prepare(&n->qp));
	size = qp_tx(&n->qp, seg, sizeof(seg));
	assert_in_range(size, 2 + 18 + 4 + 4, sizeof(seg));
	assert_int_equal(octets(seg + 2, 2), CTRL_TERMINATE);
	assert_false(qp_tx_prepare(&n->qp));
	assert_int_equal(qp_tx(&n->qp, seg, sizeof(seg)), 0);
	return (unsigned)octets(seg + 20, 2);
}

/* ---- states ------------------------------------------------------------------------------ */

static void modifying_before_there_is_a_stream(void **state)
{
	static const struct {
		enum uw_qp_state to, is;
		uw_status st;
	} rows[] = {
		{ UW_QPS_INIT, UW_QPS_INIT, UW_OK },	  { UW_QPS_RTR, UW_QPS_RTR, UW_OK },
		{ UW_QPS_RTS, UW_QPS_RTR, UW_OK },	  { UW_QPS_SQD, UW_QPS_RTR, UW_E_STATE },
		{ UW_QPS_SQE, UW_QPS_RTR, UW_E_INVAL },	  { UW_QPS_RESET, UW_QPS_RESET, UW_OK },
		{ UW_QPS_SQD, UW_QPS_RESET, UW_E_STATE }, { UW_QPS_ERR, UW_QPS_ERR, UW_OK },
		{ UW_QPS_RTS, UW_QPS_ERR, UW_OK },	  { UW_QPS_SQD, UW_QPS_ERR, UW_OK },
		{ UW_QPS_RESET, UW_QPS_RESET, UW_OK },
	};

	(void)state;
	node_init(&a, 1, NULL);
	assert_int_equal(a.qp.state, UW_QPS_RESET);
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_status(qp_modify(&a.qp, rows[i].to), rows[i].st);
		assert_int_equal(a.qp.state, rows[i].is);
	}
}

static void modifying_while_there_is_a_stream(void **state)
{
	(void)state;
	pair(NULL);
	assert_status(qp_modify(&a.qp, UW_QPS_INIT), UW_OK);
	assert_status(qp_modify(&a.qp, UW_QPS_RTR), UW_OK);
	assert_status(qp_modify(&a.qp, UW_QPS_RTS), UW_OK);
	assert_int_equal(a.qp.state, UW_QPS_RTS);
	assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
	assert_int_equal(a.qp.state, UW_QPS_SQD);
	assert_true(a.qp.fin_wanted);
	assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
	assert_status(qp_modify(&a.qp, UW_QPS_RTS), UW_OK);
	assert_int_equal(a.qp.state, UW_QPS_SQD);
	assert_status(qp_modify(&a.qp, UW_QPS_ERR), UW_OK);
	assert_int_equal(a.qp.state, UW_QPS_ERR);
	assert_status(a.qp.cause, UW_E_FLUSHED);
	/* the program's wish is not told to the peer */
	assert_false(qp_tx_prepare(&a.qp));
}

static void a_stream_starts_only_once(void **state)
{
	const struct mpa_agreed agreed = node_agreed();
	const struct qp_stream s = { .agreed = &agreed, .initiator = true };
	static const enum uw_qp_state bad[] = { UW_QPS_SQD, UW_QPS_ERR };

	(void)state;
	pair(NULL);
	assert_status(qp_start(&a.qp, &s), UW_E_STATE);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_status(qp_modify(&a.qp, bad[i]), UW_OK);
		assert_status(qp_start(&a.qp, &s), UW_E_STATE);
	}
}

/* After RESET a QP takes another stream, whose messages are numbered from 1 (RFC 5041 §5.1). */
static void a_qp_has_a_second_life(void **state)
{
	const struct mpa_agreed agreed = node_agreed();

	(void)state;
	pair(NULL);
	for (unsigned life = 0; life < 3; life++) {
		node_post_recv(&b, 50, 0, 100);
		node_post(&a, 5, node_wr(&a, UW_WR_SEND, 0, 10));
		nodes_run(&a, &b);
		node_wc(&b.rcq, 50, UW_WC_SUCCESS);
		assert_status(a.qp.cause, UW_OK);
		assert_false(a.qp.fin_wanted);
		/* the life ends with a message half sent and another one not begun */
		node_post(&a, 6, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 4000, &b, 0));
		if (life)
			node_post(&a, 7, node_wr(&a, UW_WR_SEND, 0, 10));
		assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
		assert_int_equal(qp_tx(&a.qp, a.scratch, NODE_ROOM), NODE_ROOM);
		assert_status(qp_modify(&a.qp, UW_QPS_RESET), UW_OK);
		assert_int_equal(cq_count(&a.scq), 0); /* what was posted is gone */
		assert_status(qp_modify(&b.qp, UW_QPS_ERR), UW_OK);
		assert_status(qp_modify(&b.qp, UW_QPS_RESET), UW_OK);
		assert_int_equal(a.qp.state, UW_QPS_RESET);
		assert_status(qp_modify(&a.qp, UW_QPS_INIT), UW_OK);
		nodes_start(&a, &b, &agreed);
	}
}

/* SQD: what was posted still goes, what comes is still taken. */
static void draining_sends_what_was_posted(void **state)
{
	(void)state;
	pair(NULL);
	node_post_recv(&b, 50, 0, 100);
	node_post_recv(&a, 60, 0, 100);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
	nodes_run(&a, &b);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	node_post(&b, 2, node_wr(&b, UW_WR_SEND, 0, 10));
	nodes_run(&a, &b);
	node_wc(&a.rcq, 60, UW_WC_SUCCESS);
	assert_true(sq_empty(&a.qp.sq));
}

/* rdma_cm's SQD sends all that was posted: between two messages it is not reached yet. */
static void draining_ends_with_the_last_message(void **state)
{
	const size_t one = mpa_fpdu_size(14 + 1000);

	(void)state;
	pair(NULL);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 1000, &b, 0));
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 1000, &b, 0));
	assert_int_equal(qp_tx(&a.qp, a.scratch, one), one);
	assert_false(a.qp.sending_sq);
	assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
	assert_false(qp_drained(&a.qp));
	assert_true(qp_tx_prepare(&a.qp));
	assert_int_equal(qp_tx(&a.qp, a.scratch, one), one);
	assert_true(qp_drained(&a.qp));
}

/* ---- completions ------------------------------------------------------------------------- */

static void completions_say_what_was_done(void **state)
{
	static const struct {
		unsigned wr, wc;
	} rows[] = {
		{ UW_WR_SEND, UW_WC_SEND },
		{ UW_WR_RDMA_WRITE, UW_WC_RDMA_WRITE },
		{ UW_WR_RDMA_READ, UW_WC_RDMA_READ },
	};
	const struct node_opts all = { .sig_all = true };
	struct uw_wc wc;

	(void)state;
	pair(&all);
	node_post_recv(&b, 50, 0, 100);
	for (size_t i = 0; i < COUNT(rows); i++) {
		node_post(&a, 40 + i, node_wr_to(&a, rows[i].wr, 0, 11, &b, 200));
		nodes_run(&a, &b);
		wc = node_wc(&a.scq, 40 + i, UW_WC_SUCCESS);
		assert_int_equal(wc.opcode, rows[i].wc);
		assert_int_equal(wc.byte_len, 11);
		assert_int_equal(wc.qp_num, 1);
		assert_int_equal(wc.vendor_err, UW_OK);
	}
	wc = node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode, UW_WC_RECV);
	assert_int_equal(wc.byte_len, 11);
	assert_int_equal(wc.qp_num, 2);
	assert_int_equal(wc.wc_flags, 0);
	assert_no_wc(&b.rcq);
	assert_no_wc(&b.scq);
}

/* RFC 5040 §5.5: in the order of posting; a Read is complete when its Response is. */
static void completions_wait_for_older_ones(void **state)
{
	const struct node_opts all = { .sig_all = true };

	(void)state;
	pair(&all);
	node_post_recv(&b, 50, 0, 100);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0));
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_READ, 100, 10, &b, 0));
	node_post(&a, 3, node_wr(&a, UW_WR_SEND, 0, 10));
	node_post(&a, 4, node_wr_to(&a, UW_WR_RDMA_READ, 200, 10, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_no_wc(&a.scq);
	assert_status(node_carry(&b, &a, 70), UW_OK);
	node_wc(&a.scq, 2, UW_WC_SUCCESS);
	node_wc(&a.scq, 3, UW_WC_SUCCESS);
	node_wc(&a.scq, 4, UW_WC_SUCCESS);
	assert_true(sq_empty(&a.qp.sq));
}

/* Without the signalled flag success is silent, and makes room in the queue all the same. */
static void unsignalled_success_is_silent(void **state)
{
	const struct node_opts two = { .sq_depth = 2 };
	struct uw_send_wr wr;

	(void)state;
	pair(&two);
	for (unsigned i = 0; i < 20; i++) {
		wr = node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0);
		if (i % 5 == 4)
			wr.flags = UW_SEND_SIGNALED;
		node_post(&a, i, wr);
		nodes_run(&a, &b);
		if (i % 5 == 4)
			node_wc(&a.scq, i, UW_WC_SUCCESS);
		assert_no_wc(&a.scq);
	}
}

/* RFC 5040 §5.3: only Sends with SE ask for the event. */
static void solicited_receives_wake(void **state)
{
	struct uw_send_wr wr;

	(void)state;
	pair(NULL);
	for (unsigned i = 0; i < 3; i++)
		node_post_recv(&b, 50 + i, 0, 100);
	a.scq.notify = b.rcq.notify = node_notify;
	a.scq.ctx = &a;
	b.rcq.ctx = &b;
	cq_arm(&b.rcq, CQ_SOLICITED);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	nodes_run(&a, &b);
	assert_int_equal(b.notified, 0);
	wr = node_wr(&a, UW_WR_SEND, 0, 10);
	wr.flags = UW_SEND_SOLICITED;
	node_post(&a, 2, wr);
	wr.flags |= UW_SEND_SIGNALED;
	cq_arm(&a.scq, CQ_SOLICITED);
	node_post(&a, 3, wr);
	nodes_run(&a, &b);
	assert_int_equal(b.notified, 1);
	node_wc(&a.scq, 3, UW_WC_SUCCESS);
	assert_int_equal(a.notified, 0); /* a request that was sent is never solicited */
}

/* ---- flushing ---------------------------------------------------------------------------- */

/* RFC 5040 §5.4, §6.2: what is outstanding completes flushed, in order, signalled or not. */
static void an_error_flushes_everything(void **state)
{
	(void)state;
	pair(NULL);
	for (unsigned i = 0; i < 4; i++)
		node_post_recv(&a, 50 + i, 0, 100);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_int_not_equal(qp_tx(&a.qp, a.scratch, NODE_ROOM), 0);
	node_post(&a, 3, node_wr(&a, UW_WR_SEND, 0, 10));
	qp_fail(&a.qp, UW_E_LLP_CLOSED);
	assert_status(a.qp.cause, UW_E_LLP_CLOSED);
	node_wc(&a.scq, 1, UW_WC_WR_FLUSH_ERR);
	/* 2 had been handed to TCP, but who is behind a failed request cannot know */
	node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(node_wc(&a.scq, 3, UW_WC_WR_FLUSH_ERR).vendor_err, UW_E_FLUSHED);
	assert_no_wc(&a.scq);
	for (unsigned i = 0; i < 4; i++)
		node_wc(&a.rcq, 50 + i, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&a.rcq);
	assert_true(sq_empty(&a.qp.sq));
	assert_int_equal(a.stats.qp_flushed, 6);
}

static void what_is_posted_after_an_error_is_flushed_too(void **state)
{
	(void)state;
	pair(NULL);
	qp_fail(&a.qp, UW_OK);
	for (unsigned i = 0; i < 40; i++) {
		node_post(&a, i, node_wr(&a, UW_WR_SEND, 0, 10));
		node_post_recv(&a, i, 0, 10);
		if (i & 1)
			qp_flush(&a.qp);
		else
			qp_fail(&a.qp, UW_E_MPA_CRC);
		node_wc(&a.scq, i, UW_WC_WR_FLUSH_ERR);
		node_wc(&a.rcq, i, UW_WC_WR_FLUSH_ERR);
	}
	assert_status(a.qp.cause, UW_OK);
	assert_false(qp_tx_prepare(&a.qp));
}

/* A QP that never had a stream is flushed just the same. */
static void a_qp_without_stream_is_flushed(void **state)
{
	(void)state;
	node_init(&a, 1, NULL);
	node_post_recv(&a, 50, 0, 10);
	qp_fail(&a.qp, UW_E_LLP_CLOSED);
	assert_int_equal(a.qp.state, UW_QPS_ERR);
	node_wc(&a.rcq, 50, UW_WC_WR_FLUSH_ERR);
	assert_false(qp_tx_prepare(&a.qp));
}

/* RFC 5040 §5.4: an orderly end sends no Terminate. */
static void an_orderly_end_is_not_an_error(void **state)
{
	(void)state;
	pair(NULL);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 2000));
	assert_int_equal(qp_tx(&a.qp, a.scratch, NODE_ROOM), NODE_ROOM);
	qp_fail(&a.qp, UW_OK);
	assert_int_equal(a.qp.state, UW_QPS_ERR);
	assert_false(qp_tx_prepare(&a.qp));
	node_wc(&a.scq, 1, UW_WC_WR_FLUSH_ERR);
}

/* ---- who is to blame --------------------------------------------------------------------- */

/* Our own memory is at fault: the request says so, the rest is flushed, and the peer learns no more
 * than that the stream is over (RFC 5040 §4.8: 0/0/00). */
static void a_send_with_a_bad_sge_fails_itself(void **state)
{
	const struct uw_sge bad = sge_of(a.m, 10, 12345);
	struct uw_send_wr wr = { .opcode = UW_WR_SEND, .sg_list = &bad, .num_sge = 1 };
	uint8_t seg[NODE_ROOM];
	size_t n;

	(void)state;
	pair(NULL);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0));
	node_post(&a, 2, wr);
	node_post(&a, 3, node_wr(&a, UW_WR_SEND, 0, 10));
	n = qp_tx(&a.qp, seg, sizeof(seg));
	/* the good Write, and the Terminate right behind it */
	assert_int_equal(n, mpa_fpdu_size(14 + 10) + mpa_fpdu_size(18 + 4));
	assert_int_equal(octets(seg + 32 + 2, 2), CTRL_TERMINATE);
	assert_int_equal(octets(seg + 32 + 20, 4), 0);
	assert_int_equal(a.qp.state, UW_QPS_ERR);
	node_wc(&a.scq, 2, UW_WC_LOC_PROT_ERR);
	node_wc(&a.scq, 3, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&a.scq);
	assert_true(sq_empty(&a.qp.sq) && !sq_ready(&a.qp.sq));
	assert_false(qp_tx_prepare(&a.qp));
}

/* RFC 5041 §7.2: a Send that is too long for its receive: the receive fails with the length, the
 * others are flushed, the sender hears 1/2/05. */
static void a_receive_that_is_too_short_fails_itself(void **state)
{
	(void)state;
	pair(NULL);
	node_post_recv(&b, 50, 0, 9);
	node_post_recv(&b, 51, 0, 100);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_DDP_TOO_LONG);
	node_wc(&b.rcq, 50, UW_WC_LOC_LEN_ERR);
	node_wc(&b.rcq, 51, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&b.rcq);
	assert_int_equal(terminate_of(&b), 0x1205);
}

static void a_receive_with_a_bad_sge_fails_itself(void **state)
{
	const struct uw_sge bad = sge_of(b.m, 10, 12345);
	const struct uw_recv_wr wr = { .wr_id = 50, .sg_list = &bad, .num_sge = 1 };

	(void)state;
	pair(NULL);
	assert_status(rq_post(&b.qp.own_rq, &wr), UW_OK);
	node_post_recv(&b, 51, 0, 100);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_LKEY);
	node_wc(&b.rcq, 50, UW_WC_LOC_PROT_ERR);
	node_wc(&b.rcq, 51, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(terminate_of(&b), 0x0000);
}

/* The receive is at fault, not the request that is half sent at that moment. */
static void a_bad_receive_does_not_blame_a_send(void **state)
{
	const struct uw_sge bad = sge_of(b.m, 10, 12345);
	const struct uw_recv_wr wr = { .wr_id = 50, .sg_list = &bad, .num_sge = 1 };

	(void)state;
	pair(NULL);
	b.qp.gated = false;
	assert_status(rq_post(&b.qp.own_rq, &wr), UW_OK);
	node_post(&b, 2, node_wr_to(&b, UW_WR_RDMA_WRITE, 0, 5000, &a, 0));
	assert_int_equal(qp_tx(&b.qp, b.scratch, NODE_ROOM), NODE_ROOM);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_LKEY);
	node_wc(&b.rcq, 50, UW_WC_LOC_PROT_ERR);
	node_wc(&b.scq, 2, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&b.rcq);
	assert_no_wc(&b.scq);
}

/* A Read whose own sink does not hold. */
static void a_read_with_a_bad_sink_fails_itself(void **state)
{
	const struct uw_sge bad = sge_of(a.m, 10, 12345);
	struct uw_send_wr wr = node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0);

	(void)state;
	pair(NULL);
	wr.rkey = b.stag;
	wr.sg_list = &bad;
	node_post_recv(&a, 50, 0, 10);
	node_post(&a, 1, wr);
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_LKEY);
	node_wc(&a.scq, 1, UW_WC_LOC_PROT_ERR);
	node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
	node_wc(&a.rcq, 50, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(terminate_of(&a), 0x0000);
}

/* RFC 5040 §5.4: the peer's Terminate about a Read is that Read's completion; nothing is sent back,
 * and what it said is kept. */
static void a_read_that_the_peer_refuses_fails_itself(void **state)
{
	struct uw_send_wr wr = node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0);

	(void)state;
	pair(NULL);
	wr.rkey = 0xdeadbeef;
	node_post(&a, 1, wr);
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_RDMAP_STAG);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	assert_int_equal(node_wc(&a.scq, 1, UW_WC_REM_ACCESS_ERR).vendor_err, UW_E_RDMAP_STAG);
	node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&a.scq);
	assert_int_equal(a.qp.state, UW_QPS_ERR);
	assert_status(a.qp.cause, UW_E_TERMINATED);
	assert_false(qp_tx_prepare(&a.qp));
	assert_true(a.qp.peer_term.has_rdmap);
}

/* RFC 5041 §7.2: a Send without a receive. */
static void a_send_without_a_receive_ends_the_qp(void **state)
{
	(void)state;
	pair(NULL);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_DDP_NO_BUFFER);
	assert_no_wc(&b.rcq);
	assert_int_equal(terminate_of(&b), 0x1202);
}

/* doc/adr/0005: it stays where it is, in front of whatever comes behind it. */
static void a_patient_qp_takes_a_send_when_it_has_a_receive(void **state)
{
	uint8_t seg[NODE_ROOM];
	const struct uw_span one = { seg, sizeof(seg) };
	struct uw_rope in = { .v = &one };
	size_t used;

	(void)state;
	pair(NULL);
	b.qp.rnr_wait = true;
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 500));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 10));
	in.len = qp_tx(&a.qp, seg, sizeof(seg));
	assert_status(qp_rx(&b.qp, in, &used), UW_OK);
	assert_in_range(used, 1, in.len - 1); /* the Write */
	in = uw_rope_sub(in, used, in.len - used);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(b.qp.rnr);
		assert_status(qp_rx(&b.qp, in, &used), UW_OK);
		assert_int_equal(used, 0);
	}
	assert_int_equal(b.stats.mpa_rx_fpdus, 1);
	assert_int_equal(b.stats.ddp_rx_untagged, 0);
	node_post_recv(&b, 50, 100, 100);
	assert_status(qp_rx(&b.qp, in, &used), UW_OK);
	assert_int_equal(used, in.len);
	assert_false(b.qp.rnr);
	assert_int_equal(node_wc(&b.rcq, 50, UW_WC_SUCCESS).byte_len, 10);
	assert_int_equal(b.stats.mpa_rx_fpdus, 2);
	assert_int_equal(b.stats.ddp_rx_untagged, 1);
}

/* RFC 6581 §9.2: what should have been the RTR brings octets: no receive is to blame. */
static void an_rtr_with_octets_blames_no_receive(void **state)
{
	struct mpa_agreed agreed = node_agreed(), plain = node_agreed();

	(void)state;
	agreed.p2p = true;
	agreed.rtr = MPA_RTR_SEND;
	node_init(&a, 1, NULL);
	node_init(&b, 2, NULL);
	node_start(&a, true, &plain);
	node_start(&b, false, &agreed);
	node_post_recv(&b, 50, 0, 100);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_DDP_TOO_LONG);
	node_wc(&b.rcq, 50, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&b.rcq);
}

/* ---- shared receive queues --------------------------------------------------------------- */

static _Alignas(64) uint8_t srq_slots[NODE_WR * 128];

/* a sends to b, which takes from srq. */
static void pair_with_srq(struct rq *srq)
{
	const struct node_opts with = { .srq = srq };
	const struct mpa_agreed agreed = node_agreed();

	node_rq(srq, srq_slots, NODE_WR);
	node_init(&a, 1, NULL);
	node_init(&b, 2, &with);
	nodes_start(&a, &b, &agreed);
}

/* RFC 5042 §6.4.3.1: a receive leaves the shared queue when it is taken, and its memory is known
 * until it is filled. */
static void receives_come_from_the_shared_queue(void **state)
{
	struct rq srq;

	(void)state;
	pair_with_srq(&srq);
	node_post_recv(&b, 50, 0, 3000);
	node_post_recv(&b, 51, 5000, 100);
	memset(a.m, 0x5a, 3000);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 3000));
	uint8_t *seg = a.scratch;
	size_t n = qp_tx(&a.qp, seg, NODE_ROOM), used;
	const struct uw_span one = { seg, n };

	assert_status(qp_rx(&b.qp, uw_rope_of(&one), &used), UW_OK);
	assert_int_equal(rq_count(&srq), 1);
	/* another QP is faster with the next one, and what is posted for that goes into this slot
	 */
	rq_drop(&srq);
	rq_free(&srq, 1);
	for (unsigned i = 0; i < NODE_WR - 1; i++)
		node_post_recv(&b, 90, 9000, 10);
	assert_int_equal(rq_outstanding(&srq), NODE_WR);
	nodes_run(&a, &b);
	assert_int_equal(rq_outstanding(&srq), NODE_WR);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	assert_memory_equal(b.m, a.m, 3000);
	assert_int_equal(b.m[3000], 0);
	assert_int_equal(rq_outstanding(&srq), NODE_WR - 1);
}

static void limit_reached(void *ctx)
{
	struct node *n = ctx;

	n->event[n->events++] = UW_EVENT_SRQ_LIMIT_REACHED;
}

/* The limit is told once per arming, when fewer are left. */
static void the_limit_is_told_once(void **state)
{
	struct rq srq;

	(void)state;
	pair_with_srq(&srq);
	for (unsigned i = 0; i < 6; i++)
		node_post_recv(&b, i, 0, 100);
	srq.limit = 4;
	srq.limit_reached = limit_reached;
	srq.ctx = &b;
	for (unsigned i = 0; i < 4; i++) {
		node_post(&a, i, node_wr(&a, UW_WR_SEND, 0, 10));
		nodes_run(&a, &b);
		/* left: 5, 4, 3, 2 */
		assert_int_equal(b.events, i >= 2);
	}
	assert_int_equal(b.event[0], UW_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(srq.limit, 0);
	srq.limit = 2;
	node_post(&a, 8, node_wr(&a, UW_WR_SEND, 0, 10));
	nodes_run(&a, &b);
	assert_int_equal(b.events, 2);
	srq.limit_reached = NULL; /* nobody listens */
	srq.limit = 2;
	node_post(&a, 9, node_wr(&a, UW_WR_SEND, 0, 10));
	nodes_run(&a, &b);
	assert_int_equal(srq.limit, 0);
	assert_int_equal(b.events, 2);
}

/* A QP in error flushes what it had taken; what waits in the shared queue is for the others. */
static void the_shared_queue_is_not_flushed(void **state)
{
	struct rq srq;

	(void)state;
	pair_with_srq(&srq);
	node_post_recv(&b, 50, 0, 3000);
	node_post_recv(&b, 51, 0, 100);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 3000));
	size_t n = qp_tx(&a.qp, a.scratch, NODE_ROOM), used;
	const struct uw_span one = { a.scratch, n };

	assert_status(qp_rx(&b.qp, uw_rope_of(&one), &used), UW_OK);
	qp_fail(&b.qp, UW_E_LLP_CLOSED);
	node_wc(&b.rcq, 50, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&b.rcq);
	assert_int_equal(rq_count(&srq), 1);
	qp_flush(&b.qp);
	assert_no_wc(&b.rcq);
}

static void a_shared_receive_that_is_too_short_fails_itself(void **state)
{
	struct rq srq;

	(void)state;
	pair_with_srq(&srq);
	node_post_recv(&b, 50, 0, 9);
	node_post_recv(&b, 51, 0, 9);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_DDP_TOO_LONG);
	node_wc(&b.rcq, 50, UW_WC_LOC_LEN_ERR);
	assert_no_wc(&b.rcq);
	assert_int_equal(rq_count(&srq), 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(modifying_before_there_is_a_stream),
	cmocka_unit_test(modifying_while_there_is_a_stream),
	cmocka_unit_test(a_stream_starts_only_once),
	cmocka_unit_test(a_qp_has_a_second_life),
	cmocka_unit_test(draining_sends_what_was_posted),
	cmocka_unit_test(draining_ends_with_the_last_message),
	cmocka_unit_test(completions_say_what_was_done),
	cmocka_unit_test(completions_wait_for_older_ones),
	cmocka_unit_test(unsignalled_success_is_silent),
	cmocka_unit_test(solicited_receives_wake),
	cmocka_unit_test(an_error_flushes_everything),
	cmocka_unit_test(what_is_posted_after_an_error_is_flushed_too),
	cmocka_unit_test(a_qp_without_stream_is_flushed),
	cmocka_unit_test(an_orderly_end_is_not_an_error),
	cmocka_unit_test(a_send_with_a_bad_sge_fails_itself),
	cmocka_unit_test(a_receive_that_is_too_short_fails_itself),
	cmocka_unit_test(a_receive_with_a_bad_sge_fails_itself),
	cmocka_unit_test(a_bad_receive_does_not_blame_a_send),
	cmocka_unit_test(a_read_with_a_bad_sink_fails_itself),
	cmocka_unit_test(a_read_that_the_peer_refuses_fails_itself),
	cmocka_unit_test(a_send_without_a_receive_ends_the_qp),
	cmocka_unit_test(a_patient_qp_takes_a_send_when_it_has_a_receive),
	cmocka_unit_test(an_rtr_with_octets_blames_no_receive),
	cmocka_unit_test(receives_come_from_the_shared_queue),
	cmocka_unit_test(the_limit_is_told_once),
	cmocka_unit_test(the_shared_queue_is_not_flushed),
	cmocka_unit_test(a_shared_receive_that_is_too_short_fails_itself),
};

UWTEST_MAIN(tests)
