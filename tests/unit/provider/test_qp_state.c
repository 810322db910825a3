/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_modify_qp() on the two ways to a connection, and what ibv_query_qp() says of it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>

#include "fixture.h"

#define INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR                                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS                                                                                        \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static const struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
					 .port_num = 1,
					 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
static const struct ibv_qp_attr rtr = {
	.qp_state = IBV_QPS_RTR,
	.path_mtu = IBV_MTU_1024,
	.dest_qp_num = 0x1234,
	.rq_psn = 0xabcdef,
	.max_dest_rd_atomic = 4,
	.min_rnr_timer = 12,
	.ah_attr = { .is_global = 1,
		     .port_num = 1,
		     .grh = { .dgid.raw = { [10] = 0xff, 0xff, 127, 0, 5, 6 },
			      .hop_limit = 1,
			      .traffic_class = 0x68 } },
};
static const struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
					.timeout = 14,
					.retry_cnt = 7,
					.rnr_retry = 6,
					.sq_psn = 0x123456,
					.max_rd_atomic = 3 };

static int modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(qp, &attr, mask);
}

static struct ibv_qp *named(void *world)
{
	struct ibv_qp *qp = world_qp(world, 0);

	assert_int_equal(modify(qp, init, INIT), 0);
	assert_int_equal(modify(qp, rtr, RTR), 0);
	return qp;
}

static void the_peer_is_named_by_gid_and_qp_number(void **state)
{
	struct ibv_qp *qp = named(*state);
	char ip[INET6_ADDRSTRLEN];

	assert_int_equal(fake.qp->access, UW_ACCESS_REMOTE_WRITE);
	inet_ntop(AF_INET6, &fake.qp->peer.sin6_addr, ip, sizeof(ip));
	assert_string_equal(ip, "::ffff:127.0.5.6");
	assert_int_equal(fake.qp->peer_qpn, 0x1234);
	assert_int_equal(fake.qp->peer_ird, 4);
	assert_int_equal(fake.qp->peer_tos, 0x68);
	assert_int_equal(modify(qp, rts, RTS), 0);
	assert_int_equal(fake.qp->state, UW_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void or_by_ip6(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_qp_attr a = rtr;
	char ip[INET6_ADDRSTRLEN];

	assert_int_equal(modify(qp, init, INIT), 0);
	a.ah_attr.grh.dgid = (union ibv_gid){ .raw = { 0xfd, [12] = 127, 0, 0, 3 } };
	a.ah_attr.grh.sgid_index = 1;
	assert_int_equal(modify(qp, a, RTR), 0);
	inet_ntop(AF_INET6, &fake.qp->peer.sin6_addr, ip, sizeof(ip));
	assert_string_equal(ip, "fd00::7f00:3");
	inet_ntop(AF_INET6, &fake.qp->from.sin6_addr, ip, sizeof(ip));
	assert_string_equal(ip, "fd00::7f09:807");
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* The engine's address is 127.9.8.7: a LID is the lower half of one. */
static void or_by_lid_and_qp_number(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_qp_attr a = rtr;
	struct ibv_port_attr port;
	char ip[INET6_ADDRSTRLEN];

	*(struct sockaddr_in *)&fake.attr.addr =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f090807) };
	assert_int_equal(ibv_query_port(((struct world *)*state)->ctx, 1, &port), 0);
	assert_int_equal(port.lid, 0x0807);
	assert_int_equal(modify(qp, init, INIT), 0);
	a.ah_attr = (struct ibv_ah_attr){ .dlid = 0x0203, .port_num = 1 };
	assert_int_equal(modify(qp, a, RTR), 0);
	inet_ntop(AF_INET6, &fake.qp->peer.sin6_addr, ip, sizeof(ip));
	assert_string_equal(ip, "::ffff:127.9.2.3");
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* As RoCE the IPv4 GID is at index 0 and at 3, where RoCE NICs have it; 2 is empty. */
static void or_by_the_usual_index_of_roce(void **state)
{
	static const uint8_t good[] = { 0, 1, 3 }, bad[] = { 2, 4, 255 };
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_port_attr port;
	struct ibv_qp_attr a = rtr;

	fake.attr.roce = true;
	assert_int_equal(ibv_query_port(((struct world *)*state)->ctx, 1, &port), 0);
	assert_int_equal(port.gid_tbl_len, 4);
	assert_int_equal(port.flags, IBV_QPF_GRH_REQUIRED);
	assert_int_equal(port.lid, 0);
	assert_int_equal(modify(qp, init, INIT), 0);
	for (size_t i = 0; i < sizeof(bad); i++) {
		a.ah_attr.grh.sgid_index = bad[i];
		assert_int_equal(modify(qp, a, RTR), EINVAL);
	}
	for (size_t i = 0; i < sizeof(good); i += 2) {
		a.ah_attr.grh.sgid_index = good[i];
		assert_int_equal(modify(qp, a, RTR), 0);
		/* the first address, which the engine may still choose */
		assert_int_equal(fake.qp->from.sin6_family, AF_UNSPEC);
		assert_int_equal(
			modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, IBV_QP_STATE),
			0);
		assert_int_equal(modify(qp, init, INIT), 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void what_was_set_is_what_is_queried(void **state)
{
	struct ibv_qp *qp = named(*state);
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr a;

	assert_int_equal(fake.qp->path.min_rnr_timer, 12);
	assert_int_equal(fake.qp->path.rnr_retry, 7); /* not said so far */
	assert_int_equal(modify(qp, rts, RTS), 0);
	assert_int_equal(fake.qp->path.min_rnr_timer, 12);
	assert_int_equal(fake.qp->path.rnr_retry, 6);
	memset(&a, 0xee, sizeof(a));
	assert_int_equal(ibv_query_qp(qp, &a, ~0, &ia), 0);
	assert_int_equal(a.qp_state, IBV_QPS_RTS);
	assert_int_equal(a.path_mtu, rtr.path_mtu);
	assert_int_equal(a.dest_qp_num, rtr.dest_qp_num);
	assert_int_equal(a.rq_psn, rtr.rq_psn);
	assert_int_equal(a.max_dest_rd_atomic, rtr.max_dest_rd_atomic);
	assert_int_equal(a.min_rnr_timer, rtr.min_rnr_timer);
	assert_memory_equal(&a.ah_attr.grh.dgid, &rtr.ah_attr.grh.dgid, 16);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.timeout, rts.timeout);
	assert_int_equal(a.retry_cnt, rts.retry_cnt);
	assert_int_equal(a.rnr_retry, rts.rnr_retry);
	assert_int_equal(a.sq_psn, rts.sq_psn);
	assert_int_equal(a.max_rd_atomic, rts.max_rd_atomic);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(
		modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, IBV_QP_STATE), 0);
	assert_int_equal(ibv_query_qp(qp, &a, ~0, &ia), 0);
	assert_int_equal(a.dest_qp_num, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* InfiniBand's rules, as in the kernel: each attribute that a step needs, and none that it does not
 * take. */
static void each_step_wants_its_attributes(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);

	assert_int_equal(modify(qp, rtr, RTR), EINVAL); /* not from RESET */
	assert_int_equal(modify(qp, init, INIT), 0);
	for (int bit = 1; bit <= RTR; bit <<= 1) {
		if (bit != IBV_QP_STATE && (RTR & bit) && !(bit & (IBV_QP_AV | IBV_QP_DEST_QPN)))
			assert_int_equal(modify(qp, rtr, RTR & ~bit), EINVAL);
	}
	assert_int_equal(modify(qp, rtr, RTR | IBV_QP_SQ_PSN), EINVAL);
	assert_int_equal(modify(qp, rtr, RTR & ~IBV_QP_STATE), EINVAL);
	assert_int_equal(fake.qp->state, UW_QPS_INIT);
	assert_int_equal(modify(qp, rtr, RTR), 0);
	for (int bit = 1; bit <= RTS; bit <<= 1) {
		if (bit != IBV_QP_STATE && (RTS & bit))
			assert_int_equal(modify(qp, rts, RTS & ~bit), EINVAL);
	}
	assert_int_equal(modify(qp, rts, RTS | IBV_QP_DEST_QPN), EINVAL);
	assert_int_equal(fake.qp->state, UW_QPS_RTR);
	assert_int_equal(modify(qp, rts, RTS), 0);
	assert_int_equal(modify(qp, rtr, RTR), EINVAL); /* no way back */
	assert_int_equal(modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE),
			 0);
	assert_int_equal(modify(qp, rts, RTS), EINVAL);
	assert_int_equal(
		modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, IBV_QP_STATE), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void values_out_of_range_are_refused(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_qp_attr a = init;

	fake.attr.max_rd_atom = 16;
	a.port_num = 2;
	assert_int_equal(modify(qp, a, INIT), EINVAL);
	a = init;
	a.pkey_index = 1;
	assert_int_equal(modify(qp, a, INIT), EINVAL);
	assert_int_equal(modify(qp, init, INIT), 0);
	a = rtr;
	a.path_mtu = 0;
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a = rtr;
	a.max_dest_rd_atomic = 17;
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a = rtr;
	a.cur_qp_state = IBV_QPS_RESET;
	assert_int_equal(modify(qp, a, RTR | IBV_QP_CUR_STATE), EINVAL);
	a = rtr;
	a.ah_attr.grh.sgid_index = 2; /* there are two */
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a.ah_attr.grh.sgid_index = 1; /* which is IPv6, and the peer's is IPv4 */
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a = rtr;
	a.ah_attr.port_num = 0;
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a = rtr;
	a.ah_attr.grh.dgid.raw[0] = 0xfe; /* IPv6, and ours is IPv4 */
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	memset(&a.ah_attr.grh.dgid, 0, 16);
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a.ah_attr.grh.dgid.raw[0] = 0xff; /* multicast */
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	a = rtr;
	a.qp_state = 99;
	assert_int_equal(modify(qp, a, RTR), EINVAL);
	fake.fail = -EADDRINUSE; /* the engine's own reasons come through */
	assert_int_equal(modify(qp, rtr, RTR), EADDRINUSE);
	assert_int_equal(fake.qp->state, UW_QPS_INIT);
	assert_int_equal(modify(qp, rtr, RTR | IBV_QP_ALT_PATH), EOPNOTSUPP);
	assert_int_equal(modify(qp, rtr, RTR | 1 << 30), EOPNOTSUPP);
	assert_int_equal(modify(qp, rtr, RTR), 0);
	a = rts;
	a.max_rd_atomic = 17;
	assert_int_equal(modify(qp, a, RTS), EINVAL);
	a.max_rd_atomic = 16;
	assert_int_equal(modify(qp, a, RTS), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* What librdmacm asks for: the state, and access rights with it. */
static void rdma_cm_needs_next_to_none(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);

	assert_int_equal(modify(qp, init, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR },
				IBV_QP_STATE | IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_STATE),
			 0);
	assert_int_equal(fake.qp->peer_qpn, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Without a peer, too, there are values that no QP can have. */
static void rdma_cm_does_not_take_everything(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .max_rd_atomic = 17 };

	fake.attr.max_rd_atom = 16;
	assert_int_equal(modify(qp, a, IBV_QP_STATE | 1 << 21), EOPNOTSUPP);
	assert_int_equal(modify(qp, a, IBV_QP_STATE | 1 << 30), EOPNOTSUPP);
	assert_int_equal(modify(qp, a, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC), EINVAL);
	a.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(modify(qp, a, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	a.cur_qp_state = IBV_QPS_RESET;
	assert_int_equal(modify(qp, a, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* As RoCE, who sets the PSNs or the path MTU must name the peer, too, as InfiniBand has it
 * (§11.2.5.2). What else a program adds to the masks of rdma_init_qp_attr is taken. */
static void half_a_peer_is_none(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);

	assert_int_equal(modify(qp, init, INIT), 0);
	assert_int_equal(modify(qp, rtr, RTR & ~(IBV_QP_AV | IBV_QP_DEST_QPN)), 0); /* iWARP's */
	assert_int_equal(
		modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, IBV_QP_STATE), 0);
	fake.attr.roce = true;
	assert_int_equal(modify(qp, init, INIT), 0);
	assert_int_equal(modify(qp, rtr, RTR & ~(IBV_QP_AV | IBV_QP_DEST_QPN)), EINVAL);
	assert_int_equal(modify(qp, rtr, IBV_QP_STATE | IBV_QP_RQ_PSN), EINVAL);
	assert_int_equal(fake.qp->state, UW_QPS_INIT);
	assert_int_equal(modify(qp, rtr, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL);
	/* a server's, which chooses the MTU on its way to rdma_accept() */
	assert_int_equal(
		modify(qp, rtr,
		       IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER),
		0);
	assert_int_equal(modify(qp, rts, RTS & ~IBV_QP_RETRY_CNT), EINVAL);
	assert_int_equal(modify(qp, rts, IBV_QP_STATE | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT), 0);
	/* the connection is there, and librdmacm takes its steps */
	assert_int_equal(modify(qp, rtr, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
	assert_int_equal(modify(qp, rts, RTS), 0);
	assert_int_equal(fake.qp->state, UW_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* As RoCE each step has its attributes also where the peer is rdma_cm's to find. */
static void as_roce_a_step_is_infinibands(void **state)
{
	const int handed_out = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp *qp = world_qp(*state, 0);

	fake.attr.roce = true;
	for (int bit = 2; bit <= INIT; bit <<= 1) {
		if (INIT & bit)
			assert_int_equal(modify(qp, init, INIT & ~bit), EINVAL);
	}
	assert_int_equal(modify(qp, init, IBV_QP_STATE), EINVAL);
	assert_int_equal(modify(qp, init, INIT | IBV_QP_MIN_RNR_TIMER), EINVAL);
	assert_int_equal(modify(qp, rtr, handed_out), EINVAL); /* not from RESET */
	assert_int_equal(modify(qp, init, INIT), 0);
	assert_int_equal(modify(qp, init, INIT), 0);
	assert_int_equal(modify(qp, rtr, IBV_QP_STATE), EINVAL);
	assert_int_equal(modify(qp, rtr, handed_out | IBV_QP_RETRY_CNT), EINVAL);
	assert_int_equal(modify(qp, rts, IBV_QP_STATE), EINVAL); /* not from INIT */
	assert_int_equal(fake.qp->state, UW_QPS_INIT);
	/* what librdmacm does on the way to rdma_accept(), with RDMA_OPTION_ID_ACK_TIMEOUT */
	assert_int_equal(modify(qp, init, INIT | IBV_QP_TIMEOUT), 0);
	assert_int_equal(modify(qp, rtr, handed_out | IBV_QP_TIMEOUT), 0);
	assert_int_equal(modify(qp, rts, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL);
	assert_int_equal(modify(qp, rts, 0), 0);
	assert_int_equal(modify(qp, rts, IBV_QP_STATE | IBV_QP_TIMEOUT), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Nobody has set it: librdmacm does not, and the connection has agreed on it. */
static void what_rdma_cm_agreed_on_is_queried(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0);
	struct ibv_qp_init_attr ia;
	struct ibv_port_attr port;
	struct ibv_qp_attr a;

	fake.qp->depths = (struct uw_depths){ .ird = 3, .ord = 16382 };
	assert_int_equal(ibv_query_qp(qp, &a, ~0, &ia), 0);
	assert_int_equal(a.max_rd_atomic, 0);
	fake.qp->state = UW_QPS_RTS;
	assert_int_equal(ibv_query_port(((struct world *)*state)->ctx, 1, &port), 0);
	assert_int_equal(ibv_query_qp(qp, &a, ~0, &ia), 0);
	assert_int_equal(a.path_mtu, port.active_mtu);
	assert_in_range(a.path_mtu, IBV_MTU_256, IBV_MTU_4096);
	assert_int_equal(a.max_dest_rd_atomic, 3);
	assert_int_equal(a.max_rd_atomic, 255);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* CONNECT_RESPONSE is there, and the peer has left already. */
static void rdma_cm_takes_a_qp_up_that_failed_meanwhile(void **state)
{
	const struct ibv_qp_attr steps[] = { { .qp_state = IBV_QPS_INIT },
					     { .qp_state = IBV_QPS_RTR },
					     { .qp_state = IBV_QPS_RTS } };
	struct ibv_qp *qp = world_qp(*state, 0);

	fake.qp->state = UW_QPS_ERR;
	fake.attr.roce = true;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(modify(qp, steps[i], IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(fake.qp->state, UW_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static unsigned drained(struct ibv_qp *qp)
{
	struct ibv_async_event ev;
	unsigned n = 0;
	int flags = fcntl(qp->context->async_fd, F_GETFL);

	fcntl(qp->context->async_fd, F_SETFL, flags | O_NONBLOCK);
	while (!ibv_get_async_event(qp->context, &ev)) {
		n += ev.event_type == IBV_EVENT_SQ_DRAINED;
		ibv_ack_async_event(&ev);
	}
	fcntl(qp->context->async_fd, F_SETFL, flags);
	return n;
}

static void the_drain_is_told_to_who_asks(void **state)
{
	struct ibv_qp *qp = named(*state);
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	assert_int_equal(modify(qp, rts, RTS), 0);
	assert_int_equal(modify(qp, sqd, IBV_QP_STATE), 0);
	fake.qp->attr.event(fake.qp->attr.ctx, UW_EVENT_SQ_DRAINED);
	assert_int_equal(drained(qp), 0);
	assert_int_equal(modify(qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_STATE),
			 0);
	assert_int_equal(modify(qp, sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	fake.qp->attr.event(fake.qp->attr.ctx, UW_EVENT_SQ_DRAINED);
	assert_int_equal(drained(qp), 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_peer_is_named_by_gid_and_qp_number),
		T(or_by_ip6),
		T(or_by_lid_and_qp_number),
		T(or_by_the_usual_index_of_roce),
		T(what_was_set_is_what_is_queried),
		T(each_step_wants_its_attributes),
		T(values_out_of_range_are_refused),
		T(rdma_cm_needs_next_to_none),
		T(rdma_cm_does_not_take_everything),
		T(half_a_peer_is_none),
		T(as_roce_a_step_is_infinibands),
		T(what_rdma_cm_agreed_on_is_queried),
		T(rdma_cm_takes_a_qp_up_that_failed_meanwhile),
		T(the_drain_is_told_to_who_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
