/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ddp_wire.h"

#include "uwtest.h"
#include "vectors.h"

/* RFC 5041 §4.2: control, STag, TO. */
static void a_tagged_header_octet_for_octet(void **state)
{
	const struct ddp_hdr h = { .tagged = true,
				   .last = true,
				   .rsvd_ulp = 0x40,
				   .stag = 0x01020304,
				   .to = 0x1112131415161718ull };
	static const uint8_t want[14] = { 0xc1, 0x40, 1,    2,	  3,	4,    0x11,
					  0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18 };
	uint8_t out[DDP_HDR_MAX];

	(void)state;
	assert_int_equal(ddp_hdr_encode(&h, out), 14);
	assert_memory_equal(out, want, 14);
}

/* RFC 5041 §4.3: control, RsvdULP, QN, MSN, MO. */
static void an_untagged_header_octet_for_octet(void **state)
{
	const struct ddp_hdr h = { .rsvd_ulp = 0x43,
				   .rsvd_ulp32 = 0xa1a2a3a4,
				   .qn = 0x01020304,
				   .msn = 0x05060708,
				   .mo = 0x090a0b0c };
	static const uint8_t want[18] = { 0x01, 0x43, 0xa1, 0xa2, 0xa3, 0xa4, 1,  2,  3,
					  4,	5,    6,    7,	  8,	9,    10, 11, 12 };
	uint8_t out[DDP_HDR_MAX];

	(void)state;
	assert_int_equal(ddp_hdr_encode(&h, out), 18);
	assert_memory_equal(out, want, 18);
}

/* RFC 5041 §4.1: T and L; DV is 1 and the reserved bits are zero whatever the caller had there. */
static void the_control_octet_has_t_l_and_version_only(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const struct ddp_hdr h = { .tagged = i & 1, .last = i & 2, .version = 3 };
		uint8_t out[DDP_HDR_MAX];

		ddp_hdr_encode(&h, out);
		assert_int_equal(out[0], (i & 1 ? 0x80 : 0) | (i & 2 ? 0x40 : 0) | 0x01);
	}
}

static void what_is_encoded_decodes_the_same(void **state)
{
	struct prng r = { 6 };

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		struct ddp_hdr h = { .tagged = i & 1, .last = i & 2, .version = 1 }, got = { 0 };
		uint8_t out[DDP_HDR_MAX];
		unsigned n;

		h.rsvd_ulp = (uint8_t)prng_next(&r);
		if (h.tagged) {
			h.stag = (uint32_t)prng_next(&r);
			h.to = prng_next(&r);
		} else {
			h.rsvd_ulp32 = (uint32_t)prng_next(&r);
			h.qn = (uint32_t)prng_next(&r);
			h.msn = (uint32_t)prng_next(&r);
			h.mo = (uint32_t)prng_next(&r);
		}
		n = ddp_hdr_encode(&h, out);
		assert_status(ddp_hdr_decode((struct uw_span){ out, n }, &got), UW_OK);
		assert_memory_equal(&got, &h, sizeof(h));
	}
}

/* RFC 5041 §4.1: reserved bits are not checked on receipt; every version is read as it is. */
static void reserved_bits_are_ignored_and_versions_read(void **state)
{
	uint8_t p[18] = { 0 };
	struct ddp_hdr h;

	(void)state;
	for (unsigned dv = 0; dv < 4; dv++) {
		p[0] = (uint8_t)(0xbc | dv);
		assert_status(ddp_hdr_decode((struct uw_span){ p, 18 }, &h), UW_OK);
		assert_int_equal(h.version, dv);
		assert_true(h.tagged && !h.last);
		p[0] = (uint8_t)(0x7c | dv);
		assert_status(ddp_hdr_decode((struct uw_span){ p, 18 }, &h), UW_OK);
		assert_int_equal(h.version, dv);
		assert_true(!h.tagged && h.last);
	}
}

static void a_header_that_is_cut_is_none(void **state)
{
	const uint8_t tagged[18] = { 0x81, 0x40 }, untagged[18] = { 0x01, 0x43 };
	struct ddp_hdr h;

	(void)state;
	for (size_t n = 0; n <= 18; n++) {
		assert_status(ddp_hdr_decode((struct uw_span){ tagged, n }, &h),
			      n < 14 ? UW_E_DDP_LOCAL : UW_OK);
		assert_status(ddp_hdr_decode((struct uw_span){ untagged, n }, &h),
			      n < 18 ? UW_E_DDP_LOCAL : UW_OK);
	}
}

/* Every header that Linux siw sent: version 1, known queue, and encoded again the same octets. */
static void captured_headers_come_out_as_they_went_in(void **state)
{
	static const char *const files[] = { "siw-rping.txt", "siw-rping-crc.txt",
					     "siw-perftest-crc.txt" };
	size_t tagged = 0, untagged = 0;

	(void)state;
	for (size_t f = 0; f < COUNT(files); f++) {
		struct vectors x = vectors_read(files[f]);

		for (size_t i = 0; i < x.n; i++) {
			struct uw_span ulpdu = { x.v[i].p + 2, x.v[i].n - 6 };
			uint8_t out[DDP_HDR_MAX];
			struct ddp_hdr h;

			if (!vector_is(&x.v[i], 1, "fpdu"))
				continue;
			assert_status(ddp_hdr_decode(ulpdu, &h), UW_OK);
			assert_int_equal(h.version, DDP_VERSION);
			assert_int_equal(ddp_hdr_encode(&h, out), ddp_hdr_size(h.tagged));
			assert_memory_equal(out, ulpdu.p, ddp_hdr_size(h.tagged));
			*(h.tagged ? &tagged : &untagged) += 1;
		}
		vectors_free(&x);
	}
	assert_true(tagged > 20 && untagged > 20);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_tagged_header_octet_for_octet),
	cmocka_unit_test(an_untagged_header_octet_for_octet),
	cmocka_unit_test(the_control_octet_has_t_l_and_version_only),
	cmocka_unit_test(what_is_encoded_decodes_the_same),
	cmocka_unit_test(reserved_bits_are_ignored_and_versions_read),
	cmocka_unit_test(a_header_that_is_cut_is_none),
	cmocka_unit_test(captured_headers_come_out_as_they_went_in),
};

UWTEST_MAIN(tests)
