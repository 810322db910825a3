/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmap/atomic.h"

#include "uwtest.h"

/* RFC 7306 §5.1.1 bit by bit: a set bit of the mask is the top bit of its field, no carry leaves
 * it. */
static uint64_t field_by_field(uint64_t x, uint64_t y, uint64_t mask)
{
	uint64_t sum = 0;
	unsigned carry = 0;

	for (unsigned i = 0; i < 64; i++) {
		unsigned s = (x >> i & 1) + (y >> i & 1) + carry;

		sum |= (uint64_t)(s & 1) << i;
		carry = mask >> i & 1 ? 0 : s >> 1;
	}
	return sum;
}

static void a_masked_sum_keeps_its_carries(void **state)
{
	static const uint64_t masks[] = { 0,
					  UINT64_MAX,
					  1,
					  1ull << 63,
					  0x80000000ull,
					  0x8000000080000000ull,
					  0x8080808080808080ull };
	struct prng r = { 28 };

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t x = prng_next(&r), y = prng_next(&r);
		uint64_t mask = i < 3500 ? masks[i % COUNT(masks)] : prng_next(&r);

		if (i % 11 == 0)
			x = UINT64_MAX;
		assert_true(rdmap_masked_add(x, y, mask) == field_by_field(x, y, mask));
		if (!mask)
			assert_true(rdmap_masked_add(x, y, mask) == x + y);
	}
}

static uint64_t executed(const struct rdmap_atomic *a, uint64_t *word)
{
	uint64_t original = ~*word;

	assert_true(rdmap_atomic_execute(a, word, &original));
	return original;
}

/* RFC 7306 §5.1.1: the sum is stored, the original value returned. */
static void fetch_add_returns_what_was_there(void **state)
{
	struct rdmap_atomic a = { .aop = RDMAP_FETCH_ADD, .add_swap = 5 };
	uint64_t word[3] = { 1, 37, 2 };

	(void)state;
	assert_int_equal(executed(&a, &word[1]), 37);
	assert_int_equal(word[1], 42);
	a.add_swap = UINT64_MAX - 41; /* as a program subtracts: it wraps */
	assert_int_equal(executed(&a, &word[1]), 42);
	assert_int_equal(word[1], 0);
	assert_int_equal(word[0] + word[2], 3);

	word[1] = 0x00ff00ff00ff00ffull;
	a.add_swap = 0x0001000100010003ull;
	a.add_swap_mask = 0x0080008000800080ull;
	assert_true(executed(&a, &word[1]) == 0x00ff00ff00ff00ffull);
	assert_int_equal(word[1], 2);
}

/* RFC 7306 §5.1.1: what FetchAdd does not use is not looked at. */
static void fetch_add_ignores_the_compare_fields(void **state)
{
	const struct rdmap_atomic a = {
		.aop = RDMAP_FETCH_ADD, .add_swap = 1, .compare = 99, .compare_mask = UINT64_MAX
	};
	uint64_t word = 7;

	(void)state;
	assert_int_equal(executed(&a, &word), 7);
	assert_int_equal(word, 8);
}

/* RFC 7306 §5.1.2: swap if equal under one mask, under the other; the original value in any case.
 */
static void cmp_swap_compares_and_swaps_under_masks(void **state)
{
	static const struct {
		uint64_t compare, compare_mask, swap, swap_mask, was, is;
	} rows[] = {
		{ 7, UINT64_MAX, 9, UINT64_MAX, 7, 9 },
		{ 8, UINT64_MAX, 9, UINT64_MAX, 7, 7 },
		{ 0xff07, 0xff, 9, UINT64_MAX, 7, 9 },
		{ 0xff08, 0xff, 9, UINT64_MAX, 7, 7 },
		{ 0, 0, 9, UINT64_MAX, 7, 9 },
		{ 7, UINT64_MAX, 0xffff, 0x0f00, 7, 0x0f07 },
		{ 0x7700, 0xff00, 0x1111, 0x00ff, 0x77aa, 0x7711 },
		{ 7, UINT64_MAX, 9, 0, 7, 7 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct rdmap_atomic a = { .aop = RDMAP_CMP_SWAP,
						.compare = rows[i].compare,
						.compare_mask = rows[i].compare_mask,
						.add_swap = rows[i].swap,
						.add_swap_mask = rows[i].swap_mask };
		uint64_t word = rows[i].was;

		assert_true(executed(&a, &word) == rows[i].was);
		assert_true(word == rows[i].is);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_masked_sum_keeps_its_carries),
	cmocka_unit_test(fetch_add_returns_what_was_there),
	cmocka_unit_test(fetch_add_ignores_the_compare_fields),
	cmocka_unit_test(cmp_swap_compares_and_swaps_under_masks),
};

UWTEST_MAIN(tests)
