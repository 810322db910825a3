/* SPDX-License-Identifier: BSD-3-Clause */
/* UD and UC queue pairs and address handles. */
#include <arpa/inet.h>
#include <string.h>

#include "fixture.h"

#define UD_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define UC_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UC_RTR	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

static const struct ibv_ah_attr to = {
	.is_global = 1,
	.port_num = 1,
	.grh = { .dgid.raw = { [10] = 0xff, 0xff, 127, 0, 5, 6 },
		 .hop_limit = 9,
		 .traffic_class = 0x68 },
};

static struct ibv_qp *make_qp(struct world *w, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.cap = { 6, 8, 2, 3, 16 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0u),
		.pd = w->pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(w->ctx, &attr);
}

static int modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(qp, &attr, mask);
}

static void other_types_are_refused(void **state)
{
	struct world *w = *state;
	struct ibv_qp_init_attr init = { .send_cq = w->cq,
					 .recv_cq = w->cq,
					 .qp_type = IBV_QPT_RAW_PACKET };

	errno = 0;
	assert_null(ibv_create_qp(w->pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	fake.fail = -EOPNOTSUPP; /* the engine cannot */
	init.qp_type = IBV_QPT_UD;
	errno = 0;
	assert_null(ibv_create_qp(w->pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* As with cards: a QP that cannot write is not made for writing. */
static void operations_of_other_types_are_refused(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
		bool good;
	} rows[] = {
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, true },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE, false },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ, false },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, false },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_INV, false },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, true },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, false },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp *qp;

		errno = 0;
		qp = make_qp(*state, rows[i].type, rows[i].ops);
		assert_int_equal(qp != NULL, rows[i].good);
		assert_int_equal(errno, rows[i].good ? 0 : EOPNOTSUPP);
		if (qp)
			assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* InfiniBand volume 1, §11.2.5.2: what each step of a UD QP needs. */
static void the_steps_of_ud(void **state)
{
	struct ibv_qp *qp = make_qp(*state, IBV_QPT_UD, 0);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111 };
	struct ibv_qp_init_attr init;

	assert_non_null(qp);
	assert_int_equal(qp->qp_type, IBV_QPT_UD);
	assert_int_equal(fake.qp->attr.type, UW_QPT_UD);
	assert_int_equal(modify(qp, a, UC_INIT), EINVAL);
	assert_int_equal(modify(qp, a, UD_INIT & ~IBV_QP_QKEY), EINVAL);
	assert_int_equal(modify(qp, a, UD_INIT), 0);
	assert_int_equal(fake.qp->datagrams.qkey, 0x11111111);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR };
	assert_int_equal(modify(qp, a, IBV_QP_STATE), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = 0x123456 };
	assert_int_equal(modify(qp, a, IBV_QP_STATE), EINVAL);
	assert_int_equal(modify(qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	assert_int_equal(fake.qp->datagrams.sq_psn, 0x123456);
	assert_int_equal(fake.qp->datagrams.qkey, 0x11111111);
	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_QKEY, &init), 0);
	assert_int_equal(a.qkey, 0x11111111);
	assert_int_equal(init.qp_type, IBV_QPT_UD);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void the_steps_of_uc(void **state)
{
	struct ibv_qp *qp = make_qp(*state, IBV_QPT_UC, 0);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_non_null(qp);
	assert_int_equal(fake.qp->attr.type, UW_QPT_UC);
	assert_int_equal(modify(qp, a, UD_INIT), EOPNOTSUPP);
	assert_int_equal(modify(qp, a, UC_INIT), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .ah_attr = to,
				  .path_mtu = IBV_MTU_512,
				  .dest_qp_num = 0x123,
				  .rq_psn = 0x456 };
	assert_int_equal(modify(qp, a, UC_RTR & ~IBV_QP_PATH_MTU), EINVAL);
	assert_int_equal(modify(qp, a, UC_RTR | IBV_QP_MIN_RNR_TIMER), EINVAL);
	assert_int_equal(modify(qp, a, UC_RTR), 0);
	assert_int_equal(fake.qp->peer_qpn, 0x123);
	assert_int_equal(fake.qp->peer_mtu, 512);
	assert_int_equal(fake.qp->peer_psn, 0x456);
	assert_int_equal(fake.qp->peer_tos, 0x68);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = 7 };
	assert_int_equal(modify(qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	assert_int_equal(fake.qp->datagrams.sq_psn, 7);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void an_address_handle_names_an_address(void **state)
{
	struct world *w = *state;
	struct ibv_ah_attr a = to;
	struct ibv_ah *ah = ibv_create_ah(w->pd, &a);
	char ip[INET6_ADDRSTRLEN];

	assert_non_null(ah);
	assert_ptr_equal(ah->pd, w->pd);
	inet_ntop(AF_INET6, &fake.ah_to.sin6_addr, ip, sizeof(ip));
	assert_string_equal(ip, "::ffff:127.0.5.6");
	assert_int_equal(fake.ah_tos, 0x68);
	assert_int_equal(fake.ah_hops, 9);
	assert_int_equal(ibv_dealloc_pd(w->pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* As rsockets name their own QP; only they, since a pingpong without -g does it by mistake. */
static void a_lid_of_zero_names_itself_beside_an_id_of_datagrams(void **state)
{
	struct world *w = *state;
	struct ibv_ah_attr a = { .port_num = 1 };
	struct ibv_ah *ah;

	fake.attr.roce = true;
	assert_null(ibv_create_ah(w->pd, &a));
	assert_int_equal(errno, EINVAL);
	fake.attr.datagram_ids = true;
	ah = ibv_create_ah(w->pd, &a);
	assert_non_null(ah);
	assert_memory_equal(&fake.ah_to.sin6_addr, fake.attr.gid[0], 16);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	fake.attr.roce = false;
	assert_null(ibv_create_ah(w->pd, &a));
}

static void an_address_handle_that_cannot_be_says_why(void **state)
{
	struct world *w = *state;
	struct ibv_ah_attr a = to;

	a.grh.sgid_index = 77;
	assert_null(ibv_create_ah(w->pd, &a));
	assert_int_equal(errno, EINVAL);
	a = to;
	a.port_num = 2;
	assert_null(ibv_create_ah(w->pd, &a));
	assert_int_equal(errno, EINVAL);
	a = to;
	fake.fail = -EADDRNOTAVAIL;
	assert_null(ibv_create_ah(w->pd, &a));
	assert_int_equal(errno, EADDRNOTAVAIL);
}

static void check_sent(const struct uw_send_wr *wr)
{
	assert_int_equal(wr->remote_addr, 0x0500000000000000u | 0x345);
	assert_int_equal(wr->compare_add, 6);
	assert_int_equal(wr->swap, 7);
	assert_int_equal(wr->rkey, 0x80010000);
}

static void a_datagram_has_its_address(void **state)
{
	struct world *w = *state;
	struct ibv_ah_attr a = to;
	struct ibv_ah *ah = ibv_create_ah(w->pd, &a);
	struct ibv_qp *qp = make_qp(w, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);
	struct ibv_send_wr wr = { .wr_id = 3,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = 5,
				  .wr.ud = { ah, 0xff000345, 0x80010000 } },
			   *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	check_sent(&fake.sent[0].wr);
	assert_int_equal(fake.sent[0].wr.opcode, UW_WR_SEND_WITH_IMM);
	assert_int_equal(fake.sent[0].wr.imm_or_inv, 5);
	ibv_wr_start(q);
	ibv_wr_send(q);
	ibv_wr_set_ud_addr(q, ah, 0x345, 0x80010000);
	ibv_wr_set_sge(q, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(q), 0);
	check_sent(&fake.sent[1].wr);
	wr.wr.ud.ah = NULL;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = 1; /* where an AH would be */
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(other_types_are_refused),
		T(operations_of_other_types_are_refused),
		T(the_steps_of_ud),
		T(the_steps_of_uc),
		T(an_address_handle_names_an_address),
		T(a_lid_of_zero_names_itself_beside_an_id_of_datagrams),
		T(an_address_handle_that_cannot_be_says_why),
		T(a_datagram_has_its_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
