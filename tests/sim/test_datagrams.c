/* SPDX-License-Identifier: BSD-3-Clause */
/* UC and UD over the whole stack: what arrives is what was sent, and what is lost is lost without
 * harm to what comes behind it (IBA volume 1, §9.8.2, §9.8.3). */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/guard.h"
#include "net.h"

#define ALL   (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define QKEY  0x11111111u
#define GRH   40u
#define SIZE  16384u
#define DEPTH 64u

struct bed {
	struct sim s;
	struct uw_qp *qp[2]; /* a's and b's */
	uint8_t out[SIZE], in[SIZE];
	struct uw_mr *mr_out, *mr_in;
};

static struct uw_qp *make_qp(struct sim_side *side, enum uw_qp_type type)
{
	struct uw_qp_attr a = { .type = type,
				.send_cq = side->scq,
				.recv_cq = side->rcq,
				.max_send_wr = DEPTH,
				.max_recv_wr = DEPTH,
				.max_send_sge = 2,
				.max_recv_sge = 2,
				.event = sim_async,
				.ctx = side };
	struct uw_qp *qp;

	assert_int_equal(uw_qp_create(side->pd, &a, &qp), 0);
	assert_int_equal(uw_qp_modify(qp, UW_QPS_INIT), 0);
	return qp;
}

static struct bed *open_bed(enum uw_qp_type type, const struct sim_options *o)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	sim_open(&b->s, o);
	b->qp[0] = make_qp(&b->s.a, type);
	b->qp[1] = make_qp(&b->s.b, type);
	for (unsigned i = 0; i < SIZE; i++)
		b->out[i] = (uint8_t)(i * 31 + i / 256);
	b->mr_out = sim_mr(&b->s.a, b->out, SIZE, ALL);
	b->mr_in = sim_mr(&b->s.b, b->in, SIZE, ALL);
	return b;
}

static void close_bed(struct bed *b)
{
	uw_qp_destroy(b->qp[0]);
	uw_qp_destroy(b->qp[1]);
	assert_int_equal(uw_mr_dereg(b->mr_out), 0);
	assert_int_equal(uw_mr_dereg(b->mr_in), 0);
	sim_close(&b->s);
	free(b);
}

static void post_recv(struct bed *b, uint64_t id, size_t at, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)b->in + at, n, uw_mr_stag(b->mr_in) };
	struct uw_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	unsigned done;

	assert_int_equal(uw_post_recv(b->qp[1], &wr, 1, &done), 0);
}

/* ---- UD ------------------------------------------------------------------------------------ */

static void bring_up_ud(struct bed *b)
{
	const struct uw_datagrams d = { .sq_psn = 77, .qkey = QKEY };

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uw_qp_set_datagrams(b->qp[i], &d), 0);
		assert_int_equal(uw_qp_modify(b->qp[i], UW_QPS_RTR), 0);
		assert_int_equal(uw_qp_state(b->qp[i]), UW_QPS_RTR);
		assert_int_equal(uw_qp_modify(b->qp[i], UW_QPS_RTS), 0);
	}
}

static struct uw_ah address(struct bed *b, uint32_t own, uint32_t other)
{
	struct sockaddr_storage to = sim_addr(&b->s, other, 0), from = sim_addr(&b->s, own, 0);
	struct uw_ah_attr a = { .addr = (struct sockaddr *)&to, .from = (struct sockaddr *)&from };
	struct uw_ah ah;

	assert_int_equal(uw_ah_make(b->s.a.pd, &a, &ah), 0);
	return ah;
}

static struct uw_send_wr datagram(const struct bed *b, const struct uw_ah *ah, struct uw_sge *sge)
{
	return (struct uw_send_wr){ .wr_id = 1,
				    .sg_list = sge,
				    .num_sge = 1,
				    .opcode = UW_WR_SEND,
				    .flags = UW_SEND_SIGNALED,
				    .remote_addr = ah->how | uw_qp_num(b->qp[1]),
				    .compare_add = ah->dst[0],
				    .swap = ah->dst[1],
				    .rkey = QKEY };
}

static void post(struct bed *b, const struct uw_send_wr *wr)
{
	unsigned done;

	assert_int_equal(uw_post_send(b->qp[0], wr, 1, &done), 0);
}

static void send_datagram(struct bed *b, const struct uw_ah *ah, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)b->out, n, uw_mr_stag(b->mr_out) };
	struct uw_send_wr wr = datagram(b, ah, &sge);

	post(b, &wr);
}

/* The first one finds its neighbour first. */
static void datagrams_arrive(const struct sim_options *o)
{
	struct bed *b = open_bed(UW_QPT_UD, o);
	struct uw_ah ah;

	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_B);
	for (uint32_t n = 0; n <= 1024; n += n < 8 ? 1 : 127) {
		struct uw_wc wc;

		memset(b->in, 0, SIZE);
		post_recv(b, 5, 0, 2048);
		send_datagram(b, &ah, n);
		assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
		wc = sim_wc(&b->s, b->s.b.rcq);
		assert_int_equal(wc.status, UW_WC_SUCCESS);
		assert_int_equal(wc.byte_len, GRH + n);
		assert_int_equal(wc.src_qp, uw_qp_num(b->qp[0]));
		assert_int_equal(wc.qp_num, uw_qp_num(b->qp[1]));
		assert_memory_equal(b->in + GRH, b->out, n);
	}
	close_bed(b);
}

static void test_datagrams_arrive(void **state)
{
	(void)state;
	datagrams_arrive(&(struct sim_options){ .mtu = 1500, .seed = 1 });
	datagrams_arrive(&(struct sim_options){ .mtu = 1500, .seed = 2, .direct = true });
	datagrams_arrive(&(struct sim_options){ .mtu = 1500, .seed = 3, .ip6 = true });
	datagrams_arrive(&(struct sim_options){ .mtu = 9000, .seed = 4 });
}

static void test_a_datagram_to_oneself(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 5 });
	struct uw_ah ah;

	(void)state;
	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_A); /* b's QP is one of the same process */
	post_recv(b, 5, 0, 2048);
	send_datagram(b, &ah, 300);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).byte_len, GRH + 300);
	assert_memory_equal(b->in + GRH, b->out, 300);
	close_bed(b);
}

/* More than the link takes at a time: they wait, and all go in the end. */
static void test_a_burst_waits_for_room(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD,
				 &(struct sim_options){ .mtu = 1500, .seed = 6, .bps = 10000000 });
	struct uw_ah ah;

	(void)state;
	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_B);
	post_recv(b, 0, 0, 256);
	send_datagram(b, &ah, 4); /* the neighbour is known from here on */
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).status, UW_WC_SUCCESS);
	for (unsigned round = 0; round < 12; round++) {
		for (unsigned i = 0; i < DEPTH / 2; i++) {
			post_recv(b, i, i * 256, 256);
			send_datagram(b, &ah, 100 + i);
		}
		for (unsigned i = 0; i < DEPTH / 2; i++) {
			assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
			assert_int_equal(sim_wc(&b->s, b->s.b.rcq).byte_len, GRH + 100 + i);
		}
	}
	close_bed(b);
}

static struct {
	struct uw_ip to;
	unsigned asked;
	bool has;
} room;

static bool has_room(struct io_link *l, const struct uw_ip *to, unsigned n)
{
	(void)l;
	(void)n;
	room.to = *to;
	room.asked++;
	return room.has;
}

/* As between processes, whose link knows whether the receiver takes more. The queues of several
 * stacks do not. */
static void test_one_waits_for_its_receivers_room(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 6 });
	const struct io_ops *before = b->s.link[0]->ops;
	const struct uw_ip to = uw_ip_v4(htonl(SIM_B));
	struct io_ops ops = *before;
	struct uw_wc wc;
	struct uw_ah ah;

	(void)state;
	if (b->s.e->n_stacks > 1) {
		close_bed(b);
		skip();
	}
	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_B);
	memset(&room, 0, sizeof(room));
	ops.has_room = has_room;
	b->s.link[0]->ops = &ops;
	post_recv(b, 5, 0, 2048);
	send_datagram(b, &ah, 300);
	sim_run_us(&b->s, 100000);
	assert_true(room.asked > 0);
	assert_true(uw_ip_eq(&room.to, &to));
	assert_int_equal(uw_cq_poll(b->s.a.scq, 1, &wc), 0);
	room.has = true;
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).byte_len, GRH + 300);
	b->s.link[0]->ops = before;
	close_bed(b);
}

static void test_wrong_q_key_and_unknown_qp_are_counted(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 7 });
	struct uw_sge sge = { 0 };
	struct uw_send_wr wr;
	struct uw_ah ah;

	(void)state;
	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_B);
	post_recv(b, 1, 0, 256);
	wr = datagram(b, &ah, &sge);
	wr.num_sge = 0;
	wr.rkey = 1;
	post(b, &wr);
	sim_settle(&b->s);
	assert_int_equal(sim_stats(&b->s).roce_rx_bad_qkey, 1);
	wr.remote_addr ^= 2;
	post(b, &wr);
	sim_settle(&b->s);
	assert_int_equal(sim_stats(&b->s).roce_rx_no_qp, 1);
	wr.remote_addr = ah.how | 1; /* IBA §10.2.4.2: nor does the QP of management hear it */
	post(b, &wr);
	sim_settle(&b->s);
	assert_int_equal(sim_stats(&b->s).roce_rx_bad_qkey, 2);
	assert_int_equal(sim_stats(&b->s).sidr_rx_unknown, 0);
	close_bed(b);
}

static void test_error_and_reset_flush_and_forget(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 8 });
	struct uw_ah ah;

	(void)state;
	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_B);
	post_recv(b, 1, 0, 256);
	post_recv(b, 2, 0, 256);
	assert_int_equal(uw_qp_modify(b->qp[1], UW_QPS_ERR), 0);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(uw_qp_modify(b->qp[1], UW_QPS_RESET), 0);
	assert_int_equal(uw_qp_modify(b->qp[1], UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_modify(b->qp[1], UW_QPS_RTR), 0);
	assert_int_equal(uw_qp_state(b->qp[1]), UW_QPS_RTR);
	post_recv(b, 3, 0, 256);
	send_datagram(b, &ah, 10);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).wr_id, 3);
	close_bed(b);
}

/* IBA §9.8.3.1: above the MTU it fails, and what is behind it is flushed. */
static void test_above_the_mtu_it_fails(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 9 });
	struct uw_ah ah;

	(void)state;
	bring_up_ud(b);
	ah = address(b, SIM_A, SIM_B);
	send_datagram(b, &ah, 1025);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_LOC_LEN_ERR);
	assert_int_equal(uw_qp_state(b->qp[0]), UW_QPS_ERR);
	close_bed(b);
}

/* IBA §10.5.2: every member gets a copy, but for who sent it. */
static void test_a_group(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 10 });
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203) };
	struct sockaddr_storage from = sim_addr(&b->s, SIM_A, 0);
	struct uw_ah_attr a = { .addr = (struct sockaddr *)&group,
				.from = (struct sockaddr *)&from };
	struct uw_sge sge = { (uintptr_t)b->out, 100, uw_mr_stag(b->mr_out) };
	struct uw_send_wr wr;
	struct uw_wc wc;
	struct uw_ah ah;

	(void)state;
	bring_up_ud(b);
	assert_int_equal(uw_ah_make(b->s.a.pd, &a, &ah), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uw_qp_group(b->qp[i], (struct sockaddr *)&group, true), 0);
		assert_int_equal(uw_qp_group(b->qp[i], (struct sockaddr *)&group, true), 0);
	}
	post_recv(b, 5, 0, 256);
	post_recv(b, 6, 256, 256);
	wr = datagram(b, &ah, &sge);
	wr.remote_addr = ah.how | 0xffffff;
	post(b, &wr);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	wc = sim_wc(&b->s, b->s.b.rcq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.byte_len, GRH + 100);
	assert_memory_equal(b->in + GRH, b->out, 100);
	sim_settle(&b->s);
	assert_int_equal(uw_cq_poll(b->s.b.rcq, 1, &wc), 0); /* once */
	assert_int_equal(sim_stats(&b->s).roce_rx_no_receive, 0);
	wr.remote_addr = ah.how | uw_qp_num(b->qp[1]); /* IBA §9.6.1.2.2: not the QP of multicast */
	post(b, &wr);
	sim_settle(&b->s);
	assert_int_equal(uw_cq_poll(b->s.b.rcq, 1, &wc), 0);
	assert_int_equal(sim_stats(&b->s).roce_rx_no_qp, 1);
	wr.remote_addr = ah.how | 0xffffff;
	assert_int_equal(uw_qp_group(b->qp[1], (struct sockaddr *)&group, false), 0);
	assert_int_equal(uw_qp_group(b->qp[1], (struct sockaddr *)&group, false), -EINVAL);
	post(b, &wr);
	sim_settle(&b->s);
	assert_int_equal(uw_cq_poll(b->s.b.rcq, 1, &wc), 0);
	close_bed(b); /* qp[0] is a member still */
}

static unsigned leaves[2]; /* of each link */

static uw_status cannot_leave(struct io_link *l, const struct uw_ip *group, bool in)
{
	(void)group;
	leaves[l->addr == htonl(SIM_B)] += !in;
	return in ? UW_OK : UW_E_ADDR;
}

/* As the packet link, when its interface has gone. */
static void test_a_member_goes_though_its_links_cannot_leave(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 10 });
	struct stack *s = b->s.e->stack[0];
	const struct io_ops *before[2] = { s->links[0]->ops, s->links[1]->ops };
	struct io_ops ops[2] = { *before[0], *before[1] };
	struct uw_qp *ud = make_qp(&b->s.a, UW_QPT_UD);

	(void)state;
	leaves[0] = leaves[1] = 0;
	for (unsigned i = 0; i < 2; i++) {
		ops[i].group = cannot_leave;
		s->links[i]->ops = &ops[i];
	}
	for (uint32_t i = 1; i <= 3; i++) {
		struct sockaddr_in group = { .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(0xef010200 | i) };

		assert_int_equal(uw_qp_group(ud, (struct sockaddr *)&group, true), 0);
	}
	assert_non_null(s->groups);
	uw_qp_destroy(ud);
	assert_null(s->groups);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(leaves[i], 3);
		s->links[i]->ops = before[i];
	}
	close_bed(b);
}

static void test_who_may_join(void **state)
{
	struct bed *b = open_bed(UW_QPT_UC, &(struct sim_options){ .mtu = 1500, .seed = 10 });
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203) };
	struct sockaddr_in one = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(SIM_B) };
	struct uw_qp *ud = make_qp(&b->s.a, UW_QPT_UD);

	(void)state;
	assert_int_equal(uw_qp_group(b->qp[0], (struct sockaddr *)&group, true), -EINVAL);
	assert_int_equal(uw_qp_group(ud, (struct sockaddr *)&one, true), -EINVAL);
	uw_qp_destroy(ud);
	close_bed(b);
}

static int join(struct uw_qp *qp, uint32_t i, bool in)
{
	struct sockaddr_in group = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(0xef010000 + i) };

	return uw_qp_group(qp, (struct sockaddr *)&group, in);
}

/* What the device's attributes say (max_mcast_grp, max_mcast_qp_attach). */
static void test_groups_and_their_members_are_limited(void **state)
{
	struct bed *b = open_bed(UW_QPT_UD, &(struct sim_options){ .mtu = 1500, .seed = 10 });
	struct uw_qp *ud[UW_GROUP_QPS_MAX + 1];

	(void)state;
	for (uint32_t i = 0; i <= UW_GROUP_QPS_MAX; i++) {
		ud[i] = make_qp(&b->s.a, UW_QPT_UD);
		assert_int_equal(join(ud[i], 0, true), i < UW_GROUP_QPS_MAX ? 0 : -ENOMEM);
	}
	assert_int_equal(join(ud[0], 0, true), 0); /* it is one already */
	assert_int_equal(join(ud[0], 0, false), 0);
	assert_int_equal(join(ud[UW_GROUP_QPS_MAX], 0, true), 0);
	for (uint32_t i = 1; i <= UW_GROUPS_MAX; i++)
		assert_int_equal(join(ud[0], i, true), i < UW_GROUPS_MAX ? 0 : -ENOMEM);
	assert_int_equal(join(ud[1], 1, true), 0); /* no group more */
	assert_int_equal(join(ud[0], 2, false), 0);
	assert_int_equal(join(ud[1], UW_GROUPS_MAX, true), 0);
	for (uint32_t i = 0; i <= UW_GROUP_QPS_MAX; i++)
		uw_qp_destroy(ud[i]);
	assert_int_equal(b->s.e->stack[0]->n_groups, 0);
	close_bed(b);
}

/* ---- UC ------------------------------------------------------------------------------------ */

static void name_peer(struct bed *b, unsigned i)
{
	uint32_t end[2] = { SIM_A, SIM_B };
	struct sockaddr_storage to = sim_addr(&b->s, end[!i], 0), from = sim_addr(&b->s, end[i], 0);
	struct uw_peer p = { .addr = (struct sockaddr *)&to,
			     .from = (struct sockaddr *)&from,
			     .qpn = uw_qp_num(b->qp[!i]),
			     .path_mtu = 512,
			     .rq_psn = 77 };
	const struct uw_datagrams d = { .sq_psn = 77 };

	assert_int_equal(uw_qp_name_peer(b->qp[i], &p), 0);
	assert_int_equal(uw_qp_state(b->qp[i]), UW_QPS_RTR);
	assert_int_equal(uw_qp_set_datagrams(b->qp[i], &d), 0);
	assert_int_equal(uw_qp_modify(b->qp[i], UW_QPS_RTS), 0);
}

static void send_message(struct bed *b, uint32_t op, size_t at, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)b->out + at, n, uw_mr_stag(b->mr_out) };
	struct uw_send_wr wr = { .wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = op,
				 .flags = UW_SEND_SIGNALED,
				 .imm_or_inv = htonl(n),
				 .remote_addr = (uintptr_t)b->in + at,
				 .rkey = uw_mr_stag(b->mr_in) };

	post(b, &wr);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
}

static void messages_arrive(const struct sim_options *o)
{
	static const uint32_t ops[] = { UW_WR_SEND_WITH_IMM, UW_WR_RDMA_WRITE_WITH_IMM };
	struct bed *b = open_bed(UW_QPT_UC, o);

	name_peer(b, 0);
	name_peer(b, 1);
	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < SIZE; n = n * 2 + 1) {
			struct uw_wc wc;

			memset(b->in, 0, SIZE);
			post_recv(b, 5, 0, SIZE);
			send_message(b, ops[i], 0, n);
			wc = sim_wc(&b->s, b->s.b.rcq);
			assert_int_equal(wc.status, UW_WC_SUCCESS);
			assert_int_equal(wc.byte_len, n);
			assert_int_equal(wc.imm_or_inv, htonl(n));
			assert_memory_equal(b->in, b->out, n);
		}
	}
	close_bed(b);
}

static void test_uc_messages_arrive(void **state)
{
	(void)state;
	messages_arrive(&(struct sim_options){ .mtu = 1500, .seed = 11 });
	messages_arrive(&(struct sim_options){ .mtu = 1500, .seed = 12, .direct = true });
	messages_arrive(&(struct sim_options){ .mtu = 1500, .seed = 13, .ip6 = true });
}

/* Memory that is unmapped before it is deregistered (doc/adr/0029): a Write to it is dropped, and
 * the QP goes on; a receive or a request that names it fails. */
static void use_memory_that_is_gone(struct bed *b)
{
	uint8_t *gone =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uw_mr *mr;
	struct uw_sge sge = { (uintptr_t)b->out, 300, uw_mr_stag(b->mr_out) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_RDMA_WRITE, .flags = UW_SEND_SIGNALED
	};

	assert_ptr_not_equal(gone, MAP_FAILED);
	name_peer(b, 0);
	name_peer(b, 1);
	mr = sim_mr(&b->s.b, gone, 4096, ALL);
	uw_guard_install(); /* cmocka has taken the signals for this test */
	assert_int_equal(munmap(gone, 4096), 0);
	wr.remote_addr = (uintptr_t)gone;
	wr.rkey = uw_mr_stag(mr);
	post(b, &wr);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	sim_settle(&b->s);
	assert_int_equal(sim_stats(&b->s).roce_rx_refused, 1);
	post_recv(b, 5, 0, SIZE);
	send_message(b, UW_WR_SEND_WITH_IMM, 0, 700);
	assert_int_equal(sim_wc(&b->s, b->s.b.rcq).status, UW_WC_SUCCESS);
	sge = (struct uw_sge){ (uintptr_t)gone, 8, uw_mr_stag(mr) };
	wr.opcode = UW_WR_SEND;
	post(b, &wr);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_LOC_PROT_ERR);
	assert_int_equal(uw_mr_dereg(mr), 0);
	close_bed(b);
}

static void test_memory_that_is_gone(void **state)
{
	(void)state;
	if (!UW_GUARDED) /* a sanitizer takes the fault */
		skip();
	use_memory_that_is_gone(
		open_bed(UW_QPT_UC, &(struct sim_options){ .mtu = 1500, .seed = 14 }));
}

static bool next_wc(struct bed *b, struct uw_wc *wc)
{
	return uw_cq_poll(b->s.b.rcq, 1, wc) == 1;
}

/* Of each message that is delivered all octets are right, and its number; most arrive. */
static void uc_under(const struct sim_options *o, unsigned at_least)
{
	struct bed *b = open_bed(UW_QPT_UC, o);
	unsigned delivered = 0, last = 0;

	name_peer(b, 0);
	name_peer(b, 1);
	for (unsigned i = 1; i <= 200; i++) {
		uint32_t n = i * 37 % 3000 + 1;
		struct uw_wc wc;

		if (i == 1)
			post_recv(b, i, 0, SIZE);
		send_message(b, UW_WR_SEND_WITH_IMM, n, n);
		sim_run_us(&b->s, 2000);
		while (next_wc(b, &wc)) {
			uint32_t len = ntohl(wc.imm_or_inv);

			assert_int_equal(wc.status, UW_WC_SUCCESS);
			assert_int_equal(wc.byte_len, len);
			if (len == n)
				assert_memory_equal(b->in, b->out + n, n);
			delivered++;
			last = i;
			post_recv(b, i, 0, SIZE);
		}
		assert_int_equal(uw_qp_state(b->qp[1]), UW_QPS_RTS);
	}
	assert_in_range(delivered, at_least, 200);
	assert_in_range(last, 190, 200);
	close_bed(b);
}

/* IBA §10.3.1: a message that takes several turns of its QP is sent in SQD to its end; then the
 * program is told, once. */
static void test_uc_drains_in_a_message(void **state)
{
	enum { LONG = 1024 * 256 };
	const struct sim_options o = { .mtu = 512, .seed = 11, .direct = true };
	struct bed *b = open_bed(UW_QPT_UC, &o);
	const unsigned *drained = &b->s.a.async[UW_EVENT_SQ_DRAINED];
	uint8_t *octets = calloc(1, LONG);
	struct uw_mr *mr = sim_mr(&b->s.a, octets, LONG, ALL);
	struct uw_sge sge = { (uintptr_t)octets, LONG, uw_mr_stag(mr) };
	const struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};
	struct uw_wc wc;

	(void)state;
	name_peer(b, 0);
	name_peer(b, 1);
	post(b, &wr);
	assert_int_equal(uw_qp_modify(b->qp[0], UW_QPS_SQD), 0);
	assert_int_equal(*drained, 0);
	post(b, &wr);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	sim_run_us(&b->s, 10000);
	assert_int_equal(*drained, 1);
	assert_int_equal(uw_cq_poll(b->s.a.scq, 1, &wc), 0);
	assert_int_equal(uw_qp_modify(b->qp[0], UW_QPS_RTS), 0);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(*drained, 1);
	assert_int_equal(uw_mr_dereg(mr), 0);
	free(octets);
	close_bed(b);
}

/* Without ARP, whose own loss would take a second. */
static void test_uc_under_loss(void **state)
{
	struct sim_options o = { .mtu = 1500, .seed = 21, .direct = true };

	(void)state;
	uc_under(&o, 200);
	o.drop_ppm = 50000;
	uc_under(&o, 120);
	o.reorder_ppm = 100000;
	uc_under(&o, 60);
	o.dup_ppm = 30000;
	uc_under(&o, 60);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_datagrams_arrive),
	cmocka_unit_test(test_a_datagram_to_oneself),
	cmocka_unit_test(test_a_burst_waits_for_room),
	cmocka_unit_test(test_one_waits_for_its_receivers_room),
	cmocka_unit_test(test_wrong_q_key_and_unknown_qp_are_counted),
	cmocka_unit_test(test_error_and_reset_flush_and_forget),
	cmocka_unit_test(test_above_the_mtu_it_fails),
	cmocka_unit_test(test_a_group),
	cmocka_unit_test(test_a_member_goes_though_its_links_cannot_leave),
	cmocka_unit_test(test_who_may_join),
	cmocka_unit_test(test_groups_and_their_members_are_limited),
	cmocka_unit_test(test_uc_messages_arrive),
	cmocka_unit_test(test_memory_that_is_gone),
	cmocka_unit_test(test_uc_drains_in_a_message),
	cmocka_unit_test(test_uc_under_loss),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
