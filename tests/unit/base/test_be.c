/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/be.h"

#include "uwtest.h"

static const uint8_t octets[] = { 0xff, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff };

static void loads_are_big_endian_at_odd_addresses(void **state)
{
	(void)state;
	assert_int_equal(uw_be16(octets + 1), 0x0123);
	assert_int_equal(uw_be32(octets + 1), 0x01234567);
	assert_true(uw_be64(octets + 1) == 0x0123456789abcdefull);
}

static void stores_are_big_endian_and_touch_nothing_else(void **state)
{
	uint8_t b[sizeof(octets)];

	(void)state;
	memset(b, 0xff, sizeof(b));
	uw_put64(b + 1, 0x0123456789abcdefull);
	assert_memory_equal(b, octets, sizeof(b));

	memset(b, 0xff, sizeof(b));
	uw_put32(b + 1, 0x01234567);
	assert_memory_equal(b, octets, 5);
	assert_int_equal(b[5], 0xff);

	memset(b, 0xff, sizeof(b));
	uw_put16(b + 1, 0x0123);
	assert_memory_equal(b, octets, 3);
	assert_int_equal(b[3], 0xff);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(loads_are_big_endian_at_odd_addresses),
	cmocka_unit_test(stores_are_big_endian_and_touch_nothing_else),
};

UWTEST_MAIN(tests)
