/* SPDX-License-Identifier: BSD-3-Clause */
/* Several TCP segments that are filled at once, for a link that cuts them (doc/adr/0060). */
#include "node.h"
#include "qp/qp.h"
#include "ulpdu.h"
#include "vectors.h"

static struct node a, b;

static void pair(void)
{
	const struct mpa_agreed agreed = node_agreed();
	struct prng r = { 25 };

	node_init(&a, 1, NULL);
	node_init(&b, 2, NULL);
	prng_fill(&r, a.m, sizeof(a.m));
	nodes_start(&a, &b, &agreed);
}

static void give(struct node *n, const void *p, size_t size)
{
	const struct uw_span one = { p, size };
	size_t used;

	assert_status(qp_rx(&n->qp, uw_rope_of(&one), &used), UW_OK);
	assert_int_equal(used, size);
}

/* RFC 5044 §5: an FPDU is within one segment, also where several are filled at once. */
static void several_segments_are_filled_at_once(void **state)
{
	static uint8_t seg[9 * 1000];

	(void)state;
	for (size_t each = 140; each < 1000; each += each < 200 ? 1 : 137) {
		size_t n, room = sizeof(seg) / each * each;

		pair();
		node_post_recv(&b, 50, 10000, 5000);
		node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 100, 2999, &b, 77));
		node_post(&a, 2, node_wr(&a, UW_WR_SEND, 6000, 1321));
		while ((n = qp_tx_many(&a.qp, seg, room, each))) {
			for (size_t at = 0, end; at < n; at = end) {
				end = at + mpa_fpdu_size(octets(seg + at, 2));
				assert_int_equal(at / each, (end - 1) / each);
			}
			give(&b, seg, n);
		}
		assert_memory_equal(b.m + 77, a.m + 100, 2999);
		assert_memory_equal(b.m + 10000, a.m + 6000, 1321);
		assert_int_equal(node_wc(&b.rcq, 50, UW_WC_SUCCESS).byte_len, 1321);
	}
}

/* Only the last segment may be shorter: one that an FPDU does not fill up ends it. */
static void segments_filled_at_once_are_full(void **state)
{
	static uint8_t seg[4 * 500];

	(void)state;
	pair();
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 3000, &b, 0));
	assert_int_equal(qp_tx_many(&a.qp, seg, sizeof(seg), 500), sizeof(seg));
	pair();
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 3000, &b, 0));
	assert_int_equal(qp_tx_many(&a.qp, seg, 4 * 498, 498), 496);
}

static size_t of_two(size_t first, size_t second, size_t each)
{
	static uint8_t seg[8 * 1000];

	pair();
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, (uint32_t)first, &b, 0));
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, (uint32_t)second, &b, 0));
	return qp_tx_many(&a.qp, seg, sizeof(seg) / each * each, each);
}

/* A segment that is not full ends them. So the next message begins in what the last one left, be it
 * less than the quarter that a single segment asks for (test_stream.c). */
static void the_next_message_fills_up_the_last_segment(void **state)
{
	(void)state;
	/* 860 octets, 140 are left, of which MPA takes 6, and of the second message 120 go in */
	assert_int_equal(of_two(840, 4 * 980 + 120, 1000), 5 * 1000);
	/* one octet of the ULPDU too few */
	assert_int_equal(of_two(848, 4 * 980 + 120, 1000), 868);
	/* one that fits in a segment is not cut */
	assert_int_equal(of_two(500, 980, 1000), 520);
}

/* Of a message that nothing waits behind. */
static void what_is_left_is_counted_in_segments(void **state)
{
	static uint8_t seg[2 * 500];

	(void)state;
	pair();
	assert_int_equal(qp_tx_segments(&a.qp, 500), 0);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 3000, &b, 0));
	assert_true(qp_tx_prepare(&a.qp));
	/* 480 octets in each: 14 of the DDP header, 6 of MPA */
	assert_int_equal(qp_tx_segments(&a.qp, 500), 7);
	assert_int_equal(qp_tx_segments(&a.qp, 20), 0);
	assert_int_equal(qp_tx_many(&a.qp, seg, sizeof(seg), 500), sizeof(seg));
	assert_int_equal(qp_tx_segments(&a.qp, 500), 5);
	node_post(&a, 2, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 10, &b, 0));
	assert_int_equal(qp_tx_segments(&a.qp, 500), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(several_segments_are_filled_at_once),
	cmocka_unit_test(segments_filled_at_once_are_full),
	cmocka_unit_test(the_next_message_fills_up_the_last_segment),
	cmocka_unit_test(what_is_left_is_counted_in_segments),
};

UWTEST_MAIN(tests)
