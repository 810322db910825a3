/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mpa_wire.h"

#include "uwtest.h"
#include "vectors.h"

#define REQ  "MPA ID Req Frame"
#define REP  "MPA ID Rep Frame"
#define SIZE 20

struct frame {
	uint8_t p[MPA_START_MAX + 8];
	size_t n;
};

/* A start-up frame by hand: key, bits, revision, PD_Length, and as many octets of private data. */
static struct frame frame(const char *key, unsigned bits, unsigned rev, unsigned pd)
{
	struct frame f = { .n = SIZE + (pd <= MPA_PD_MAX ? pd : MPA_PD_MAX) };

	memcpy(f.p, key, 16);
	f.p[16] = (uint8_t)bits;
	f.p[17] = (uint8_t)rev;
	f.p[18] = (uint8_t)(pd >> 8);
	f.p[19] = (uint8_t)pd;
	for (size_t i = SIZE; i < f.n; i++)
		f.p[i] = (uint8_t)(i * 7);
	return f;
}

static struct frame enhanced(const char *key, unsigned ird, unsigned ord)
{
	struct frame f = frame(key, MPA_BIT_S, 2, 4);

	f.p[20] = (uint8_t)(ird >> 8);
	f.p[21] = (uint8_t)ird;
	f.p[22] = (uint8_t)(ord >> 8);
	f.p[23] = (uint8_t)ord;
	return f;
}

static uw_status decode(const struct frame *f, struct mpa_start *s)
{
	size_t used;
	uw_status st = mpa_start_decode((struct uw_span){ f->p, f->n }, s, &used);

	assert_int_equal(used, st ? 0 : f->n);
	return st;
}

/* ---- encoding ---------------------------------------------------------------------------- */

/* RFC 5044 §7.1.1: key, bits, revision, PD_Length in network order, private data. */
static void a_request_octet_for_octet(void **state)
{
	static const uint8_t pd[3] = { 0xa, 0xb, 0xc };
	const struct mpa_start s = { .crc = true, .rev = 1, .pd = { pd, 3 } };
	static const uint8_t want[] = { 'M', 'P', 'A', ' ', 'I',  'D', ' ', 'R', 'e', 'q', ' ', 'F',
					'r', 'a', 'm', 'e', 0x40, 1,   0,   3,	 0xa, 0xb, 0xc };
	uint8_t out[MPA_START_MAX];

	(void)state;
	assert_int_equal(mpa_start_encode(&s, out), sizeof(want));
	assert_memory_equal(out, want, sizeof(want));
}

/* RFC 5044 §7.1.1, RFC 6581 §9: the reply key; M, C, R and S each in its place. */
static void each_flag_has_its_bit(void **state)
{
	static const struct {
		struct mpa_start s;
		uint8_t bits;
	} rows[] = {
		{ { .reply = true, .markers = true }, 0x80 },
		{ { .reply = true, .crc = true }, 0x40 },
		{ { .reply = true, .reject = true }, 0x20 },
		{ { .reply = true, .enhanced = true }, 0x10 },
		{ { .reply = true }, 0x00 },
	};
	uint8_t out[MPA_START_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		mpa_start_encode(&rows[i].s, out);
		assert_memory_equal(out, REP, 16);
		assert_int_equal(out[16], rows[i].bits);
	}
}

/* RFC 5044 §7.1.1: R is for Replies; a Request carries it as zero. */
static void a_request_never_carries_r(void **state)
{
	const struct mpa_start s = { .reject = true, .rev = 1 };
	uint8_t out[MPA_START_MAX];

	(void)state;
	mpa_start_encode(&s, out);
	assert_int_equal(out[16], 0);
}

/* RFC 6581 §9: A B IRD, C D ORD; the word counts in PD_Length and stands before the ULP's data. */
static void the_enhanced_word_octet_for_octet(void **state)
{
	static const uint8_t pd[2] = { 0x55, 0x66 };
	struct mpa_start s = { .enhanced = true,
			       .rev = 2,
			       .ird = 0x1234,
			       .ord = 0x2345,
			       .p2p = true,
			       .rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ,
			       .pd = { pd, 2 } };
	static const uint8_t all[] = { 0, 6, 0xd2, 0x34, 0xe3, 0x45, 0x55, 0x66 };
	uint8_t out[MPA_START_MAX];

	(void)state;
	assert_int_equal(mpa_start_encode(&s, out), 26);
	assert_memory_equal(out + 18, all, sizeof(all));
	s.rtr = MPA_RTR_SEND;
	mpa_start_encode(&s, out);
	assert_memory_equal(out + 20, "\xd2\x34\x23\x45", 4);
	s.rtr = MPA_RTR_WRITE;
	mpa_start_encode(&s, out);
	assert_memory_equal(out + 20, "\x92\x34\xa3\x45", 4);
	s.rtr = MPA_RTR_READ;
	mpa_start_encode(&s, out);
	assert_memory_equal(out + 20, "\x92\x34\x63\x45", 4);
}

/* RFC 6581 §9.2: without A the bits B, C and D are zero. */
static void without_a_no_rtr_bit_is_sent(void **state)
{
	const struct mpa_start s = { .enhanced = true, .rev = 2, .ird = 1, .ord = 2, .rtr = 7 };
	uint8_t out[MPA_START_MAX];

	(void)state;
	mpa_start_encode(&s, out);
	assert_memory_equal(out + 20, "\x00\x01\x00\x02", 4);
}

/* RFC 6581 §9.1: 14 bits; 0x3fff goes out as it is, and nothing spills into the flags. */
static void ird_and_ord_are_14_bits(void **state)
{
	struct mpa_start s = { .enhanced = true, .rev = 2, .ird = 0x3fff, .ord = 0x3fff };
	uint8_t out[MPA_START_MAX];

	(void)state;
	mpa_start_encode(&s, out);
	assert_memory_equal(out + 20, "\x3f\xff\x3f\xff", 4);
	s.ird = s.ord = 0xffff;
	mpa_start_encode(&s, out);
	assert_memory_equal(out + 20, "\x3f\xff\x3f\xff", 4);
}

/* ---- decoding ---------------------------------------------------------------------------- */

/* RFC 5044 §7.1.1 */
static void bits_and_revision_are_read(void **state)
{
	struct mpa_start s;
	struct frame f = frame(REP, 0xe0, 1, 0);

	(void)state;
	assert_status(decode(&f, &s), UW_OK);
	assert_true(s.reply && s.markers && s.crc && s.reject && !s.enhanced);
	assert_int_equal(s.rev, 1);
	f = frame(REQ, 0x00, 0, 0);
	assert_status(decode(&f, &s), UW_OK);
	assert_false(s.reply || s.markers || s.crc || s.reject || s.enhanced);
	assert_int_equal(s.rev, 0);
	assert_int_equal(s.pd.n, 0);
}

/* RFC 5044 §7.1.1: reserved bits are not looked at, and R not in a Request. */
static void reserved_bits_are_not_checked(void **state)
{
	struct mpa_start s;
	struct frame f = frame(REQ, 0x2f, 1, 0);

	(void)state;
	assert_status(decode(&f, &s), UW_OK);
	assert_false(s.reject);
	assert_false(s.markers || s.crc || s.enhanced);
}

/* RFC 5044 §7.1.1: private data of 0 to 512 octets; more is no valid frame, whatever follows. */
static void pd_length_has_a_limit(void **state)
{
	struct mpa_start s;
	struct frame f = frame(REQ, 0, 1, 512);

	(void)state;
	assert_status(decode(&f, &s), UW_OK);
	assert_int_equal(s.pd.n, 512);
	assert_ptr_equal(s.pd.p, f.p + SIZE);
	f = frame(REQ, 0, 1, 513);
	assert_status(decode(&f, &s), UW_E_MPA_FRAME);
	f.n = SIZE;
	assert_status(decode(&f, &s), UW_E_MPA_FRAME);
	f = frame(REQ, 0, 1, 0xffff);
	assert_status(decode(&f, &s), UW_E_MPA_FRAME);
}

/* A frame that is not all there asks for more, at every length; what comes behind is left. */
static void a_frame_is_taken_whole(void **state)
{
	struct mpa_start s;
	struct frame f = frame(REQ, MPA_BIT_C | MPA_BIT_S, 2, 60);
	size_t used;

	(void)state;
	for (size_t n = 0; n < f.n; n++) {
		assert_status(mpa_start_decode((struct uw_span){ f.p, n }, &s, &used), UW_MORE);
		assert_int_equal(used, 0);
	}
	assert_status(mpa_start_decode((struct uw_span){ f.p, f.n + 5 }, &s, &used), UW_OK);
	assert_int_equal(used, f.n);
	assert_int_equal(s.pd.n, 56);
}

/* RFC 5044 §7.1.1: the key is checked, and a wrong one shows in the first octet that differs. */
static void a_wrong_key_is_seen_at_once(void **state)
{
	struct mpa_start s;
	size_t used;

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		struct frame f = frame(REQ, 0, 1, 0);

		f.p[i] ^= 0x20;
		if (i)
			assert_status(mpa_start_decode((struct uw_span){ f.p, i }, &s, &used),
				      UW_MORE);
		for (size_t n = i + 1; n <= f.n; n++)
			assert_status(mpa_start_decode((struct uw_span){ f.p, n }, &s, &used),
				      UW_E_MPA_FRAME);
	}
}

/* RFC 6581 §9: with S the first four octets of private data are not the ULP's. */
static void the_enhanced_word_is_taken_off(void **state)
{
	struct mpa_start s;
	struct frame f = frame(REP, MPA_BIT_S, 2, 10);

	(void)state;
	memcpy(f.p + 20, "\xc0\x07\x80\x09", 4);
	assert_status(decode(&f, &s), UW_OK);
	assert_true(s.enhanced && s.p2p);
	assert_int_equal(s.rtr, MPA_RTR_SEND | MPA_RTR_WRITE);
	assert_int_equal(s.ird, 7);
	assert_int_equal(s.ord, 9);
	assert_int_equal(s.pd.n, 6);
	assert_ptr_equal(s.pd.p, f.p + 24);
}

/* RFC 6581 §9.2: A=0 makes B, C and D meaningless; each means its kind with A=1. */
static void rtr_bits_count_only_with_a(void **state)
{
	struct mpa_start s;
	struct frame f = enhanced(REQ, 0x4001, 0xc001);

	(void)state;
	assert_status(decode(&f, &s), UW_OK);
	assert_false(s.p2p);
	assert_int_equal(s.rtr, MPA_RTR_NONE);
	f = enhanced(REQ, 0xc001, 0x0001);
	assert_status(decode(&f, &s), UW_OK);
	assert_int_equal(s.rtr, MPA_RTR_SEND);
	f = enhanced(REQ, 0x8001, 0x8001);
	assert_status(decode(&f, &s), UW_OK);
	assert_int_equal(s.rtr, MPA_RTR_WRITE);
	f = enhanced(REQ, 0x8001, 0x4001);
	assert_status(decode(&f, &s), UW_OK);
	assert_int_equal(s.rtr, MPA_RTR_READ);
	assert_true(s.p2p);
}

/* RFC 6581 §9.1 */
static void ird_and_ord_are_read_without_the_flags(void **state)
{
	struct mpa_start s;
	struct frame f = enhanced(REQ, 0xffff, 0xfffe);

	(void)state;
	assert_status(decode(&f, &s), UW_OK);
	assert_int_equal(s.ird, MPA_RD_NO_NEGO);
	assert_int_equal(s.ord, 0x3ffe);
}

/* RFC 6581 §9: S without room for its word is no valid frame, at whatever length it arrives. */
static void s_needs_four_octets(void **state)
{
	struct mpa_start s;

	(void)state;
	for (unsigned pd = 0; pd < 4; pd++) {
		struct frame f = frame(REP, MPA_BIT_S, 2, pd);

		assert_status(decode(&f, &s), UW_E_MPA_FRAME);
	}
}

/* RFC 6581 §9: below revision 2 there is no S; the bit is a reserved one and all data the ULP's. */
static void s_is_reserved_before_revision_2(void **state)
{
	struct mpa_start s;

	(void)state;
	for (unsigned rev = 0; rev < 2; rev++) {
		struct frame f = frame(REQ, MPA_BIT_S, rev, 2);

		assert_status(decode(&f, &s), UW_OK);
		assert_false(s.enhanced);
		assert_int_equal(s.pd.n, 2);
	}
}

/* ---- both -------------------------------------------------------------------------------- */

static struct mpa_start random_start(struct prng *r, const uint8_t *pd)
{
	struct mpa_start s = { .reply = prng_below(r, 2),
			       .markers = prng_below(r, 2),
			       .crc = prng_below(r, 2),
			       .rev = (uint8_t)prng_below(r, 4) };

	s.reject = s.reply && prng_below(r, 2);
	s.enhanced = s.rev >= 2 && prng_below(r, 2);
	if (s.enhanced) {
		s.p2p = prng_below(r, 2);
		s.rtr = s.p2p ? prng_below(r, 8) : 0;
		s.ird = (uint16_t)prng_below(r, 0x4000);
		s.ord = (uint16_t)prng_below(r, 0x4000);
	}
	s.pd = (struct uw_span){ pd, prng_below(r, s.enhanced ? 509 : 513) };
	return s;
}

static void what_is_encoded_decodes_the_same(void **state)
{
	struct prng r = { 5 };
	uint8_t pd[512];

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		struct mpa_start s, got;
		struct frame f = { .n = 0 };

		prng_fill(&r, pd, sizeof(pd));
		s = random_start(&r, pd);
		f.n = mpa_start_encode(&s, f.p);
		assert_true(f.n <= MPA_START_MAX);
		assert_status(decode(&f, &got), UW_OK);
		assert_int_equal(got.pd.n, s.pd.n);
		if (s.pd.n)
			assert_memory_equal(got.pd.p, pd, s.pd.n);
		assert_true(got.reply == s.reply && got.markers == s.markers && got.crc == s.crc);
		assert_true(got.reject == s.reject && got.enhanced == s.enhanced);
		assert_true(got.p2p == s.p2p && got.rtr == s.rtr && got.rev == s.rev);
		assert_true(got.ird == s.ird && got.ord == s.ord);
	}
}

/* Frames of Linux siw: decoded and encoded again they are the same octets. */
static void captured_frames_come_out_as_they_went_in(void **state)
{
	struct vectors x = vectors_read("siw-startup.txt");
	uint8_t out[MPA_START_MAX];

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		struct mpa_start s;
		size_t used;

		assert_status(mpa_start_decode(vector_span(&x.v[i]), &s, &used), UW_OK);
		assert_int_equal(used, x.v[i].n);
		assert_int_equal(s.reply, vector_is(&x.v[i], 1, "reply"));
		assert_true(s.enhanced && s.rev == 2 && !s.markers && !s.reject);
		assert_int_equal(mpa_start_encode(&s, out), x.v[i].n);
		assert_memory_equal(out, x.v[i].p, x.v[i].n);
	}
	vectors_free(&x);
}

/* ---- FPDU sizes -------------------------------------------------------------------------- */

/* RFC 5044 §4.1: pad so that length field, ULPDU and pad are a multiple of four. */
static void pad_fills_up_to_four(void **state)
{
	static const unsigned want[] = { 2, 1, 0, 3 };

	(void)state;
	for (size_t n = 0; n <= 65535; n++) {
		assert_int_equal(mpa_pad(n), want[n % 4]);
		assert_int_equal(mpa_fpdu_size(n), (2 + n + 3) / 4 * 4 + 4);
	}
}

/* RFC 5044 §4.4, appendix figure 5: least significant octet first. */
static void the_crc_field_is_least_significant_first(void **state)
{
	uint8_t p[4];

	(void)state;
	mpa_put_crc(p, 0x83992352);
	assert_memory_equal(p, "\x52\x23\x99\x83", 4);
	assert_int_equal(mpa_get_crc(p), 0x83992352);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_request_octet_for_octet),
	cmocka_unit_test(each_flag_has_its_bit),
	cmocka_unit_test(a_request_never_carries_r),
	cmocka_unit_test(the_enhanced_word_octet_for_octet),
	cmocka_unit_test(without_a_no_rtr_bit_is_sent),
	cmocka_unit_test(ird_and_ord_are_14_bits),
	cmocka_unit_test(bits_and_revision_are_read),
	cmocka_unit_test(reserved_bits_are_not_checked),
	cmocka_unit_test(pd_length_has_a_limit),
	cmocka_unit_test(a_frame_is_taken_whole),
	cmocka_unit_test(a_wrong_key_is_seen_at_once),
	cmocka_unit_test(the_enhanced_word_is_taken_off),
	cmocka_unit_test(rtr_bits_count_only_with_a),
	cmocka_unit_test(ird_and_ord_are_read_without_the_flags),
	cmocka_unit_test(s_needs_four_octets),
	cmocka_unit_test(s_is_reserved_before_revision_2),
	cmocka_unit_test(what_is_encoded_decodes_the_same),
	cmocka_unit_test(captured_frames_come_out_as_they_went_in),
	cmocka_unit_test(pad_fills_up_to_four),
	cmocka_unit_test(the_crc_field_is_least_significant_first),
};

UWTEST_MAIN(tests)
