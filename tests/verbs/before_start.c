/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program hears of the port before its first QP starts the link holds afterwards: it sizes
 * its buffers by it, and its peer may ask later. */
#include "ends.h"

static void bring_up(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_UD
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	assert_non_null(qp);
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void a_port_is_what_it_was(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_port_attr before, after;

	(void)state;
	assert_int_equal(ibv_query_port(ctx, 1, &before), 0);
	bring_up(ctx, pd);
	assert_int_equal(ibv_query_port(ctx, 1, &after), 0);
	assert_int_equal(before.active_mtu, after.active_mtu);
	assert_int_equal(before.active_speed, after.active_speed);
	assert_int_equal(before.active_width, after.active_width);
	assert_int_equal(before.gid_tbl_len, after.gid_tbl_len);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	ibv_free_device_list(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_port_is_what_it_was) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
