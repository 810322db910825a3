/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/arch/cc.h"

#include <arpa/inet.h>
#include <string.h>

#include "uwtest.h"

/* RFC 1071 §1, word by word; an odd octet is the first of a word that ends with a zero. */
static uint16_t by_definition(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i += 2) {
		uint8_t pair[2] = { p[i], i + 1 < n ? p[i + 1] : 0 };
		uint16_t w;

		memcpy(&w, pair, 2);
		sum += w;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* RFC 1071 §3 */
static void the_rfc_example(void **state)
{
	static const uint8_t b[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };

	(void)state;
	assert_int_equal(uw_lwip_checksum(b, sizeof(b)), htons(0xddf2));
}

static void equals_the_definition_at_every_length_and_alignment(void **state)
{
	struct prng r = { 4 };
	uint8_t b[400];

	(void)state;
	for (size_t n = 0; n < 360; n++) {
		size_t at = n % 17;

		prng_fill(&r, b, sizeof(b));
		assert_int_equal(uw_lwip_checksum(b + at, (int)n), by_definition(b + at, n));
	}
}

/* Sums as large, and words as negative, as they come; longer than any segment. */
static void the_largest_and_smallest_words_do_not_overflow(void **state)
{
	static const uint8_t words[][2] = { { 0xff, 0xff }, { 0x00, 0x80 }, { 0xff, 0x7f } };
	static uint8_t b[200001];

	(void)state;
	for (unsigned k = 0; k < COUNT(words); k++) {
		for (size_t i = 0; i < sizeof(b); i++)
			b[i] = words[k][i % 2];
		assert_int_equal(uw_lwip_checksum(b, sizeof(b)), by_definition(b, sizeof(b)));
		assert_int_equal(uw_lwip_checksum(b, 65535), by_definition(b, 65535));
	}
	memset(b, 0, sizeof(b));
	assert_int_equal(uw_lwip_checksum(b, sizeof(b)), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_rfc_example),
	cmocka_unit_test(equals_the_definition_at_every_length_and_alignment),
	cmocka_unit_test(the_largest_and_smallest_words_do_not_overflow),
};

UWTEST_MAIN(tests)
