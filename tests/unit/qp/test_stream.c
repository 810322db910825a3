/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets: what goes into a TCP segment and when, what comes out of any. */
#include "node.h"
#include "pieces.h"
#include "qp/qp.h"
#include "ulpdu.h"
#include "vectors.h"

static struct node a, b;

static void pair_agreed(const struct mpa_agreed *agreed)
{
	struct prng r = { 25 };

	node_init(&a, 1, NULL);
	node_init(&b, 2, NULL);
	prng_fill(&r, a.m, sizeof(a.m));
	nodes_start(&a, &b, agreed);
}

static void pair(void)
{
	const struct mpa_agreed agreed = node_agreed();

	pair_agreed(&agreed);
}

/* One segment of n, taken apart: the control words of its FPDUs. */
struct segment {
	uint8_t p[9000];
	size_t size;
	unsigned fpdus, ctrl[20], len[20];
};

static struct segment segment(struct node *n, size_t room)
{
	struct segment s;
	size_t at = 0;

	memset(&s, 0, sizeof(s));
	s.size = qp_tx(&n->qp, s.p, room);
	while (at < s.size) {
		size_t len = octets(s.p + at, 2);

		assert_in_range(s.fpdus, 0, 19);
		s.len[s.fpdus] = (unsigned)len;
		s.ctrl[s.fpdus++] = (unsigned)octets(s.p + at + 2, 2);
		at += mpa_fpdu_size(len);
	}
	assert_int_equal(at, s.size); /* whole FPDUs only */
	return s;
}

static uw_status give(struct node *n, const void *p, size_t size)
{
	const struct uw_span one = { p, size };
	size_t used;
	uw_status st = qp_rx(&n->qp, uw_rope_of(&one), &used);

	assert_int_equal(used, size);
	return st;
}

static void open_gate(void)
{
	node_post(&a, 0, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 0, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
}

/* ---- packing ----------------------------------------------------------------------------- */

/* RFC 5044 §5: several whole FPDUs may share a segment. */
static void small_messages_share_a_segment(void **state)
{
	struct segment s;

	(void)state;
	pair();
	for (unsigned i = 0; i < 5; i++)
		node_post(&a, i,
			  node_wr_to(&a, i & 1 ? UW_WR_SEND : UW_WR_RDMA_WRITE, 0, 10 + i, &b, 0));
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(s.ctrl[i], i & 1 ? CTRL_SEND : CTRL_WRITE);
		assert_int_equal(s.len[i], (i & 1 ? 18 : 14) + 10 + i);
	}
	assert_false(qp_tx_prepare(&a.qp));
}

/* A message that does not fit behind others begins the next segment, whole; it is never cut to fill
 * this one. */
static void a_message_is_not_cut_to_fill(void **state)
{
	struct segment s;

	(void)state;
	pair();
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 700));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 701));
	node_post(&a, 3, node_wr(&a, UW_WR_SEND, 0, 20));
	/* 724 octets, then 724 are left: a ULPDU of 719 is one octet too many */
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 1);
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 2);
	assert_int_equal(s.len[0], 719);

	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 700));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 700));
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 2);
	assert_int_equal(s.size, NODE_ROOM);
}

/* RFC 5044 §4.5: a long message fills its segments; its end leaves room for what follows. */
static void a_long_message_fills_its_segments(void **state)
{
	struct segment s;

	(void)state;
	pair();
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 2 * 1428 + 100, &b, 0));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 20));
	for (unsigned i = 0; i < 2; i++) {
		s = segment(&a, NODE_ROOM);
		assert_int_equal(s.fpdus, 1);
		assert_int_equal(s.size, NODE_ROOM);
		assert_int_equal(s.len[0], mpa_mulpdu(NODE_ROOM, false));
		assert_int_equal(s.ctrl[0], CTRL_WRITE & ~CTRL_LAST);
	}
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 2);
	assert_int_equal(s.len[0], 14 + 100);
	assert_int_equal(s.ctrl[0], CTRL_WRITE);
	assert_int_equal(s.ctrl[1], CTRL_SEND);
}

/* RFC 5044 §5: for every room, no segment is larger than it; all arrives. */
static void segments_keep_to_their_room(void **state)
{
	(void)state;
	for (size_t room = 140; room < 9000; room += room < 200 ? 1 : 731) {
		pair();
		node_post_recv(&b, 50, 10000, 5000);
		node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 100, 4999, &b, 77));
		node_post(&a, 2, node_wr(&a, UW_WR_SEND, 6000, 4321));
		assert_status(node_carry(&a, &b, room), UW_OK);
		assert_memory_equal(b.m + 77, a.m + 100, 4999);
		assert_memory_equal(b.m + 10000, a.m + 6000, 4321);
		assert_int_equal(node_wc(&b.rcq, 50, UW_WC_SUCCESS).byte_len, 4321);
	}
}

/* Not even a header fits: nothing is sent, and nothing is lost. */
static void a_room_that_is_too_small_waits(void **state)
{
	uint8_t seg[32];

	(void)state;
	pair();
	node_post_recv(&b, 50, 0, 100);
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	for (size_t room = 0; room <= 24; room++)
		assert_int_equal(qp_tx(&a.qp, seg, room), 0);
	assert_true(qp_tx_prepare(&a.qp));
	nodes_run(&a, &b);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
}

/* One that takes several segments begins where there is room, if it is a quarter of a segment. */
static void a_long_message_begins_behind_another(void **state)
{
	struct segment s;

	(void)state;
	pair();
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 1000));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 3000));
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.size, NODE_ROOM);
	assert_int_equal(s.ctrl[1] & CTRL_LAST, 0);
	while (segment(&a, NODE_ROOM).size)
		;
	/* 1100 octets and what goes around them leave less than that quarter */
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 1100));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 3000));
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 1);
}

/* RFC 5040 §4.4, §4.8: a Read Request is one segment, and so is a Terminate: they wait for room. */
static void a_message_of_headers_is_not_cut(void **state)
{
	uint8_t seg[64];

	(void)state;
	pair();
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
	for (size_t room = 0; room < 52; room++)
		assert_int_equal(qp_tx(&a.qp, seg, room), 0);
	assert_int_equal(qp_tx(&a.qp, seg, 52), 52);
	qp_fail(&a.qp, UW_E_MPA_CRC);
	for (size_t room = 0; room < 28; room++)
		assert_int_equal(qp_tx(&a.qp, seg, room), 0);
	assert_int_equal(qp_tx(&a.qp, seg, 28), 28);
}

static void inline_and_lists_are_sent(void **state)
{
	struct uw_sge v[NODE_SGE];
	struct uw_send_wr wr = {
		.opcode = UW_WR_SEND, .sg_list = v, .num_sge = 2, .flags = UW_SEND_INLINE
	};
	char word[] = "word";

	(void)state;
	pair();
	node_post_recv(&b, 50, 0, 100);
	node_post_recv(&b, 51, 100, 100);
	v[0] = sge_of(word, 4, 0);
	v[1] = sge_of(word, 2, 0);
	node_post(&a, 1, wr);
	memset(word, 0, sizeof(word));
	wr.flags = 0;
	wr.num_sge = NODE_SGE;
	for (unsigned i = 0; i < NODE_SGE; i++)
		v[i] = node_sge(&a, 1000 * i, i);
	node_post(&a, 2, wr);
	nodes_run(&a, &b);
	assert_memory_equal(b.m, "wordwo", 7);
	assert_memory_equal(b.m + 100, a.m + 1000, 1);
	assert_memory_equal(b.m + 101, a.m + 2000, 2);
	assert_memory_equal(b.m + 103, a.m + 3000, 3);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	assert_int_equal(node_wc(&b.rcq, 51, UW_WC_SUCCESS).byte_len, 6);
}

/* RFC 5040 §4.1, §5.3: a Send with Invalidate names its STag. */
static void a_send_with_invalidate_names_its_stag(void **state)
{
	struct uw_send_wr wr;
	struct segment s;

	(void)state;
	pair();
	wr = node_wr(&a, UW_WR_SEND_WITH_INV, 0, 4);
	wr.imm_or_inv = 0x01020304;
	node_post(&a, 1, wr);
	wr.flags = UW_SEND_SOLICITED;
	node_post(&a, 2, wr);
	wr.opcode = UW_WR_SEND;
	node_post(&a, 3, wr);
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.ctrl[0], CTRL_SEND_INV);
	assert_int_equal(octets(s.p + 4, 4), 0x01020304);
	assert_int_equal(s.ctrl[1], CTRL_SEND_SE_INV);
	assert_int_equal(s.ctrl[2], CTRL_SEND_SE);
}

/* ---- who may speak ----------------------------------------------------------------------- */

/* RFC 5044 §7.1.2: the responder is silent until the first FPDU has come whole and good. */
static void the_responder_waits_for_the_first_fpdu(void **state)
{
	struct segment s;

	(void)state;
	pair();
	node_post_recv(&a, 50, 0, 100);
	node_post_recv(&b, 60, 0, 100);
	node_post(&b, 1, node_wr(&b, UW_WR_SEND, 0, 10));
	assert_false(qp_tx_prepare(&b.qp));
	assert_int_equal(qp_tx(&b.qp, b.scratch, NODE_ROOM), 0);
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 10));
	s = segment(&a, NODE_ROOM);
	for (size_t i = 0; i < s.size; i++) {
		const struct uw_span part = { s.p, i };
		size_t used;

		assert_status(qp_rx(&b.qp, uw_rope_of(&part), &used), UW_OK);
		assert_int_equal(used, 0);
		assert_false(qp_tx_prepare(&b.qp));
	}
	assert_status(give(&b, s.p, s.size), UW_OK);
	assert_true(qp_tx_prepare(&b.qp));
	nodes_run(&a, &b);
	node_wc(&a.rcq, 50, UW_WC_SUCCESS);
	node_wc(&b.rcq, 60, UW_WC_SUCCESS);
}

/* RFC 5044 §7.1.2: a first FPDU that is bad opens nothing, so not even a Terminate goes out. */
static void a_bad_first_fpdu_leaves_the_responder_silent(void **state)
{
	struct segment s;

	(void)state;
	pair();
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 10));
	s = segment(&a, NODE_ROOM);
	s.p[s.size - 1] ^= 1;
	assert_status(give(&b, s.p, s.size), UW_E_MPA_CRC);
	assert_int_equal(b.qp.state, UW_QPS_ERR);
	assert_false(qp_tx_prepare(&b.qp));
	assert_int_equal(qp_tx(&b.qp, s.p, NODE_ROOM), 0);
}

/* RFC 5044 §7.1.2: the initiator may speak at once. */
static void the_initiator_does_not_wait(void **state)
{
	(void)state;
	pair();
	assert_false(qp_tx_prepare(&a.qp));
	node_post(&a, 1, node_wr(&a, UW_WR_SEND, 0, 10));
	assert_true(qp_tx_prepare(&a.qp));
}

/* RFC 6581 §9.2: the RTR goes before anything that was posted, opens the responder's half, and
 * neither program hears of it. */
static void the_rtr_goes_first(void **state)
{
	static const struct {
		enum mpa_rtr rtr;
		unsigned ctrl;
	} rows[] = {
		{ MPA_RTR_SEND, CTRL_SEND },
		{ MPA_RTR_WRITE, CTRL_WRITE },
		{ MPA_RTR_READ, CTRL_READ_REQUEST },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mpa_agreed agreed = node_agreed();
		struct uw_send_wr wr;
		struct segment s;

		agreed.p2p = true;
		agreed.rtr = rows[i].rtr;
		pair_agreed(&agreed);
		node_post_recv(&a, 50, 0, 100);
		node_post_recv(&b, 60, 0, 100);
		node_post(&b, 1, node_wr(&b, UW_WR_SEND, 0, 10));
		wr = node_wr(&a, UW_WR_SEND, 0, 10);
		wr.flags = UW_SEND_SIGNALED;
		node_post(&a, 2, wr);
		assert_true(qp_tx_prepare(&a.qp));
		s = segment(&a, 52);
		assert_int_equal(s.fpdus, 1);
		assert_int_equal(s.ctrl[0], rows[i].ctrl);
		assert_no_wc(&a.scq);
		assert_status(give(&b, s.p, s.size), UW_OK);
		assert_true(qp_tx_prepare(&b.qp));
		assert_no_wc(&b.rcq);
		nodes_run(&a, &b);
		node_wc(&a.rcq, 50, UW_WC_SUCCESS);
		node_wc(&b.rcq, 60, UW_WC_SUCCESS);
		node_wc(&a.scq, 2, UW_WC_SUCCESS);
		assert_no_wc(&a.scq);
		assert_no_wc(&b.rcq);
	}
}

/* RFC 6581 §9.2, §8: no kind in common: the one message of the stream is the Terminate. */
static void without_a_common_rtr_only_the_terminate_goes(void **state)
{
	struct mpa_agreed agreed = node_agreed();
	struct segment s;

	(void)state;
	agreed.p2p = true;
	agreed.rtr = MPA_RTR_NONE;
	pair_agreed(&agreed);
	assert_false(qp_tx_prepare(&a.qp));
	qp_fail(&a.qp, UW_E_MPA_RTR);
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 1);
	assert_int_equal(s.ctrl[0], CTRL_TERMINATE);
	assert_int_equal(octets(s.p + 20, 4), 0x20070000);
	assert_status(give(&b, s.p, s.size), UW_E_TERMINATED);
	assert_int_equal(b.qp.peer_term.code, 7);
}

/* ---- order ------------------------------------------------------------------------------- */

/* RFC 5040 §5.2: reads may be overtaken, unless the fence says no. */
static void a_fence_waits_for_reads(void **state)
{
	struct uw_send_wr wr;
	struct segment s;

	(void)state;
	pair();
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_WRITE, 100, 10, &b, 100));
	wr = node_wr_to(&a, UW_WR_RDMA_WRITE, 200, 10, &b, 200);
	wr.flags = UW_SEND_FENCE;
	node_post(&a, 3, wr);
	node_post(&a, 4, node_wr_to(&a, UW_WR_RDMA_WRITE, 300, 10, &b, 300));
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 2);
	assert_int_equal(s.ctrl[0], CTRL_READ_REQUEST);
	assert_false(qp_tx_prepare(&a.qp));
	assert_status(give(&b, s.p, s.size), UW_OK);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_OK);
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 2);
}

/* RFC 5040 §5.2, RFC 6581 §9.1: with ORD reads outstanding the next one waits, and what was posted
 * behind it (RFC 5040 §5.5: order). */
static void a_read_beyond_ord_waits(void **state)
{
	struct segment s;

	(void)state;
	pair();
	for (unsigned i = 0; i <= NODE_READS; i++)
		node_post(&a, i, node_wr_to(&a, UW_WR_RDMA_READ, 100 * i, 10, &b, 0));
	node_post(&a, 9, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 100));
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, NODE_READS);
	assert_false(qp_tx_prepare(&a.qp));
	assert_status(give(&b, s.p, s.size), UW_OK);
	/* one Response lets one go, and the Write behind it */
	s = segment(&b, 40);
	assert_int_equal(s.fpdus, 1);
	assert_status(give(&a, s.p, s.size), UW_OK);
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 2);
	assert_int_equal(s.ctrl[0], CTRL_READ_REQUEST);
	assert_int_equal(s.ctrl[1], CTRL_WRITE);
}

/* Requests and Responses take turns, message by message, so neither starves. */
static void requests_and_responses_take_turns(void **state)
{
	struct segment s;

	(void)state;
	pair();
	for (unsigned i = 0; i < NODE_READS; i++)
		node_post(&a, i, node_wr_to(&a, UW_WR_RDMA_READ, 100 * i, 10, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	for (unsigned i = 0; i < NODE_READS; i++)
		node_post(&b, i, node_wr_to(&b, UW_WR_RDMA_WRITE, 0, 20, &a, 1000));
	s = segment(&b, NODE_ROOM);
	assert_int_equal(s.fpdus, 2 * NODE_READS);
	for (unsigned i = 1; i < s.fpdus; i++)
		assert_int_not_equal(s.ctrl[i], s.ctrl[i - 1]);
}

/* RFC 5040 §5.5: a Response is sent even when the next request has to wait. */
static void a_waiting_request_does_not_hold_up_responses(void **state)
{
	struct uw_send_wr wr;
	struct segment s;

	(void)state;
	pair();
	open_gate();
	node_post(&b, 1, node_wr_to(&b, UW_WR_RDMA_READ, 0, 10, &a, 0));
	wr = node_wr(&b, UW_WR_SEND, 0, 10);
	wr.flags = UW_SEND_FENCE;
	node_post(&b, 2, wr);
	s = segment(&b, NODE_ROOM);
	assert_int_equal(s.fpdus, 1);
	node_post(&a, 3, node_wr_to(&a, UW_WR_RDMA_READ, 0, 10, &b, 0));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	s = segment(&b, NODE_ROOM);
	assert_int_equal(s.fpdus, 1);
	assert_int_equal(s.ctrl[0], CTRL_READ_RESPONSE);
}

/* ---- receive ----------------------------------------------------------------------------- */

/* RFC 5044 §5: octet by octet, each FPDU is taken when it is whole, and only then. */
static void octets_may_come_one_by_one(void **state)
{
	struct segment s;
	size_t from = 0;

	(void)state;
	pair();
	for (unsigned i = 0; i < 3; i++) {
		node_post_recv(&b, 50 + i, 100 * i, 100);
		node_post(&a, i, node_wr(&a, UW_WR_SEND, 1000 * i, 30 + i));
	}
	s = segment(&a, NODE_ROOM);
	assert_int_equal(s.fpdus, 3);
	for (size_t to = 1; to <= s.size; to++) {
		const struct uw_span part = { s.p + from, to - from };
		size_t used;

		assert_status(qp_rx(&b.qp, uw_rope_of(&part), &used), UW_OK);
		from += used;
	}
	assert_int_equal(from, s.size);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(node_wc(&b.rcq, 50 + i, UW_WC_SUCCESS).byte_len, 30 + i);
		assert_memory_equal(b.m + 100 * i, a.m + 1000 * i, 30 + i);
	}
}

/* RFC 5044 §8, RFC 5041 §7.1: after the error whatever comes is swallowed and changes nothing. */
static void after_an_error_everything_is_swallowed(void **state)
{
	struct segment s;

	(void)state;
	pair();
	open_gate();
	for (unsigned i = 0; i < 3; i++) {
		node_post_recv(&b, 50 + i, 100 * i, 100);
		node_post(&a, i, node_wr(&a, UW_WR_SEND, 0, 30));
	}
	s = segment(&a, NODE_ROOM);
	s.p[s.size / 3 + 10] ^= 4;
	assert_status(give(&b, s.p, s.size), UW_E_MPA_CRC);
	node_wc(&b.rcq, 50, UW_WC_SUCCESS);
	node_wc(&b.rcq, 51, UW_WC_WR_FLUSH_ERR);
	node_wc(&b.rcq, 52, UW_WC_WR_FLUSH_ERR);
	assert_status(give(&b, s.p, 11), UW_OK);
	assert_no_wc(&b.rcq);
	/* RFC 5040 §5.4: Terminate, and nothing else */
	node_post(&b, 9, node_wr(&b, UW_WR_SEND, 0, 10));
	s = segment(&b, NODE_ROOM);
	assert_int_equal(s.fpdus, 1);
	assert_int_equal(octets(s.p + 20, 4), 0x20020000);
	assert_false(qp_tx_prepare(&b.qp));
	assert_status(give(&a, s.p, s.size), UW_E_TERMINATED);
	assert_false(qp_tx_prepare(&a.qp));
}

static void without_a_stream_octets_are_swallowed(void **state)
{
	(void)state;
	node_init(&a, 1, NULL);
	assert_status(give(&a, "octets", 6), UW_OK);
	assert_false(qp_tx_prepare(&a.qp));
}

/* ---- everything at once ------------------------------------------------------------------ */

/* Each node's memory: the upper half is only read from; in the lower half every outstanding Write
 * of the peer, Read of its own and receive has a place to itself. */
#define HALF	  (NODE_MEMORY / 2)
#define DEPTH	  8
#define WRITES_AT 0
#define READS_AT  (DEPTH * 768)
#define RECVS_AT  (DEPTH * 1536)

struct part {
	size_t src, len;
};

struct flow {
	struct node *n;
	uint8_t wire[400000]; /* what the other side has not taken yet */
	size_t have;
	unsigned sends, recvs, received, posted, completed;
	struct part op[DEPTH], sent[DEPTH], written[DEPTH];
};
static struct flow flow[2];

static void post_something(struct flow *f, struct flow *peer, struct prng *r)
{
	static const unsigned ops[] = { UW_WR_SEND, UW_WR_RDMA_WRITE, UW_WR_RDMA_READ };
	unsigned op = ops[prng_below(r, 3)], k = f->posted % DEPTH;
	struct part p = { .len = prng_below(r, op == UW_WR_SEND ? 512 : 768) };
	struct uw_send_wr wr;

	p.src = HALF + prng_below(r, (uint32_t)(HALF - p.len));
	if (f->posted - f->completed == DEPTH || (op == UW_WR_SEND && peer->recvs == f->sends))
		return;
	if (op == UW_WR_RDMA_READ)
		wr = node_wr_to(f->n, op, READS_AT + 768 * k, p.len, peer->n, p.src);
	else
		wr = node_wr_to(f->n, op, p.src, p.len, peer->n, WRITES_AT + 768 * k);
	wr.flags = UW_SEND_SIGNALED | (prng_below(r, 4) ? 0 : UW_SEND_FENCE);
	node_post(f->n, f->posted++, wr);
	f->op[k] = p;
	if (op == UW_WR_SEND)
		f->sent[f->sends++ % DEPTH] = p;
	if (op == UW_WR_RDMA_WRITE)
		f->written[k] = p;
}

static void move_some(struct flow *f, struct flow *peer, struct prng *r)
{
	size_t room = 200 + prng_below(r, 3000), take, used;
	struct pieces x;

	if (f->have + room < sizeof(f->wire))
		f->have += qp_tx(&f->n->qp, f->wire + f->have, room);
	take = f->have ? prng_below(r, (uint32_t)f->have + 1) : 0;
	x = pieces_random(f->wire, take, 2000, r);
	assert_status(qp_rx(&peer->n->qp, x.rope, &used), UW_OK);
	memmove(f->wire, f->wire + used, f->have - used);
	f->have -= used;
	pieces_free(&x);
}

static void reap_all(struct flow *f, struct flow *peer)
{
	struct uw_wc wc;

	while (cq_take(&f->n->scq, 1, &wc, NULL)) {
		unsigned k = f->completed++ % DEPTH;

		assert_int_equal(wc.status, UW_WC_SUCCESS);
		assert_int_equal(wc.wr_id, f->completed - 1);
		assert_int_equal(wc.byte_len, f->op[k].len);
		if (wc.opcode == UW_WC_RDMA_READ)
			assert_memory_equal(f->n->m + READS_AT + 768 * k, peer->n->m + f->op[k].src,
					    f->op[k].len);
	}
	while (cq_take(&f->n->rcq, 1, &wc, NULL)) {
		unsigned k = f->received++ % DEPTH;

		assert_int_equal(wc.status, UW_WC_SUCCESS);
		assert_int_equal(wc.wr_id, f->received - 1);
		assert_int_equal(wc.byte_len, peer->sent[k].len);
		assert_memory_equal(f->n->m + RECVS_AT + 512 * k, peer->n->m + peer->sent[k].src,
				    peer->sent[k].len);
	}
	for (; f->recvs - f->received < DEPTH; f->recvs++)
		node_post_recv(f->n, f->recvs, RECVS_AT + 512 * (f->recvs % DEPTH), 512);
}

static void expect_written(const struct flow *f, const struct flow *peer)
{
	for (unsigned k = 0; k < DEPTH; k++)
		assert_memory_equal(peer->n->m + WRITES_AT + 768 * k, f->n->m + f->written[k].src,
				    f->written[k].len);
}

/* Random requests in both directions at once over ropes in random pieces, with and without CRC and
 * markers, until all is done and in order (RFC 5040 §5.5). */
static void a_long_life(void **state)
{
	struct prng r = { 26 };

	(void)state;
	for (unsigned run = 0; run < 8; run++) {
		struct mpa_agreed agreed = node_agreed();
		unsigned idle = 0;

		agreed.crc = run & 1;
		agreed.tx_markers = run & 2;
		agreed.rx_markers = run & 4;
		pair_agreed(&agreed);
		prng_fill(&r, b.m, sizeof(b.m));
		memset(flow, 0, sizeof(flow));
		flow[0].n = &a;
		flow[1].n = &b;
		for (unsigned i = 0; idle < 200; i++) {
			struct flow *f = &flow[i & 1], *peer = &flow[~i & 1];

			reap_all(f, peer);
			if (i < 20000)
				post_something(f, peer, &r);
			move_some(f, peer, &r);
			idle = i < 20000 || f->have || f->posted != f->completed ? 0 : idle + 1;
			assert_true(i < 100000);
		}
		for (unsigned i = 0; i < 2; i++) {
			assert_true(flow[i].posted > 200);
			assert_int_equal(flow[i].posted, flow[i].completed);
			assert_int_equal(flow[i].have, 0);
			assert_int_equal(flow[i].sends, flow[!i].received);
			expect_written(&flow[i], &flow[!i]);
		}
		assert_int_equal(a.stats.payload_tx_bytes, b.stats.payload_rx_bytes);
		assert_int_equal(a.stats.mpa_tx_fpdus, b.stats.mpa_rx_fpdus);
		assert_int_equal(a.stats.mpa_rx_crc_errors + b.stats.mpa_rx_crc_errors, 0);
	}
}

/* ---- captures ---------------------------------------------------------------------------- */

/* What the captured initiator answered to the Read Request at line i: fills our memory with it. */
static void fill_from_responses(const struct vectors *x, size_t i, uint8_t *mem)
{
	uint64_t sink_to = octets(x->v[i].p + 24, 8);

	for (i++; i < x->n; i++) {
		const struct vector *v = &x->v[i];

		if (!vector_is(v, 0, ">") || (v->p[3] & 15) != RDMAP_READ_RESPONSE)
			continue;
		size_t at = octets(v->p + 8, 8) - sink_to, n = octets(v->p, 2) - 14;

		assert_true(at + n <= HALF);
		memcpy(mem + at, v->p + 16, n);
		if (v->p[2] & 0x40)
			return;
	}
	fail_msg("a Read Request without Response");
}

/* Register memory under the STag and at the TO that the FPDU names. */
static void register_at(uint32_t stag, uint64_t to, uint8_t *base)
{
	if (!mem_find(&a.mem.t, stag))
		arena_put(&a.mem, (struct mem_region){ .stag = stag,
						       .pd = ARENA_PD,
						       .base = base,
						       .to = to,
						       .len = HALF,
						       .rights = ARENA_ALL });
}

/* Linux siw as rping's server; its client's part is played by us. Every FPDU that we send is octet
 * for octet the one that siw sent in our place. */
static void converse(const char *file, bool crc)
{
	struct vectors x = vectors_read(file);
	struct mpa_agreed agreed = node_agreed();
	uint8_t out[NODE_ROOM];
	unsigned writes = 0, recvs = 0;

	agreed.crc = agreed.p2p = crc;
	agreed.rtr = crc ? MPA_RTR_WRITE : MPA_RTR_NONE;
	node_init(&a, 1, NULL);
	node_start(&a, true, &agreed);
	for (unsigned i = 0; i < 6; i++)
		node_post_recv(&a, i, 0, 16);
	for (size_t i = 2; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		unsigned op = v->p[3] & 15;

		if (vector_is(v, 0, "<")) {
			if (op == RDMAP_READ_REQUEST) {
				register_at((uint32_t)octets(v->p + 36, 4), octets(v->p + 40, 8),
					    a.m + HALF);
				fill_from_responses(&x, i, a.m + HALF);
			} else if (op == RDMAP_WRITE) {
				register_at((uint32_t)octets(v->p + 4, 4), octets(v->p + 8, 8),
					    a.m + 4096);
				writes++;
			}
			assert_status(give(&a, v->p, v->n), UW_OK);
			continue;
		}
		if (op == RDMAP_SEND) {
			memcpy(a.m + 16, v->p + 20, 16);
			node_post(&a, i, node_wr(&a, UW_WR_SEND, 16, 16));
		}
		assert_int_equal(qp_tx(&a.qp, out, sizeof(out)), v->n);
		assert_memory_equal(out, v->p, v->n);
	}
	assert_false(qp_tx_prepare(&a.qp));
	for (; recvs < 6; recvs++)
		assert_int_equal(node_wc(&a.rcq, recvs, UW_WC_SUCCESS).byte_len, 16);
	assert_true(writes >= 3);
	/* rping's server writes back what it has read */
	assert_memory_equal(a.m + 4096, a.m + HALF, 64);
	vectors_free(&x);
}

static void a_captured_conversation_without_crc(void **state)
{
	(void)state;
	converse("siw-rping.txt", false);
}

static void a_captured_conversation_with_crc_and_rtr(void **state)
{
	(void)state;
	converse("siw-rping-crc.txt", true);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(small_messages_share_a_segment),
	cmocka_unit_test(a_message_is_not_cut_to_fill),
	cmocka_unit_test(a_long_message_fills_its_segments),
	cmocka_unit_test(segments_keep_to_their_room),
	cmocka_unit_test(a_room_that_is_too_small_waits),
	cmocka_unit_test(a_long_message_begins_behind_another),
	cmocka_unit_test(a_message_of_headers_is_not_cut),
	cmocka_unit_test(inline_and_lists_are_sent),
	cmocka_unit_test(a_send_with_invalidate_names_its_stag),
	cmocka_unit_test(the_responder_waits_for_the_first_fpdu),
	cmocka_unit_test(a_bad_first_fpdu_leaves_the_responder_silent),
	cmocka_unit_test(the_initiator_does_not_wait),
	cmocka_unit_test(the_rtr_goes_first),
	cmocka_unit_test(without_a_common_rtr_only_the_terminate_goes),
	cmocka_unit_test(a_fence_waits_for_reads),
	cmocka_unit_test(a_read_beyond_ord_waits),
	cmocka_unit_test(requests_and_responses_take_turns),
	cmocka_unit_test(a_waiting_request_does_not_hold_up_responses),
	cmocka_unit_test(octets_may_come_one_by_one),
	cmocka_unit_test(after_an_error_everything_is_swallowed),
	cmocka_unit_test(without_a_stream_octets_are_swallowed),
	cmocka_unit_test(a_long_life),
	cmocka_unit_test(a_captured_conversation_without_crc),
	cmocka_unit_test(a_captured_conversation_with_crc_and_rtr),
};

UWTEST_MAIN(tests)
