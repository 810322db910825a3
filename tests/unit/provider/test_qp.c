/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and shared receive queues: life, attributes, states. */
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static void all_of_struct_ibv_qp_is_filled(void **state)
{
	struct world *w = *state;
	struct ibv_qp_init_attr init = {
		.qp_context = w,
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.cap = { 6, 8, 2, 3, 16 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(w->pd, &init);

	assert_non_null(qp);
	assert_ptr_equal(qp->context, w->ctx);
	assert_ptr_equal(qp->qp_context, w);
	assert_ptr_equal(qp->pd, w->pd);
	assert_ptr_equal(qp->send_cq, w->cq);
	assert_ptr_equal(qp->recv_cq, w->cq);
	assert_null(qp->srq);
	assert_int_equal(qp->qp_num, 77);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(qp->qp_type, IBV_QPT_RC);
	assert_ptr_equal(fake.qp->attr.send_cq, fake.cq);
	assert_int_equal(fake.qp->attr.max_send_wr, 6);
	assert_int_equal(fake.qp->attr.max_recv_wr, 8);
	assert_int_equal(fake.qp->attr.max_send_sge, 2);
	assert_int_equal(fake.qp->attr.max_recv_sge, 3);
	assert_int_equal(fake.qp->attr.max_inline, 16);
	assert_true(fake.qp->attr.sq_sig_all);
	/* granted */
	assert_int_equal(init.cap.max_send_wr, 8);
	assert_int_equal(init.cap.max_recv_wr, 10);
	assert_int_equal(init.cap.max_send_sge, 3);
	assert_int_equal(init.cap.max_recv_sge, 4);
	assert_int_equal(init.cap.max_inline_data, FAKE_MAX_INLINE);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void only_what_is_offered_is_created(void **state)
{
	struct world *w = *state;
	struct ibv_qp_init_attr init = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RC,
		.pd = w->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
	};
	struct ibv_qp *qp;

	errno = 0;
	assert_null(ibv_create_qp(w->pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	init.recv_cq = NULL;
	errno = 0;
	assert_null(ibv_create_qp(w->pd, &init));
	assert_int_equal(errno, EINVAL);
	/* a mask without a flag asks for nothing; there is none that we have */
	qp = ibv_create_qp_ex(w->ctx, &ex);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	ex.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	errno = 0;
	assert_null(ibv_create_qp_ex(w->ctx, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	init.recv_cq = w->cq;
	fake.fail = -EINVAL;
	errno = 0;
	assert_null(ibv_create_qp(w->pd, &init));
	assert_int_equal(errno, EINVAL);
}

static void modify_and_query(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE,
	};
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(fake.qp->state, UW_QPS_INIT);
	assert_int_equal(fake.qp->access, UW_ACCESS_REMOTE_READ);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(fake.qp->state, UW_QPS_SQD);
	attr.qp_state = IBV_QPS_RTS;
	fake.fail = -EINVAL;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_SQD);

	fake.qp->state = UW_QPS_ERR; /* the stream broke meanwhile */
	memset(&attr, 0xee, sizeof(attr));
	memset(&init, 0xee, sizeof(init));
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_ERR);
	assert_int_equal(qp->state, IBV_QPS_ERR);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(attr.cap.max_send_wr, 8);
	assert_ptr_equal(init.qp_context, *state);
	assert_ptr_equal(init.send_cq, qp->send_cq);
	assert_int_equal(init.cap.max_recv_sge, 4);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.sq_sig_all, 0);
	assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void busy_qp_stays(void **state)
{
	struct ibv_qp *qp = world_qp(*state, IBV_QP_EX_WITH_SEND);

	fake.fail = -EBUSY;
	assert_int_equal(ibv_destroy_qp(qp), EBUSY);
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void shared_receive_queues(void **state)
{
	struct world *w = *state;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(w->pd, &init);
	struct ibv_srq_attr attr = { .srq_limit = 10, .max_wr = 128 };
	struct ibv_qp_init_attr qpi = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RC,
		.srq = srq,
	};
	struct ibv_qp *qp;

	assert_non_null(srq);
	assert_int_equal(fake.srq->attr.max_wr, 64);
	assert_int_equal(fake.srq->attr.max_sge, 2);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(fake.srq->limit, 10);
	assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 7), EINVAL);
	attr.srq_limit = 65;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	memset(&attr, 0, sizeof(attr));
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(attr.srq_limit, 10);
	attr.max_wr = 128;
	attr.srq_limit = 100;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 129);
	assert_int_equal(attr.srq_limit, 100);

	qp = ibv_create_qp(w->pd, &qpi);
	assert_non_null(qp);
	assert_ptr_equal(fake.qp->attr.srq, fake.srq);
	assert_ptr_equal(qp->srq, srq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	fake.fail = -EBUSY;
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake.fail = -ENOMEM;
	errno = 0;
	assert_null(ibv_create_srq(w->pd, &init));
	assert_int_equal(errno, ENOMEM);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_of_struct_ibv_qp_is_filled),
		T(only_what_is_offered_is_created),
		T(modify_and_query),
		T(busy_qp_stays),
		T(shared_receive_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
