/* SPDX-License-Identifier: BSD-3-Clause */
/* Which request a Terminate of the peer's fails. */
#include "node.h"
#include "qp/qp.h"

static struct node a, b;

static void pair(const struct node_opts *opts)
{
	const struct mpa_agreed agreed = node_agreed();

	node_init(&a, 1, opts);
	node_init(&b, 2, opts);
	nodes_start(&a, &b, &agreed);
}

/* A Write was complete when TCP took it: its Terminate ends the QP and flushes the rest. */
static void a_write_that_the_peer_refuses_ends_the_qp(void **state)
{
	const struct node_opts all = { .sig_all = true };
	struct uw_send_wr wr;

	(void)state;
	pair(&all);
	wr = node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0);
	wr.rkey = 0xdeadbeef;
	node_post_recv(&a, 50, 0, 10);
	node_post(&a, 1, wr);
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_DDP_STAG);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	node_wc(&a.rcq, 50, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&a.scq);
	assert_int_equal(a.qp.peer_term.layer, 1);
	assert_int_equal(a.qp.peer_term.etype, 1);
	assert_int_equal(a.qp.peer_term.code, 0);
}

/* RFC 5040 §4.8: the Send or Write that the Terminate names has completed already: the next one
 * fails, as it would have for the same reason, so that the program learns it. */
static void the_next_request_tells_why_the_peer_refused(void **state)
{
	const struct node_opts all = { .sig_all = true };

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		bool send = i & 1, read = i & 2, begun = i & 4;
		struct uw_send_wr wr;

		pair(&all);
		wr = node_wr_to(&a, send ? UW_WR_SEND : UW_WR_RDMA_WRITE, 0, 40, &b, 0);
		if (!send)
			wr.rkey = 0xdeadbeef;
		node_post(&a, 1, wr);
		assert_status(node_carry(&a, &b, NODE_ROOM),
			      send ? UW_E_DDP_NO_BUFFER : UW_E_DDP_STAG);
		node_wc(&a.scq, 1, UW_WC_SUCCESS);
		if (read) /* not about this one */
			node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
		node_post(&a, 3, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 2000, &b, 0));
		node_post(&a, 4, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0));
		if (begun) {
			uint8_t lost[NODE_ROOM];

			assert_true(qp_tx(&a.qp, lost, sizeof(lost)));
		}
		assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
		if (read)
			node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
		node_wc(&a.scq, 3, send ? UW_WC_RNR_RETRY_EXC_ERR : UW_WC_REM_ACCESS_ERR);
		node_wc(&a.scq, 4, UW_WC_WR_FLUSH_ERR);
		assert_no_wc(&a.scq);
	}
}

/* RFC 5040 §4.8: a Read Response that the peer refuses is about none of our requests. */
static void a_refused_response_blames_no_request(void **state)
{
	(void)state;
	pair(NULL);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_READ, 0, 40, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_OK);
	qp_fail(&a.qp, UW_E_DDP_BOUNDS); /* about the Response, which came last */
	node_post(&b, 2, node_wr_to(&b, UW_WR_RDMA_WRITE, 0, 10, &a, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_TERMINATED);
	assert_true(b.qp.peer_term.has_ddp);
	node_wc(&b.scq, 2, UW_WC_WR_FLUSH_ERR);
}

/* RFC 7306 §8.2 has 0/2/07 for it, which may be anything; the requester knows, and says it as verbs
 * has it. Aligned, it is the peer's catastrophe. */
static void an_atomic_that_is_not_aligned_is_a_bad_request(void **state)
{
	(void)state;
	for (unsigned at = 0; at < 8; at += 4) {
		pair(NULL);
		b.mem.r[0].rights |= UW_ACCESS_REMOTE_ATOMIC;
		node_post(&a, 1, node_wr_to(&a, UW_WR_ATOMIC_FETCH_AND_ADD, 0, 8, &b, at));
		if (at) {
			assert_status(node_carry(&a, &b, NODE_ROOM),
				      UW_E_RDMAP_STREAM_CATASTROPHIC);
		} else {
			assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
			b.qp.rd.irq.count = 0; /* no answer */
			qp_fail(&b.qp, UW_E_RDMAP_STREAM_CATASTROPHIC);
		}
		assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
		node_wc(&a.scq, 1, at ? UW_WC_REM_INV_REQ_ERR : UW_WC_REM_OP_ERR);
		assert_int_equal(a.qp.peer_term.code, 7);
	}
}

/* RFC 5040 §4.8, §5.4: a Terminate about something else does not blame the Read that is
 * outstanding, not even one about rights; and it may come without any Read. */
static void a_read_is_not_blamed_for_a_write(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool rights = i & 1, read = i & 2;
		struct uw_send_wr wr;

		pair(NULL);
		wr = node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0);
		wr.rkey = rights ? b.stag : 0xdeadbeef;
		if (rights)
			b.qp.rd.remote_rights = UW_ACCESS_REMOTE_READ;
		if (read)
			node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
		node_post(&a, 2, wr);
		assert_status(node_carry(&a, &b, NODE_ROOM),
			      rights ? UW_E_RDMAP_ACCESS : UW_E_DDP_STAG);
		assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
		if (read) { /* the Write has not been told of yet, so it can still fail */
			node_wc(&a.scq, 1, UW_WC_WR_FLUSH_ERR);
			node_wc(&a.scq, 2, UW_WC_REM_ACCESS_ERR);
		}
		assert_no_wc(&a.scq);
	}
}

/* A Terminate without headers (RFC 5040 §4.8 figure 10, "if possible") is taken to be about the
 * oldest Read if it is about rights. */
static void a_terminate_without_headers_blames_the_oldest_read(void **state)
{
	(void)state;
	pair(NULL);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	b.qp.rd.bad.hdr_len = 0;
	qp_fail(&b.qp, UW_E_RDMAP_STAG);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	assert_false(a.qp.peer_term.has_ddp);
	assert_int_equal(node_wc(&a.scq, 1, UW_WC_REM_ACCESS_ERR).vendor_err, UW_E_RDMAP_STAG);
}

/* RFC 5040 §4.8: of several Reads the Terminate's headers name the one that failed; an Atomic by
 * its MSN alone. The others are flushed. */
static void a_terminate_blames_the_read_that_it_names(void **state)
{
	(void)state;
	for (unsigned bad = 1; bad <= 3; bad++) {
		for (unsigned atomic = 0; atomic < 2; atomic++) {
			pair(NULL);
			for (unsigned i = 1; i <= 3; i++) {
				unsigned op = atomic && i == bad ? UW_WR_ATOMIC_FETCH_AND_ADD
								 : UW_WR_RDMA_READ;
				struct uw_send_wr wr = node_wr_to(&a, op, 0, 8, &b, 0);

				if (i == bad)
					wr.rkey = 0xdeadbeef;
				node_post(&a, i, wr);
			}
			assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_RDMAP_STAG);
			assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
			for (unsigned i = 1; i <= 3; i++)
				node_wc(&a.scq, i,
					i == bad ? UW_WC_REM_ACCESS_ERR : UW_WC_WR_FLUSH_ERR);
		}
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_write_that_the_peer_refuses_ends_the_qp),
	cmocka_unit_test(the_next_request_tells_why_the_peer_refused),
	cmocka_unit_test(a_refused_response_blames_no_request),
	cmocka_unit_test(an_atomic_that_is_not_aligned_is_a_bad_request),
	cmocka_unit_test(a_read_is_not_blamed_for_a_write),
	cmocka_unit_test(a_terminate_without_headers_blames_the_oldest_read),
	cmocka_unit_test(a_terminate_blames_the_read_that_it_names),
};

UWTEST_MAIN(tests)
