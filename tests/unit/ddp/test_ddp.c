/* SPDX-License-Identifier: BSD-3-Clause */
#include "ddp/ddp.h"

#include "pieces.h"
#include "ulpdu.h"
#include "uwtest.h"
#include "vectors.h"

static struct uw_stats stats;

static struct ddp_stream stream(void)
{
	struct ddp_stream s;

	memset(&stats, 0, sizeof(stats));
	ddp_stream_init(&s, &stats);
	return s;
}

static uw_status rx(struct ddp_stream *s, const struct ulpdu *u, struct ddp_seg *seg)
{
	static struct uw_span one;

	one = (struct uw_span){ u->p, u->n };
	return ddp_rx(s, uw_rope_of(&one), seg);
}

/* A segment of the queue and message, delivered if it is the last. */
static uw_status message(struct ddp_stream *s, uint32_t qn, uint32_t msn)
{
	struct ulpdu u = ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ qn, msn, 0 }, "x", 1);
	struct ddp_seg seg;
	uw_status st = rx(s, &u, &seg);

	if (!st)
		ddp_rx_delivered(s, &seg);
	return st;
}

/* ---- receive ----------------------------------------------------------------------------- */

/* RFC 5041 §4.2, §4.3: the fields, the payload behind them, and the header kept as it came. */
static void segments_are_taken_apart(void **state)
{
	struct ddp_stream s = stream();
	struct ulpdu t = ulpdu_tagged(CTRL_WRITE, 0x01020304, 0x1122334455667788ull, "tagged", 6);
	struct ulpdu u =
		ulpdu_untagged(CTRL_UNTAGGED | 3, (const uint32_t[]){ 0, 1, 77 }, "untagged", 8);
	struct ddp_seg seg;
	uint8_t got[8];

	(void)state;
	assert_status(rx(&s, &t, &seg), UW_OK);
	assert_true(seg.hdr.tagged && seg.hdr.last);
	assert_int_equal(seg.hdr.stag, 0x01020304);
	assert_true(seg.hdr.to == 0x1122334455667788ull);
	assert_int_equal(seg.hdr.rsvd_ulp, 0x40);
	assert_int_equal(seg.hdr_len, 14);
	assert_int_equal(seg.length, 20);
	assert_memory_equal(seg.raw, t.p, 14);
	assert_int_equal(seg.payload.len, 6);
	uw_rope_copy(seg.payload, got, 6);
	assert_memory_equal(got, "tagged", 6);

	assert_status(rx(&s, &u, &seg), UW_OK);
	assert_true(!seg.hdr.tagged && !seg.hdr.last);
	assert_int_equal(seg.hdr.mo, 77);
	assert_int_equal(seg.hdr_len, 18);
	assert_int_equal(seg.length, 26);
	assert_memory_equal(seg.raw, u.p, 18);
	uw_rope_copy(seg.payload, got, 8);
	assert_memory_equal(got, "untagged", 8);
	assert_int_equal(stats.ddp_rx_tagged, 1);
	assert_int_equal(stats.ddp_rx_untagged, 1);
}

static void a_header_may_straddle(void **state)
{
	struct ulpdu u = ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 0, 1, 0 }, "payload", 7);

	(void)state;
	for (size_t step = 1; step <= u.n; step++) {
		struct ddp_stream s = stream();
		struct pieces x = pieces_every(u.p, u.n, step);
		struct ddp_seg seg;
		uint8_t got[7];

		assert_status(ddp_rx(&s, x.rope, &seg), UW_OK);
		assert_memory_equal(seg.raw, u.p, 18);
		assert_int_equal(seg.payload.len, 7);
		uw_rope_copy(seg.payload, got, 7);
		assert_memory_equal(got, "payload", 7);
		pieces_free(&x);
	}
}

/* RFC 5041 §5.1: a message of no octets is one segment without payload. */
static void a_segment_may_carry_nothing(void **state)
{
	struct ddp_stream s = stream();
	struct ulpdu u = ulpdu_send(1, NULL, 0), t = ulpdu_tagged(CTRL_WRITE, 0, 0, NULL, 0);
	struct ddp_seg seg;

	(void)state;
	assert_status(rx(&s, &u, &seg), UW_OK);
	assert_int_equal(seg.payload.len, 0);
	assert_int_equal(seg.length, 18);
	assert_status(rx(&s, &t, &seg), UW_OK);
	assert_int_equal(seg.payload.len, 0);
	assert_int_equal(seg.length, 14);
}

/* A ULPDU that is shorter than its header: nothing of it can be told. */
static void a_ulpdu_without_header_is_an_error(void **state)
{
	struct ulpdu u = ulpdu_send(1, "x", 1), t = ulpdu_tagged(CTRL_WRITE, 1, 1, "x", 1);
	struct ddp_stream s = stream();
	struct ddp_seg seg;

	(void)state;
	for (u.n = 0; u.n < 18; u.n++) {
		seg.hdr_len = 18;
		assert_status(rx(&s, &u, &seg), UW_E_DDP_LOCAL);
		assert_int_equal(seg.hdr_len, 0);
	}
	for (t.n = 0; t.n < 14; t.n++) {
		assert_status(rx(&s, &t, &seg), UW_E_DDP_LOCAL);
		assert_int_equal(seg.hdr_len, 0);
	}
	assert_int_equal(stats.ddp_rx_errors, 18 + 14);
	assert_int_equal(stats.ddp_rx_tagged + stats.ddp_rx_untagged, 0);
}

/* RFC 5041 §4.1, §7.2: another version, each kind with its own code; the header goes along. */
static void other_versions_are_refused(void **state)
{
	(void)state;
	for (unsigned dv = 0; dv < 4; dv++) {
		struct ddp_stream s = stream();
		struct ulpdu u = ulpdu_send(1, "x", 1), t = ulpdu_tagged(CTRL_WRITE, 1, 1, "x", 1);
		struct ddp_seg seg;

		u.p[0] = (uint8_t)(0x40 | dv);
		t.p[0] = (uint8_t)(0xc0 | dv);
		assert_status(rx(&s, &t, &seg), dv == 1 ? UW_OK : UW_E_DDP_T_VERSION);
		assert_int_equal(seg.hdr_len, 14);
		assert_status(rx(&s, &u, &seg), dv == 1 ? UW_OK : UW_E_DDP_U_VERSION);
		assert_int_equal(seg.hdr_len, 18);
		assert_memory_equal(seg.raw, u.p, 18);
		assert_int_equal(stats.ddp_rx_errors, dv == 1 ? 0 : 2);
	}
}

/* RFC 5041 §4.1: reserved bits are not checked. */
static void reserved_bits_are_not_checked(void **state)
{
	struct ddp_stream s = stream();
	struct ulpdu u = ulpdu_send(1, "x", 1);
	struct ddp_seg seg;

	(void)state;
	u.p[0] |= 0x3c;
	memset(u.p + 2, 0xff, 4);
	assert_status(rx(&s, &u, &seg), UW_OK);
	assert_int_equal(seg.hdr.rsvd_ulp32, 0xffffffff);
}

/* RFC 5041 §5.3, §7.2: queues 0 to 3 exist (RFC 7306 §10.2); each has its first message. */
static void queues_that_do_not_exist_are_refused(void **state)
{
	struct ddp_stream s = stream();

	(void)state;
	for (uint32_t qn = 0; qn < 4; qn++)
		assert_status(message(&s, qn, 1), UW_OK);
	assert_status(message(&s, 4, 1), UW_E_DDP_QN);
	assert_status(message(&s, 0x100, 1), UW_E_DDP_QN);
	assert_status(message(&s, UINT32_MAX, 1), UW_E_DDP_QN);
}

/* RFC 5041 §5.1: MSNs start at 1 and go up by one in each queue, apart from the others. */
static void message_numbers_count_up_per_queue(void **state)
{
	struct ddp_stream s = stream();

	(void)state;
	assert_status(message(&s, 0, 0), UW_E_DDP_MSN);
	assert_status(message(&s, 0, 2), UW_E_DDP_MSN);
	assert_status(message(&s, 0, 1), UW_OK);
	assert_status(message(&s, 0, 1), UW_E_DDP_MSN);
	assert_status(message(&s, 0, 2), UW_OK);
	assert_status(message(&s, 1, 3), UW_E_DDP_MSN);
	assert_status(message(&s, 1, 1), UW_OK);
	assert_status(message(&s, 0, 3), UW_OK);
	assert_status(message(&s, 1, 2), UW_OK);
}

/* RFC 5041 §5.1: all segments of a message have its number; only delivery moves on. */
static void segments_of_one_message_share_their_number(void **state)
{
	struct ddp_stream s = stream();
	struct ulpdu u = ulpdu_untagged(CTRL_UNTAGGED | 3, (const uint32_t[]){ 0, 1, 0 }, "x", 1);
	struct ddp_seg seg;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_status(rx(&s, &u, &seg), UW_OK);
	ddp_rx_delivered(&s, &seg);
	assert_status(rx(&s, &u, &seg), UW_E_DDP_MSN);
}

/* RFC 5041 §5.1: modulo 2^32, in both directions. */
static void message_numbers_wrap(void **state)
{
	struct ddp_stream s = stream();
	struct ddp_msg m;

	(void)state;
	s.rx_msn[0] = s.tx_msn[0] = UINT32_MAX;
	assert_status(message(&s, 0, UINT32_MAX), UW_OK);
	assert_status(message(&s, 0, 1), UW_E_DDP_MSN);
	assert_status(message(&s, 0, 0), UW_OK);
	assert_status(message(&s, 0, 1), UW_OK);
	ddp_msg_untagged(&s, &m, 0, 1);
	assert_int_equal(m.hdr.msn, UINT32_MAX);
	ddp_msg_untagged(&s, &m, 0, 1);
	assert_int_equal(m.hdr.msn, 0);
}

/* Tagged segments have no number and change none. */
static void tagged_segments_are_not_counted(void **state)
{
	struct ddp_stream s = stream();
	struct ulpdu t = ulpdu_tagged(CTRL_WRITE, 1, 1, "x", 1);
	struct ddp_seg seg;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_status(rx(&s, &t, &seg), UW_OK);
		ddp_rx_delivered(&s, &seg);
	}
	for (unsigned q = 0; q < DDP_QUEUES; q++)
		assert_int_equal(s.rx_msn[q], 1);
}

/* ---- transmit ---------------------------------------------------------------------------- */

/* RFC 5041 §4.1, §4.3, §5.1: MO from 0 to the end, L on the last segment only, MSN the same. */
static void an_untagged_message_is_segmented(void **state)
{
	struct ddp_stream s = stream();
	struct ddp_msg m;
	uint8_t out[18];
	static const size_t want[] = { 82, 82, 36 };
	uint32_t mo = 0;

	(void)state;
	ddp_msg_untagged(&s, &m, 0, 200);
	m.hdr.rsvd_ulp = 0x43;
	m.hdr.rsvd_ulp32 = 0xaabbccdd;
	for (unsigned i = 0; i < 3; i++) {
		size_t n;

		assert_false(ddp_msg_done(&m));
		assert_int_equal(ddp_tx_segment(&s, &m, out, 100, &n), 18);
		assert_int_equal(n, want[i]);
		assert_int_equal(octets(out, 2), i == 2 ? 0x4143 : 0x0143);
		assert_int_equal(octets(out + 2, 4), 0xaabbccdd);
		assert_int_equal(octets(out + 6, 4), 0);
		assert_int_equal(octets(out + 10, 4), 1);
		assert_int_equal(octets(out + 14, 4), mo);
		mo += (uint32_t)n;
	}
	assert_true(ddp_msg_done(&m));
	assert_int_equal(stats.ddp_tx_untagged, 3);
}

/* RFC 5041 §5.2.1: TO goes on from segment to segment, beyond 32 bits. */
static void a_tagged_message_is_segmented(void **state)
{
	struct ddp_stream s = stream();
	struct ddp_msg m;
	uint8_t out[18];
	uint64_t to = 0xfffffff0ull, left = 200;

	(void)state;
	ddp_msg_tagged(&m, 0x01020304, to, left);
	m.hdr.rsvd_ulp = 0x40;
	while (left) {
		size_t n;

		assert_int_equal(ddp_tx_segment(&s, &m, out, 100, &n), 14);
		assert_int_equal(n, left < 86 ? left : 86);
		left -= n;
		assert_int_equal(octets(out, 2), left ? 0x8140 : 0xc140);
		assert_int_equal(octets(out + 2, 4), 0x01020304);
		assert_true(octets(out + 6, 8) == to);
		to += n;
	}
	assert_true(ddp_msg_done(&m));
	assert_int_equal(stats.ddp_tx_tagged, 3);
}

/* RFC 5041 §5.1: a message of no octets is one segment, L set. */
static void a_message_of_nothing_is_one_segment(void **state)
{
	struct ddp_stream s = stream();
	struct ddp_msg m;
	uint8_t out[18];
	size_t n = 99;

	(void)state;
	ddp_msg_untagged(&s, &m, 0, 0);
	assert_false(ddp_msg_done(&m));
	assert_int_equal(ddp_tx_segment(&s, &m, out, 100, &n), 18);
	assert_int_equal(n, 0);
	assert_int_equal(out[0], 0x41);
	assert_true(ddp_msg_done(&m));
	ddp_msg_tagged(&m, 1, 2, 0);
	assert_false(ddp_msg_done(&m));
	ddp_tx_segment(&s, &m, out, 100, &n);
	assert_int_equal(n, 0);
	assert_int_equal(out[0], 0xc1);
	assert_true(ddp_msg_done(&m));
}

/* A message that ends exactly with a segment has no empty one behind it. */
static void a_message_that_just_fits_is_one_segment(void **state)
{
	struct ddp_stream s = stream();
	struct ddp_msg m;
	uint8_t out[18];
	size_t n;

	(void)state;
	ddp_msg_untagged(&s, &m, 0, 82);
	ddp_tx_segment(&s, &m, out, 100, &n);
	assert_int_equal(n, 82);
	assert_int_equal(out[0], 0x41);
	assert_true(ddp_msg_done(&m));
}

/* RFC 5041 §5.1: each queue numbers its own messages. */
static void sent_message_numbers_count_up_per_queue(void **state)
{
	struct ddp_stream s = stream();
	struct ddp_msg m;

	(void)state;
	for (uint32_t i = 1; i < 5; i++) {
		ddp_msg_untagged(&s, &m, 0, 1);
		assert_int_equal(m.hdr.msn, i);
	}
	ddp_msg_untagged(&s, &m, 1, 1);
	assert_int_equal(m.hdr.msn, 1);
	assert_int_equal(m.hdr.qn, 1);
	assert_int_equal(m.hdr.mo, 0);
}

/* RFC 5041 §5: messages of all lengths through segments of all sizes arrive as they left. */
static void what_is_segmented_is_put_together(void **state)
{
	struct ddp_stream a = stream(), b = stream();
	struct prng r = { 17 };
	uint8_t msg[3000], got[3000];

	(void)state;
	for (unsigned i = 0; i < 500; i++) {
		size_t len = prng_below(&r, i % 4 ? 300 : 3000), max = 20 + prng_below(&r, 1500);
		bool tagged = i & 1;
		uint64_t to = prng_next(&r) >> 1;
		struct ddp_msg m;

		prng_fill(&r, msg, len);
		if (tagged)
			ddp_msg_tagged(&m, i, to, len);
		else
			ddp_msg_untagged(&a, &m, i % 4 / 2, len);
		while (!ddp_msg_done(&m)) {
			struct ddp_seg seg;
			struct ulpdu u;
			size_t n, at = len - m.left;
			unsigned hdr = ddp_tx_segment(&a, &m, u.p, max, &n);

			memcpy(u.p + hdr, msg + at, n);
			u.n = hdr + n;
			assert_true(u.n <= max);
			assert_status(rx(&b, &u, &seg), UW_OK);
			assert_int_equal(tagged ? seg.hdr.to - to : seg.hdr.mo, at);
			assert_int_equal(seg.hdr.last, at + n == len);
			uw_rope_copy(seg.payload, got + at, n);
			if (seg.hdr.last)
				ddp_rx_delivered(&b, &seg);
		}
		assert_memory_equal(got, msg, len);
	}
}

/* ---- captures ---------------------------------------------------------------------------- */

/* Whole conversations of Linux siw: every segment passes, message after message. */
static void captured_conversations_pass(void **state)
{
	static const char *const files[] = { "siw-rping.txt", "siw-rping-crc.txt" };

	(void)state;
	for (size_t f = 0; f < COUNT(files); f++) {
		struct vectors x = vectors_read(files[f]);
		struct ddp_stream s[2] = { stream(), stream() };

		for (size_t i = 0; i < x.n; i++) {
			const struct vector *v = &x.v[i];
			struct uw_span one = { v->p + 2, (size_t)v->p[0] << 8 | v->p[1] };
			unsigned dir = vector_is(v, 0, ">");
			struct ddp_seg seg;

			if (!vector_is(v, 1, "fpdu"))
				continue;
			assert_status(ddp_rx(&s[dir], uw_rope_of(&one), &seg), UW_OK);
			assert_int_equal(seg.length, one.n);
			if (seg.hdr.last)
				ddp_rx_delivered(&s[dir], &seg);
		}
		assert_int_equal(s[0].rx_msn[0], 7);
		assert_int_equal(s[1].rx_msn[0], 7);
		assert_int_equal(s[0].rx_msn[1], 4);
		vectors_free(&x);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(segments_are_taken_apart),
	cmocka_unit_test(a_header_may_straddle),
	cmocka_unit_test(a_segment_may_carry_nothing),
	cmocka_unit_test(a_ulpdu_without_header_is_an_error),
	cmocka_unit_test(other_versions_are_refused),
	cmocka_unit_test(reserved_bits_are_not_checked),
	cmocka_unit_test(queues_that_do_not_exist_are_refused),
	cmocka_unit_test(message_numbers_count_up_per_queue),
	cmocka_unit_test(segments_of_one_message_share_their_number),
	cmocka_unit_test(message_numbers_wrap),
	cmocka_unit_test(tagged_segments_are_not_counted),
	cmocka_unit_test(an_untagged_message_is_segmented),
	cmocka_unit_test(a_tagged_message_is_segmented),
	cmocka_unit_test(a_message_of_nothing_is_one_segment),
	cmocka_unit_test(a_message_that_just_fits_is_one_segment),
	cmocka_unit_test(sent_message_numbers_count_up_per_queue),
	cmocka_unit_test(what_is_segmented_is_put_together),
	cmocka_unit_test(captured_conversations_pass),
};

UWTEST_MAIN(tests)
