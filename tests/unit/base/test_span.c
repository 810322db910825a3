/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/span.h"

#include "base/crc32c.h"
#include "pieces.h"
#include "uwtest.h"

#define N 200

static void fill(uint8_t *b)
{
	for (unsigned i = 0; i < N; i++)
		b[i] = (uint8_t)(i + 1);
}

static void a_rope_of_one_span_is_that_span(void **state)
{
	const uint8_t b[3] = { 1, 2, 3 };
	const struct uw_span one = { b, 3 };
	struct uw_rope r = uw_rope_of(&one);

	(void)state;
	assert_int_equal(r.len, 3);
	assert_ptr_equal(uw_rope_head(r).p, b);
	assert_int_equal(uw_rope_head(r).n, 3);
}

/* Every part of ropes with every size of piece. */
static void every_part_copies_as_it_stood(void **state)
{
	uint8_t b[N], got[N + 1];
	const uint8_t *flat;

	(void)state;
	fill(b);
	for (size_t step = 1; step <= N; step += step < 9 ? 1 : 13) {
		struct pieces x = pieces_every(b, N, step);

		for (size_t off = 0; off <= N; off += 7) {
			size_t n = N - off < 60 ? N - off : 60;
			struct uw_rope part = uw_rope_sub(x.rope, off, n);

			memset(got, 0, sizeof(got));
			assert_int_equal(part.len, n);
			uw_rope_copy(part, got, n);
			if (n)
				assert_memory_equal(got, b + off, n);
			assert_int_equal(got[n], 0);
			if (!n)
				continue;
			flat = uw_rope_flat(part, got, n);
			assert_memory_equal(flat, b + off, n);
			assert_int_equal(flat == got, uw_rope_head(part).n < n);
		}
		pieces_free(&x);
	}
}

static void parts_of_parts_add_their_offsets(void **state)
{
	struct prng r = { 4 };
	uint8_t b[N], got[N];

	(void)state;
	fill(b);
	for (unsigned i = 0; i < 200; i++) {
		struct pieces x = pieces_random(b, N, 30, &r);
		size_t a = prng_below(&r, N), an = prng_below(&r, (uint32_t)(N - a)) + 1;
		size_t c = prng_below(&r, (uint32_t)an),
		       cn = prng_below(&r, (uint32_t)(an - c)) + 1;
		struct uw_rope part = uw_rope_sub(uw_rope_sub(x.rope, a, an), c, cn);

		uw_rope_copy(part, got, cn);
		assert_memory_equal(got, b + a + c, cn);
		pieces_free(&x);
	}
}

static void the_head_ends_with_its_piece_or_with_the_rope(void **state)
{
	uint8_t b[N];
	struct pieces x;
	struct uw_span head;

	(void)state;
	fill(b);
	x = pieces_every(b, N, 50);
	head = uw_rope_head(uw_rope_sub(x.rope, 10, 100));
	assert_int_equal(head.n, 40);
	assert_int_equal(head.p[0], 11);
	head = uw_rope_head(uw_rope_sub(x.rope, 10, 30));
	assert_int_equal(head.n, 30);
	/* a part that begins with the second piece is entered there */
	head = uw_rope_head(uw_rope_sub(x.rope, 50, 50));
	assert_int_equal(head.n, 50);
	assert_int_equal(head.p[0], 51);
	pieces_free(&x);
}

static void an_empty_rope_has_no_head_and_copies_nothing(void **state)
{
	uint8_t b[N], got = 0x5a;
	struct pieces x;

	(void)state;
	fill(b);
	x = pieces_every(b, N, 50);
	for (size_t off = 0; off <= N; off += 25) {
		struct uw_rope none = uw_rope_sub(x.rope, off, 0);

		assert_int_equal(uw_rope_head(none).n, 0);
		uw_rope_copy(none, &got, 0);
		assert_int_equal(uw_rope_crc32c(UW_CRC32C_START, none), UW_CRC32C_START);
	}
	assert_int_equal(got, 0x5a);
	pieces_free(&x);
}

/* TCP may hand over pieces without octets; they count for nothing. */
static void empty_pieces_are_passed_over(void **state)
{
	const uint8_t b[4] = { 1, 2, 3, 4 };
	const struct uw_span v[] = { { b, 0 },	   { b, 1 },	 { b + 1, 0 }, { b + 1, 0 },
				     { b + 1, 2 }, { b + 3, 0 }, { b + 3, 1 } };
	struct uw_rope r = { .v = v, .skip = 0, .len = 4 };
	uint8_t got[4];

	(void)state;
	uw_rope_copy(r, got, 4);
	assert_memory_equal(got, b, 4);
	uw_rope_copy(uw_rope_sub(r, 1, 3), got, 3);
	assert_memory_equal(got, b + 1, 3);
	assert_int_equal(uw_rope_head(uw_rope_sub(r, 3, 1)).n, 1);
	assert_int_equal(uw_rope_crc32c(UW_CRC32C_START, r), uw_crc32c_add(UW_CRC32C_START, b, 4));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_rope_of_one_span_is_that_span),
	cmocka_unit_test(every_part_copies_as_it_stood),
	cmocka_unit_test(parts_of_parts_add_their_offsets),
	cmocka_unit_test(the_head_ends_with_its_piece_or_with_the_rope),
	cmocka_unit_test(an_empty_rope_has_no_head_and_copies_nothing),
	cmocka_unit_test(empty_pieces_are_passed_over),
};

UWTEST_MAIN(tests)
