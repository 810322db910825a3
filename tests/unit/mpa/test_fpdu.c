/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpa/fpdu.h"

#include "base/crc32c.h"
#include "mpa/markers.h"
#include "pieces.h"
#include "uwtest.h"
#include "vectors.h"

struct ends {
	struct uw_stats stats;
	struct mpa_tx tx;
	struct mpa_rx rx;
	uint8_t *scratch;
};

static struct ends ends(bool crc, bool markers)
{
	struct ends e = { .tx = { .crc = crc, .markers = markers },
			  .rx = { .crc = crc, .markers = markers } };

	if (markers) {
		e.scratch = malloc(MPA_FPDU_MAX);
		assert_non_null(e.scratch);
	}
	return e;
}

static void start(struct ends *e)
{
	e->tx.stats = e->rx.stats = &e->stats;
	e->rx.scratch = e->scratch;
}

/* Make the FPDU of n octets of ulpdu at p. */
static size_t make(struct ends *e, uint8_t *p, const void *ulpdu, size_t n)
{
	if (n)
		memcpy(mpa_tx_ulpdu(p), ulpdu, n);
	return mpa_tx_finish(&e->tx, p, n);
}

static uw_status take(struct ends *e, const void *p, size_t n, struct uw_rope *ulpdu, size_t *used)
{
	const struct uw_span one = { p, n };
	static struct uw_span kept;

	kept = one;
	return mpa_rx_next(&e->rx, uw_rope_of(&kept), ulpdu, used);
}

/* One FPDU out of a rope; it is all there and the ULPDU is want. */
static size_t expect(struct ends *e, struct uw_rope in, const void *want, size_t n)
{
	static uint8_t got[65536];
	struct uw_rope ulpdu;
	size_t used;

	assert_status(mpa_rx_next(&e->rx, in, &ulpdu, &used), UW_OK);
	assert_int_equal(ulpdu.len, n);
	uw_rope_copy(ulpdu, got, n);
	if (n)
		assert_memory_equal(got, want, n);
	return used;
}

/* ---- transmit ---------------------------------------------------------------------------- */

/* RFC 5044 §4.1, §4.4: length in network order, ULPDU, zero pad, CRC over all of that. */
static void an_fpdu_octet_for_octet(void **state)
{
	static const uint8_t ulpdu[5] = { 0xa1, 0xa2, 0xa3, 0xa4, 0xa5 };
	static const uint8_t head[8] = { 0, 5, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0 };
	struct ends e = ends(true, false);
	uint8_t p[32];
	uint32_t crc = uw_crc32c_end(uw_crc32c_add(UW_CRC32C_START, head, 8));

	(void)state;
	start(&e);
	memset(p, 0xff, sizeof(p));
	assert_int_equal(make(&e, p, ulpdu, 5), 12);
	assert_memory_equal(p, head, 8);
	assert_int_equal(p[8] | p[9] << 8 | p[10] << 16 | (uint32_t)p[11] << 24, crc);
	assert_int_equal(p[12], 0xff);
	assert_int_equal(e.stats.mpa_tx_fpdus, 1);
}

/* RFC 5044 §4.4: with CRC off its field is there all the same. */
static void without_crc_the_field_is_there(void **state)
{
	struct ends e = ends(false, false);
	uint8_t p[32];

	(void)state;
	start(&e);
	memset(p, 0xff, sizeof(p));
	assert_int_equal(make(&e, p, "abcdef", 6), 12);
	assert_memory_equal(p + 8, "\0\0\0\0", 4);
	assert_int_equal(p[12], 0xff);
}

/* RFC 5044 §4.1: for every remainder the pad is zero and the whole a multiple of four. */
static void pad_octets_are_zero(void **state)
{
	uint8_t p[64], ulpdu[40];

	(void)state;
	memset(ulpdu, 0xcc, sizeof(ulpdu));
	for (size_t n = 0; n < 40; n++) {
		struct ends e = ends(true, false);
		size_t size;

		start(&e);
		memset(p, 0xff, sizeof(p));
		size = make(&e, p, ulpdu, n);
		assert_int_equal(size % 4, 0);
		for (size_t i = 2 + n; i < size - 4; i++)
			assert_int_equal(p[i], 0);
	}
}

/* RFC 5044 appendix, figures 5 and 6 (§4.4): a Send of 24 octets with a marker in front of it, and
 * the next one with a marker inside. */
static void the_examples_of_the_rfc(void **state)
{
	struct vectors x = vectors_read("rfc5044-crc.txt");

	(void)state;
	assert_int_equal(x.n, 2);
	for (unsigned i = 0; i < 2; i++) {
		unsigned lead = (unsigned)atoi(x.v[i].word[0]);
		struct ends e = ends(true, true);
		struct uw_span one = vector_span(&x.v[i]);
		uint8_t p[64], ulpdu[42] = { 0x41, 0x43 };

		ulpdu[13] = (uint8_t)(i + 1); /* MSN */
		start(&e);
		e.tx.phase = e.rx.phase = (512 - lead) % 512;
		assert_int_equal(make(&e, p, ulpdu, 42), x.v[i].n);
		assert_memory_equal(p, x.v[i].p, x.v[i].n);
		assert_int_equal(expect(&e, uw_rope_of(&one), ulpdu, 42), x.v[i].n);
		free(e.scratch);
	}
	vectors_free(&x);
}

/* RFC 5044 §4.5: MULPDU from EMSS, with and without markers, within 128 to 64768 (§3). */
static void mulpdu_follows_the_formula(void **state)
{
	(void)state;
	assert_int_equal(mpa_mulpdu(1448, false), 1442);
	assert_int_equal(mpa_mulpdu(1448, true), 1430);
	assert_int_equal(mpa_mulpdu(1460, false), 1454);
	assert_int_equal(mpa_mulpdu(8948, false), 8942);
	for (size_t emss = 0; emss < 70000; emss++) {
		size_t ceil = emss / 512 + !!(emss % 512);
		size_t less[2] = { 6 + emss % 4, 6 + emss % 4 + 4 * ceil };

		for (unsigned m = 0; m < 2; m++) {
			size_t want = emss > less[m] + 128 ? emss - less[m] : 128;

			assert_int_equal(mpa_mulpdu(emss, m), want < 64768 ? want : 64768);
		}
	}
}

/* RFC 5044 §4.5: the FPDU of a MULPDU fits EMSS, wherever the markers fall; without markers one of
 * four octets more does not, with them one of eight. */
static void an_fpdu_of_mulpdu_fits_emss(void **state)
{
	(void)state;
	for (size_t emss = 160; emss < 9100; emss += 3) {
		size_t most = 0;

		assert_true(mpa_fpdu_size(mpa_mulpdu(emss, false)) <= emss);
		assert_true(mpa_fpdu_size(mpa_mulpdu(emss, false) + 4) > emss);
		for (unsigned phase = 0; phase < 512; phase += 4) {
			size_t size = mpa_marked_size(phase, mpa_fpdu_size(mpa_mulpdu(emss, true)));

			assert_true(size <= emss);
			most = size > most ? size : most;
		}
		assert_true(most + 8 > emss - emss % 4);
	}
}

/* What mpa_tx_fit promises for a room it keeps in every phase; 0 when there is no place at all. */
static void what_fits_does_fit(void **state)
{
	struct mpa_tx plain = { 0 }, marked = { .markers = true };

	(void)state;
	for (size_t room = 0; room < 3000; room++) {
		size_t n = mpa_tx_fit(&plain, room);

		if (n)
			assert_true(mpa_fpdu_size(n) <= room && mpa_fpdu_size(n + 1) > room);
		else
			assert_true(mpa_fpdu_size(1) > room);
		n = mpa_tx_fit(&marked, room);
		assert_true(n || room < 20);
		for (unsigned phase = 0; n && phase < 512; phase += 4)
			assert_true(mpa_marked_size(phase, mpa_fpdu_size(n)) <= room);
	}
	for (size_t room = MPA_ULPDU_MAX - 1000; room < MPA_ULPDU_MAX + 1000; room++) {
		size_t most = (room & ~(size_t)3) - 6;

		assert_int_equal(mpa_tx_fit(&plain, room),
				 most < MPA_ULPDU_MAX ? most : MPA_ULPDU_MAX);
	}
	assert_int_equal(mpa_tx_fit(&plain, 1448), 1442);
	assert_int_equal(mpa_tx_fit(&plain, 100000), MPA_ULPDU_MAX);
	assert_int_equal(mpa_tx_fit(&marked, 100000), MPA_ULPDU_MAX);
}

/* ---- receive ----------------------------------------------------------------------------- */

/* RFC 5044 §6: whatever the pieces that TCP hands over, the ULPDU comes out whole. */
static void segment_boundaries_do_not_matter(void **state)
{
	struct prng r = { 10 };
	uint8_t ulpdu[300], p[320];

	(void)state;
	prng_fill(&r, ulpdu, sizeof(ulpdu));
	for (size_t n = 0; n < 300; n += n < 20 ? 1 : 37) {
		for (size_t step = 1; step < 320; step += step < 12 ? 1 : 50) {
			struct ends e = ends(true, false);
			struct pieces x;
			size_t size;

			start(&e);
			size = make(&e, p, ulpdu, n);
			x = pieces_every(p, size, step);
			assert_int_equal(expect(&e, x.rope, ulpdu, n), size);
			pieces_free(&x);
		}
	}
}

/* RFC 5044 §6: nothing is delivered before the whole FPDU is there. */
static void an_incomplete_fpdu_asks_for_more(void **state)
{
	uint8_t p[64];

	(void)state;
	for (unsigned markers = 0; markers < 2; markers++) {
		struct ends e = ends(true, markers);
		struct uw_rope ulpdu;
		size_t size, used;

		start(&e);
		size = make(&e, p, "0123456789abcdefghi", 19);
		for (size_t n = 0; n < size; n++) {
			assert_status(take(&e, p, n, &ulpdu, &used), UW_MORE);
			assert_int_equal(used, 0);
		}
		assert_status(take(&e, p, size, &ulpdu, &used), UW_OK);
		assert_int_equal(used, size);
		assert_int_equal(e.stats.mpa_rx_fpdus, 1);
		free(e.scratch);
	}
}

/* RFC 5044 §4.4: one wrong bit anywhere is found, and counted. */
static void every_wrong_bit_is_found(void **state)
{
	uint8_t p[40];
	struct ends e = ends(true, false);
	struct uw_rope ulpdu;
	size_t size, used;

	(void)state;
	start(&e);
	size = make(&e, p, "twenty-one octets ...", 21);
	assert_int_equal(size, 28);
	for (size_t bit = 16; bit < size * 8; bit++) {
		struct mpa_rx rx = e.rx;
		const struct uw_span one = { p, size };

		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_status(mpa_rx_next(&rx, uw_rope_of(&one), &ulpdu, &used), UW_E_MPA_CRC);
		assert_int_equal(used, 0);
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(e.stats.mpa_rx_crc_errors, (size - 2) * 8);
	assert_int_equal(e.stats.mpa_rx_fpdus, 0);
}

/* RFC 5044 §8: after an error nothing more is delivered, however good. */
static void after_an_error_nothing_is_delivered(void **state)
{
	uint8_t bad[16], good[16];
	struct ends e = ends(true, false);
	struct uw_rope ulpdu;
	size_t used;

	(void)state;
	start(&e);
	assert_int_equal(make(&e, bad, "abcdef", 6), 12);
	memcpy(good, bad, 12);
	bad[3] ^= 1;
	assert_status(take(&e, bad, 12, &ulpdu, &used), UW_E_MPA_CRC);
	assert_status(take(&e, good, 12, &ulpdu, &used), UW_E_MPA_CRC);
	assert_int_equal(used, 0);
	assert_int_equal(e.stats.mpa_rx_fpdus, 0);
	assert_int_equal(e.stats.mpa_rx_crc_errors, 1);
}

/* RFC 5044 §4.4: with CRC off the field may hold anything. RFC 5044 §4.1: so may the pad. */
static void without_crc_nothing_is_checked(void **state)
{
	struct ends e = ends(false, false);
	uint8_t p[16];
	struct uw_span one = { p, 12 };

	(void)state;
	start(&e);
	assert_int_equal(make(&e, p, "abcde", 5), 12);
	p[7] = 0x99;
	memset(p + 8, 0x77, 4);
	assert_int_equal(expect(&e, uw_rope_of(&one), "abcde", 5), 12);
}

/* RFC 5044 §4.1: a pad that is not zero is no error; only the CRC counts it. */
static void the_value_of_the_pad_is_ignored(void **state)
{
	struct ends e = ends(true, false);
	uint8_t p[16];
	struct uw_span one = { p, 12 };

	(void)state;
	start(&e);
	assert_int_equal(make(&e, p, "abcde", 5), 12);
	p[7] = 0x99;
	mpa_put_crc(p + 8, uw_crc32c_end(uw_crc32c_add(UW_CRC32C_START, p, 8)));
	assert_int_equal(expect(&e, uw_rope_of(&one), "abcde", 5), 12);
}

static void an_fpdu_may_carry_nothing(void **state)
{
	struct ends e = ends(true, false);
	uint8_t p[16];
	struct uw_span one = { p, 8 };

	(void)state;
	start(&e);
	assert_int_equal(make(&e, p, NULL, 0), 8);
	assert_memory_equal(p, "\0\0\0\0", 4);
	assert_int_equal(expect(&e, uw_rope_of(&one), NULL, 0), 8);
}

static void straddling_fpdus_are_counted(void **state)
{
	struct ends e = ends(true, false);
	uint8_t p[32];
	size_t size;
	struct pieces whole, cut;

	(void)state;
	start(&e);
	size = make(&e, p, "0123456789", 10);
	whole = pieces_every(p, size, size);
	cut = pieces_every(p, size, 7);
	expect(&e, whole.rope, "0123456789", 10);
	assert_int_equal(e.stats.mpa_rx_straddling, 0);
	expect(&e, cut.rope, "0123456789", 10);
	assert_int_equal(e.stats.mpa_rx_straddling, 1);
	pieces_free(&whole);
	pieces_free(&cut);
}

/* ---- markers ----------------------------------------------------------------------------- */

static size_t random_length(struct prng *r, unsigned i)
{
	static const uint32_t most[] = { 64, 520, 1500, 9000 };

	return i % 50 == 49 ? MPA_ULPDU_MAX - prng_below(r, 5) : prng_below(r, most[i % 4]);
}

/* RFC 5044 §4.3, §4.4: a stream of FPDUs of random lengths in random pieces, with and without CRC
 * and markers. */
static void a_stream_of_fpdus_arrives(void **state)
{
	static uint8_t ulpdu[65536], wire[400000];
	struct prng r = { 11 };

	(void)state;
	for (unsigned run = 0; run < 8; run++) {
		struct ends e = ends(run & 1, run & 2);
		size_t at = 0, end = 0, lens[120], n = 0, used = 0;
		struct pieces x;

		start(&e);
		prng_fill(&r, ulpdu, sizeof(ulpdu));
		for (; n < 120 && end < 300000; n++) {
			lens[n] = random_length(&r, (unsigned)n);
			end += make(&e, wire + end, ulpdu, lens[n]);
		}
		x = pieces_random(wire, end, 3000, &r);
		for (size_t i = 0; i < n; i++) {
			used = expect(&e, uw_rope_sub(x.rope, at, end - at), ulpdu, lens[i]);
			at += used;
		}
		assert_int_equal(at, end);
		assert_int_equal(e.stats.mpa_tx_fpdus, n);
		assert_int_equal(e.stats.mpa_rx_fpdus, n);
		pieces_free(&x);
		free(e.scratch);
	}
}

/* RFC 5044 §4.4: the CRC covers a marker in front of ULPDU_Length, inside, and right in front of
 * the CRC field; one bit of each is found. */
static void the_crc_covers_every_marker(void **state)
{
	static const unsigned phases[] = { 0, 512 - 8, 512 - 24 };
	uint8_t p[64], want[32];

	(void)state;
	memset(want, 0x44, sizeof(want));
	for (size_t i = 0; i < COUNT(phases); i++) {
		struct ends e = ends(true, true);
		size_t size, used, at = phases[i] ? 512 - phases[i] : 0;
		struct uw_rope ulpdu;
		struct uw_span one = { p, 32 };

		start(&e);
		e.tx.phase = e.rx.phase = phases[i];
		size = make(&e, p, want, 22);
		assert_int_equal(size, 32);
		struct mpa_rx rx = e.rx;

		assert_int_equal(expect(&e, uw_rope_of(&one), want, 22), 32);
		assert_int_equal(e.rx.phase, (phases[i] + 32) % 512);
		p[at] ^= 1;
		assert_status(mpa_rx_next(&rx, uw_rope_of(&one), &ulpdu, &used), UW_E_MPA_CRC);
		free(e.scratch);
	}
}

/* RFC 5044 §8: marker and ULPDU_Length disagree, seen when CRC does not see it first. */
static void a_marker_that_disagrees_is_an_error(void **state)
{
	struct ends e = ends(false, true);
	uint8_t p[64], want[32];
	struct uw_rope ulpdu;
	size_t used;

	(void)state;
	start(&e);
	e.tx.phase = e.rx.phase = 512 - 8;
	memset(want, 0x44, sizeof(want));
	assert_int_equal(make(&e, p, want, 22), 32);
	p[11] ^= 0x10;
	assert_status(take(&e, p, 32, &ulpdu, &used), UW_E_MPA_MARKER);
	p[11] ^= 0x10;
	assert_status(take(&e, p, 32, &ulpdu, &used), UW_E_MPA_MARKER);
	assert_int_equal(used, 0);
	free(e.scratch);
}

/* ---- captures ---------------------------------------------------------------------------- */

/* Every FPDU of Linux siw with CRC on: the CRC is good, in one piece, octet by octet and in random
 * pieces, and made again it has the same octets. */
static void captured_fpdus_arrive_and_are_made_again(void **state)
{
	static const char *const files[] = { "siw-rping-crc.txt", "siw-perftest-crc.txt" };
	struct prng r = { 12 };
	uint8_t p[2048];
	size_t seen = 0;

	(void)state;
	for (size_t f = 0; f < COUNT(files); f++) {
		struct vectors x = vectors_read(files[f]);

		for (size_t i = 0; i < x.n; i++) {
			const struct vector *v = &x.v[i];
			size_t n = (size_t)v->p[0] << 8 | v->p[1];
			struct ends e = ends(true, false);
			struct pieces cut[3];

			if (!vector_is(v, 1, "fpdu"))
				continue;
			start(&e);
			cut[0] = pieces_every(v->p, v->n, v->n);
			cut[1] = pieces_every(v->p, v->n, 1);
			cut[2] = pieces_random(v->p, v->n, 600, &r);
			for (unsigned c = 0; c < 3; c++) {
				assert_int_equal(expect(&e, cut[c].rope, v->p + 2, n), v->n);
				pieces_free(&cut[c]);
			}
			assert_int_equal(make(&e, p, v->p + 2, n), v->n);
			assert_memory_equal(p, v->p, v->n);
			seen++;
		}
		vectors_free(&x);
	}
	assert_true(seen > 50);
}

/* A whole conversation of Linux siw, one direction behind the other, in segments of 1000. */
static void a_captured_stream_arrives(void **state)
{
	struct vectors x = vectors_read("siw-rping-crc.txt");

	(void)state;
	for (unsigned dir = 0; dir < 2; dir++) {
		static uint8_t wire[40000];
		struct ends e = ends(true, false);
		size_t end = 0, at = 0;
		struct pieces cut;

		start(&e);
		for (size_t i = 0; i < x.n; i++) {
			if (!vector_is(&x.v[i], 0, dir ? "<" : ">") ||
			    !vector_is(&x.v[i], 1, "fpdu"))
				continue;
			memcpy(wire + end, x.v[i].p, x.v[i].n);
			end += x.v[i].n;
		}
		cut = pieces_every(wire, end, 1000);
		while (at < end) {
			struct uw_rope ulpdu;
			size_t used;

			assert_status(mpa_rx_next(&e.rx, uw_rope_sub(cut.rope, at, end - at),
						  &ulpdu, &used),
				      UW_OK);
			at += used;
		}
		assert_int_equal(at, end);
		assert_true(e.stats.mpa_rx_fpdus >= 19);
		assert_true(e.stats.mpa_rx_straddling > 8);
		pieces_free(&cut);
	}
	vectors_free(&x);
}

/* What could not be used yet comes again, the markers where they were. */
static void what_is_given_back_comes_again(void **state)
{
	uint8_t p[4096], body[1500];
	struct uw_rope ulpdu;
	size_t n, used;

	(void)state;
	memset(body, 7, sizeof(body));
	for (unsigned markers = 0; markers < 2; markers++) {
		struct ends e = ends(true, markers);

		start(&e);
		n = make(&e, p, body, sizeof(body));
		for (unsigned i = 0; i < 3; i++) {
			assert_status(take(&e, p, n, &ulpdu, &used), UW_OK);
			assert_int_equal(used, n);
			mpa_rx_put_back(&e.rx, ulpdu, used);
			assert_int_equal(e.stats.mpa_rx_fpdus, 0);
		}
		assert_status(take(&e, p, n, &ulpdu, &used), UW_OK);
		n = make(&e, p, body, 100); /* and the next one is found */
		assert_status(take(&e, p, n, &ulpdu, &used), UW_OK);
		assert_int_equal(ulpdu.len, 100);
		assert_int_equal(e.stats.mpa_rx_fpdus, 2);
		free(e.scratch);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(an_fpdu_octet_for_octet),
	cmocka_unit_test(without_crc_the_field_is_there),
	cmocka_unit_test(pad_octets_are_zero),
	cmocka_unit_test(the_examples_of_the_rfc),
	cmocka_unit_test(mulpdu_follows_the_formula),
	cmocka_unit_test(an_fpdu_of_mulpdu_fits_emss),
	cmocka_unit_test(what_fits_does_fit),
	cmocka_unit_test(segment_boundaries_do_not_matter),
	cmocka_unit_test(an_incomplete_fpdu_asks_for_more),
	cmocka_unit_test(every_wrong_bit_is_found),
	cmocka_unit_test(after_an_error_nothing_is_delivered),
	cmocka_unit_test(without_crc_nothing_is_checked),
	cmocka_unit_test(the_value_of_the_pad_is_ignored),
	cmocka_unit_test(an_fpdu_may_carry_nothing),
	cmocka_unit_test(straddling_fpdus_are_counted),
	cmocka_unit_test(a_stream_of_fpdus_arrives),
	cmocka_unit_test(the_crc_covers_every_marker),
	cmocka_unit_test(a_marker_that_disagrees_is_an_error),
	cmocka_unit_test(captured_fpdus_arrive_and_are_made_again),
	cmocka_unit_test(a_captured_stream_arrives),
	cmocka_unit_test(what_is_given_back_comes_again),
};

UWTEST_MAIN(tests)
