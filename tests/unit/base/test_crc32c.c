/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include "base/span.h"
#include "pieces.h"
#include "uwtest.h"
#include "vectors.h"

/* The definition, one bit at a time: reflected polynomial 0x1EDC6F41. */
static uint32_t bitwise(uint32_t state, const uint8_t *p, size_t n)
{
	while (n--) {
		state ^= *p++;
		for (unsigned i = 0; i < 8; i++)
			state = state >> 1 ^ (state & 1 ? 0x82f63b78u : 0);
	}
	return state;
}

static uint32_t crc_of(const void *p, size_t n)
{
	return uw_crc32c_end(uw_crc32c_add(UW_CRC32C_START, p, n));
}

/* RFC 3385, RFC 3720 B.4 and the usual check string. */
static void published_values(void **state)
{
	uint8_t b[32];

	(void)state;
	assert_int_equal(crc_of("123456789", 9), 0xe3069283u);
	memset(b, 0, sizeof(b));
	assert_int_equal(crc_of(b, sizeof(b)), 0x8a9136aau);
	memset(b, 0xff, sizeof(b));
	assert_int_equal(crc_of(b, sizeof(b)), 0x62a8ab43u);
	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)i;
	assert_int_equal(crc_of(b, sizeof(b)), 0x46dd794eu);
}

/* RFC 5044 §4.4, appendix figures 5 and 6. */
static void values_of_the_mpa_examples(void **state)
{
	struct vectors x = vectors_read("rfc5044-crc.txt");
	static const uint32_t want[] = { 0x83992352u, 0x98589284u };

	(void)state;
	assert_int_equal(x.n, COUNT(want));
	for (size_t i = 0; i < x.n; i++)
		assert_int_equal(crc_of(x.v[i].p, x.v[i].n - 4), want[i]);
	vectors_free(&x);
}

/* Every length around the switch from one way of computing to the other, at every alignment. */
static void equals_the_definition_at_every_length_and_alignment(void **state)
{
	struct prng r = { 1 };
	uint8_t b[640];

	(void)state;
	for (size_t n = 0; n < 600; n++) {
		size_t at = n % 16;
		uint32_t start = (uint32_t)prng_next(&r);

		prng_fill(&r, b, sizeof(b));
		assert_int_equal(uw_crc32c_add(start, b + at, n), bitwise(start, b + at, n));
	}
}

static void equals_the_definition_for_the_largest_fpdu(void **state)
{
	static uint8_t b[65544];
	struct prng r = { 2 };

	(void)state;
	prng_fill(&r, b, sizeof(b));
	assert_int_equal(uw_crc32c_add(UW_CRC32C_START, b, sizeof(b)),
			 bitwise(UW_CRC32C_START, b, sizeof(b)));
}

static void the_state_continues_over_any_split(void **state)
{
	struct prng r = { 3 };
	uint8_t b[1500];
	uint32_t whole;

	(void)state;
	prng_fill(&r, b, sizeof(b));
	whole = bitwise(UW_CRC32C_START, b, sizeof(b));
	for (unsigned i = 0; i < 300; i++) {
		size_t k = prng_below(&r, sizeof(b) + 1);
		uint32_t s = uw_crc32c_add(UW_CRC32C_START, b, k);

		assert_int_equal(uw_crc32c_add(s, b + k, sizeof(b) - k), whole);
	}
	for (unsigned i = 0; i < 50; i++) {
		struct pieces x = pieces_random(b, sizeof(b), 700, &r);

		assert_int_equal(uw_rope_crc32c(UW_CRC32C_START, x.rope), whole);
		pieces_free(&x);
	}
}

#ifdef __x86_64__
#include <cpuid.h>

#define XINUSE_YMM 4u /* the upper halves: bit 2 of what XGETBV says of the state in use */

static bool can_tell(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
		return false;
	return __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a & 4;
}

static uint32_t in_use(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low;
}

/* All SSE code behind it would be slow. */
static void the_upper_halves_of_the_registers_are_left_unused(void **state)
{
	static uint8_t octets[4096];
	uint32_t after;

	(void)state;
	if (!can_tell())
		skip();
	for (size_t n = 16; n <= sizeof(octets); n *= 2) {
		(void)uw_crc32c_add(UW_CRC32C_START, octets, n);
		after = in_use();
		assert_int_equal(after & XINUSE_YMM, 0);
	}
}
#endif

static void no_octets_leave_the_state_alone(void **state)
{
	(void)state;
	assert_int_equal(uw_crc32c_add(0x12345678, "", 0), 0x12345678);
	assert_int_equal(uw_crc32c_end(UW_CRC32C_START), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(published_values),
	cmocka_unit_test(values_of_the_mpa_examples),
	cmocka_unit_test(equals_the_definition_at_every_length_and_alignment),
	cmocka_unit_test(equals_the_definition_for_the_largest_fpdu),
	cmocka_unit_test(the_state_continues_over_any_split),
	cmocka_unit_test(no_octets_leave_the_state_alone),
#ifdef __x86_64__
	cmocka_unit_test(the_upper_halves_of_the_registers_are_left_unused),
#endif
};

UWTEST_MAIN(tests)
