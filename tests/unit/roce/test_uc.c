/* SPDX-License-Identifier: BSD-3-Clause */
/* UC queue pairs: IBA volume 1, §9.8.2. */
#include "pair.h"

#define DATA 0u
#define SINK 4096u

static struct pair *open_uc(void)
{
	struct pair *p = pair_new(ROCE_UC, NULL);

	for (unsigned i = 0; i < 4096; i++)
		p->a.m[DATA + i] = (uint8_t)(i * 7 + i / 256);
	return p;
}

static void post_send(struct pair *p, unsigned opcode, size_t len)
{
	struct uw_send_wr wr = node_wr(&p->a, opcode, DATA, len);

	wr.imm_or_inv = 0x0d0c0b0a;
	wr.flags |= UW_SEND_SIGNALED;
	node_post(&p->a, 1, wr);
	pair_send(p);
}

static void post_write(struct pair *p, unsigned opcode, size_t len)
{
	struct uw_send_wr wr = node_wr_to(&p->a, opcode, DATA, len, &p->b, SINK);

	wr.imm_or_inv = 0x0d0c0b0a;
	wr.flags |= UW_SEND_SIGNALED;
	node_post(&p->a, 1, wr);
	pair_send(p);
}

static unsigned packets(size_t len)
{
	return len ? (unsigned)((len + PAIR_MTU - 1) / PAIR_MTU) : 1;
}

static const size_t sizes[] = { 0, 1, 5, PAIR_MTU - 1, PAIR_MTU, PAIR_MTU + 1, 3 * PAIR_MTU, 2049 };

static void sends_of_any_size_arrive(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sizes) * 2; i++) {
		size_t len = sizes[i / 2];
		struct pair *p = open_uc();
		struct uw_wc wc;

		node_post_recv(&p->b, 9, SINK, 3000);
		post_send(p, i & 1 ? UW_WR_SEND_WITH_IMM : UW_WR_SEND, len);
		assert_int_equal(p->n, packets(len));
		node_wc(&p->a.scq, 1, UW_WC_SUCCESS);
		pair_receive_all(p);
		wc = node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
		assert_int_equal(wc.byte_len, len);
		assert_int_equal(wc.opcode, UW_WC_RECV);
		assert_int_equal(!!(wc.wc_flags & UW_WC_WITH_IMM), i & 1);
		assert_memory_equal(p->b.m + SINK, p->a.m + DATA, len);
		assert_int_equal(p->rb.expected, 5 + packets(len));
		free(p);
	}
}

static void writes_of_any_size_arrive(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sizes) * 2; i++) {
		size_t len = sizes[i / 2];
		struct pair *p = open_uc();

		node_post_recv(&p->b, 9, 0, 0);
		post_write(p, i & 1 ? UW_WR_RDMA_WRITE_WITH_IMM : UW_WR_RDMA_WRITE, len);
		assert_int_equal(p->n, packets(len));
		node_wc(&p->a.scq, 1, UW_WC_SUCCESS);
		pair_receive_all(p);
		assert_memory_equal(p->b.m + SINK, p->a.m + DATA, len);
		if (i & 1) {
			struct uw_wc wc = node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);

			assert_int_equal(wc.opcode, UW_WC_RECV_RDMA_WITH_IMM);
			assert_int_equal(wc.imm_or_inv, 0x0d0c0b0a);
			assert_int_equal(wc.byte_len, len);
		}
		assert_no_wc(&p->b.rcq);
		free(p);
	}
}

/* SE is in the last packet of a message that completes a receive. */
static void the_solicited_bit_is_in_the_last_packet(void **state)
{
	(void)state;
	for (unsigned write = 0; write < 2; write++) {
		struct pair *p = open_uc();
		struct uw_send_wr wr =
			write ? node_wr_to(&p->a, UW_WR_RDMA_WRITE, DATA, 600, &p->b, SINK)
			      : node_wr(&p->a, UW_WR_SEND, DATA, 600);

		wr.flags |= UW_SEND_SOLICITED;
		node_post(&p->a, 1, wr);
		pair_send(p);
		assert_int_equal(p->n, 3);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(!!(p->p[i].octets[29] & 0x80), !write && i == 2);
		free(p);
	}
}

/* ---- loss: IBA §9.8.2.2 -------------------------------------------------------------------- */

/* Whatever packet of a Send is lost, that Send is not delivered, and the next one is, in the same
 * receive. */
static void a_lost_packet_loses_its_message_alone(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 3; lost++) {
		struct pair *p = open_uc();

		node_post_recv(&p->b, 9, SINK, 3000);
		post_send(p, UW_WR_SEND, 700);
		for (unsigned i = 0; i < 3; i++) {
			if (i != lost)
				assert_status(pair_receive(p, i), UW_OK);
		}
		assert_no_wc(&p->b.rcq);
		p->a.m[DATA] ^= 1;
		post_send(p, UW_WR_SEND, 700);
		pair_receive_all(p);
		assert_int_equal(node_wc(&p->b.rcq, 9, UW_WC_SUCCESS).byte_len, 700);
		assert_memory_equal(p->b.m + SINK, p->a.m + DATA, 700);
		assert_true(p->b.stats.roce_rx_lost > 0);
		free(p);
	}
}

static void a_lost_packet_of_a_write_loses_its_message_alone(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 3; lost++) {
		struct pair *p = open_uc();

		node_post_recv(&p->b, 9, 0, 0);
		post_write(p, UW_WR_RDMA_WRITE_WITH_IMM, 700);
		for (unsigned i = 0; i < 3; i++) {
			if (i != lost)
				assert_status(pair_receive(p, i), UW_OK);
		}
		assert_no_wc(&p->b.rcq);
		post_write(p, UW_WR_RDMA_WRITE_WITH_IMM, 700);
		pair_receive_all(p);
		node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
		free(p);
	}
}

static void a_repeated_packet_in_the_middle_loses_the_message(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post_recv(&p->b, 9, SINK, 3000);
	post_send(p, UW_WR_SEND, 700);
	assert_status(pair_receive(p, 0), UW_OK);
	assert_status(pair_receive(p, 1), UW_OK);
	assert_status(pair_receive(p, 1), UW_OK);
	assert_status(pair_receive(p, 2), UW_OK);
	assert_no_wc(&p->b.rcq);
	free(p);
}

static void without_a_receive_the_message_is_dropped(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	post_send(p, UW_WR_SEND, 700);
	assert_status(pair_receive(p, 0), UW_OK);
	node_post_recv(&p->b, 9, SINK, 3000);
	assert_status(pair_receive(p, 1), UW_OK);
	assert_status(pair_receive(p, 2), UW_OK);
	assert_no_wc(&p->b.rcq);
	assert_int_equal(p->b.stats.roce_rx_no_receive, 1);
	post_send(p, UW_WR_SEND, 10);
	pair_receive_all(p);
	node_wc(&p->b.rcq, 9, UW_WC_SUCCESS);
	free(p);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void a_send_longer_than_the_receive_fails_both(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post_recv(&p->b, 9, SINK, 300);
	post_send(p, UW_WR_SEND, 700);
	assert_status(pair_receive(p, 0), UW_OK);
	assert_status(pair_receive(p, 1), UW_E_LEN);
	node_wc(&p->b.rcq, 9, UW_WC_LOC_LEN_ERR);
	free(p);
}

/* IBA §9.7.4.1 as rxe takes it for UC: the Write is dropped, the QP stays. */
static void a_write_where_it_may_not_is_dropped(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct pair *p = open_uc();
		struct uw_send_wr wr = node_wr_to(&p->a, UW_WR_RDMA_WRITE, DATA, 300, &p->b, SINK);

		memset(p->b.m, 0x77, sizeof(p->b.m));
		switch (i) {
		case 0:
			wr.rkey ^= 0x100;
			break;
		case 1:
			wr.remote_addr = (uintptr_t)p->b.m + sizeof(p->b.m) - 256;
			break;
		case 2:
			wr.remote_addr = UINT64_MAX - 100;
			break;
		default:
			p->b.qp.rd.remote_rights = 0;
		}
		node_post(&p->a, 1, wr);
		pair_send(p);
		pair_receive_all(p);
		for (unsigned k = 0; k < SINK + 300; k++)
			assert_int_equal(p->b.m[k], 0x77);
		assert_int_equal(p->b.stats.roce_rx_refused, 1);
		assert_int_equal(p->b.qp.state, UW_QPS_RTS);
		p->b.qp.rd.remote_rights = UW_ACCESS_REMOTE_WRITE;
		post_write(p, UW_WR_RDMA_WRITE, 300);
		pair_receive_all(p);
		assert_memory_equal(p->b.m + SINK, p->a.m + DATA, 300);
		free(p);
	}
}

/* A region that is deregistered in the midst of a Write gets no more of it. */
static void a_region_that_goes_in_the_midst_is_not_written(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	post_write(p, UW_WR_RDMA_WRITE, 700);
	assert_status(pair_receive(p, 0), UW_OK);
	arena_drop(&p->b.mem, p->b.stag);
	memset(p->b.m, 0x77, sizeof(p->b.m));
	assert_status(pair_receive(p, 1), UW_OK);
	assert_status(pair_receive(p, 2), UW_OK);
	assert_int_equal(p->b.m[SINK + 300], 0x77);
	assert_int_equal(p->b.stats.roce_rx_refused, 1);
	free(p);
}

/* The RETH says 100 octets, and the packets bring more, or fewer. */
static void a_write_whose_lengths_disagree_is_dropped(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pair *p = open_uc();
		struct uw_span s;
		struct roce_packet k;

		memset(p->b.m, 0x77, sizeof(p->b.m));
		post_write(p, UW_WR_RDMA_WRITE, 200);
		s = (struct uw_span){ p->p[0].octets, p->p[0].n };
		assert_int_equal(roce_packet_read(uw_rope_of(&s), &k), ROCE_GOOD);
		k.reth.length = i ? 100 : 300;
		assert_status(roce_rx(&p->rb, &k), UW_OK);
		assert_int_equal(p->b.stats.roce_rx_refused, 1);
		assert_int_equal(p->b.m[SINK], 0x77);
		free(p);
	}
}

static void packets_of_another_host_are_not_heard(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post_recv(&p->b, 9, SINK, 300);
	p->rb.path.dst = uw_ip_v4(0x0300000a);
	post_send(p, UW_WR_SEND, 10);
	pair_receive_all(p);
	assert_no_wc(&p->b.rcq);
	assert_int_equal(p->b.stats.roce_rx_no_qp, 1);
	free(p);
}

static void packets_of_another_transport_are_not_heard(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post_recv(&p->b, 9, SINK, 300);
	p->rb.transport = ROCE_UD;
	post_send(p, UW_WR_SEND, 10);
	pair_receive_all(p);
	assert_no_wc(&p->b.rcq);
	free(p);
}

static void reads_and_atomics_are_refused(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	for (unsigned op = 0; op < 12; op++) {
		struct uw_send_wr wr = node_wr(&p->a, op, DATA, 8);

		assert_status(sq_post(&p->a.qp.sq, &wr),
			      op <= UW_WR_SEND_WITH_IMM ? UW_OK : UW_E_INVAL);
	}
	free(p);
}

/* A receive that is half filled belongs to its QP: reset and error give it back. */
static void a_half_received_send_is_flushed(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post_recv(&p->b, 9, SINK, 3000);
	post_send(p, UW_WR_SEND, 700);
	assert_status(pair_receive(p, 0), UW_OK);
	qp_fail(&p->b.qp, UW_E_FLUSHED);
	node_wc(&p->b.rcq, 9, UW_WC_WR_FLUSH_ERR);
	assert_no_wc(&p->b.rcq);
	free(p);
}

/* IBA §10.3.1: SQD sends the message that was begun, and no other one. */
static void draining_ends_the_message_that_is_sent(void **state)
{
	struct pair *p = open_uc();
	struct uw_send_wr wr = node_wr(&p->a, UW_WR_SEND, DATA, 700);

	(void)state;
	wr.flags |= UW_SEND_SIGNALED;
	node_post(&p->a, 1, wr);
	node_post(&p->a, 2, wr);
	assert_true(roce_tx(&p->ra, &p->ra.path, p->p[0].octets, 1500));
	assert_status(qp_modify(&p->a.qp, UW_QPS_SQD), UW_OK);
	assert_false(qp_drained(&p->a.qp));
	pair_send(p);
	assert_int_equal(p->n, 2);
	node_wc(&p->a.scq, 1, UW_WC_SUCCESS);
	assert_true(qp_drained(&p->a.qp));
	assert_status(qp_modify(&p->a.qp, UW_QPS_RTS), UW_OK);
	pair_send(p);
	assert_int_equal(p->n, 3);
	node_wc(&p->a.scq, 2, UW_WC_SUCCESS);
	free(p);
}

/* IBA §10.3.1: in the midst of a message, too. */
static void a_reset_forgets_the_message_that_is_sent(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post(&p->a, 1, node_wr(&p->a, UW_WR_SEND, DATA, 700));
	assert_true(roce_tx(&p->ra, &p->ra.path, p->p[0].octets, 1500));
	pair_reset(&p->a, &p->ra);
	node_post_recv(&p->b, 9, SINK, 3000);
	post_send(p, UW_WR_SEND, 300);
	node_wc(&p->a.scq, 1, UW_WC_SUCCESS);
	pair_receive_all(p);
	assert_int_equal(node_wc(&p->b.rcq, 9, UW_WC_SUCCESS).byte_len, 300);
	free(p);
}

static void a_reset_in_a_message_leaves_nothing_to_drain(void **state)
{
	struct pair *p = open_uc();

	(void)state;
	node_post(&p->a, 1, node_wr(&p->a, UW_WR_SEND, DATA, 700));
	assert_true(roce_tx(&p->ra, &p->ra.path, p->p[0].octets, 1500));
	pair_reset(&p->a, &p->ra);
	assert_status(qp_modify(&p->a.qp, UW_QPS_SQD), UW_OK);
	assert_true(qp_drained(&p->a.qp));
	free(p);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sends_of_any_size_arrive),
	cmocka_unit_test(writes_of_any_size_arrive),
	cmocka_unit_test(the_solicited_bit_is_in_the_last_packet),
	cmocka_unit_test(a_lost_packet_loses_its_message_alone),
	cmocka_unit_test(a_lost_packet_of_a_write_loses_its_message_alone),
	cmocka_unit_test(a_repeated_packet_in_the_middle_loses_the_message),
	cmocka_unit_test(without_a_receive_the_message_is_dropped),
	cmocka_unit_test(a_send_longer_than_the_receive_fails_both),
	cmocka_unit_test(a_write_where_it_may_not_is_dropped),
	cmocka_unit_test(a_region_that_goes_in_the_midst_is_not_written),
	cmocka_unit_test(a_write_whose_lengths_disagree_is_dropped),
	cmocka_unit_test(packets_of_another_host_are_not_heard),
	cmocka_unit_test(packets_of_another_transport_are_not_heard),
	cmocka_unit_test(reads_and_atomics_are_refused),
	cmocka_unit_test(a_half_received_send_is_flushed),
	cmocka_unit_test(draining_ends_the_message_that_is_sent),
	cmocka_unit_test(a_reset_forgets_the_message_that_is_sent),
	cmocka_unit_test(a_reset_in_a_message_leaves_nothing_to_drain),
};

UWTEST_MAIN(tests)
