/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/mad.h"

#include "uwtest.h"
#include "vectors.h"

static enum mad_kind decode(const uint8_t *p, size_t n, struct mad *m)
{
	struct uw_span s = { p, n };

	return mad_decode(uw_rope_of(&s), m);
}

/* ---- what rxe sent ------------------------------------------------------------------------- */

static void what_rxe_sent_is_read_and_written_the_same(void **state)
{
	struct vectors x = vectors_read("rxe-sidr.txt");

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		uint8_t out[MAD_SIZE];
		struct mad m;

		assert_int_equal(x.v[i].n, MAD_SIZE);
		assert_int_equal(decode(x.v[i].p, MAD_SIZE, &m),
				 i % 2 ? MAD_SIDR_REP : MAD_SIDR_REQ);
		mad_encode(&m, out);
		assert_memory_equal(out, x.v[i].p, MAD_SIZE);
	}
	vectors_free(&x);
}

/* IBA §12.11.1, annex A11.2 */
static void the_fields_of_a_request(void **state)
{
	struct vectors x = vectors_read("rxe-sidr.txt");
	const struct uw_ip from = uw_ip_v4(htobe32(0x0a4f000c)), to = uw_ip_v4(htobe32(0x0a4f000b));
	struct mad m;

	(void)state;
	decode(x.v[0].p, MAD_SIZE, &m);
	assert_true(m.tid == 0x2e8102912);
	assert_int_equal(m.request_id, 0x122910e8);
	assert_int_equal(m.req.space, SIDR_UDP);
	assert_int_equal(m.req.port, 7174);
	assert_int_equal(m.req.src_port, 0xeb18);
	assert_true(uw_ip_eq(&m.req.src, &from) && uw_ip_eq(&m.req.dst, &to));
	vectors_free(&x);
}

/* IBA §12.11.2 */
static void the_fields_of_a_reply(void **state)
{
	struct vectors x = vectors_read("rxe-sidr.txt");
	struct mad m;

	(void)state;
	decode(x.v[1].p, MAD_SIZE, &m);
	assert_int_equal(m.request_id, 0x122910e8);
	assert_int_equal(m.rep.status, SIDR_VALID);
	assert_int_equal(m.rep.qpn, 0x17);
	assert_int_equal(m.rep.qkey, 0x01234567);
	decode(x.v[3].p, MAD_SIZE, &m);
	assert_int_equal(m.rep.status, SIDR_NO_SERVICE);
	assert_int_equal(m.rep.qpn, 0);
	vectors_free(&x);
}

/* ---- what is not understood ---------------------------------------------------------------- */

/* IBA §13.4.2: of another version, class, method or attribute; cut short, or longer. */
static void anything_else_is_dropped(void **state)
{
	static const unsigned at[] = { 0, 1, 2, 3, 16, 17 };
	struct mad m = { .kind = MAD_SIDR_REQ, .req.src = uw_ip_v4(1), .req.dst = uw_ip_v4(2) };
	uint8_t good[MAD_SIZE + 4] = { 0 }, bad[MAD_SIZE];

	(void)state;
	mad_encode(&m, good);
	assert_int_equal(decode(good, MAD_SIZE, &m), MAD_SIDR_REQ);
	assert_int_equal(decode(good, MAD_SIZE - 1, &m), MAD_OTHER);
	assert_int_equal(decode(good, MAD_SIZE + 4, &m), MAD_OTHER);
	assert_int_equal(decode(good, 0, &m), MAD_OTHER);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		memcpy(bad, good, MAD_SIZE);
		bad[at[i]] ^= 0x40;
		assert_int_equal(decode(bad, MAD_SIZE, &m), MAD_OTHER);
	}
}

/* Annex A11.2.2: the addresses are of IP version 4 or 6, in a format of major version 0. */
static void a_request_without_addresses_is_dropped(void **state)
{
	struct mad m = { .kind = MAD_SIDR_REQ, .req.src = uw_ip_v4(1), .req.dst = uw_ip_v4(2) };
	uint8_t out[MAD_SIZE];

	(void)state;
	mad_encode(&m, out);
	out[41] = 0x50;
	assert_int_equal(decode(out, MAD_SIZE, &m), MAD_OTHER);
	out[41] = 0x40;
	out[40] = 0x10;
	assert_int_equal(decode(out, MAD_SIZE, &m), MAD_OTHER);
	out[40] = 0;
	out[41] = 0x60; /* of IPv6, but an IPv4 address as a GID has it */
	out[60 + 10] = out[60 + 11] = 0xff;
	out[44] = 0xfd;
	assert_int_equal(decode(out, MAD_SIZE, &m), MAD_OTHER);
}

static void addresses_of_ip6(void **state)
{
	struct mad m = { .kind = MAD_SIDR_REQ, .tid = 5, .req = { .space = SIDR_UDP } }, got;
	uint8_t out[MAD_SIZE];

	(void)state;
	m.req.src.b[0] = m.req.dst.b[0] = 0xfd;
	m.req.dst.b[15] = 7;
	m.req.data[SIDR_REQ_DATA - 1] = 9;
	mad_encode(&m, out);
	assert_int_equal(out[41], 0x60);
	assert_int_equal(decode(out, MAD_SIZE, &got), MAD_SIDR_REQ);
	assert_true(uw_ip_eq(&got.req.dst, &m.req.dst));
	assert_int_equal(got.req.data[SIDR_REQ_DATA - 1], 9);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(what_rxe_sent_is_read_and_written_the_same),
	cmocka_unit_test(the_fields_of_a_request),
	cmocka_unit_test(the_fields_of_a_reply),
	cmocka_unit_test(anything_else_is_dropped),
	cmocka_unit_test(a_request_without_addresses_is_dropped),
	cmocka_unit_test(addresses_of_ip6),
};

UWTEST_MAIN(tests)
