/* SPDX-License-Identifier: BSD-3-Clause */
/* Outbound messages, octet for octet, and two streams back to back. */
#include "peer.h"
#include "uwtest.h"

#define MEMORY 20000

/* Two peers that are each other's; each has memory registered for everything. */
struct pair {
	struct peer a, b;
	uint8_t am[MEMORY], bm[MEMORY];
	uint32_t as, bs; /* their STags */
};

static struct pair x;

static void pair_init(void)
{
	struct prng r = { 19 };

	peer_init(&x.a, PEER_READS, PEER_READS);
	peer_init(&x.b, PEER_READS, PEER_READS);
	prng_fill(&r, x.am, MEMORY);
	memset(x.bm, 0, MEMORY);
	x.as = arena_add(&x.a.mem, x.am, MEMORY, ARENA_ALL);
	x.bs = arena_put(&x.b.mem, (struct mem_region){ .stag = 0x0b0b0b0b,
							.pd = ARENA_PD,
							.base = x.bm,
							.to = to_of(x.bm),
							.len = MEMORY,
							.rights = ARENA_ALL });
}

/* n octets of a's memory at `at` as an SGL. */
static struct mem_sgl a_part(size_t at, size_t n)
{
	static struct uw_sge v[8];
	static unsigned k;
	struct uw_sge *e = &v[k++ % 8];

	*e = sge_of(x.am + at, n, x.as);
	return sgl_of(e, 1);
}

static struct mem_sgl b_part(size_t at, size_t n)
{
	static struct uw_sge v[PEER_RECVS];
	static unsigned k;
	struct uw_sge *e = &v[k++ % PEER_RECVS];

	*e = sge_of(x.bm + at, n, x.bs);
	return sgl_of(e, 1);
}

/* ---- octet for octet --------------------------------------------------------------------- */

/* RFC 5040 §5.3, §4.1, §4.3: queue 0, MSN after MSN, MO 0; the STag where there is one to name. */
static void sends_octet_for_octet(void **state)
{
	static const struct {
		unsigned op, ctrl;
		uint32_t inv;
	} rows[] = {
		{ RDMAP_SEND, CTRL_SEND, 0 },
		{ RDMAP_SEND_INV, CTRL_SEND_INV, 0x01020304 },
		{ RDMAP_SEND_SE, CTRL_SEND_SE, 0 },
		{ RDMAP_SEND_SE_INV, CTRL_SEND_SE_INV, 0x01020304 },
	};

	(void)state;
	pair_init();
	for (unsigned i = 0; i < COUNT(rows); i++) {
		struct mem_sgl sgl = a_part(5, 9);
		struct ulpdu u,
			want = ulpdu_untagged(rows[i].ctrl, (const uint32_t[]){ 0, i + 1, 0 },
					      x.am + 5, 9);

		put_octets(want.p + 2, 4, rows[i].inv);
		assert_true(rdmap_tx_idle(&x.a.s));
		rdmap_send(&x.a.s, rows[i].op, &sgl, 0x01020304);
		u = peer_segment(&x.a, 100);
		assert_int_equal(u.n, want.n);
		assert_memory_equal(u.p, want.p, want.n);
		assert_true(rdmap_tx_idle(&x.a.s));
	}
	assert_int_equal(x.a.stats.rdmap_tx_messages, 4);
	assert_int_equal(x.a.stats.payload_tx_bytes, 36);
}

/* RFC 5040 §5.1: tagged with the peer's STag and TO. */
static void a_write_octet_for_octet(void **state)
{
	struct mem_sgl sgl;
	struct ulpdu u, want;

	(void)state;
	pair_init();
	sgl = a_part(7, 10);
	rdmap_write(&x.a.s, &sgl, 0x01020304, 0xfffffffcull);
	u = peer_segment(&x.a, 20);
	want = ulpdu_tagged(CTRL_WRITE & ~CTRL_LAST, 0x01020304, 0xfffffffcull, x.am + 7, 6);
	assert_int_equal(u.n, want.n);
	assert_memory_equal(u.p, want.p, want.n);
	u = peer_segment(&x.a, 20);
	want = ulpdu_tagged(CTRL_WRITE, 0x01020304, 0x100000002ull, x.am + 13, 4);
	assert_int_equal(u.n, want.n);
	assert_memory_equal(u.p, want.p, want.n);
	assert_true(rdmap_tx_idle(&x.a.s));
}

/* RFC 5040 §5.2, §4.4: queue 1; the sink is a private STag from TO 0, no registered one. */
static void a_read_request_octet_for_octet(void **state)
{
	struct mem_sgl sink;
	struct ulpdu u, want;

	(void)state;
	pair_init();
	sink = a_part(0, 0x1234);
	assert_status(rdmap_read(&x.a.s, &sink, 0x01020304, 0x1122334455667788ull), UW_OK);
	u = peer_segment(&x.a, 100);
	want = ulpdu_read_request(1, PEER_SINK, 0x1234, 0x01020304, 0x1122334455667788ull);
	assert_int_equal(u.n, want.n);
	assert_memory_equal(u.p, want.p, want.n);
	assert_true(rdmap_tx_idle(&x.a.s));
	assert_null(mem_find(&x.a.mem.t, PEER_SINK));
}

/* RFC 5040 §5.2: tagged with the sink that the Request named. */
static void a_response_octet_for_octet(void **state)
{
	struct ulpdu u = ulpdu_read_request(1, 0x01020304, 30, 0, to_of(x.am) + 3), want;

	(void)state;
	pair_init();
	put_octets(u.p + 18 + 4, 8, 0x7000);
	put_octets(u.p + 18 + 16, 4, x.as);
	assert_status(peer_rx(&x.a, &u), UW_OK);
	rdmap_respond(&x.a.s);
	u = peer_segment(&x.a, 34);
	want = ulpdu_tagged(CTRL_READ_RESPONSE & ~CTRL_LAST, 0x01020304, 0x7000, x.am + 3, 20);
	assert_int_equal(u.n, want.n);
	assert_memory_equal(u.p, want.p, want.n);
	u = peer_segment(&x.a, 34);
	want = ulpdu_tagged(CTRL_READ_RESPONSE, 0x01020304, 0x7014, x.am + 23, 10);
	assert_int_equal(u.n, want.n);
	assert_memory_equal(u.p, want.p, want.n);
	assert_true(rdmap_tx_idle(&x.a.s));
	assert_false(rdmap_response_due(&x.a.s));
}

/* RFC 5040 §5.2: each Read has an STag of its own; the count never comes to 0. */
static void private_stags_differ_and_are_never_zero(void **state)
{
	const struct mem_sgl none = { .pd = ARENA_PD };
	uint32_t seen[PEER_READS];

	(void)state;
	pair_init();
	x.a.s.next_sink = UINT32_MAX - 1;
	for (unsigned i = 0; i < PEER_READS; i++) {
		struct ulpdu u;

		assert_status(rdmap_read(&x.a.s, &none, 1, 0), UW_OK);
		u = peer_segment(&x.a, 100);
		seen[i] = (uint32_t)octets(u.p + 18, 4);
		assert_int_not_equal(seen[i], 0);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(seen[i], seen[j]);
	}
}

static void an_unlucky_first_stag_is_not_zero(void **state)
{
	const struct rdmap_queues q = { .first_sink = 0 };
	struct rdmap_stream s;
	struct uw_stats stats = { 0 };

	(void)state;
	rdmap_stream_init(&s, &q, &stats);
	assert_int_not_equal(s.next_sink, 0);
}

/* ---- limits and errors ------------------------------------------------------------------- */

/* RFC 5040 §5.2, RFC 6581 §9.1: never more than ORD outstanding; a Response makes room. */
static void reads_wait_for_ord(void **state)
{
	struct mem_sgl sink;

	(void)state;
	pair_init();
	sink = b_part(0, 10);
	for (unsigned i = 0; i < PEER_READS; i++) {
		assert_status(rdmap_read(&x.b.s, &sink, x.as, to_of(x.am)), UW_OK);
		assert_status(peer_carry(&x.b, &x.a, 100), UW_OK);
	}
	assert_status(rdmap_read(&x.b.s, &sink, x.as, to_of(x.am)), UW_MORE);
	assert_true(rdmap_tx_idle(&x.b.s));
	rdmap_respond(&x.a.s);
	assert_status(peer_carry(&x.a, &x.b, 100), UW_OK);
	assert_status(rdmap_read(&x.b.s, &sink, x.as, to_of(x.am)), UW_OK);
	assert_int_equal(x.b.s.orq.count, PEER_READS);
}

/* RFC 5040 §5.2: no Read, no atomic (RFC 7306 §5), and no Read that opens the stream (RFC 6581
 * §9.2), which is not agreed on without an ORD; nor has a Response anything to answer. */
static void an_ord_of_zero_reads_nothing(void **state)
{
	const struct mem_sgl none = { .pd = ARENA_PD };
	struct rdmap_atomic atomic = { .aop = RDMAP_FETCH_ADD };
	struct ulpdu u = ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, NULL, 0);
	struct peer p;

	(void)state;
	peer_init(&p, 0, 0);
	assert_status(rdmap_read(&p.s, &none, 1, 0), UW_E_ORD);
	assert_status(rdmap_atomic(&p.s, &none, &atomic), UW_E_ORD);
	rdmap_rtr(&p.s, RDMAP_RTR_READ);
	assert_true(rdmap_tx_idle(&p.s));
	assert_status(peer_rx(&p, &u), UW_E_RDMAP_OPCODE);
	assert_int_equal(p.s.orq.count + p.s.irq.count, 0);
}

/* A request's own memory fails its check: the stream cannot go on. */
static void a_bad_sge_stops_the_message(void **state)
{
	struct mem_sgl sgl;
	uint8_t out[200];
	size_t n;

	(void)state;
	pair_init();
	sgl = a_part(0, 500);
	rdmap_send(&x.a.s, RDMAP_SEND, &sgl, 0);
	peer_segment(&x.a, 200);
	arena_drop(&x.a.mem, x.as);
	assert_status(rdmap_tx_segment(&x.a.s, out, 200, &n), UW_E_LKEY);
	assert_false(rdmap_tx_idle(&x.a.s));
}

/* RFC 5042 §6.2.2: memory that was deregistered after the Request came is not read, not even in
 * the middle of the Response; nor is what was not given for reading. */
static void a_response_stops_when_the_memory_goes(void **state)
{
	struct ulpdu u;
	uint8_t out[200];
	size_t n;

	(void)state;
	pair_init();
	u = ulpdu_read_request(1, 1, 500, x.as, to_of(x.am));
	assert_status(peer_rx(&x.a, &u), UW_OK);
	rdmap_respond(&x.a.s);
	peer_segment(&x.a, 200);
	arena_drop(&x.a.mem, x.as);
	assert_status(rdmap_tx_segment(&x.a.s, out, 200, &n), UW_E_RDMAP_STAG);
}

/* RFC 5040 §4.8: the Terminate about it brings the Request back, advanced by what was answered: of
 * the second of three, and not of what came in last. */
static void a_failed_response_brings_its_request_back(void **state)
{
	struct ulpdu u, second;
	uint8_t out[200];
	size_t n;

	(void)state;
	pair_init();
	for (uint32_t msn = 1; msn <= 3; msn++) {
		u = ulpdu_read_request(msn, 0x70 + msn, 500, x.as, to_of(x.am));
		assert_status(peer_rx(&x.a, &u), UW_OK);
	}
	second = ulpdu_read_request(2, 0x72, 500, x.as, to_of(x.am));
	rdmap_respond(&x.a.s);
	while (!rdmap_tx_idle(&x.a.s))
		peer_segment(&x.a, 200);
	rdmap_respond(&x.a.s);
	peer_segment(&x.a, 14 + 180);
	arena_drop(&x.a.mem, x.as);
	assert_status(rdmap_tx_segment(&x.a.s, out, 200, &n), UW_E_RDMAP_STAG);
	u = peer_terminate(&x.a, UW_E_RDMAP_STAG);
	assert_int_equal(u.n, 18 + 4 + 2 + 18 + 28);
	assert_memory_equal(u.p + 18, "\x01\x00\xe0\x00\x00\x2e", 6);
	assert_memory_equal(u.p + 24, second.p, 18);
	assert_int_equal(octets(u.p + 42, 4), 0x72);			       /* sink STag */
	assert_int_equal(octets(u.p + 46, 8), octets(second.p + 22, 8) + 180); /* sink TO */
	assert_int_equal(octets(u.p + 54, 4), 500 - 180);		       /* size */
	assert_int_equal(octets(u.p + 58, 4), x.as);			       /* source STag */
	assert_int_equal(octets(u.p + 62, 8), to_of(x.am) + 180);	       /* source TO */
}

/* ---- back to back ------------------------------------------------------------------------ */

/* RFC 5040 §5.3 through segments of all sizes. */
static void sends_arrive(void **state)
{
	struct prng r = { 20 };

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		size_t at = prng_below(&r, 5000), n = prng_below(&r, i % 3 ? 300 : 15000);
		size_t max = 19 + prng_below(&r, 1500);
		struct mem_sgl sgl, recv;

		pair_init();
		sgl = a_part(at, n);
		recv = b_part(100, 15000);
		peer_post(&x.b, &recv);
		rdmap_send(&x.a.s, i & 1 ? RDMAP_SEND_SE : RDMAP_SEND, &sgl, 0);
		assert_status(peer_carry(&x.a, &x.b, max), UW_OK);
		assert_int_equal(x.b.delivered, 1);
		assert_int_equal(x.b.got[0].length, n);
		assert_int_equal(x.b.got[0].solicited, i & 1);
		assert_memory_equal(x.bm + 100, x.am + at, n);
		assert_int_equal(x.bm[100 + n], 0);
		assert_int_equal(x.a.stats.payload_tx_bytes, n);
		assert_int_equal(x.b.stats.payload_rx_bytes, n);
	}
}

/* RFC 5040 §5.1 */
static void writes_arrive(void **state)
{
	struct prng r = { 21 };

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		size_t at = prng_below(&r, 5000), n = prng_below(&r, i % 3 ? 300 : 14000);
		struct mem_sgl sgl;

		pair_init();
		sgl = a_part(at, n);
		rdmap_write(&x.a.s, &sgl, x.bs, to_of(x.bm) + 1000 + i);
		assert_status(peer_carry(&x.a, &x.b, 19 + prng_below(&r, 1500)), UW_OK);
		assert_memory_equal(x.bm + 1000 + i, x.am + at, n);
		assert_int_equal(x.bm[999 + i] | x.bm[1000 + i + n], 0);
		assert_int_equal(x.b.delivered + x.b.reads_done, 0);
		assert_int_equal(x.b.stats.rdmap_rx_messages, 1);
	}
}

/* RFC 5040 §5.2: several at once, answered in order, of all lengths from 0. */
static void reads_are_answered(void **state)
{
	struct prng r = { 22 };

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		size_t from[PEER_READS], n[PEER_READS], max = 50 + prng_below(&r, 1500);

		pair_init();
		for (unsigned k = 0; k < PEER_READS; k++) {
			struct mem_sgl sink;

			from[k] = prng_below(&r, 10000);
			n[k] = k == i % 6 ? 0 : prng_below(&r, 4000);
			sink = b_part(4500 * k, n[k]);
			assert_status(rdmap_read(&x.b.s, &sink, x.as, to_of(x.am) + from[k]),
				      UW_OK);
			assert_status(peer_carry(&x.b, &x.a, max), UW_OK);
		}
		for (unsigned k = 0; k < PEER_READS; k++) {
			assert_int_equal(x.b.reads_done, k);
			rdmap_respond(&x.a.s);
			assert_status(peer_carry(&x.a, &x.b, max), UW_OK);
			assert_memory_equal(x.bm + 4500 * k, x.am + from[k], n[k]);
			assert_int_equal(x.bm[4500 * k + n[k]], 0);
		}
		assert_int_equal(x.b.reads_done, PEER_READS);
		assert_int_equal(x.a.stats.payload_tx_bytes, n[0] + n[1] + n[2] + n[3]);
		assert_int_equal(x.b.stats.payload_rx_bytes, n[0] + n[1] + n[2] + n[3]);
		assert_false(rdmap_response_due(&x.a.s));
		assert_int_equal(x.a.delivered, 0);
	}
}

/* A sink of many SGEs is filled across all of them. */
static void a_read_fills_a_list(void **state)
{
	struct uw_sge v[5];
	struct mem_sgl sink;
	uint8_t *p = x.am + 3000;

	(void)state;
	pair_init();
	for (unsigned i = 0; i < 5; i++)
		v[i] = sge_of(x.bm + 1000 * (5 - i), i == 2 ? 0 : 100 + i, x.bs);
	sink = sgl_of(v, 5);
	assert_status(rdmap_read(&x.b.s, &sink, x.as, to_of(p)), UW_OK);
	assert_status(peer_carry(&x.b, &x.a, 100), UW_OK);
	rdmap_respond(&x.a.s);
	assert_status(peer_carry(&x.a, &x.b, 77), UW_OK);
	assert_int_equal(x.b.reads_done, 1);
	for (unsigned i = 0; i < 5; i++) {
		assert_memory_equal((void *)(uintptr_t)v[i].addr, p, v[i].length);
		p += v[i].length;
	}
}

/* RFC 6581 §9.2: a zero-length Send, Write or Read of STag other than 0; nobody above hears of it,
 * and what follows is as if it had not been. */
static void the_three_rtrs_are_invisible(void **state)
{
	static const struct {
		enum rdmap_rtr kind;
		unsigned ctrl;
		size_t n, stag_at;
	} rows[] = {
		{ RDMAP_RTR_SEND, CTRL_SEND, 18, 0 },
		{ RDMAP_RTR_WRITE, CTRL_WRITE, 14, 2 },
		{ RDMAP_RTR_READ, CTRL_READ_REQUEST, 46, 18 + 16 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mem_sgl sgl, recv;
		struct ulpdu u;

		pair_init();
		x.b.s.rtr_send = rows[i].kind == RDMAP_RTR_SEND;
		recv = b_part(0, 100);
		peer_post(&x.b, &recv);
		rdmap_rtr(&x.a.s, rows[i].kind);
		u = peer_segment(&x.a, 100);
		assert_int_equal(u.n, rows[i].n);
		assert_int_equal(octets(u.p, 2), rows[i].ctrl);
		if (rows[i].stag_at)
			assert_int_not_equal(octets(u.p + rows[i].stag_at, 4), 0);
		assert_status(peer_rx(&x.b, &u), UW_OK);
		if (rows[i].kind == RDMAP_RTR_WRITE)
			assert_int_equal(octets(u.p + 6, 8), 0);
		if (rows[i].kind == RDMAP_RTR_READ) {
			assert_int_equal(octets(u.p + 18 + 12, 4), 0);
			assert_int_equal(octets(u.p + 18 + 20, 8), 0);
			rdmap_respond(&x.b.s);
			assert_status(peer_carry(&x.b, &x.a, 100), UW_OK);
			assert_int_equal(x.a.s.orq.count, 0);
		}
		assert_int_equal(x.a.reads_done + x.a.delivered, 0);
		assert_int_equal(x.b.taken + x.b.delivered + x.b.reads_done, 0);

		sgl = a_part(0, 50);
		rdmap_send(&x.a.s, RDMAP_SEND, &sgl, 0);
		assert_status(peer_carry(&x.a, &x.b, 100), UW_OK);
		assert_int_equal(x.b.delivered, 1);
	}
}

/* RFC 6581 §9.2: a Read of the ULP right behind a Read RTR is the one that completes. */
static void a_read_behind_a_read_rtr_completes(void **state)
{
	struct mem_sgl sink;

	(void)state;
	pair_init();
	rdmap_rtr(&x.b.s, RDMAP_RTR_READ);
	assert_status(peer_carry(&x.b, &x.a, 100), UW_OK);
	sink = b_part(0, 50);
	assert_status(rdmap_read(&x.b.s, &sink, x.as, to_of(x.am)), UW_OK);
	assert_status(peer_carry(&x.b, &x.a, 100), UW_OK);
	rdmap_respond(&x.a.s);
	assert_status(peer_carry(&x.a, &x.b, 100), UW_OK);
	assert_int_equal(x.b.reads_done, 0);
	rdmap_respond(&x.a.s);
	assert_status(peer_carry(&x.a, &x.b, 100), UW_OK);
	assert_int_equal(x.b.reads_done, 1);
	assert_memory_equal(x.bm, x.am, 50);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sends_octet_for_octet),
	cmocka_unit_test(a_write_octet_for_octet),
	cmocka_unit_test(a_read_request_octet_for_octet),
	cmocka_unit_test(a_response_octet_for_octet),
	cmocka_unit_test(private_stags_differ_and_are_never_zero),
	cmocka_unit_test(an_unlucky_first_stag_is_not_zero),
	cmocka_unit_test(reads_wait_for_ord),
	cmocka_unit_test(an_ord_of_zero_reads_nothing),
	cmocka_unit_test(a_bad_sge_stops_the_message),
	cmocka_unit_test(a_response_stops_when_the_memory_goes),
	cmocka_unit_test(a_failed_response_brings_its_request_back),
	cmocka_unit_test(sends_arrive),
	cmocka_unit_test(writes_arrive),
	cmocka_unit_test(reads_are_answered),
	cmocka_unit_test(a_read_fills_a_list),
	cmocka_unit_test(the_three_rtrs_are_invisible),
	cmocka_unit_test(a_read_behind_a_read_rtr_completes),
};

UWTEST_MAIN(tests)
