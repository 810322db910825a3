/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32.h"

#include "uwtest.h"

/* The check value of CRC-32 (IEEE 802.3). */
static void the_check_value_of_crc32(void **state)
{
	(void)state;
	assert_int_equal(uw_crc32_add(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(uw_crc32_add(0, "", 0), 0);
}

static void pieces_give_the_crc_of_the_whole(void **state)
{
	struct prng r = { 5 };
	uint8_t data[1500];

	(void)state;
	prng_fill(&r, data, sizeof(data));
	for (unsigned i = 0; i < 200; i++) {
		uint32_t at = prng_below(&r, sizeof(data) + 1);

		assert_int_equal(
			uw_crc32_add(uw_crc32_add(0, data, at), data + at, sizeof(data) - at),
			uw_crc32_add(0, data, sizeof(data)));
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_check_value_of_crc32),
	cmocka_unit_test(pieces_give_the_crc_of_the_whole),
};

UWTEST_MAIN(tests)
