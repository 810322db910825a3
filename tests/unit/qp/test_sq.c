/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/sq.h"

#include <limits.h>

#include "node.h"

static _Alignas(64) uint8_t slots[NODE_WR * 128];

static struct sq queue(uint32_t depth)
{
	memset(slots, 0xff, sizeof(slots));
	return (struct sq){ .slots = slots,
			    .slot_size = sq_slot_size(NODE_SGE, NODE_INLINE),
			    .mask = NODE_WR - 1,
			    .depth = depth,
			    .max_sge = NODE_SGE,
			    .max_inline = NODE_INLINE };
}

static struct uw_send_wr send_of(const struct uw_sge *v, uint32_t n)
{
	return (struct uw_send_wr){ .opcode = UW_WR_SEND, .sg_list = v, .num_sge = n };
}

static void a_request_is_copied_in(void **state)
{
	struct sq sq = queue(NODE_WR);
	struct uw_sge v[2] = { { 1, 20, 3 }, { 4, 50, 6 } };
	struct uw_send_wr wr = { .wr_id = 77,
				 .sg_list = v,
				 .num_sge = 2,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_SIGNALED,
				 .imm_or_inv = 8,
				 .rkey = 9,
				 .remote_addr = 0x1122334455667788ull };
	struct sqe *e = sq_at(&sq, 0);

	(void)state;
	assert_true(sq_empty(&sq));
	assert_false(sq_ready(&sq));
	assert_status(sq_post(&sq, &wr), UW_OK);
	memset(v, 0, sizeof(v));
	memset(&wr, 0, sizeof(wr));
	assert_false(sq_empty(&sq));
	assert_true(sq_ready(&sq));
	assert_int_equal(e->wr_id, 77);
	assert_int_equal(e->length, 70);
	assert_int_equal(e->opcode, UW_WR_RDMA_WRITE);
	assert_int_equal(e->flags, UW_SEND_SIGNALED);
	assert_int_equal(e->rkey, 9);
	assert_int_equal(e->imm_or_inv, 8);
	assert_true(e->remote_addr == 0x1122334455667788ull);
	assert_int_equal(e->num_sge, 2);
	assert_int_equal(sqe_sge(e)[1].length, 50);
	assert_int_equal(e->done | e->status, 0);
}

/* RFC 5040 §4.3, RFC 7306 §4: what iWARP has; nothing of memory windows, nothing beyond. */
static void opcodes_that_are_not_known_are_refused(void **state)
{
	const struct uw_sge word = { .addr = 8, .length = 8 };
	struct sq sq = queue(NODE_WR);

	(void)state;
	for (unsigned op = 0; op < 300; op++) {
		struct uw_send_wr wr = send_of(&word, 1);
		bool known = op <= UW_WR_ATOMIC_FETCH_AND_ADD || op == UW_WR_SEND_WITH_INV;

		wr.opcode = op;
		assert_status(sq_post(&sq, &wr), known ? UW_OK : UW_E_INVAL);
	}
}

/* RFC 7306 §5: an atomic has a result of 8 octets, and nothing to take along. */
static void an_atomic_needs_8_octets(void **state)
{
	static const unsigned ops[] = { UW_WR_ATOMIC_CMP_AND_SWP, UW_WR_ATOMIC_FETCH_AND_ADD };
	struct sq sq = queue(NODE_WR);
	struct uw_sge v = { .addr = 8 };
	struct uw_send_wr wr = send_of(&v, 1);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		wr.opcode = ops[i];
		wr.compare_add = 0x1122334455667788ull;
		wr.swap = 0x99;
		for (v.length = 0; v.length < 20; v.length++)
			assert_status(sq_post(&sq, &wr), v.length == 8 ? UW_OK : UW_E_INVAL);
		assert_true(sq_at(&sq, (uint32_t)i)->compare_add == 0x1122334455667788ull);
		assert_int_equal(sq_at(&sq, (uint32_t)i)->swap, 0x99);
		v.length = 8;
		wr.flags = UW_SEND_INLINE;
		assert_status(sq_post(&sq, &wr), UW_E_INVAL);
		wr.flags = 0;
		wr.num_sge = 0;
		assert_status(sq_post(&sq, &wr), UW_E_INVAL);
		wr.num_sge = 1;
	}
}

static void depth_is_the_limit(void **state)
{
	struct sq sq = queue(3);
	struct uw_send_wr wr = send_of(NULL, 0);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_status(sq_post(&sq, &wr), UW_OK);
	assert_status(sq_post(&sq, &wr), UW_E_NOMEM);
	atomic_store(&sq.head, 1);
	sq_free_unsignaled(&sq);
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_status(sq_post(&sq, &wr), UW_E_NOMEM);
}

/* A slot whose completion has not been polled is not free; those before it neither. */
static void a_slot_is_free_once_its_completion_is_polled(void **state)
{
	struct sq sq = queue(3);
	struct uw_send_wr wr = send_of(NULL, 0);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_status(sq_post(&sq, &wr), UW_OK);
	sq_pushed(&sq); /* the second asked for one */
	atomic_store(&sq.head, 3);
	sq_free_unsignaled(&sq);
	assert_status(sq_post(&sq, &wr), UW_E_NOMEM);
	sq_polled(&sq, 2, 1);
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_status(sq_post(&sq, &wr), UW_E_NOMEM);
	/* the third did not ask: the next that is done sees to it */
	atomic_store(&sq.head, 4);
	sq_free_unsignaled(&sq);
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_status(sq_post(&sq, &wr), UW_E_NOMEM);
	/* never backwards */
	sq_polled(&sq, 1, 1);
	assert_status(sq_post(&sq, &wr), UW_E_NOMEM);
}

static void all_are_taken_or_none(void **state)
{
	struct sq sq = queue(3);
	struct uw_send_wr wr[4] = { send_of(NULL, 0), send_of(NULL, 0), send_of(NULL, 0),
				    send_of(NULL, 0) };

	(void)state;
	assert_status(sq_post_all(&sq, wr, 4), UW_E_NOMEM);
	assert_false(sq_ready(&sq));
	wr[2].opcode = 99;
	assert_status(sq_post_all(&sq, wr, 3), UW_E_INVAL);
	assert_false(sq_ready(&sq));
	assert_status(sq_post_all(&sq, wr, 2), UW_OK);
	assert_int_equal(sq.tail, 2);
	assert_status(sq_post_all(&sq, wr, 2), UW_E_NOMEM);
}

static void more_sges_than_agreed_are_refused(void **state)
{
	const struct uw_sge v[NODE_SGE + 1] = { { 0 } };
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(v, NODE_SGE + 1);

	(void)state;
	assert_status(sq_post(&sq, &wr), UW_E_INVAL);
	assert_false(sq_ready(&sq));
	wr.num_sge--;
	assert_status(sq_post(&sq, &wr), UW_OK);
}

/* The list may be shorter than it is said to be. Above INT_MAX are verbs' negative numbers. */
static void a_list_that_is_too_long_is_not_read(void **state)
{
	static const uint32_t numbers[] = { NODE_SGE + 1, 1000000, INT_MAX, UINT32_MAX };
	struct sq sq = queue(NODE_WR);
	const struct uw_sge *nowhere = (const struct uw_sge *)16;
	struct uw_send_wr wr;

	(void)state;
	for (unsigned i = 0; i < COUNT(numbers); i++) {
		wr = send_of(nowhere, numbers[i]);
		assert_status(sq_post(&sq, &wr), UW_E_INVAL);
		assert_status(sq_post_all(&sq, &wr, 1), UW_E_INVAL);
	}
	wr.flags = UW_SEND_INLINE;
	assert_status(sq_post(&sq, &wr), UW_E_INVAL);
	assert_status(sq_post_all(&sq, &wr, 1), UW_E_INVAL);
	assert_false(sq_ready(&sq));
}

/* RFC 5041 §5.1: a message is shorter than 2^32 octets. Here it is so by half, as the port says. */
static void a_message_has_less_than_2_gib(void **state)
{
	struct uw_sge v[] = { { 1, UW_MSG_MAX, 1 }, { 1, 1, 1 } };
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(v, 2);

	(void)state;
	assert_status(sq_post(&sq, &wr), UW_E_LEN);
	wr.opcode = UW_WR_RDMA_READ;
	assert_status(sq_post(&sq, &wr), UW_E_LEN);
	wr.num_sge = 1;
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_int_equal(sq_at(&sq, 0)->length, UW_MSG_MAX);
	v[0].length = UINT32_MAX;
	assert_status(sq_post(&sq, &wr), UW_E_LEN);
}

/* The octets are taken with the call; the program may reuse its memory at once, and no lkey is
 * needed. */
static void inline_data_is_copied(void **state)
{
	char a[] = "in", b[] = "line";
	struct uw_sge v[] = { { to_of(a), 2, 0 }, { 0, 0, 0 }, { to_of(b), 4, 0 } };
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(v, 3);

	(void)state;
	wr.flags = UW_SEND_INLINE;
	assert_status(sq_post(&sq, &wr), UW_OK);
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	assert_memory_equal(sqe_inline(sq_at(&sq, 0)), "inline", 6);
	assert_int_equal(sq_at(&sq, 0)->length, 6);
}

/* All that have octets to take along. */
static void what_may_be_inline(void **state)
{
	static const unsigned ops[] = { UW_WR_SEND, UW_WR_SEND_WITH_INV, UW_WR_SEND_WITH_IMM,
					UW_WR_RDMA_WRITE, UW_WR_RDMA_WRITE_WITH_IMM };
	char octets[] = "octets";
	const struct uw_sge v = sge_of(octets, 6, 0);
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(&v, 1);

	(void)state;
	wr.flags = UW_SEND_INLINE;
	for (uint32_t i = 0; i < COUNT(ops); i++) {
		wr.opcode = ops[i];
		assert_status(sq_post(&sq, &wr), UW_OK);
		assert_memory_equal(sqe_inline(sq_at(&sq, i)), "octets", 6);
	}
}

static void inline_data_has_a_limit(void **state)
{
	uint8_t big[NODE_INLINE + 1] = { 0 };
	struct uw_sge v[8];
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(v, 1);

	(void)state;
	wr.flags = UW_SEND_INLINE;
	v[0] = sge_of(big, NODE_INLINE + 1, 0);
	assert_status(sq_post(&sq, &wr), UW_E_LEN);
	v[0].length--;
	assert_status(sq_post(&sq, &wr), UW_OK);
	/* the list itself is not kept, so it may be longer than others */
	for (unsigned i = 0; i < 8; i++)
		v[i] = sge_of(big + i, 1, 0);
	wr.num_sge = 8;
	assert_status(sq_post(&sq, &wr), UW_OK);
}

/* A Read has no octets to take along. */
static void a_read_is_not_inline(void **state)
{
	uint8_t b[4] = { 0 };
	const struct uw_sge v = sge_of(b, 4, 0);
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(&v, 1);

	(void)state;
	wr.opcode = UW_WR_RDMA_READ;
	wr.flags = UW_SEND_INLINE;
	assert_status(sq_post(&sq, &wr), UW_E_INVAL);
}

static void sig_all_signals_all(void **state)
{
	struct sq sq = queue(NODE_WR);
	struct uw_send_wr wr = send_of(NULL, 0);

	(void)state;
	assert_status(sq_post(&sq, &wr), UW_OK);
	sq.sig_all = true;
	assert_status(sq_post(&sq, &wr), UW_OK);
	assert_int_equal(sq_at(&sq, 0)->flags & UW_SEND_SIGNALED, 0);
	assert_int_equal(sq_at(&sq, 1)->flags & UW_SEND_SIGNALED, UW_SEND_SIGNALED);
}

static void a_slot_holds_what_it_must(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		for (uint32_t inl = 0; inl < 300; inl += 17) {
			uint32_t size = sq_slot_size(n, inl);

			assert_true(size >= sizeof(struct sqe) + n * sizeof(struct uw_sge));
			assert_true(size >= sizeof(struct sqe) + inl);
			assert_int_equal(size % 64, 0);
		}
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_request_is_copied_in),
	cmocka_unit_test(opcodes_that_are_not_known_are_refused),
	cmocka_unit_test(an_atomic_needs_8_octets),
	cmocka_unit_test(depth_is_the_limit),
	cmocka_unit_test(more_sges_than_agreed_are_refused),
	cmocka_unit_test(a_list_that_is_too_long_is_not_read),
	cmocka_unit_test(a_message_has_less_than_2_gib),
	cmocka_unit_test(inline_data_is_copied),
	cmocka_unit_test(what_may_be_inline),
	cmocka_unit_test(inline_data_has_a_limit),
	cmocka_unit_test(a_read_is_not_inline),
	cmocka_unit_test(sig_all_signals_all),
	cmocka_unit_test(a_slot_holds_what_it_must),
	cmocka_unit_test(a_slot_is_free_once_its_completion_is_polled),
	cmocka_unit_test(all_are_taken_or_none),
};

UWTEST_MAIN(tests)
