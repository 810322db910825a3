/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpa/markers.h"

#include "pieces.h"
#include "uwtest.h"

#define MOST 66200

/* RFC 5044 §4.3 octet by octet: at stream positions divisible by 512 a marker stands in front of
 * the next FPDU octet; it points back to ULPDU_Length, or is zero in front of it. */
static size_t reference(unsigned phase, const uint8_t *fpdu, size_t n, uint8_t *out)
{
	size_t at = 0, start = 0;

	for (size_t i = 0; i < n; i++) {
		if ((phase + at) % 512 == 0) {
			size_t ptr = i ? at - start : 0;

			out[at++] = 0;
			out[at++] = 0;
			out[at++] = (uint8_t)(ptr >> 8);
			out[at++] = (uint8_t)ptr;
		}
		if (!i)
			start = at;
		out[at++] = fpdu[i];
	}
	return at;
}

/* FPDU lengths around the ends of the first markers, and the largest. */
static const size_t lengths[] = { 8,	24,   500,  504,  508,	512,  516,   520,  1012,
				  1016, 1020, 1024, 1448, 1524, 8948, 64776, 64780 };

/* RFC 5044 §4.3, at every phase. */
static void inserting_equals_the_definition(void **state)
{
	static uint8_t fpdu[MOST], want[MOST], got[MOST];
	struct prng r = { 7 };

	(void)state;
	prng_fill(&r, fpdu, sizeof(fpdu));
	for (unsigned phase = 0; phase < 512; phase += 4) {
		for (size_t i = 0; i < COUNT(lengths); i++) {
			size_t n = lengths[i], size;

			if (n > 9000 && phase % 128 > 4)
				continue;
			size = reference(phase, fpdu, n, want);
			memcpy(got, fpdu, n);
			got[size] = 0x5a;
			assert_int_equal(mpa_marked_size(phase, n), size);
			assert_int_equal(mpa_markers_insert(got, phase, n), size);
			assert_memory_equal(got, want, size);
			assert_int_equal(got[size], 0x5a);
		}
	}
}

static void stripping_undoes_inserting(void **state)
{
	static uint8_t fpdu[MOST], marked[MOST], got[MOST];
	struct prng r = { 8 };

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		unsigned phase = prng_below(&r, 128) * 4;
		size_t n = (prng_below(&r, i % 16 ? 600 : 16194) + 1) * 4, size;
		struct pieces x;
		int ok = 0;

		prng_fill(&r, fpdu, n);
		size = reference(phase, fpdu, n, marked);
		prng_fill(&r, marked + size, 8); /* the next FPDU is not looked at */
		x = pieces_random(marked, size + 8, 1500, &r);
		assert_int_equal(mpa_markers_strip(x.rope, phase, got, n, &ok), size);
		assert_true(ok);
		assert_memory_equal(got, fpdu, n);
		pieces_free(&x);
	}
}

/* RFC 5044 §4.3: the first marker is 0 and stands right before the first FPDU. */
static void the_first_marker_is_zero(void **state)
{
	uint8_t p[12] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	(void)state;
	assert_int_equal(mpa_markers_insert(p, 0, 8), 12);
	assert_memory_equal(p, "\0\0\0\0\1\2\3\4\5\6\7\10", 12);
}

/* RFC 5044 §4.3: one that falls right behind the FPDU is the next one's. */
static void a_marker_behind_the_fpdu_is_the_next_ones(void **state)
{
	(void)state;
	assert_int_equal(mpa_marked_size(512 - 24, 24), 24);
	assert_int_equal(mpa_marked_size(512 - 20, 24), 28);
	assert_int_equal(mpa_phase_add(512 - 24, 24), 0);
	assert_int_equal(mpa_marked_size(0, 24), 28);
}

/* RFC 5044 §4.3: all markers of one FPDU point to the same ULPDU_Length field. */
static void all_markers_point_to_one_start(void **state)
{
	static uint8_t p[4096];

	(void)state;
	for (unsigned phase = 4; phase < 512; phase += 4) {
		size_t size;

		memset(p, 0xff, 2000);
		size = mpa_markers_insert(p, phase, 2000);
		for (size_t at = 512 - phase; at < size; at += 512)
			assert_int_equal(p[at + 2] << 8 | p[at + 3], at);
	}
}

/* RFC 5044 §4.3: the low two bits of FPDUPTR are masked, its reserved half is not looked at. */
static void reserved_bits_of_a_marker_are_ignored(void **state)
{
	uint8_t fpdu[1200], marked[1300], got[1200];
	size_t size;
	int ok;

	(void)state;
	memset(fpdu, 0x33, sizeof(fpdu));
	size = reference(100, fpdu, sizeof(fpdu), marked);
	for (size_t at = 412; at < size; at += 512) {
		marked[at] = marked[at + 1] = 0xff;
		marked[at + 3] |= 3;
	}
	const struct uw_span one = { marked, size };

	mpa_markers_strip(uw_rope_of(&one), 100, got, sizeof(got), &ok);
	assert_true(ok);
	assert_memory_equal(got, fpdu, sizeof(got));
}

/* RFC 5044 §8: a marker that points elsewhere is noticed, whichever it is. */
static void a_marker_that_points_elsewhere_is_noticed(void **state)
{
	uint8_t fpdu[1200], marked[1300], got[1200];
	static const unsigned phases[] = { 0, 100, 508 };

	(void)state;
	memset(fpdu, 0x33, sizeof(fpdu));
	for (size_t i = 0; i < COUNT(phases); i++) {
		unsigned phase = phases[i];
		size_t size = reference(phase, fpdu, sizeof(fpdu), marked);
		const struct uw_span one = { marked, size };

		for (size_t at = phase ? 512 - phase : 0; at < size; at += 512) {
			int ok = 1;

			marked[at + 3] ^= 4;
			mpa_markers_strip(uw_rope_of(&one), phase, got, sizeof(got), &ok);
			assert_false(ok);
			marked[at + 3] ^= 4;
			mpa_markers_strip(uw_rope_of(&one), phase, got, sizeof(got), &ok);
			assert_true(ok);
		}
	}
}

/* RFC 5044 §4.3: FPDU after FPDU, the markers stay 512 octets apart. */
static void markers_stay_512_apart_over_a_stream(void **state)
{
	static uint8_t stream[70000];
	struct prng r = { 9 };
	unsigned phase = 0;
	size_t at = 0;

	(void)state;
	while (at < 60000) {
		size_t n = (prng_below(&r, 500) + 2) * 4, size;

		memset(stream + at, 0xff, n);
		size = mpa_markers_insert(stream + at, phase, n);
		phase = mpa_phase_add(phase, size);
		at += size;
	}
	for (size_t i = 0; i < at; i += 4) {
		bool marker = !stream[i] && !stream[i + 1];

		assert_int_equal(marker, i % 512 == 0);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(inserting_equals_the_definition),
	cmocka_unit_test(stripping_undoes_inserting),
	cmocka_unit_test(the_first_marker_is_zero),
	cmocka_unit_test(a_marker_behind_the_fpdu_is_the_next_ones),
	cmocka_unit_test(all_markers_point_to_one_start),
	cmocka_unit_test(reserved_bits_of_a_marker_are_ignored),
	cmocka_unit_test(a_marker_that_points_elsewhere_is_noticed),
	cmocka_unit_test(markers_stay_512_apart_over_a_stream),
};

UWTEST_MAIN(tests)
