/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that complete when the peer's TCP has them (doc/adr/0014). */
#include "node.h"
#include "qp/qp.h"

static struct node a, b;
static const struct node_opts confirmed = { .sig_all = true, .confirmed = true };

static void pair(void)
{
	const struct mpa_agreed agreed = node_agreed();

	node_init(&a, 1, &confirmed);
	node_init(&b, 2, &confirmed);
	nodes_start(&a, &b, &agreed);
}

static void post_write(uint64_t wr_id, size_t at)
{
	node_post(&a, wr_id, node_wr_to(&a, UW_WR_RDMA_WRITE, at, 100, &b, at));
}

/* Everything goes over; returns how many octets that were. */
static uint32_t sent(void)
{
	uint32_t before = a.qp.out;

	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	return a.qp.out - before;
}

static void acked(uint32_t in_flight)
{
	qp_acked(&a.qp, in_flight);
	qp_complete_acked(&a.qp);
}

static void a_request_is_done_when_it_is_acknowledged(void **state)
{
	static const unsigned ops[] = { UW_WR_RDMA_WRITE, UW_WR_SEND, UW_WR_SEND_WITH_IMM,
					UW_WR_RDMA_WRITE_WITH_IMM };

	(void)state;
	for (unsigned i = 0; i < COUNT(ops); i++) {
		pair();
		node_post_recv(&b, 50, 0, 100);
		node_post(&a, 1, node_wr_to(&a, ops[i], 0, 10, &b, 0));
		assert_true(sent());
		assert_no_wc(&a.scq);
		acked(1); /* all but its last octet */
		assert_no_wc(&a.scq);
		acked(0);
		node_wc(&a.scq, 1, UW_WC_SUCCESS);
	}
}

static void acknowledgements_cover_what_they_cover(void **state)
{
	uint32_t two, three;

	(void)state;
	pair();
	post_write(1, 0);
	assert_true(sent());
	post_write(2, 100);
	two = sent();
	post_write(3, 200);
	three = sent();
	acked(three + two); /* what the start-up left in flight is no matter of ours */
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	acked(three + 1);
	assert_no_wc(&a.scq);
	acked(three + two + 77); /* never backwards */
	acked(0);
	node_wc(&a.scq, 2, UW_WC_SUCCESS);
	node_wc(&a.scq, 3, UW_WC_SUCCESS);
	assert_no_wc(&a.scq);
}

/* The numbers are modulo 2^32. */
static void the_count_of_octets_may_wrap(void **state)
{
	(void)state;
	pair();
	a.qp.out = a.qp.acked = UINT32_MAX - 50;
	post_write(1, 0);
	assert_true(sent());
	acked(60);
	assert_no_wc(&a.scq);
	acked(0);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
}

/* RFC 5040 §5.5: in the order of posting. A Read waits for its answer, not for an ACK. */
static void a_read_keeps_its_place(void **state)
{
	(void)state;
	pair();
	post_write(1, 0);
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_READ, 1000, 10, &b, 0));
	post_write(3, 100);
	assert_true(sent());
	acked(0);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_no_wc(&a.scq);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_OK);
	node_wc(&a.scq, 2, UW_WC_SUCCESS);
	node_wc(&a.scq, 3, UW_WC_SUCCESS);
}

/* The ACK of a question may come with the answer: the question is done first. */
static void an_answer_does_not_overtake(void **state)
{
	(void)state;
	for (unsigned op = UW_WR_SEND; op <= UW_WR_RDMA_READ; op += UW_WR_RDMA_READ - UW_WR_SEND) {
		pair();
		a.qp.rcq = &a.scq; /* one CQ: it shows the order */
		node_post_recv(&a, 50, 0, 100);
		node_post_recv(&b, 60, 0, 100);
		node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
		if (op == UW_WR_RDMA_READ)
			node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
		assert_true(sent());
		node_post(&b, 3, node_wr(&b, UW_WR_SEND, 0, 10));
		qp_acked(&a.qp, 0);
		assert_status(node_carry(&b, &a, NODE_ROOM), UW_OK);
		node_wc(&a.scq, 1, UW_WC_SUCCESS);
	}
}

static void slots_come_round(void **state)
{
	(void)state;
	pair();
	for (unsigned i = 0; i < 5 * NODE_WR; i++) {
		post_write(i, 0);
		if (i % 3 == 2) {
			assert_true(sent());
			acked(0);
			for (unsigned k = 0; k < 3; k++)
				node_wc(&a.scq, i - 2 + k, UW_WC_SUCCESS);
		}
	}
}

/* What nobody acknowledged is not known to be there. */
static void the_unacknowledged_is_flushed(void **state)
{
	(void)state;
	pair();
	post_write(1, 0);
	assert_true(sent());
	post_write(2, 100);
	qp_acked(&a.qp, sent()); /* known, and not settled yet */
	qp_fail(&a.qp, UW_E_LLP_CLOSED);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
	acked(0);
	assert_no_wc(&a.scq);
}

static void a_lost_peer_fails_the_oldest(void **state)
{
	(void)state;
	pair();
	post_write(1, 0);
	qp_acked(&a.qp, 0 * sent());
	post_write(2, 100);
	post_write(3, 200);
	assert_true(sent());
	qp_detach(&a.qp);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	qp_give_up(&a.qp, UW_E_LLP_CLOSED);
	node_wc(&a.scq, 2, UW_WC_RETRY_EXC_ERR);
	node_wc(&a.scq, 3, UW_WC_WR_FLUSH_ERR);
}

/* Our own fault ends the stream in order: what TCP has it delivers. */
static void a_bad_sge_does_not_harm_older_requests(void **state)
{
	struct uw_send_wr bad = node_wr(&a, UW_WR_SEND, 0, 10);
	struct uw_sge sge = { .addr = to_of(a.m), .length = 10, .lkey = 0xdeadbeef };

	(void)state;
	pair();
	bad.sg_list = &sge;
	post_write(1, 0);
	node_post(&a, 2, bad);
	post_write(3, 0);
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_TERMINATED);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	node_wc(&a.scq, 2, UW_WC_LOC_PROT_ERR);
	node_wc(&a.scq, 3, UW_WC_WR_FLUSH_ERR);
}

/* The peer refuses; its Terminate acknowledges everything before it. */
static void refused(uw_status why)
{
	assert_status(node_carry(&a, &b, NODE_ROOM), why);
	qp_acked(&a.qp, 0);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	qp_complete_acked(&a.qp);
}

/* RFC 5040 §4.8: the Terminate names the segment, and so the Write. */
static void a_refused_write_fails_itself(void **state)
{
	static const unsigned ops[] = { UW_WR_RDMA_WRITE, UW_WR_RDMA_WRITE_WITH_IMM };

	(void)state;
	for (unsigned i = 0; i < COUNT(ops); i++) {
		struct uw_send_wr wr;

		pair();
		wr = node_wr_to(&a, ops[i], 0, 2000, &b, 0);
		wr.rkey = 0xdeadbeef;
		post_write(1, 0);
		node_post(&a, 2, wr);
		post_write(3, 0);
		refused(UW_E_DDP_STAG);
		node_wc(&a.scq, 1, UW_WC_SUCCESS);
		node_wc(&a.scq, 2, UW_WC_REM_ACCESS_ERR);
		node_wc(&a.scq, 3, UW_WC_WR_FLUSH_ERR);
		assert_no_wc(&a.scq);
	}
}

static void a_write_that_leaves_its_memory_fails_itself(void **state)
{
	(void)state;
	pair();
	post_write(1, 0);
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 2000, &b, NODE_MEMORY - 1500));
	refused(UW_E_DDP_BOUNDS);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	node_wc(&a.scq, 2, UW_WC_REM_ACCESS_ERR);
}

/* Sends are known by their number; a Write with immediate has one, a Write and a Read have none. */
static void a_refused_send_fails_itself(void **state)
{
	(void)state;
	pair();
	for (unsigned i = 0; i < 3; i++)
		node_post_recv(&b, 50 + i, 0, i < 2 ? 100 : 9);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	post_write(2, 0);
	node_post(&a, 3, node_wr_to(&a, UW_WR_RDMA_WRITE_WITH_IMM, 0, 10, &b, 0));
	node_post(&a, 4, node_wr(&a, UW_WR_SEND, 0, 10));
	node_post(&a, 5, node_wr(&a, UW_WR_SEND, 0, 10));
	refused(UW_E_DDP_TOO_LONG);
	for (unsigned i = 1; i < 4; i++)
		node_wc(&a.scq, i, UW_WC_SUCCESS);
	node_wc(&a.scq, 4, UW_WC_REM_INV_REQ_ERR);
	node_wc(&a.scq, 5, UW_WC_WR_FLUSH_ERR);
}

static void a_send_without_a_receive_fails_itself(void **state)
{
	(void)state;
	pair();
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	refused(UW_E_DDP_NO_BUFFER);
	node_wc(&a.scq, 1, UW_WC_RNR_RETRY_EXC_ERR);
}

/* RFC 5040 §4.8: a local error comes without headers. The Send that met the bad receive is the
 * first that is not known to be done. */
static void a_receive_at_fault_fails_its_send(void **state)
{
	struct uw_sge sge = { .addr = to_of(b.m), .length = 10, .lkey = 0xdeadbeef };
	const struct uw_recv_wr bad = { .wr_id = 51, .sg_list = &sge, .num_sge = 1 };

	(void)state;
	pair();
	node_post_recv(&b, 50, 0, 100);
	assert_status(rq_post(b.qp.rq, &bad), UW_OK);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_true(sent());
	acked(0);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	post_write(2, 0);
	node_post(&a, 3, node_wr(&a, UW_WR_SEND, 0, 10));
	refused(UW_E_LKEY);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	node_wc(&b.rcq, 51, UW_WC_LOC_PROT_ERR);
	node_wc(&a.scq, 2, UW_WC_SUCCESS);
	node_wc(&a.scq, 3, UW_WC_REM_OP_ERR);
}

/* ---- billions of requests ------------------------------------------------------------------ */

/* n more requests, each as the last one was. */
static void and_n_more(struct qp *qp, uint32_t n)
{
	struct sq *sq = &qp->sq;

	assert_true(sq_empty(sq));
	if (qp->unacked == atomic_load(&sq->head))
		qp->unacked += n;
	sq->tx += n;
	atomic_fetch_add(&sq->tail, n);
	atomic_fetch_add(&sq->head, n);
	atomic_fetch_add(&sq->freed, n);
}

/* The peer never says anything, and nobody waits for its ACKs: nothing looks for what is
 * acknowledged. After 2^31 requests that found those done that were posted and not sent yet. */
static void what_is_sent_one_way_is_done(void **state)
{
	const struct node_opts plain = { .sig_all = true };
	const struct mpa_agreed agreed = node_agreed();

	(void)state;
	node_init(&a, 1, &plain);
	node_init(&b, 2, &plain);
	nodes_start(&a, &b, &agreed);
	for (unsigned i = 0; i < 3; i++) {
		post_write(i, 0);
		qp_acked(&a.qp, 0 * sent());
		node_wc(&a.scq, i, UW_WC_SUCCESS);
		and_n_more(&a.qp, 1u << 30);
	}
	post_write(7, 0);
	node_post_recv(&a, 50, 0, 100);
	node_post(&b, 60, node_wr(&b, UW_WR_SEND, 0, 10));
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_OK);
	node_wc(&a.rcq, 50, UW_WC_SUCCESS);
	assert_no_wc(&a.scq);
	assert_true(sent());
	node_wc(&a.scq, 7, UW_WC_SUCCESS);
}

/* SQD is reached when everything has been acknowledged. */
static void draining_waits_for_the_last_acknowledgement(void **state)
{
	(void)state;
	pair();
	a.qp.cm_less = true;
	post_write(1, 0);
	assert_true(sent());
	assert_status(qp_modify(&a.qp, UW_QPS_SQD), UW_OK);
	assert_false(qp_drained(&a.qp));
	acked(0);
	assert_true(qp_drained(&a.qp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_done_when_it_is_acknowledged),
		cmocka_unit_test(acknowledgements_cover_what_they_cover),
		cmocka_unit_test(the_count_of_octets_may_wrap),
		cmocka_unit_test(a_read_keeps_its_place),
		cmocka_unit_test(an_answer_does_not_overtake),
		cmocka_unit_test(slots_come_round),
		cmocka_unit_test(the_unacknowledged_is_flushed),
		cmocka_unit_test(a_lost_peer_fails_the_oldest),
		cmocka_unit_test(a_bad_sge_does_not_harm_older_requests),
		cmocka_unit_test(a_refused_write_fails_itself),
		cmocka_unit_test(a_write_that_leaves_its_memory_fails_itself),
		cmocka_unit_test(a_refused_send_fails_itself),
		cmocka_unit_test(a_send_without_a_receive_fails_itself),
		cmocka_unit_test(a_receive_at_fault_fails_its_send),
		cmocka_unit_test(what_is_sent_one_way_is_done),
		cmocka_unit_test(draining_waits_for_the_last_acknowledgement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
