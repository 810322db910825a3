/* SPDX-License-Identifier: BSD-3-Clause */
/* UD queue pairs: IBA volume 1, §9.8.3. */
#include "pair.h"

#define DATA 0u
#define SINK 1024u

static struct pair *open_ud(const struct node_opts *opts)
{
	struct pair *p = pair_new(ROCE_UD, opts);

	for (unsigned i = 0; i < 1024; i++)
		p->a.m[DATA + i] = (uint8_t)(i * 7 + 1);
	return p;
}

static void send_and_receive(struct pair *p, unsigned opcode, size_t len)
{
	struct uw_send_wr wr = pair_to_b(p, opcode, DATA, len);

	wr.imm_or_inv = 0x0d0c0b0a;
	wr.flags |= UW_SEND_SIGNALED;
	node_post(&p->a, 1, wr);
	pair_send(p);
	pair_receive_all(p);
}

/* IBA §9.8.3.1, §11.4.1.2: 40 octets, then the payload; source QP and GRH in the completion. */
static void a_datagram_arrives_behind_the_grh(void **state)
{
	static const size_t sizes[] = { 0, 1, 3, 4, 100, PAIR_MTU };

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct pair *p = open_ud(NULL);
		struct uw_wc wc;

		node_post_recv(&p->b, 9, SINK, 512);
		send_and_receive(p, UW_WR_SEND, sizes[i]);
		node_wc(&p->a.scq, 1, UW_WC_SUCCESS);
		wc = node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
		assert_int_equal(wc.opcode, UW_WC_RECV);
		assert_int_equal(wc.byte_len, ROCE_GRH + sizes[i]);
		assert_int_equal(wc.src_qp, 0x100);
		assert_int_equal(wc.wc_flags, 1); /* GRH */
		assert_int_equal(wc.sl, 10); /* annex A17.4.5.1, as cards say it: UDP over IPv4 */
		assert_memory_equal(p->b.m + SINK + ROCE_GRH, p->a.m + DATA, sizes[i]);
		assert_int_equal(p->b.m[SINK + 20], 0x45);
		assert_memory_equal(p->b.m + SINK + 32, p->ra.path.src.b + 12, 4);
		free(p);
	}
}

static void immediate_data_comes_along(void **state)
{
	struct pair *p = open_ud(NULL);
	struct uw_wc wc;

	(void)state;
	node_post_recv(&p->b, 9, SINK, 512);
	send_and_receive(p, UW_WR_SEND_WITH_IMM, 10);
	wc = node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, 1 | UW_WC_WITH_IMM);
	assert_int_equal(wc.imm_or_inv, 0x0d0c0b0a);
	free(p);
}

/* RFC 6864 §4.1: a packet that nobody may cut (DF) needs no identification; it is 0, in each. */
static void packets_have_no_identification(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		node_post(&p->a, i, pair_to_b(p, UW_WR_SEND, DATA, 1));
	pair_send(p);
	assert_int_equal(p->n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(uw_be16(p->p[i].octets + 4), 0);
		assert_int_equal(uw_be16(p->p[i].octets + 6), 0x4000);
	}
	free(p);
}

/* IBA §9.7.1: PSNs count up, modulo 2^24. A UD receiver does not look at them. */
static void psns_count_up_and_wrap(void **state)
{
	struct pair *p = open_ud(NULL);
	struct roce_packet k;

	(void)state;
	p->ra.psn = ROCE_PSN_MASK;
	for (unsigned i = 0; i < 2; i++)
		node_post(&p->a, i, pair_to_b(p, UW_WR_SEND, DATA, 1));
	pair_send(p);
	assert_int_equal(p->n, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct uw_span s = { p->p[i].octets, p->p[i].n };

		assert_int_equal(roce_packet_read(uw_rope_of(&s), &k), ROCE_GOOD);
		assert_int_equal(k.bth.psn, i ? 0 : ROCE_PSN_MASK);
	}
	free(p);
}

/* IBA §9.6.1.4.1 */
static void a_wrong_q_key_is_dropped(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	node_post_recv(&p->b, 9, SINK, 512);
	p->rb.qkey = 1;
	send_and_receive(p, UW_WR_SEND, 10);
	assert_no_wc(&p->b.rcq);
	assert_int_equal(p->b.stats.roce_rx_bad_qkey, 1);
	free(p);
}

/* IBA §10.2.5: with the highest bit set in the request, that of the QP goes out. */
static void the_highest_bit_stands_for_the_own_q_key(void **state)
{
	static const struct {
		uint32_t asked, sent;
	} rows[] = { { 0x80000000, PAIR_QKEY },
		     { 0xffffffff, PAIR_QKEY },
		     { 0x7fffffff, 0x7fffffff } };
	struct roce_packet k;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pair *p = open_ud(NULL);
		struct uw_send_wr wr = pair_to_b(p, UW_WR_SEND, DATA, 1);
		struct uw_span s;

		wr.rkey = rows[i].asked;
		node_post(&p->a, 1, wr);
		pair_send(p);
		s = (struct uw_span){ p->p[0].octets, p->p[0].n };
		assert_int_equal(roce_packet_read(uw_rope_of(&s), &k), ROCE_GOOD);
		assert_int_equal(k.deth.qkey, rows[i].sent);
		free(p);
	}
}

static void without_a_receive_it_is_dropped(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	send_and_receive(p, UW_WR_SEND, 10);
	assert_int_equal(p->b.stats.roce_rx_no_receive, 1);
	assert_int_equal(p->b.qp.state, UW_QPS_RTS);
	free(p);
}

/* Anybody may send: it must cost the program nothing. */
static void too_long_for_the_receive_it_is_dropped(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	node_post_recv(&p->b, 9, SINK, ROCE_GRH + 9);
	send_and_receive(p, UW_WR_SEND, 10);
	assert_no_wc(&p->b.rcq);
	assert_int_equal(p->b.stats.roce_rx_too_long, 1);
	send_and_receive(p, UW_WR_SEND, 9);
	node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
	free(p);
}

/* IBA §9.8.3.1: a datagram is one packet. */
static void a_datagram_above_the_mtu_fails(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	node_post(&p->a, 1, pair_to_b(p, UW_WR_SEND, DATA, PAIR_MTU + 1));
	node_post(&p->a, 2, pair_to_b(p, UW_WR_SEND, DATA, 1));
	pair_send(p);
	assert_int_equal(p->n, 0);
	qp_fail(&p->a.qp, UW_E_FLUSHED);
	node_wc(&p->a.scq, 1, UW_WC_LOC_LEN_ERR);
	node_wc(&p->a.scq, 2, UW_WC_WR_FLUSH_ERR);
	free(p);
}

/* IBA §10.3.1: RESET leads out of every state. */
static void a_sender_recovers_by_a_reset(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	send_and_receive(p, UW_WR_SEND, PAIR_MTU + 1);
	qp_fail(&p->a.qp, UW_E_FLUSHED);
	node_wc(&p->a.scq, 1, UW_WC_LOC_LEN_ERR);
	pair_reset(&p->a, &p->ra);
	for (unsigned i = 0; i < 2; i++) {
		node_post_recv(&p->b, 9, SINK, 512);
		send_and_receive(p, UW_WR_SEND, 10);
		node_wc(&p->a.scq, 1, UW_WC_SUCCESS);
		node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
	}
	free(p);
}

static void a_bad_lkey_fails_the_request(void **state)
{
	struct pair *p = open_ud(NULL);
	struct uw_send_wr wr = pair_to_b(p, UW_WR_SEND, DATA, 8);
	struct uw_sge sge = node_sge(&p->a, DATA, 8);

	(void)state;
	sge.lkey ^= 0x100;
	wr.sg_list = &sge;
	node_post(&p->a, 1, wr);
	pair_send(p);
	assert_int_equal(p->n, 0);
	node_wc(&p->a.scq, 1, UW_WC_LOC_PROT_ERR);
	free(p);
}

/* IBA §10.7.2.2, table 66: a UD QP sends and no more. */
static void other_operations_are_refused(void **state)
{
	struct pair *p = open_ud(NULL);

	(void)state;
	for (unsigned op = 0; op < 12; op++) {
		struct uw_send_wr wr = pair_to_b(p, op, DATA, 8);
		bool taken = op == UW_WR_SEND || op == UW_WR_SEND_WITH_IMM;

		assert_status(sq_post(&p->a.qp.sq, &wr), taken ? UW_OK : UW_E_INVAL);
	}
	free(p);
}

static void nothing_is_received_before_rtr_or_in_error(void **state)
{
	static const enum uw_qp_state states[] = { UW_QPS_INIT, UW_QPS_ERR };

	(void)state;
	for (size_t i = 0; i < COUNT(states); i++) {
		struct pair *p = open_ud(NULL);

		assert_status(qp_modify(&p->b.qp, states[i]), UW_OK);
		send_and_receive(p, UW_WR_SEND, 10);
		assert_int_equal(p->b.stats.roce_rx_no_qp, 1);
		assert_int_equal(p->b.stats.roce_rx_packets, 0);
		free(p);
	}
}

static void receives_come_from_a_shared_queue_too(void **state)
{
	_Alignas(64) uint8_t slots[NODE_WR * 128];
	struct rq srq;
	struct pair *p;
	struct uw_sge sge;
	struct uw_recv_wr wr = { .wr_id = 4, .sg_list = &sge, .num_sge = 1 };

	(void)state;
	node_rq(&srq, slots, NODE_WR);
	p = open_ud(&(struct node_opts){ .srq = &srq });
	sge = node_sge(&p->b, SINK, 100);
	assert_status(rq_post(&srq, &wr), UW_OK);
	send_and_receive(p, UW_WR_SEND, 60);
	node_wc(&p->b.rcq, 4, UW_WC_SUCCESS);
	assert_int_equal(rq_count(&srq), 0);
	free(p);
}

/* A QP of another stack takes the first receive just before us. */
static void take_away(struct rq *srq, bool on)
{
	if (on && rq_count(srq) == 2)
		rq_drop(srq);
}

static void another_stack_may_take_the_receive_that_fits(void **state)
{
	_Alignas(64) uint8_t slots[NODE_WR * 128];
	struct rq srq;
	struct pair *p;

	(void)state;
	node_rq(&srq, slots, NODE_WR);
	p = open_ud(&(struct node_opts){ .srq = &srq });
	p->b.qp.guard = take_away;
	memset(p->b.m + SINK, 0x5a, 300);
	node_post_recv(&p->b, 4, SINK, 300);
	node_post_recv(&p->b, 5, SINK, 10);
	send_and_receive(p, UW_WR_SEND, 60);
	assert_no_wc(&p->b.rcq);
	assert_int_equal(p->b.stats.roce_rx_too_long, 1);
	assert_int_equal(p->b.m[SINK], 0x5a);
	assert_int_equal(rq_count(&srq), 1); /* the small one */
	free(p);
}

static void several_sges_and_inline_octets(void **state)
{
	struct pair *p = open_ud(NULL);
	struct uw_sge v[3] = { node_sge(&p->a, 0, 5), node_sge(&p->a, 100, 1),
			       node_sge(&p->a, 200, 30) };
	struct uw_send_wr wr = pair_to_b(p, UW_WR_SEND, DATA, 0);

	(void)state;
	wr.sg_list = v;
	wr.num_sge = 3;
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *got = p->b.m + SINK + ROCE_GRH;

		node_post_recv(&p->b, 9, SINK, 512);
		wr.flags = i ? UW_SEND_INLINE : 0;
		node_post(&p->a, 1, wr);
		pair_send(p);
		pair_receive_all(p);
		assert_int_equal(node_wc(&p->b.rcq, 9, UW_WC_SUCCESS).byte_len, ROCE_GRH + 36);
		assert_memory_equal(got, p->a.m, 5);
		assert_int_equal(got[5], p->a.m[100]);
		assert_memory_equal(got + 6, p->a.m + 200, 30);
	}
	free(p);
}

static void an_address_is_packed_and_unpacked(void **state)
{
	struct roce_to to = { .tos = 0xb8, .hops = 3, .source = 5 }, got;
	struct sqe e = { 0 };
	uint64_t dst[2];

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		to.dst.b[i] = (uint8_t)(i + 0xf0);
	roce_to_pack(&to, &e.remote_addr, dst);
	e.remote_addr |= 0xabcdef;
	e.compare_add = dst[0];
	e.swap = dst[1];
	got = roce_to_of(&e);
	assert_int_equal(got.qpn, 0xabcdef);
	assert_true(got.tos == to.tos && got.hops == to.hops && got.source == to.source);
	assert_true(uw_ip_eq(&got.dst, &to.dst));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_datagram_arrives_behind_the_grh),
	cmocka_unit_test(immediate_data_comes_along),
	cmocka_unit_test(packets_have_no_identification),
	cmocka_unit_test(psns_count_up_and_wrap),
	cmocka_unit_test(a_wrong_q_key_is_dropped),
	cmocka_unit_test(the_highest_bit_stands_for_the_own_q_key),
	cmocka_unit_test(without_a_receive_it_is_dropped),
	cmocka_unit_test(too_long_for_the_receive_it_is_dropped),
	cmocka_unit_test(a_datagram_above_the_mtu_fails),
	cmocka_unit_test(a_sender_recovers_by_a_reset),
	cmocka_unit_test(a_bad_lkey_fails_the_request),
	cmocka_unit_test(other_operations_are_refused),
	cmocka_unit_test(nothing_is_received_before_rtr_or_in_error),
	cmocka_unit_test(receives_come_from_a_shared_queue_too),
	cmocka_unit_test(another_stack_may_take_the_receive_that_fits),
	cmocka_unit_test(several_sges_and_inline_octets),
	cmocka_unit_test(an_address_is_packed_and_unpacked),
};

UWTEST_MAIN(tests)
