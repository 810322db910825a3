/* SPDX-License-Identifier: BSD-3-Clause */
/* What a Terminate says, octet for octet, and who sends one. */
#include "peer.h"
#include "uwtest.h"
#include "vectors.h"

static uint8_t memory[256];

static uint32_t start(struct peer *p)
{
	static struct uw_sge v;
	struct mem_sgl sgl;
	uint32_t s;

	peer_init(p, 1, 1);
	s = arena_add(&p->mem, memory, sizeof(memory), ARENA_ALL);
	v = sge_of(memory, 8, s);
	sgl = sgl_of(&v, 1);
	peer_post(p, &sgl);
	return s;
}

enum headers { NO_HEADERS, DDP_HEADER, BOTH_HEADERS };

/* Let `bad` in: it fails with st. The Terminate about it has to be the word, and the headers of
 * RFC 5040 figure 10 as they came. */
static void expect(struct peer *p, const struct ulpdu *bad, uw_status st, uint16_t word,
		   enum headers h)
{
	size_t hdr = bad->p[0] & 0x80 ? 14 : 18, at = 22;
	struct ulpdu u;

	assert_status(peer_rx(p, bad), st);
	u = peer_terminate(p, st);
	/* RFC 5040 §5.4: queue 2, its one message, one segment */
	assert_int_equal(octets(u.p, 2), CTRL_TERMINATE);
	assert_int_equal(octets(u.p + 2, 4), 0);
	assert_int_equal(octets(u.p + 6, 4), 2);
	assert_int_equal(octets(u.p + 10, 4), 1);
	assert_int_equal(octets(u.p + 14, 4), 0);
	/* RFC 5040 §4.8 */
	assert_int_equal(octets(u.p + 18, 2), word);
	assert_int_equal(u.p[20], h == BOTH_HEADERS ? 0xe0 : h == DDP_HEADER ? 0xc0 : 0);
	assert_int_equal(u.p[21], 0);
	if (h != NO_HEADERS) {
		assert_int_equal(octets(u.p + 22, 2), bad->n);
		assert_memory_equal(u.p + 24, bad->p, hdr);
		at = 24 + hdr;
	}
	if (h == BOTH_HEADERS) {
		assert_memory_equal(u.p + at, bad->p + 18, 28);
		at += 28;
	}
	assert_int_equal(u.n, at);
	assert_int_equal(p->stats.rdmap_tx_terminates, 1);
}

/* ---- about what came in ------------------------------------------------------------------- */

/* RFC 5041 §7.2: tagged errors, 1/1/00 to 1/1/04. */
static void errors_of_tagged_segments(void **state)
{
	uint64_t to = to_of(memory);
	struct peer p;
	struct ulpdu u;
	uint32_t s = start(&p);

	(void)state;
	u = ulpdu_tagged(CTRL_WRITE, s + 1, to, "x", 1);
	expect(&p, &u, UW_E_DDP_STAG, 0x1100, DDP_HEADER);

	s = start(&p);
	u = ulpdu_tagged(CTRL_WRITE, s, to + 250, "0123456789", 10);
	expect(&p, &u, UW_E_DDP_BOUNDS, 0x1101, DDP_HEADER);

	s = start(&p);
	p.s.pd++;
	u = ulpdu_tagged(CTRL_WRITE & ~CTRL_LAST, s, to, "x", 1);
	expect(&p, &u, UW_E_DDP_STREAM, 0x1102, DDP_HEADER);

	s = start(&p);
	u = ulpdu_tagged(CTRL_WRITE, s, UINT64_MAX, "xy", 2);
	expect(&p, &u, UW_E_DDP_WRAP, 0x1103, DDP_HEADER);

	s = start(&p);
	u = ulpdu_tagged(CTRL_WRITE, s, to, "x", 1);
	u.p[0] = 0xc2;
	expect(&p, &u, UW_E_DDP_T_VERSION, 0x1104, DDP_HEADER);
}

/* RFC 5041 §7.2: untagged errors, 1/2/01 to 1/2/06, and a segment without header, 1/0/00. */
static void errors_of_untagged_segments(void **state)
{
	struct peer p;
	struct ulpdu u;

	(void)state;
	start(&p);
	u = ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 4, 1, 0 }, "x", 1);
	expect(&p, &u, UW_E_DDP_QN, 0x1201, DDP_HEADER);

	start(&p);
	p.posted = 0;
	u = ulpdu_send(1, "x", 1);
	expect(&p, &u, UW_E_DDP_NO_BUFFER, 0x1202, DDP_HEADER);

	start(&p);
	u = ulpdu_send(7, "xyz", 3);
	expect(&p, &u, UW_E_DDP_MSN, 0x1203, DDP_HEADER);

	start(&p);
	u = ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 0, 1, 9 }, "x", 1);
	expect(&p, &u, UW_E_DDP_MO, 0x1204, DDP_HEADER);

	start(&p);
	u = ulpdu_send(1, "123456789", 9);
	expect(&p, &u, UW_E_DDP_TOO_LONG, 0x1205, DDP_HEADER);

	start(&p);
	u = ulpdu_send(1, "x", 1);
	u.p[0] = 0x40;
	expect(&p, &u, UW_E_DDP_U_VERSION, 0x1206, DDP_HEADER);

	start(&p);
	u = ulpdu_send(1, "x", 1);
	u.n = 17;
	expect(&p, &u, UW_E_DDP_LOCAL, 0x1000, NO_HEADERS);
}

/* RFC 5040 §4.8 figures 9 and 10: a Read Request that may not be done, 0/1/00 to 0/1/04, with the
 * DDP header and its own. */
static void protection_errors_of_a_read_request(void **state)
{
	uint64_t to = to_of(memory);
	struct peer p;
	struct ulpdu u;
	uint32_t s = start(&p);

	(void)state;
	u = ulpdu_read_request(1, 0x77, 16, s + 1, to);
	expect(&p, &u, UW_E_RDMAP_STAG, 0x0100, BOTH_HEADERS);

	s = start(&p);
	u = ulpdu_read_request(1, 0x77, 257, s, to);
	expect(&p, &u, UW_E_RDMAP_BOUNDS, 0x0101, BOTH_HEADERS);

	s = start(&p);
	p.s.remote_rights = UW_ACCESS_REMOTE_WRITE;
	u = ulpdu_read_request(1, 0x77, 16, s, to);
	expect(&p, &u, UW_E_RDMAP_ACCESS, 0x0102, BOTH_HEADERS);

	s = start(&p);
	p.s.pd++;
	u = ulpdu_read_request(1, 0x77, 16, s, to);
	expect(&p, &u, UW_E_RDMAP_STREAM, 0x0103, BOTH_HEADERS);

	s = start(&p);
	u = ulpdu_read_request(1, 0x77, 16, s, UINT64_MAX - 3);
	expect(&p, &u, UW_E_RDMAP_WRAP, 0x0104, BOTH_HEADERS);
}

/* RFC 5041 §7.2, RFC 5040 figure 10: one Read Request more than IRD is DDP's error. */
static void a_read_beyond_ird(void **state)
{
	struct peer p;
	struct ulpdu u;
	uint32_t s = start(&p);

	(void)state;
	u = ulpdu_read_request(1, 0x77, 16, s, to_of(memory));
	assert_status(peer_rx(&p, &u), UW_OK);
	u = ulpdu_read_request(2, 0x78, 16, s, to_of(memory));
	expect(&p, &u, UW_E_DDP_NO_BUFFER, 0x1202, DDP_HEADER);
}

/* RFC 5040 §4.8: rights that a Write does not have; STags that a Send may not invalidate. The RDMAP
 * header is only for Read Requests. */
static void protection_errors_of_other_messages(void **state)
{
	struct peer p;
	struct ulpdu u;
	uint32_t s = start(&p);

	(void)state;
	p.s.remote_rights = 0;
	u = ulpdu_tagged(CTRL_WRITE, s, to_of(memory), "x", 1);
	expect(&p, &u, UW_E_RDMAP_ACCESS, 0x0102, DDP_HEADER);

	s = start(&p);
	u = ulpdu_untagged(CTRL_SEND_INV, (const uint32_t[]){ 0, 1, 0 }, "x", 1);
	put_octets(u.p + 2, 4, s);
	expect(&p, &u, UW_E_RDMAP_NOT_INV, 0x0109, DDP_HEADER);
}

/* RFC 5040 §4.8, §7.2: operation errors, 0/2/05 to 0/2/07 and 0/2/ff. */
static void operation_errors(void **state)
{
	struct peer p;
	struct mem_sgl sink = { .pd = ARENA_PD, .len = 4 };
	struct ulpdu u;
	uint32_t s = start(&p);

	(void)state;
	u = ulpdu_tagged(CTRL_WRITE, s, to_of(memory), "x", 1);
	u.p[1] = 0x80;
	expect(&p, &u, UW_E_RDMAP_VERSION, 0x0205, DDP_HEADER);

	start(&p);
	u = ulpdu_untagged((CTRL_UNTAGGED | CTRL_LAST) + 0xe, (const uint32_t[]){ 0, 1, 0 }, "x",
			   1);
	expect(&p, &u, UW_E_RDMAP_OPCODE, 0x0206, DDP_HEADER);

	start(&p);
	assert_status(rdmap_read(&p.s, &sink, 1, 0), UW_OK);
	peer_segment(&p, 100);
	u = ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, NULL, 0);
	expect(&p, &u, UW_E_RDMAP_STREAM_CATASTROPHIC, 0x0207, DDP_HEADER);

	s = start(&p);
	u = ulpdu_read_request(1, 0x77, 16, s, to_of(memory));
	u.n += 4;
	expect(&p, &u, UW_E_RDMAP_UNSPEC, 0x02ff, DDP_HEADER);
}

/* ---- about what did not come in ----------------------------------------------------------- */

/* RFC 5040 §4.8 figure 10: LLP and local errors carry no header, whatever came last. */
static void errors_without_a_segment(void **state)
{
	static const struct {
		uw_status st;
		uint16_t word;
	} rows[] = {
		{ UW_E_MPA_CRC, 0x2002 }, { UW_E_MPA_MARKER, 0x2003 }, { UW_E_MPA_LOCAL, 0x2005 },
		{ UW_E_MPA_IRD, 0x2006 }, { UW_E_MPA_RTR, 0x2007 },    { UW_E_RDMAP_LOCAL, 0x0000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct peer p;
		struct ulpdu u = ulpdu_send(1, "x", 1);

		start(&p);
		assert_status(peer_rx(&p, &u), UW_OK);
		u = peer_terminate(&p, rows[i].st);
		assert_int_equal(u.n, 22);
		assert_int_equal(octets(u.p + 18, 4), (uint32_t)rows[i].word << 16);
	}
}

/* What is only ours is not told. */
static void local_errors_are_not_sent(void **state)
{
	struct peer p;

	(void)state;
	start(&p);
	for (unsigned st = 0; st < UW_STATUS_COUNT; st++) {
		if (uw_status_term((uw_status)st).sends)
			continue;
		assert_false(rdmap_terminate(&p.s, (uw_status)st));
		assert_true(rdmap_tx_idle(&p.s));
	}
	assert_int_equal(p.stats.rdmap_tx_terminates, 0);
}

/* RFC 5040 §5.4: one Terminate; the first error wins. */
static void there_is_one_terminate(void **state)
{
	struct peer p;

	(void)state;
	start(&p);
	peer_terminate(&p, UW_E_MPA_CRC);
	assert_false(rdmap_terminate(&p.s, UW_E_MPA_MARKER));
	assert_true(rdmap_tx_idle(&p.s));
}

/* RFC 5040 §5.4: it takes the place of whatever is being sent. */
static void a_terminate_interrupts_a_message(void **state)
{
	static uint8_t big[256];
	struct peer p;
	struct uw_sge v;
	struct mem_sgl sgl;
	struct ulpdu u;

	(void)state;
	start(&p);
	v = sge_of(big, sizeof(big), arena_add(&p.mem, big, sizeof(big), 0));
	sgl = sgl_of(&v, 1);
	rdmap_send(&p.s, RDMAP_SEND, &sgl, 0);
	peer_segment(&p, 100);
	u = peer_terminate(&p, UW_E_MPA_CRC);
	assert_int_equal(octets(u.p, 2), CTRL_TERMINATE);
	assert_int_equal(u.n, 22);
}

/* ---- the other side ----------------------------------------------------------------------- */

/* RFC 5040 §5.4: the other side's ULP hears what it says, and sends none back. */
static void a_terminate_ends_the_other_side(void **state)
{
	struct peer a, b;
	struct ulpdu bad, u;

	(void)state;
	start(&a);
	start(&b);
	bad = ulpdu_read_request(1, 0x77, 16, 0xdeadbeef, 0x1234);
	assert_status(peer_rx(&a, &bad), UW_E_RDMAP_STAG);
	u = peer_terminate(&a, UW_E_RDMAP_STAG);
	assert_status(peer_rx(&b, &u), UW_E_TERMINATED);
	assert_int_equal(b.terminated, 1);
	assert_int_equal(b.term.layer, 0);
	assert_int_equal(b.term.etype, 1);
	assert_int_equal(b.term.code, 0);
	assert_true(b.term.has_ddp && b.term.has_rdmap && !b.term.siw_order);
	assert_int_equal(b.term.ddp_length, 46);
	assert_memory_equal(b.term.ddp_hdr, bad.p, 18);
	assert_memory_equal(b.term.rdmap_hdr, bad.p + 18, 28);
	assert_int_equal(b.delivered, 0);
	assert_int_equal(b.stats.rdmap_rx_terminates, 1);
	assert_false(rdmap_terminate(&b.s, UW_E_TERMINATED));
	assert_false(rdmap_terminate(&b.s, UW_E_MPA_CRC));
}

/* RFC 5040 §5.4: both at once, each before it saw the other's. */
static void terminates_may_cross(void **state)
{
	struct peer a, b;
	struct ulpdu from_a, from_b;

	(void)state;
	start(&a);
	start(&b);
	from_a = peer_terminate(&a, UW_E_MPA_CRC);
	from_b = peer_terminate(&b, UW_E_MPA_MARKER);
	assert_status(peer_rx(&a, &from_b), UW_E_TERMINATED);
	assert_status(peer_rx(&b, &from_a), UW_E_TERMINATED);
	assert_int_equal(a.term.code, 3);
	assert_int_equal(b.term.code, 2);
}

/* Those of Linux siw. */
static void terminates_of_siw_end_the_stream(void **state)
{
	struct vectors x = vectors_read("siw-terminate.txt");

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		struct peer p;
		struct ulpdu u = ulpdu_untagged(CTRL_TERMINATE, (const uint32_t[]){ 2, 1, 0 },
						x.v[i].p, x.v[i].n);

		start(&p);
		assert_status(peer_rx(&p, &u), UW_E_TERMINATED);
		assert_int_equal(p.terminated, 1);
		assert_int_equal(p.term.layer, atoi(x.v[i].word[1]));
		assert_int_equal(p.term.etype, atoi(x.v[i].word[2]));
	}
	vectors_free(&x);
}

/* RFC 5040 §5.4: one that is cut short ends the stream all the same. */
static void a_malformed_terminate_ends_the_stream(void **state)
{
	struct peer p;
	struct ulpdu u = ulpdu_untagged(CTRL_TERMINATE, (const uint32_t[]){ 2, 1, 0 },
					"\x01\x00\xe0\x00\x00\x2e\x41", 7);

	(void)state;
	start(&p);
	assert_status(peer_rx(&p, &u), UW_E_TERMINATED);
	assert_int_equal(p.terminated, 1);
	assert_false(p.term.has_ddp || p.term.has_rdmap);
	/* cut behind the DDP header, the other one was to follow */
	start(&p);
	u.n = 18 + 24 + 27;
	assert_status(peer_rx(&p, &u), UW_E_TERMINATED);
	assert_false(p.term.has_ddp || p.term.has_rdmap);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(errors_of_tagged_segments),
	cmocka_unit_test(errors_of_untagged_segments),
	cmocka_unit_test(protection_errors_of_a_read_request),
	cmocka_unit_test(a_read_beyond_ird),
	cmocka_unit_test(protection_errors_of_other_messages),
	cmocka_unit_test(operation_errors),
	cmocka_unit_test(errors_without_a_segment),
	cmocka_unit_test(local_errors_are_not_sent),
	cmocka_unit_test(there_is_one_terminate),
	cmocka_unit_test(a_terminate_interrupts_a_message),
	cmocka_unit_test(a_terminate_ends_the_other_side),
	cmocka_unit_test(terminates_may_cross),
	cmocka_unit_test(terminates_of_siw_end_the_stream),
	cmocka_unit_test(a_malformed_terminate_ends_the_stream),
};

UWTEST_MAIN(tests)
