/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/opcode.h"

#include "roce/headers.h"
#include "uwtest.h"

/* IBA §9.2.1, table 38. */
static void the_table_has_uc_and_ud_and_nothing_else(void **state)
{
	unsigned known = 0;

	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		const struct roce_op *op = roce_op_of((uint8_t)i);

		if (!op)
			continue;
		known++;
		assert_int_equal(op->code, i);
		assert_int_equal(op->transport, i & 0xe0);
		assert_int_equal(roce_op_code(op), i);
	}
	assert_int_equal(known, 14);
}

static void headers_are_those_of_the_table(void **state)
{
	(void)state;
	assert_int_equal(roce_op_headers(roce_op_of(0x64)), ROCE_DETH);
	assert_int_equal(roce_op_headers(roce_op_of(0x65)), ROCE_DETH + ROCE_IMM);
	assert_int_equal(roce_op_headers(roce_op_of(0x21)), 0);
	assert_int_equal(roce_op_headers(roce_op_of(0x26)), ROCE_RETH);
	assert_int_equal(roce_op_headers(roce_op_of(0x27)), 0);
	assert_int_equal(roce_op_headers(roce_op_of(0x29)), ROCE_IMM);
	assert_int_equal(roce_op_headers(roce_op_of(0x2b)), ROCE_RETH + ROCE_IMM);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_table_has_uc_and_ud_and_nothing_else),
	cmocka_unit_test(headers_are_those_of_the_table),
};

UWTEST_MAIN(tests)
