/* SPDX-License-Identifier: BSD-3-Clause */
/* Inbound messages, put together by hand. */
#include "peer.h"
#include "pieces.h"
#include "uwtest.h"

static uint8_t memory[4096];

/* A peer with `memory` registered; returns its STag. */
static uint32_t with_memory(struct peer *p, unsigned rights)
{
	memset(memory, 0, sizeof(memory));
	peer_init(p, PEER_READS, PEER_READS);
	return arena_add(&p->mem, memory, sizeof(memory), rights);
}

static void post(struct peer *p, uint32_t stag, size_t at, size_t n)
{
	static struct uw_sge v[PEER_RECVS];
	struct uw_sge *e = &v[p->posted];
	struct mem_sgl sgl;

	*e = sge_of(memory + at, n, stag);
	sgl = sgl_of(e, 1);
	peer_post(p, &sgl);
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

/* ---- RDMA Write -------------------------------------------------------------------------- */

/* RFC 5040 §5.1: placed where STag and TO say; the ULP does not hear of it. */
static void a_write_is_placed_and_not_delivered(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL);
	uint64_t to = to_of(memory) + 100;

	(void)state;
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE & ~CTRL_LAST, s, to, "first ", 6)), UW_OK);
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE, s, to + 6, "second", 6)), UW_OK);
	assert_memory_equal(memory + 100, "first second", 12);
	assert_int_equal(memory[99] | memory[112], 0);
	assert_int_equal(p.delivered + p.reads_done + p.taken, 0);
	assert_int_equal(p.stats.rdmap_rx_messages, 1);
	assert_int_equal(p.stats.payload_rx_bytes, 12);
}

static void a_write_in_pieces_is_placed_whole(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL);
	struct prng r = { 18 };
	uint8_t data[1000];
	struct ulpdu u;

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		struct pieces x;

		prng_fill(&r, data, sizeof(data));
		u = ulpdu_tagged(CTRL_WRITE, s, to_of(memory) + i, data, sizeof(data));
		x = pieces_random(u.p, u.n, 300, &r);
		assert_status(rdmap_rx(&p.s, x.rope), UW_OK);
		assert_memory_equal(memory + i, data, sizeof(data));
		pieces_free(&x);
	}
}

/* RFC 5041 §5.2, RFC 5040 §5.1: a Write of no octets is not checked: any STag, any TO. */
static void a_write_of_nothing_is_not_checked(void **state)
{
	struct peer p;

	(void)state;
	with_memory(&p, 0);
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE, 0, 0, NULL, 0)), UW_OK);
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE, 0xdeadbeef, UINT64_MAX, NULL, 0)), UW_OK);
	assert_int_equal(p.stats.rdmap_rx_messages, 2);
}

/* RFC 5041 §5.2, §7.2: each check has its error, and nothing is placed. */
static void a_write_that_fails_a_check_is_not_placed(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL), other, dumb;
	uint64_t to = to_of(memory);

	(void)state;
	other = arena_put(&p.mem, (struct mem_region){ .stag = 0x0100,
						       .pd = ARENA_PD + 1,
						       .base = memory,
						       .to = to,
						       .len = 4096,
						       .rights = ARENA_ALL });
	dumb = arena_add(&p.mem, memory, 4096, UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_READ);
	const struct {
		uint32_t stag;
		uint64_t to;
		uw_status st;
	} rows[] = {
		{ s + 1, to, UW_E_DDP_STAG },	      { other, to, UW_E_DDP_STREAM },
		{ s, to + 4093, UW_E_DDP_BOUNDS },    { s, to - 1, UW_E_DDP_BOUNDS },
		{ s, UINT64_MAX - 2, UW_E_DDP_WRAP }, { dumb, to, UW_E_RDMAP_ACCESS },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE, rows[i].stag, rows[i].to, "data", 4)),
			      rows[i].st);
	p.s.remote_rights = UW_ACCESS_REMOTE_READ;
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE, s, to, "data", 4)), UW_E_RDMAP_ACCESS);
	assert_true(untouched());
	assert_int_equal(p.stats.rdmap_rx_messages, 0);
}

/* RFC 5042 §6.2.2: after deregistration no segment reaches the memory, be the message half way. */
static void a_write_stops_when_the_memory_goes(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL);
	uint64_t to = to_of(memory);

	(void)state;
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE & ~CTRL_LAST, s, to, "x", 1)), UW_OK);
	arena_drop(&p.mem, s);
	assert_status(rx(&p, ulpdu_tagged(CTRL_WRITE, s, to + 1, "y", 1)), UW_E_DDP_STAG);
	assert_int_equal(memory[1], 0);
}

/* ---- Send -------------------------------------------------------------------------------- */

/* RFC 5040 §5.3: each Send takes the next receive, and is delivered with its length, in order. */
static void sends_are_delivered_in_order(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	post(&p, s, 0, 10);
	post(&p, s, 10, 10);
	post(&p, s, 20, 10);
	assert_status(rx(&p, ulpdu_send(1, "0123456789", 10)), UW_OK);
	assert_status(rx(&p, ulpdu_send(2, "abc", 3)), UW_OK);
	assert_status(rx(&p, ulpdu_send(3, NULL, 0)), UW_OK);
	assert_int_equal(p.delivered, 3);
	assert_int_equal(p.taken, 3);
	assert_int_equal(p.got[0].length, 10);
	assert_int_equal(p.got[1].length, 3);
	assert_int_equal(p.got[2].length, 0);
	assert_memory_equal(memory, "0123456789abc\0\0\0\0\0\0\0\0", 20);
}

/* RFC 5041 §5.1, §5.3: delivered with the L segment; one receive for all segments. */
static void a_send_of_several_segments_is_delivered_once(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	unsigned more = CTRL_SEND & ~CTRL_LAST;

	(void)state;
	post(&p, s, 0, 100);
	assert_status(rx(&p, ulpdu_untagged(more, (const uint32_t[]){ 0, 1, 0 }, "abcd", 4)),
		      UW_OK);
	assert_status(rx(&p, ulpdu_untagged(more, (const uint32_t[]){ 0, 1, 4 }, "efgh", 4)),
		      UW_OK);
	assert_int_equal(p.delivered, 0);
	assert_int_equal(p.taken, 1);
	assert_status(rx(&p, ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 0, 1, 8 }, "ij", 2)),
		      UW_OK);
	assert_int_equal(p.delivered, 1);
	assert_int_equal(p.taken, 1);
	assert_int_equal(p.got[0].length, 10);
	assert_memory_equal(memory, "abcdefghij", 11);
	assert_int_equal(p.stats.rdmap_rx_messages, 1);
}

/* RFC 5040 §5.3: an event is what the two SE opcodes ask for. */
static void solicited_events_are_told(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	post(&p, s, 0, 10);
	post(&p, s, 0, 10);
	assert_status(rx(&p, ulpdu_send(1, "a", 1)), UW_OK);
	assert_status(rx(&p, ulpdu_untagged(CTRL_SEND_SE, (const uint32_t[]){ 0, 2, 0 }, "b", 1)),
		      UW_OK);
	assert_false(p.got[0].solicited);
	assert_true(p.got[1].solicited);
	assert_false(p.got[0].invalidated || p.got[1].invalidated);
}

/* RFC 5040 §4.1: the Invalidate STag field of the other opcodes is ignored. */
static void the_invalidate_field_of_a_send_is_ignored(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	struct ulpdu u = ulpdu_send(1, "a", 1);

	(void)state;
	post(&p, s, 0, 10);
	put_octets(u.p + 2, 4, s);
	assert_status(rx(&p, u), UW_OK);
	assert_false(p.got[0].invalidated);
	assert_non_null(mem_find(&p.mem.t, s));
}

/* RFC 5040 §5.3, §8.1.1: an STag of the whole protection domain cannot be invalidated by a peer; it
 * stays, and the Send is not delivered. */
static void remote_invalidation_is_refused(void **state)
{
	static const unsigned ctrl[] = { CTRL_SEND_INV, CTRL_SEND_SE_INV };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct peer p;
		uint32_t s = with_memory(&p, ARENA_ALL);
		struct ulpdu u = ulpdu_untagged(ctrl[i], (const uint32_t[]){ 0, 1, 0 }, "a", 1);

		post(&p, s, 0, 10);
		put_octets(u.p + 2, 4, s);
		assert_status(rx(&p, u), UW_E_RDMAP_NOT_INV);
		assert_int_equal(p.delivered, 0);
		assert_non_null(mem_find(&p.mem.t, s));
	}
}

/* RFC 5041 §7.2: no buffer for the message; so for a Send of no octets (RFC 5040 §5.3). */
static void a_send_without_a_receive_is_an_error(void **state)
{
	struct peer p;

	(void)state;
	with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	assert_status(rx(&p, ulpdu_send(1, "a", 1)), UW_E_DDP_NO_BUFFER);
	assert_status(rx(&p, ulpdu_send(1, NULL, 0)), UW_E_DDP_NO_BUFFER);
}

/* RFC 5041 §5.2, §5.3: TCP is in order, so a segment begins where the one before it ended: one that
 * leaves a hole, overlaps or comes again is refused, and the message is not delivered. */
static void a_segment_out_of_its_place_is_refused(void **state)
{
	struct peer p;
	uint32_t s;

	(void)state;
	for (uint32_t at = 0; at < 9; at++) {
		bool right = at == 4;

		s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
		post(&p, s, 0, 20);
		assert_status(rx(&p, ulpdu_untagged(CTRL_UNTAGGED | 3,
						    (const uint32_t[]){ 0, 1, 0 }, "abcd", 4)),
			      UW_OK);
		assert_status(rx(&p, ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 0, 1, at },
						    "efgh", 4)),
			      right ? UW_OK : UW_E_DDP_MO);
		assert_int_equal(p.delivered, right);
	}
	s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	post(&p, s, 0, 20);
	assert_status(rx(&p, ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 0, 1, 4 }, NULL, 0)),
		      UW_E_DDP_MO);
}

/* RFC 5041 §5.3: the octets of the second segment stand for the hole that the third one leaves: as
 * many came as the message has, and it is not whole all the same. */
static void a_repeated_segment_hides_no_hole(void **state)
{
	static const uint32_t mo[] = { 0, 0, 8 };
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	uw_status st = UW_OK;

	(void)state;
	post(&p, s, 0, 20);
	for (unsigned i = 0; i < COUNT(mo) && !st; i++)
		st = rx(&p, ulpdu_untagged(i == 2 ? CTRL_SEND : CTRL_SEND & ~CTRL_LAST,
					   (const uint32_t[]){ 0, 1, mo[i] }, "abcd", 4));
	assert_status(st, UW_E_DDP_MO);
	assert_int_equal(p.delivered, 0);
}

/* RFC 5041 §5.3, §7.2: to the octet; offset beyond the buffer, or message longer than it. */
static void a_send_stays_inside_its_buffer(void **state)
{
	static const struct {
		uint32_t mo;
		size_t n;
		uw_status st;
	} rows[] = {
		{ 0, 8, UW_OK },       { 0, 9, UW_E_DDP_TOO_LONG }, { 7, 1, UW_E_DDP_MO },
		{ 8, 1, UW_E_DDP_MO }, { 9, 1, UW_E_DDP_MO },	    { UINT32_MAX, 1, UW_E_DDP_MO },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct peer p;
		uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

		post(&p, s, 100, 8);
		assert_status(rx(&p, ulpdu_untagged(CTRL_SEND & ~CTRL_LAST,
						    (const uint32_t[]){ 0, 1, rows[i].mo },
						    "123456789", rows[i].n)),
			      rows[i].st);
		if (rows[i].st)
			assert_true(untouched());
	}
}

/* RFC 5041 §7.2: each segment fits, all of them together do not. */
static void a_send_that_grows_too_long_is_refused(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		struct peer p;
		uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

		post(&p, s, 100, 8);
		assert_status(
			rx(&p, ulpdu_untagged(CTRL_SEND & ~CTRL_LAST, (const uint32_t[]){ 0, 1, 0 },
					      "12345678", 9 - n)),
			UW_OK);
		assert_status(rx(&p, ulpdu_untagged(CTRL_SEND,
						    (const uint32_t[]){ 0, 1, (uint32_t)(9 - n) },
						    "abc", n)),
			      UW_E_DDP_TOO_LONG);
		assert_int_equal(p.delivered, 0);
		assert_int_equal(memory[108 - (n - 1)], 0);
	}
}

/* RFC 5041 §7.2: a receive without room takes only Sends of no octets. */
static void a_receive_of_nothing_takes_nothing(void **state)
{
	struct mem_sgl none = { .pd = ARENA_PD };
	struct peer p;

	(void)state;
	with_memory(&p, 0);
	peer_post(&p, &none);
	peer_post(&p, &none);
	assert_status(rx(&p, ulpdu_send(1, NULL, 0)), UW_OK);
	assert_int_equal(p.delivered, 1);
	assert_status(rx(&p, ulpdu_send(2, "a", 1)), UW_E_DDP_TOO_LONG);
}

/* A receive whose own SGE does not hold is our fault, not the peer's. */
static void a_receive_with_a_bad_sge_is_our_error(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_REMOTE_WRITE);

	(void)state;
	post(&p, s, 0, 10);
	assert_status(rx(&p, ulpdu_send(1, "a", 1)), UW_E_LKEY);
	assert_int_equal(p.delivered, 0);
	assert_true(untouched());
}

/* RFC 6581 §9.2: the Send that opens a peer-to-peer stream takes no receive and is not delivered;
 * it carries nothing, and the next one is an ordinary Send. */
static void the_rtr_send_is_invisible(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);

	(void)state;
	p.s.rtr_send = true;
	assert_status(rx(&p, ulpdu_send(1, "no", 2)), UW_E_DDP_TOO_LONG);

	s = with_memory(&p, UW_ACCESS_LOCAL_WRITE);
	p.s.rtr_send = true;
	post(&p, s, 0, 10);
	assert_status(rx(&p, ulpdu_send(1, NULL, 0)), UW_OK);
	assert_int_equal(p.taken + p.delivered, 0);
	assert_status(rx(&p, ulpdu_send(2, "a", 1)), UW_OK);
	assert_int_equal(p.taken, 1);
	assert_int_equal(p.delivered, 1);
}

/* ---- Read Request ------------------------------------------------------------------------ */

/* RFC 5040 §5.2: accepted, kept in order, never more than IRD. */
static void read_requests_are_kept_up_to_ird(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL);

	(void)state;
	assert_false(rdmap_response_due(&p.s));
	for (uint32_t i = 1; i <= PEER_READS; i++)
		assert_status(rx(&p, ulpdu_read_request(i, i, 10 * i, s, to_of(memory))), UW_OK);
	assert_true(rdmap_response_due(&p.s));
	assert_int_equal(p.s.irq.count, PEER_READS);
	assert_status(rx(&p, ulpdu_read_request(PEER_READS + 1, 9, 9, s, to_of(memory))),
		      UW_E_DDP_NO_BUFFER);
	for (uint32_t i = 1; i <= PEER_READS; i++) {
		struct ulpdu u;

		rdmap_respond(&p.s);
		u = peer_segment(&p, 1000);
		assert_int_equal(octets(u.p + 2, 4), i);
		assert_int_equal(u.n, 14 + 10 * i);
	}
	assert_false(rdmap_response_due(&p.s));
	assert_status(rx(&p, ulpdu_read_request(PEER_READS + 1, 9, 9, s, to_of(memory))), UW_OK);
}

/* RFC 6581 §9.1: an IRD of zero takes none at all. */
static void an_ird_of_zero_takes_no_read(void **state)
{
	struct peer p;

	(void)state;
	peer_init(&p, 0, 0);
	assert_status(rx(&p, ulpdu_read_request(1, 1, 0, 0, 0)), UW_E_DDP_NO_BUFFER);
}

/* RFC 5040 §5.2, §4.8: the source is checked before the Request is accepted. */
static void a_read_of_what_may_not_be_read_is_refused(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL), other, dumb;
	uint64_t to = to_of(memory);

	(void)state;
	other = arena_put(&p.mem, (struct mem_region){ .stag = 0x0100,
						       .pd = ARENA_PD + 1,
						       .base = memory,
						       .to = to,
						       .len = 4096,
						       .rights = ARENA_ALL });
	dumb = arena_add(&p.mem, memory, 4096, UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE);
	const struct {
		uint32_t stag;
		uint64_t to;
		uint32_t size;
		uw_status st;
	} rows[] = {
		{ s + 1, to, 4, UW_E_RDMAP_STAG },	{ other, to, 4, UW_E_RDMAP_STREAM },
		{ s, to + 4093, 4, UW_E_RDMAP_BOUNDS }, { s, to, 4097, UW_E_RDMAP_BOUNDS },
		{ s, to - 1, 1, UW_E_RDMAP_BOUNDS },	{ s, UINT64_MAX - 2, 4, UW_E_RDMAP_WRAP },
		{ dumb, to, 4, UW_E_RDMAP_ACCESS },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_status(
			rx(&p, ulpdu_read_request(1, 9, rows[i].size, rows[i].stag, rows[i].to)),
			rows[i].st);
		assert_false(rdmap_response_due(&p.s));
	}
	p.s.remote_rights = UW_ACCESS_REMOTE_WRITE;
	assert_status(rx(&p, ulpdu_read_request(1, 9, 4, s, to)), UW_E_RDMAP_ACCESS);
	p.s.remote_rights = UW_ACCESS_REMOTE_READ;
	assert_status(rx(&p, ulpdu_read_request(1, 9, 4096, s, to)), UW_OK);
}

/* RFC 5040 §5.2: a Read of no octets is not checked; it is answered. */
static void a_read_of_nothing_is_not_checked(void **state)
{
	struct peer p;
	struct ulpdu u;

	(void)state;
	with_memory(&p, 0);
	assert_status(rx(&p, ulpdu_read_request(1, 0x77, 0, 0xdeadbeef, UINT64_MAX)), UW_OK);
	rdmap_respond(&p.s);
	u = peer_segment(&p, 100);
	assert_int_equal(u.n, 14);
	assert_int_equal(octets(u.p, 2), CTRL_READ_RESPONSE);
	assert_int_equal(octets(u.p + 2, 4), 0x77);
}

/* RFC 5040 §4.4: the header is 28 octets, nothing behind it, in one segment. */
static void a_read_request_has_its_header_and_nothing_else(void **state)
{
	struct peer p;
	uint32_t s = with_memory(&p, ARENA_ALL);
	struct ulpdu u = ulpdu_read_request(1, 1, 4, s, to_of(memory));

	(void)state;
	u.n--;
	assert_status(rx(&p, u), UW_E_RDMAP_UNSPEC);
	u.n += 2;
	assert_status(rx(&p, u), UW_E_RDMAP_UNSPEC);
	u.n--;
	put_octets(u.p + 14, 4, 4);
	assert_status(rx(&p, u), UW_E_DDP_MO);
	put_octets(u.p + 14, 4, 0);
	u.p[0] &= ~0x40;
	assert_status(rx(&p, u), UW_E_DDP_MO);
	u.p[0] |= 0x40;
	assert_false(rdmap_response_due(&p.s));
	assert_status(rx(&p, u), UW_OK);
}

/* ---- what every message must have --------------------------------------------------------- */

/* RFC 5040 §7.2, §4.1: RV is 1; the two bits behind it are not looked at. */
static void other_rdmap_versions_are_refused(void **state)
{
	(void)state;
	for (unsigned rv = 0; rv < 4; rv++) {
		struct peer p;
		uint32_t s = with_memory(&p, ARENA_ALL);
		struct ulpdu u = ulpdu_tagged(CTRL_WRITE, s, to_of(memory), "x", 1);

		u.p[1] = (uint8_t)(rv << 6 | 0x30);
		assert_status(rx(&p, u), rv == 1 ? UW_OK : UW_E_RDMAP_VERSION);
		assert_int_equal(memory[0], rv == 1 ? 'x' : 0);
	}
}

/* RFC 5040 §7.2: opcodes that are not assigned, or not ours. */
static void unknown_opcodes_are_refused(void **state)
{
	(void)state;
	for (unsigned op = 8; op < 16; op++) {
		struct peer p;
		uint32_t s = with_memory(&p, ARENA_ALL);

		if (rdmap_ops[op].name)
			continue;
		assert_status(rx(&p, ulpdu_tagged((CTRL_TAGGED | CTRL_LAST) + op, s, to_of(memory),
						  "x", 1)),
			      UW_E_RDMAP_OPCODE);
		for (uint32_t qn = 0; qn < 4; qn++)
			assert_status(rx(&p, ulpdu_untagged((CTRL_UNTAGGED | CTRL_LAST) + op,
							    (const uint32_t[]){ qn, 1, 0 },
							    "12345678", 8)),
				      UW_E_RDMAP_OPCODE);
		assert_true(untouched());
	}
}

/* RFC 5040 §4.3, §7.2: each opcode with the tag bit or on the queue of another. */
static void an_opcode_on_the_wrong_queue_is_refused(void **state)
{
	uint8_t body[28] = { 0 };

	(void)state;
	for (unsigned op = 0; op < 8; op++) {
		struct peer p;
		uint32_t s = with_memory(&p, ARENA_ALL);

		post(&p, s, 0, 100);
		if (!rdmap_ops[op].tagged)
			assert_status(rx(&p, ulpdu_tagged((CTRL_TAGGED | CTRL_LAST) + op, s,
							  to_of(memory), body, 28)),
				      UW_E_RDMAP_OPCODE);
		for (uint32_t qn = 0; qn < 4; qn++) {
			if (!rdmap_ops[op].tagged && rdmap_ops[op].qn == qn)
				continue;
			assert_status(
				rx(&p, ulpdu_untagged((CTRL_UNTAGGED | CTRL_LAST) + op,
						      (const uint32_t[]){ qn, 1, 0 }, body, 28)),
				UW_E_RDMAP_OPCODE);
		}
		assert_int_equal(p.delivered + p.taken + p.terminated, 0);
	}
}

/* What DDP finds wrong comes through as DDP's. */
static void errors_of_ddp_come_through(void **state)
{
	struct peer p;
	struct ulpdu u = ulpdu_send(1, "x", 1);

	(void)state;
	with_memory(&p, 0);
	u.n = 17;
	assert_status(rx(&p, u), UW_E_DDP_LOCAL);
	assert_status(rx(&p, ulpdu_send(2, "x", 1)), UW_E_DDP_MSN);
	assert_status(rx(&p, ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 4, 1, 0 }, "x", 1)),
		      UW_E_DDP_QN);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_write_is_placed_and_not_delivered),
	cmocka_unit_test(a_write_in_pieces_is_placed_whole),
	cmocka_unit_test(a_write_of_nothing_is_not_checked),
	cmocka_unit_test(a_write_that_fails_a_check_is_not_placed),
	cmocka_unit_test(a_write_stops_when_the_memory_goes),
	cmocka_unit_test(sends_are_delivered_in_order),
	cmocka_unit_test(a_send_of_several_segments_is_delivered_once),
	cmocka_unit_test(solicited_events_are_told),
	cmocka_unit_test(the_invalidate_field_of_a_send_is_ignored),
	cmocka_unit_test(remote_invalidation_is_refused),
	cmocka_unit_test(a_send_without_a_receive_is_an_error),
	cmocka_unit_test(a_segment_out_of_its_place_is_refused),
	cmocka_unit_test(a_repeated_segment_hides_no_hole),
	cmocka_unit_test(a_send_that_grows_too_long_is_refused),
	cmocka_unit_test(a_send_stays_inside_its_buffer),
	cmocka_unit_test(a_receive_of_nothing_takes_nothing),
	cmocka_unit_test(a_receive_with_a_bad_sge_is_our_error),
	cmocka_unit_test(the_rtr_send_is_invisible),
	cmocka_unit_test(read_requests_are_kept_up_to_ird),
	cmocka_unit_test(an_ird_of_zero_takes_no_read),
	cmocka_unit_test(a_read_of_what_may_not_be_read_is_refused),
	cmocka_unit_test(a_read_of_nothing_is_not_checked),
	cmocka_unit_test(a_read_request_has_its_header_and_nothing_else),
	cmocka_unit_test(other_rdmap_versions_are_refused),
	cmocka_unit_test(unknown_opcodes_are_refused),
	cmocka_unit_test(an_opcode_on_the_wrong_queue_is_refused),
	cmocka_unit_test(errors_of_ddp_come_through),
};

UWTEST_MAIN(tests)
