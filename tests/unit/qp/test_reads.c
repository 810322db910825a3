/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and atomics where one side allows none. */
#include "node.h"
#include "qp/qp.h"

static struct node a, b;

/* RFC 5040 §5.2, RFC 6581 §9.1: with an ORD of 0 no Read may ever go out, so one fails instead of
 * waiting for ever: as an invalid operation of this QP, whose stream ends. What went before it is
 * done. */
static void without_ord_a_read_fails(void **state)
{
	static const unsigned ops[] = { UW_WR_RDMA_READ, UW_WR_ATOMIC_FETCH_AND_ADD,
					UW_WR_ATOMIC_CMP_AND_SWP };

	(void)state;
	for (unsigned i = 0; i < COUNT(ops); i++) {
		struct mpa_agreed none = node_agreed();

		none.ord = 0;
		node_init(&a, 1, NULL);
		node_init(&b, 2, NULL);
		nodes_start(&a, &b, &none);
		a.qp.sq.sig_all = true;
		node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 100));
		node_post(&a, 2, node_wr_to(&a, ops[i], 0, 8, &b, 0));
		node_post(&a, 3, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 200));
		assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_TERMINATED);
		node_wc(&a.scq, 1, UW_WC_SUCCESS);
		assert_int_equal(node_wc(&a.scq, 2, UW_WC_LOC_QP_OP_ERR).vendor_err, UW_E_ORD);
		node_wc(&a.scq, 3, UW_WC_WR_FLUSH_ERR);
		assert_no_wc(&a.scq);
		assert_status(a.qp.cause, UW_E_ORD);
		assert_true(rdmap_is_local(&b.qp.peer_term));
		assert_false(qp_tx_prepare(&a.qp));
	}
}

/* RFC 5040 §5.2: a Read that comes to an IRD of 0 finds no buffer (RFC 5041 §7.2, RFC 5042 §6.4.3.3). Its requester is
 * told which request that was. */
static void without_ird_a_read_is_refused(void **state)
{
	static const unsigned ops[] = { UW_WR_RDMA_READ, UW_WR_ATOMIC_FETCH_AND_ADD };

	(void)state;
	for (unsigned i = 0; i < COUNT(ops); i++) {
		struct mpa_agreed some = node_agreed(), none = some;

		node_init(&a, 1, NULL);
		node_init(&b, 2, NULL);
		none.ird = 0;
		node_start(&a, true, &some);
		node_start(&b, false, &none);
		node_post(&a, 1, node_wr_to(&a, ops[i], 0, 8, &b, 0));
		node_post(&a, 2, node_wr_to(&a, ops[i], 0, 8, &b, 0));
		assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_DDP_NO_BUFFER);
		assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
		assert_int_equal(node_wc(&a.scq, 1, UW_WC_RNR_RETRY_EXC_ERR).vendor_err,
				 UW_E_DDP_NO_BUFFER);
		node_wc(&a.scq, 2, UW_WC_WR_FLUSH_ERR);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(without_ord_a_read_fails),
	cmocka_unit_test(without_ird_a_read_is_refused),
};

UWTEST_MAIN(tests)
