/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/rq.h"

#include "node.h"

static _Alignas(64) uint8_t slots[NODE_WR * 128];

static struct rq queue(uint32_t depth)
{
	struct rq rq;

	memset(slots, 0xff, sizeof(slots));
	node_rq(&rq, slots, depth);
	return rq;
}

static uw_status post(struct rq *rq, uint64_t id, const struct uw_sge *v, uint32_t n)
{
	const struct uw_recv_wr wr = { .wr_id = id, .sg_list = v, .num_sge = n };

	return rq_post(rq, &wr);
}

static void a_receive_keeps_its_sges(void **state)
{
	struct rq rq = queue(NODE_WR);
	struct uw_sge v[NODE_SGE] = {
		{ 1, UINT32_MAX, 2 }, { 3, 0, 4 }, { 5, UINT32_MAX, 6 }, { 7, 8, 9 }
	};
	struct rqe *e;

	(void)state;
	assert_null(rq_first(&rq));
	assert_status(post(&rq, 0x1122334455667788ull, v, NODE_SGE), UW_OK);
	memset(v, 0, sizeof(v)); /* read during the call only */
	e = rq_first(&rq);
	assert_non_null(e);
	assert_true(e->wr_id == 0x1122334455667788ull);
	assert_int_equal(e->num_sge, NODE_SGE);
	assert_true(e->length == 2 * (uint64_t)UINT32_MAX + 8);
	assert_int_equal(rqe_sge(e)[2].addr, 5);
	assert_int_equal(rqe_sge(e)[3].lkey, 9);
}

static void a_receive_may_have_no_sge(void **state)
{
	struct rq rq = queue(NODE_WR);

	(void)state;
	assert_status(post(&rq, 1, NULL, 0), UW_OK);
	assert_int_equal(rq_first(&rq)->length, 0);
	assert_int_equal(rq_first(&rq)->num_sge, 0);
}

static void the_oldest_stays_first_until_dropped(void **state)
{
	struct rq rq = queue(NODE_WR);

	(void)state;
	for (uint64_t id = 1; id <= 3; id++)
		assert_status(post(&rq, id, NULL, 0), UW_OK);
	assert_int_equal(rq_first(&rq)->wr_id, 1);
	assert_int_equal(rq_first(&rq)->wr_id, 1);
	assert_int_equal(rq_count(&rq), 3);
	rq_drop(&rq);
	assert_int_equal(rq_first(&rq)->wr_id, 2);
	rq_drop(&rq);
	rq_drop(&rq);
	assert_null(rq_first(&rq));
	assert_int_equal(rq_count(&rq), 0);
}

/* No more than its depth, be the ring bigger; one that was taken makes room when the program has
 * polled its completion. */
static void depth_is_the_limit(void **state)
{
	struct rq rq = queue(5);

	(void)state;
	for (uint64_t id = 0; id < 5; id++)
		assert_status(post(&rq, id, NULL, 0), UW_OK);
	assert_status(post(&rq, 5, NULL, 0), UW_E_NOMEM);
	rq_drop(&rq);
	rq_drop(&rq);
	assert_int_equal(rq_count(&rq), 3);
	assert_status(post(&rq, 5, NULL, 0), UW_E_NOMEM);
	rq_free(&rq, 1);
	assert_status(post(&rq, 5, NULL, 0), UW_OK);
	assert_status(post(&rq, 6, NULL, 0), UW_E_NOMEM);
	assert_int_equal(rq_outstanding(&rq), 5);
}

static void more_sges_than_agreed_are_refused(void **state)
{
	const struct uw_sge v[NODE_SGE + 1] = { { 0 } };
	struct rq rq = queue(NODE_WR);

	(void)state;
	assert_status(post(&rq, 1, v, NODE_SGE + 1), UW_E_INVAL);
	assert_int_equal(rq_count(&rq), 0);
	assert_status(post(&rq, 1, v, NODE_SGE), UW_OK);
}

static void the_ring_goes_round(void **state)
{
	struct rq rq = queue(NODE_WR);
	struct prng r = { 24 };
	uint64_t in = 0, out = 0;

	(void)state;
	atomic_store(&rq.head, UINT32_MAX - 50);
	atomic_store(&rq.tail, UINT32_MAX - 50);
	atomic_store(&rq.freed, UINT32_MAX - 50);
	for (unsigned i = 0; i < 1000; i++) {
		if (prng_below(&r, 2)) {
			assert_status(post(&rq, in, NULL, 0),
				      in - out < NODE_WR ? UW_OK : UW_E_NOMEM);
			in += in - out < NODE_WR;
		} else if (in > out) {
			assert_int_equal(rq_first(&rq)->wr_id, out++);
			rq_drop(&rq);
			rq_free(&rq, 1);
		}
		assert_int_equal(rq_count(&rq), in - out);
	}
}

static void a_slot_holds_what_it_must(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 40; n++) {
		assert_true(rq_slot_size(n) >= sizeof(struct rqe) + n * sizeof(struct uw_sge));
		assert_int_equal(rq_slot_size(n) % _Alignof(struct rqe), 0);
	}
}

/* ---- of a QP ----------------------------------------------------------------------------- */

static struct node a, b;

/* a sends to b. */
static void pair(const struct node_opts *with)
{
	const struct mpa_agreed agreed = node_agreed();

	node_init(&a, 1, NULL);
	node_init(&b, 2, with);
	nodes_start(&a, &b, &agreed);
}

static bool recv_fits(struct node *n)
{
	const struct uw_recv_wr wr = { .wr_id = 99 };

	return !rq_post(n->qp.rq, &wr);
}

/* As with hardware: so a CQ that holds what the queues do cannot overflow. */
static void a_receive_has_its_place_until_it_is_polled(void **state)
{
	const struct node_opts few = { .rq_depth = 2 };

	(void)state;
	pair(&few);
	node_post_recv(&b, 50, 0, 10);
	node_post_recv(&b, 51, 0, 10);
	assert_false(recv_fits(&b));
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	nodes_run(&a, &b);
	assert_int_equal(rq_count(b.qp.rq), 1);
	assert_false(recv_fits(&b));
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	assert_true(recv_fits(&b));
	assert_false(recv_fits(&b));
	/* flushed ones no less */
	qp_fail(&b.qp, UW_E_LLP_CLOSED);
	assert_false(recv_fits(&b));
	node_wc(&b.rcq, 51, UW_WC_WR_FLUSH_ERR);
	assert_true(recv_fits(&b));
	/* what a CQ drops is never polled */
	b.rcq.ignore_overrun = true;
	b.rcq.depth = cq_count(&b.rcq);
	qp_flush(&b.qp);
	assert_true(recv_fits(&b));
}

/* RESET: what was posted goes without a completion, and leaves the queues empty. */
static void a_reset_makes_room(void **state)
{
	const struct node_opts few = { .sq_depth = 2, .rq_depth = 2 };

	(void)state;
	pair(&few);
	for (unsigned i = 0; i < 2; i++) {
		node_post_recv(&b, i, 0, 10);
		node_post(&b, i, node_wr(&b, UW_WR_SEND, 0, 10));
	}
	assert_status(qp_modify(&b.qp, UW_QPS_RESET), UW_OK);
	/* as the engine does */
	cq_forget(&b.rcq, b.qp.num);
	cq_forget(&b.scq, b.qp.num);
	sq_free_unsignaled(&b.qp.sq);
	assert_int_equal(rq_outstanding(b.qp.rq), 0);
	assert_int_equal(b.qp.unacked, b.qp.sq.head);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(recv_fits(&b));
		node_post(&b, i, node_wr(&b, UW_WR_SEND, 0, 10));
	}
	assert_false(recv_fits(&b));
}

/* A shared receive that its QP had begun to fill goes with the QP's RESET. */
static void a_reset_gives_a_shared_place_back(void **state)
{
	struct rq srq;

	(void)state;
	node_rq(&srq, slots, NODE_WR);
	pair(&(struct node_opts){ .srq = &srq });
	node_post_recv(&b, 50, 0, 3000);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 3000));
	size_t n = qp_tx(&a.qp, a.scratch, NODE_ROOM), used;
	const struct uw_span one = { a.scratch, n };

	assert_status(qp_rx(&b.qp, uw_rope_of(&one), &used), UW_OK);
	b.qp.cm_less = true;
	qp_detach(&b.qp);
	assert_int_equal(rq_outstanding(&srq), 1);
	assert_status(qp_modify(&b.qp, UW_QPS_RESET), UW_OK);
	assert_int_equal(rq_outstanding(&srq), 0);
	assert_no_wc(&b.rcq);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_receive_keeps_its_sges),
	cmocka_unit_test(a_receive_may_have_no_sge),
	cmocka_unit_test(the_oldest_stays_first_until_dropped),
	cmocka_unit_test(depth_is_the_limit),
	cmocka_unit_test(more_sges_than_agreed_are_refused),
	cmocka_unit_test(the_ring_goes_round),
	cmocka_unit_test(a_slot_holds_what_it_must),
	cmocka_unit_test(a_receive_has_its_place_until_it_is_polled),
	cmocka_unit_test(a_reset_makes_room),
	cmocka_unit_test(a_reset_gives_a_shared_place_back),
};

UWTEST_MAIN(tests)
