/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/headers.h"

#include "uwtest.h"

/* IBA §9.2: opcode, SE/M/pad/version, P_Key, reserved, destination QP, A, PSN. */
static void a_bth_octet_for_octet(void **state)
{
	const struct roce_bth h = { .opcode = 0x64,
				    .solicited = true,
				    .ack = true,
				    .pad = 3,
				    .pkey = 0xffff,
				    .dest_qp = 0x010203,
				    .psn = 0xa1a2a3 };
	static const uint8_t want[12] = {
		0x64, 0xb0, 0xff, 0xff, 0, 1, 2, 3, 0x80, 0xa1, 0xa2, 0xa3
	};
	uint8_t out[12];

	(void)state;
	roce_bth_encode(&h, out);
	assert_memory_equal(out, want, 12);
}

/* IBA §9.2.3 ff.: reserved bits are ignored by who receives. */
static void reserved_bits_of_a_bth_are_ignored(void **state)
{
	static const uint8_t in[12] = { 0x64, 0x50, 0x7f, 0xff, 0xff, 0, 0, 5, 0x7f, 0, 0, 6 };
	struct roce_bth h;

	(void)state;
	roce_bth_decode(in, &h);
	assert_int_equal(h.opcode, 0x64);
	assert_false(h.solicited);
	assert_false(h.ack);
	assert_int_equal(h.pad, 1);
	assert_int_equal(h.version, 0);
	assert_int_equal(h.pkey, 0x7fff);
	assert_int_equal(h.dest_qp, 5);
	assert_int_equal(h.psn, 6);
}

/* IBA §9.3.3 */
static void a_deth_octet_for_octet(void **state)
{
	const struct roce_deth h = { .qkey = 0x11111111, .src_qp = 0x1c };
	static const uint8_t want[8] = { 0x11, 0x11, 0x11, 0x11, 0, 0, 0, 0x1c };
	struct roce_deth got;
	uint8_t out[8];

	(void)state;
	roce_deth_encode(&h, out);
	assert_memory_equal(out, want, 8);
	out[4] = 0xff; /* reserved */
	roce_deth_decode(out, &got);
	assert_int_equal(got.qkey, h.qkey);
	assert_int_equal(got.src_qp, h.src_qp);
}

/* IBA §9.3.1 */
static void a_reth_octet_for_octet(void **state)
{
	const struct roce_reth h = { .va = 0x0102030405060708u,
				     .rkey = 0x11121314,
				     .length = 0x21222324 };
	static const uint8_t want[16] = { 1,	2,    3,    4,	  5,	6,    7,    8,
					  0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24 };
	struct roce_reth got;
	uint8_t out[16];

	(void)state;
	roce_reth_encode(&h, out);
	assert_memory_equal(out, want, 16);
	roce_reth_decode(out, &got);
	assert_true(got.va == h.va && got.rkey == h.rkey && got.length == h.length);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_bth_octet_for_octet),
	cmocka_unit_test(reserved_bits_of_a_bth_are_ignored),
	cmocka_unit_test(a_deth_octet_for_octet),
	cmocka_unit_test(a_reth_octet_for_octet),
};

UWTEST_MAIN(tests)
