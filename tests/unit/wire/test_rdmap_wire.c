/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rdmap_wire.h"

#include "ulpdu.h"
#include "uwtest.h"
#include "vectors.h"

/* ---- opcodes ----------------------------------------------------------------------------- */

/* RFC 5040 §4.3 figure 4, RFC 7306 §4.1 figure 2: tagged or which queue, header, STag to
 * invalidate, event. */
static void the_opcode_table_is_that_of_the_rfcs(void **state)
{
	static const struct {
		bool tagged;
		unsigned qn, hdr;
		bool payload, invalidates, solicited;
	} want[12] = {
		{ true, 0, 0, true, false, false },    /* RDMA Write */
		{ false, 1, 28, false, false, false }, /* Read Request */
		{ true, 0, 0, true, false, false },    /* Read Response */
		{ false, 0, 0, true, false, false },   /* Send */
		{ false, 0, 0, true, true, false },    /* Send with Invalidate */
		{ false, 0, 0, true, false, true },    /* Send with SE */
		{ false, 0, 0, true, true, true },     /* Send with SE and Invalidate */
		{ false, 2, 4, true, false, false },   /* Terminate */
		{ false, 0, 8, false, false, false },  /* Immediate Data */
		{ false, 0, 8, false, false, true },   /* Immediate Data with SE */
		{ false, 1, 52, false, false, false }, /* Atomic Request */
		{ false, 3, 12, false, false, false }, /* Atomic Response */
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(want); i++) {
		assert_non_null(rdmap_ops[i].name);
		assert_int_equal(rdmap_ops[i].tagged, want[i].tagged);
		assert_int_equal(rdmap_ops[i].qn, want[i].qn);
		assert_int_equal(rdmap_ops[i].hdr, want[i].hdr);
		assert_int_equal(rdmap_ops[i].payload, want[i].payload);
		assert_int_equal(rdmap_ops[i].invalidates, want[i].invalidates);
		assert_int_equal(rdmap_ops[i].solicited, want[i].solicited);
	}
}

/* RFC 5040 §4.1, RFC 7306 §4.1: what is not assigned (0xc to 0xe) has no row. */
static void unassigned_opcodes_have_no_row(void **state)
{
	(void)state;
	for (unsigned i = 0xc; i < 0xf; i++)
		assert_null(rdmap_ops[i].name);
}

/* RFC 5040 §4.1: RV in the top two bits, opcode in the low four, the two between not looked at. */
static void the_control_octet(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 16; op++)
		assert_int_equal(rdmap_ctrl(op), 0x40 | op);
	for (unsigned c = 0; c < 256; c++) {
		assert_int_equal(rdmap_ctrl_version((uint8_t)c), c >> 6);
		assert_int_equal(rdmap_ctrl_opcode((uint8_t)c), c & 15);
	}
}

/* ---- Read Request ------------------------------------------------------------------------ */

/* RFC 5040 §4.4: sink STag, sink TO, size, source STag, source TO. */
static void a_read_request_octet_for_octet(void **state)
{
	const struct rdmap_read r = { .sink_stag = 0x01020304,
				      .sink_to = 0x1112131415161718ull,
				      .size = 0x21222324,
				      .src_stag = 0x31323334,
				      .src_to = 0x4142434445464748ull };
	static const uint8_t want[28] = { 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13,
					  0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22,
					  0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41,
					  0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48 };
	struct rdmap_read got;
	uint8_t out[28];

	(void)state;
	rdmap_read_encode(&r, out);
	assert_memory_equal(out, want, 28);
	rdmap_read_decode(want, &got);
	assert_true(got.sink_stag == r.sink_stag && got.sink_to == r.sink_to);
	assert_true(got.size == r.size);
	assert_true(got.src_stag == r.src_stag && got.src_to == r.src_to);
}

/* Read Requests of Linux siw. */
static void captured_read_requests_come_out_as_they_went_in(void **state)
{
	struct vectors x = vectors_read("siw-perftest-crc.txt");
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		struct rdmap_read r;
		uint8_t out[28];

		if (octets(x.v[i].p + 2, 2) != CTRL_READ_REQUEST)
			continue;
		assert_int_equal(x.v[i].n, 52);
		rdmap_read_decode(x.v[i].p + 20, &r);
		rdmap_read_encode(&r, out);
		assert_memory_equal(out, x.v[i].p + 20, 28);
		assert_int_equal(r.size, octets(x.v[i].p + 32, 4));
		seen++;
	}
	assert_true(seen > 0);
	vectors_free(&x);
}

/* ---- atomics ----------------------------------------------------------------------------- */

/* RFC 7306 §5.2.1 figure 4: 28 zero bits and the operation, identifier, STag, TO, then add or swap
 * data and mask, compare data and mask. */
static void an_atomic_request_octet_for_octet(void **state)
{
	const struct rdmap_atomic a = { .aop = 0xf2,
					.req_id = 0x01020304,
					.stag = 0x11121314,
					.to = 0x2122232425262728ull,
					.add_swap = 0x3132333435363738ull,
					.add_swap_mask = 0x4142434445464748ull,
					.compare = 0x5152535455565758ull,
					.compare_mask = 0x6162636465666768ull };
	uint8_t want[52] = { 0, 0, 0, 2 }, out[52];
	struct rdmap_atomic got;

	(void)state;
	put_octets(want + 4, 4, a.req_id);
	put_octets(want + 8, 4, a.stag);
	put_octets(want + 12, 8, a.to);
	put_octets(want + 20, 8, a.add_swap);
	put_octets(want + 28, 8, a.add_swap_mask);
	put_octets(want + 36, 8, a.compare);
	put_octets(want + 44, 8, a.compare_mask);
	rdmap_atomic_encode(&a, out);
	assert_memory_equal(out, want, 52);
	memset(want, 0xff, 3); /* reserved, not looked at */
	want[3] |= 0xf0;
	rdmap_atomic_decode(want, &got);
	assert_int_equal(got.aop, RDMAP_CMP_SWAP);
	assert_true(got.req_id == a.req_id && got.stag == a.stag && got.to == a.to);
	assert_true(got.add_swap == a.add_swap && got.add_swap_mask == a.add_swap_mask);
	assert_true(got.compare == a.compare && got.compare_mask == a.compare_mask);
}

/* RFC 7306 §5.2.2 figure 6: identifier and original value, 12 octets. */
static void an_atomic_response_octet_for_octet(void **state)
{
	const struct rdmap_atomic_resp r = { .req_id = 0x01020304,
					     .original = 0x1112131415161718ull };
	static const uint8_t want[12] = {
		1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18
	};
	struct rdmap_atomic_resp got;
	uint8_t out[12];

	(void)state;
	rdmap_atomic_resp_encode(&r, out);
	assert_memory_equal(out, want, 12);
	rdmap_atomic_resp_decode(want, &got);
	assert_int_equal(got.req_id, r.req_id);
	assert_true(got.original == r.original);
}

/* RFC 7306 §5.1 figure 5 */
static void the_atomic_operations_have_their_codes(void **state)
{
	(void)state;
	assert_int_equal(RDMAP_FETCH_ADD, 0);
	assert_int_equal(RDMAP_CMP_SWAP, 2);
}

/* ---- Terminate --------------------------------------------------------------------------- */

static const uint8_t hdr18[18] = { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8 };
static const uint8_t hdr14[14] = { 0xc1, 0x40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 9 };

/* RFC 5040 §4.8: layer, type, code; no header: one word, reserved bits zero. */
static void a_terminate_without_headers(void **state)
{
	const struct rdmap_term t = { .layer = 2, .etype = 0, .code = 0x02 };
	uint8_t out[RDMAP_TERM_MAX];

	(void)state;
	memset(out, 0xff, sizeof(out));
	assert_int_equal(rdmap_term_encode(&t, out), 4);
	assert_memory_equal(out, "\x20\x02\x00\x00", 4);
}

/* RFC 5040 §4.8: D never without M; segment length, then the DDP header, 14 or 18 octets. */
static void a_terminate_with_the_ddp_header(void **state)
{
	struct rdmap_term t = { .layer = 1,
				.etype = 2,
				.code = 0x04,
				.has_ddp = true,
				.ddp_length = 0x0203,
				.ddp_hdr_len = 18 };
	uint8_t out[RDMAP_TERM_MAX];

	(void)state;
	memcpy(t.ddp_hdr, hdr18, 18);
	assert_int_equal(rdmap_term_encode(&t, out), 24);
	assert_memory_equal(out, "\x12\x04\xc0\x00\x02\x03", 6);
	assert_memory_equal(out + 6, hdr18, 18);

	t.ddp_hdr_len = 14;
	memcpy(t.ddp_hdr, hdr14, 14);
	assert_int_equal(rdmap_term_encode(&t, out), 20);
	assert_memory_equal(out + 6, hdr14, 14);
}

/* RFC 5040 §4.8: M, D and R for a Read Request; 52 octets is all there can be. */
static void a_terminate_with_all_headers(void **state)
{
	struct rdmap_term t = { .layer = 0,
				.etype = 1,
				.code = 0x01,
				.has_ddp = true,
				.ddp_length = 46,
				.ddp_hdr_len = 18,
				.has_rdmap = true };
	uint8_t out[RDMAP_TERM_MAX];

	(void)state;
	memcpy(t.ddp_hdr, hdr18, 18);
	for (unsigned i = 0; i < 28; i++)
		t.rdmap_hdr[i] = (uint8_t)(100 + i);
	assert_int_equal(rdmap_term_encode(&t, out), RDMAP_TERM_MAX);
	assert_int_equal(RDMAP_TERM_MAX, 52);
	assert_memory_equal(out, "\x01\x01\xe0\x00\x00\x2e", 6);
	assert_memory_equal(out + 6, hdr18, 18);
	assert_memory_equal(out + 24, t.rdmap_hdr, 28);
}

static void a_terminate_decodes_as_it_was_encoded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct rdmap_term t, got;
		uint8_t out[RDMAP_TERM_MAX];
		unsigned n;

		memset(&t, 0, sizeof(t));
		t.etype = 1;
		t.code = 0x02;
		t.has_ddp = i & 1;
		t.has_rdmap = i & 2;
		if (t.has_ddp) {
			t.ddp_length = 0x1234;
			t.ddp_hdr_len = i & 4 ? 14 : 18;
			memcpy(t.ddp_hdr, i & 4 ? hdr14 : hdr18, t.ddp_hdr_len);
		}
		if (t.has_rdmap)
			memset(t.rdmap_hdr, 0x77, 28);
		n = rdmap_term_encode(&t, out);
		assert_status(rdmap_term_decode((struct uw_span){ out, n }, &got), UW_OK);
		assert_memory_equal(&got, &t, sizeof(t));
	}
}

/* RFC 5040 §4.8: a Terminate that ends before its own flags say is malformed, for every choice of
 * them; no octet behind its end is looked at. */
static void a_terminate_that_is_cut_is_refused(void **state)
{
	static const uint8_t flags[] = { 0, 0x80, 0xc0, 0xe0, 0xa0, 0x20, 0x40, 0x60 };
	static const size_t whole[] = { 4, 6, 24, 52, 34, 32, 22, 50 };

	(void)state;
	for (size_t i = 0; i < COUNT(flags); i++) {
		for (size_t n = 0; n <= whole[i]; n++) {
			uint8_t *in = malloc(n ? n : 1), full[52] = { 0x01, 0x00, flags[i], 0 };
			struct rdmap_term t;

			assert_non_null(in);
			memcpy(in, full, n);
			assert_status(rdmap_term_decode((struct uw_span){ in, n }, &t),
				      n < whole[i] ? UW_E_RDMAP_UNSPEC : UW_OK);
			free(in);
		}
	}
}

/* RFC 5040 §4.8: reserved bits are ignored, octets behind the headers too. */
static void reserved_bits_of_a_terminate_are_ignored(void **state)
{
	uint8_t in[30] = { 0x12, 0x04, 0xdf, 0xff, 0x00, 0x16 };
	struct rdmap_term t;

	(void)state;
	memcpy(in + 6, hdr18, 18);
	assert_status(rdmap_term_decode((struct uw_span){ in, sizeof(in) }, &t), UW_OK);
	assert_false(t.siw_order);
	assert_int_equal(t.layer, 1);
	assert_int_equal(t.etype, 2);
	assert_int_equal(t.code, 4);
	assert_true(t.has_ddp && !t.has_rdmap);
	assert_int_equal(t.ddp_length, 0x16);
	assert_memory_equal(t.ddp_hdr, hdr18, 18);
}

/* Every code of the RFCs without headers is read in their order, never in that of siw. */
static void codes_of_the_rfcs_keep_their_order(void **state)
{
	(void)state;
	for (unsigned st = 0; st < UW_STATUS_COUNT; st++) {
		struct uw_term_code c = uw_status_term((uw_status)st);
		const uint8_t in[4] = { (uint8_t)(c.layer << 4 | c.etype), c.code, 0, 0 };
		struct rdmap_term t;

		if (!c.sends)
			continue;
		assert_status(rdmap_term_decode((struct uw_span){ in, 4 }, &t), UW_OK);
		assert_status(uw_status_from_term(t.layer, t.etype, t.code), (uw_status)st);
		assert_false(t.siw_order);
	}
}

/* Layers and types that do not exist, and codes that are not known: the RFC's order, unless only
 * the other one makes a pair of layer and type that exists. */
static void unknown_words_are_read_in_one_order(void **state)
{
	static const struct {
		uint8_t in[4];
		bool siw;
	} rows[] = {
		{ { 0x21, 0x99, 0, 0 }, true },	 { { 0x12, 0x99, 0, 0 }, false },
		{ { 0x30, 0x00, 0, 0 }, false }, { { 0x03, 0x00, 0, 0 }, false },
		{ { 0x31, 0x00, 0, 0 }, true },	 { { 0x13, 0x00, 0, 0 }, false },
		{ { 0x22, 0x02, 0, 0 }, false }, { { 0xff, 0xff, 0, 0 }, false },
		{ { 0x02, 0x99, 0, 0 }, false }, { { 0x20, 0x99, 0, 0 }, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const uint8_t *in = rows[i].in;
		struct rdmap_term t;

		assert_status(rdmap_term_decode((struct uw_span){ in, 4 }, &t), UW_OK);
		assert_int_equal(t.siw_order, rows[i].siw);
		assert_int_equal(t.layer, rows[i].siw ? in[0] & 15 : in[0] >> 4);
		assert_int_equal(t.etype, rows[i].siw ? in[0] >> 4 : in[0] & 15);
	}
}

/* What Linux siw sends: layer and type swapped, flags in bits 0 to 2. */
static void terminates_of_siw_are_understood(void **state)
{
	struct vectors x = vectors_read("siw-terminate.txt");

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		bool ddp = vector_is(v, 4, "MD-") || vector_is(v, 4, "MDR");
		struct rdmap_term t;

		assert_status(rdmap_term_decode(vector_span(v), &t), UW_OK);
		assert_int_equal(t.siw_order, vector_is(v, 0, "siw"));
		assert_int_equal(t.layer, atoi(v->word[1]));
		assert_int_equal(t.etype, atoi(v->word[2]));
		assert_int_equal(t.code, strtol(v->word[3], NULL, 16));
		assert_int_equal(t.has_ddp, ddp);
		assert_int_equal(t.has_rdmap, vector_is(v, 4, "MDR"));
		if (!ddp)
			continue;
		assert_int_equal(t.ddp_length, octets(v->p + 4, 2));
		assert_int_equal(t.ddp_hdr_len, v->p[6] & 0x80 ? 14 : 18);
		assert_memory_equal(t.ddp_hdr, v->p + 6, t.ddp_hdr_len);
		if (t.has_rdmap)
			assert_memory_equal(t.rdmap_hdr, v->p + v->n - 28, 28);
	}
	vectors_free(&x);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_opcode_table_is_that_of_the_rfcs),
	cmocka_unit_test(unassigned_opcodes_have_no_row),
	cmocka_unit_test(the_control_octet),
	cmocka_unit_test(a_read_request_octet_for_octet),
	cmocka_unit_test(captured_read_requests_come_out_as_they_went_in),
	cmocka_unit_test(an_atomic_request_octet_for_octet),
	cmocka_unit_test(an_atomic_response_octet_for_octet),
	cmocka_unit_test(the_atomic_operations_have_their_codes),
	cmocka_unit_test(a_terminate_without_headers),
	cmocka_unit_test(a_terminate_with_the_ddp_header),
	cmocka_unit_test(a_terminate_with_all_headers),
	cmocka_unit_test(a_terminate_decodes_as_it_was_encoded),
	cmocka_unit_test(a_terminate_that_is_cut_is_refused),
	cmocka_unit_test(reserved_bits_of_a_terminate_are_ignored),
	cmocka_unit_test(codes_of_the_rfcs_keep_their_order),
	cmocka_unit_test(unknown_words_are_read_in_one_order),
	cmocka_unit_test(terminates_of_siw_are_understood),
};

UWTEST_MAIN(tests)
