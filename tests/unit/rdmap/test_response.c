/* SPDX-License-Identifier: BSD-3-Clause */
/* Inbound Read Responses, put together by hand. */
#include "peer.h"
#include "uwtest.h"

static uint8_t memory[4096];

/* A peer with `memory` registered; returns its STag. */
static uint32_t with_memory(struct peer *p, unsigned rights)
{
	memset(memory, 0, sizeof(memory));
	peer_init(p, PEER_READS, PEER_READS);
	return arena_add(&p->mem, memory, sizeof(memory), rights);
}

static uw_status rx(struct peer *p, struct ulpdu u)
{
	return peer_rx(p, &u);
}

static bool untouched(void)
{
	for (size_t i = 0; i < sizeof(memory); i++) {
		if (memory[i])
			return false;
	}
	return true;
}

/* Ask for n octets to memory at `at`. */
static void ask(struct peer *p, uint32_t stag, size_t at, size_t n)
{
	static struct uw_sge v[PEER_READS];
	struct uw_sge *e = &v[p->s.orq.count];
	struct mem_sgl sink;

	*e = sge_of(memory + at, n, stag);
	sink = sgl_of(e, 1);
	assert_status(rdmap_read(&p->s, &sink, 0x99, 0x1000), UW_OK);
	peer_segment(p, 100);
}

/* RFC 5040 §5.2: placed at the sink; done with the last segment. */
static void a_response_fills_the_sink(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	unsigned more = CTRL_READ_RESPONSE & ~CTRL_LAST;

	(void)state;
	ask(&p, s, 50, 10);
	assert_status(rx(&p, ulpdu_tagged(more, PEER_SINK, 0, "abcdef", 6)), UW_OK);
	assert_int_equal(p.reads_done, 0);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 6, "ghij", 4)), UW_OK);
	assert_int_equal(p.reads_done, 1);
	assert_memory_equal(memory + 50, "abcdefghij", 11);
	assert_int_equal(p.delivered, 0);
}

/* RFC 5040 §5.2: Responses come in the order of the Requests. */
static void responses_belong_to_the_oldest_read(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	ask(&p, s, 0, 4);
	ask(&p, s, 4, 4);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK + 1, 0, "wxyz", 4)),
		      UW_E_DDP_STAG);
	assert_true(untouched());
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, "abcd", 4)), UW_OK);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK + 1, 0, "wxyz", 4)), UW_OK);
	assert_int_equal(p.reads_done, 2);
	assert_memory_equal(memory, "abcdwxyz", 9);
}

/* RFC 5040 §5.2, RFC 5041 §7.2: what no Read asked for is refused. */
static void a_response_that_was_not_asked_for_is_refused(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL);

	(void)state;
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, s, to_of(memory), "x", 1)),
		      UW_E_RDMAP_OPCODE);
	ask(&p, s, 0, 4);
	/* not even to memory that may be written by an RDMA Write */
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, s, to_of(memory), "x", 1)),
		      UW_E_DDP_STAG);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, 0, 0, "x", 1)), UW_E_DDP_STAG);
	assert_true(untouched());
	assert_int_equal(p.reads_done, 0);
}

/* RFC 5040 §5.2: there is no answer before the question has been sent, guessed as it may be; one
 * that was sent before is answered all the same. */
static void an_answer_before_the_question_is_refused(void **state)
{
	struct uw_sge e;
	struct mem_sgl sink;
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	ask(&p, s, 0, 4);
	e = sge_of(memory + 4, 4, s);
	sink = sgl_of(&e, 1);
	assert_status(rdmap_read(&p.s, &sink, 0x99, 0x1000), UW_OK);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, "1234", 4)), UW_OK);
	assert_int_equal(p.reads_done, 1);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK + 1, 0, "5678", 4)),
		      UW_E_RDMAP_OPCODE);
	assert_int_equal(p.reads_done, 1);
	assert_memory_equal(memory, "1234\0\0\0\0", 8);
	peer_segment(&p, 100);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK + 1, 0, "5678", 4)), UW_OK);
	assert_int_equal(p.reads_done, 2);
}

/* RFC 5041 §5.2: to the octet. */
static void a_response_stays_inside_its_sink(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	ask(&p, s, 0, 4);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, "12345", 5)),
		      UW_E_DDP_BOUNDS);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 4, "1", 1)),
		      UW_E_DDP_BOUNDS);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, UINT64_MAX, "12", 2)),
		      UW_E_DDP_WRAP);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, UINT64_MAX - 1, "1", 1)),
		      UW_E_DDP_BOUNDS);
	assert_true(untouched());
}

/* A Response that ends before all octets are there is no answer. */
static void a_response_that_is_too_short_is_an_error(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	ask(&p, s, 0, 4);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, "123", 3)),
		      UW_E_RDMAP_STREAM_CATASTROPHIC);
	assert_int_equal(p.reads_done, 0);

	s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	ask(&p, s, 0, 4);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, NULL, 0)),
		      UW_E_RDMAP_STREAM_CATASTROPHIC);
	assert_int_equal(p.reads_done, 0);
}

/* RFC 5040 §5.2, RFC 5041 §5.2: a segment of a Response, too, begins where the one before it ended.
 */
static void a_response_out_of_its_place_is_refused(void **state)
{
	struct peer p;
	uint32_t s;

	(void)state;
	for (uint64_t to = 0; to <= 8; to++) {
		bool right = to == 4;

		s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
		ask(&p, s, 0, 12);
		assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE & ~CTRL_LAST, PEER_SINK, 0,
						  "abcd", 4)),
			      UW_OK);
		assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE & ~CTRL_LAST, PEER_SINK, to,
						  "efgh", 4)),
			      right ? UW_OK : UW_E_DDP_BOUNDS);
		/* as many octets as were asked for, with what is at 4 missing unless it came */
		if (right)
			assert_status(
				rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 8, "ijkl", 4)),
				UW_OK);
		assert_int_equal(p.reads_done, right);
	}
}

/* RFC 5040 §5.2, RFC 5041 §5.2: a Response of no octets: STag and TO may be anything. */
static void a_response_of_nothing_answers_a_read_of_nothing(void **state)
{
	const struct mem_sgl none = { .pd = ARENA_PD };
	struct peer p;

	(void)state;
	with_memory(&p, 0);
	assert_status(rdmap_read(&p.s, &none, 0, 0), UW_OK);
	peer_segment(&p, 100);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, 0xdeadbeef, 77, NULL, 0)), UW_OK);
	assert_int_equal(p.reads_done, 1);
}

static void a_sink_with_a_bad_sge_is_our_error(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL & ~UW_ACCESS_LOCAL_WRITE);

	(void)state;
	ask(&p, s, 0, 4);
	assert_status(rx(&p, ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, "1234", 4)), UW_E_LKEY);
	assert_true(untouched());
	assert_int_equal(p.reads_done, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_response_fills_the_sink),
	cmocka_unit_test(responses_belong_to_the_oldest_read),
	cmocka_unit_test(a_response_that_was_not_asked_for_is_refused),
	cmocka_unit_test(an_answer_before_the_question_is_refused),
	cmocka_unit_test(a_response_stays_inside_its_sink),
	cmocka_unit_test(a_response_that_is_too_short_is_an_error),
	cmocka_unit_test(a_response_out_of_its_place_is_refused),
	cmocka_unit_test(a_response_of_nothing_answers_a_read_of_nothing),
	cmocka_unit_test(a_sink_with_a_bad_sge_is_our_error),
};

UWTEST_MAIN(tests)
