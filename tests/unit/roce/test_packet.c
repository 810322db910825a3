/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/packet.h"

#include "roce/icrc.h"
#include "uwtest.h"
#include "vectors.h"

static enum roce_verdict read_octets(const uint8_t *p, size_t n, struct roce_packet *out)
{
	/* the packet's rope refers to it */
	static struct uw_span s;

	s = (struct uw_span){ p, n };
	return roce_packet_read(uw_rope_of(&s), out);
}

static bool is_rc(const struct vector *v)
{
	return v->word[1][0] < '2';
}

/* ---- what rxe sent ------------------------------------------------------------------------- */

static void every_captured_packet_is_good_but_those_of_rc(void **state)
{
	struct vectors x = vectors_read("rxe-roce.txt");

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		struct roce_packet p;
		enum roce_verdict want = is_rc(v) ? ROCE_BAD_OPCODE : ROCE_GOOD;

		if (read_octets(v->p, v->n, &p) != want)
			fail_msg("line %u", v->line);
	}
	vectors_free(&x);
}

/* From what was read, the same octets come out, but for the TTL of multicast and of IPv6 that rxe
 * takes from the route. */
static void what_is_read_is_written_the_same(void **state)
{
	struct vectors x = vectors_read("rxe-roce.txt");

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		bool ip4 = v->p[0] >> 4 == 4;
		const uint8_t *udp = v->p + (ip4 ? 20 : 40);
		uint8_t out[ROCE_HEAD_MAX + ROCE_MTU_MAX + ROCE_TAIL_MAX];
		struct roce_packet p;
		struct roce_path path;
		struct roce_head h;

		if (is_rc(v))
			continue;
		assert_int_equal(read_octets(v->p, v->n, &p), ROCE_GOOD);
		path = (struct roce_path){ .src = p.src,
					   .dst = p.dst,
					   .tos = ip4 ? v->p[1] : 0,
					   .hops = v->p[ip4 ? 8 : 7],
					   .src_port = uw_be16(udp) };
		h = (struct roce_head){ .path = &path,
					.ip_id = ip4 ? uw_be16(v->p + 4) : 0,
					.op = *p.op,
					.bth = p.bth,
					.deth = p.deth,
					.reth = p.reth,
					.imm_be = p.imm_be };
		uw_rope_copy(p.payload, out + roce_head_size(&h), p.payload.len);
		assert_int_equal(roce_packet_write(&h, out, p.payload.len), v->n);
		if (memcmp(out, v->p, v->n) != 0)
			fail_msg("line %u", v->line);
	}
	vectors_free(&x);
}

static void the_udp_ports_are_those_of_rxe(void **state)
{
	struct vectors x = vectors_read("rxe-roce.txt");
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		struct roce_packet p;

		if (is_rc(v) || !vector_is(v, 1, "64"))
			continue;
		assert_int_equal(read_octets(v->p, v->n, &p), ROCE_GOOD);
		assert_int_equal(uw_be16(v->p + (v->p[0] >> 4 == 4 ? 20 : 40)),
				 roce_ud_port(p.deth.src_qp));
		n++;
	}
	assert_true(n > 5);
	vectors_free(&x);
}

/* ---- forged ones --------------------------------------------------------------------------- */

static struct roce_head a_head(const struct roce_path *path, uint8_t opcode)
{
	return (struct roce_head){ .path = path,
				   .op = *roce_op_of(opcode),
				   .bth = { .pkey = ROCE_PKEY, .dest_qp = 0x123456, .psn = 9 },
				   .deth = { 0x11111111, 0x1c },
				   .imm_be = 0x01020304 };
}

static struct roce_path path4(void)
{
	return (struct roce_path){ .src = uw_ip_v4(0x0100007f),
				   .dst = uw_ip_v4(0x0200007f),
				   .hops = 64,
				   .src_port = 0xc123 };
}

static struct roce_path path6(void)
{
	struct roce_path p = { .hops = 64, .src_port = 0xc123 };

	p.src.b[0] = p.dst.b[0] = 0xfd;
	p.src.b[15] = 1;
	p.dst.b[15] = 2;
	return p;
}

struct forged {
	uint8_t octets[256];
	size_t n;
};

static struct forged a_datagram(struct roce_path path, size_t payload)
{
	struct roce_head h = a_head(&path, 0x64);
	struct forged f;

	memset(f.octets + roce_head_size(&h), 0x5a, payload);
	f.n = roce_packet_write(&h, f.octets, payload);
	return f;
}

static unsigned ip_len(const struct forged *f)
{
	return f->octets[0] >> 4 == 4 ? 20 : 40;
}

static enum roce_verdict verdict(const struct forged *f)
{
	struct roce_packet p;

	return read_octets(f->octets, f->n, &p);
}

/* With an ICRC and IP checksum that fit again. */
static enum roce_verdict verdict_repaired(struct forged *f)
{
	struct uw_span s = { f->octets, f->n - 4 };
	uint32_t sum = 0;

	if (ip_len(f) == 20) {
		memset(f->octets + 10, 0, 2);
		for (unsigned i = 0; i < 20; i += 2)
			sum += uw_be16(f->octets + i);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		uw_put16(f->octets + 10, (uint16_t)~sum);
	}
	roce_icrc_put(f->octets + f->n - 4, roce_icrc(uw_rope_of(&s), ip_len(f)));
	return verdict(f);
}

static void every_length_of_payload_comes_back(void **state)
{
	const struct roce_path paths[] = { path4(), path6() };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (size_t n = 0; n < 64; n++) {
			struct forged f = a_datagram(paths[i], n);
			struct roce_packet p;

			assert_int_equal(read_octets(f.octets, f.n, &p), ROCE_GOOD);
			assert_int_equal(p.payload.len, n);
			assert_int_equal(f.n % 4, 0);
			assert_true(uw_ip_eq(&p.src, &paths[i].src));
			assert_true(uw_ip_eq(&p.dst, &paths[i].dst));
		}
	}
}

/* IBA §7.8.1 */
static void one_bit_wrong_and_the_packet_is_not_good(void **state)
{
	struct forged f = a_datagram(path4(), 20);

	(void)state;
	for (size_t bit = 0; bit < f.n * 8; bit++) {
		size_t at = bit / 8;

		if (at == 26 || at == 27 || at == 32) /* UDP checksum: below; resv8a: free */
			continue;
		f.octets[at] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(verdict(&f), ROCE_GOOD);
		f.octets[at] ^= (uint8_t)(1u << bit % 8);
	}
}

static void a_packet_cut_anywhere_is_not_good(void **state)
{
	struct forged f = a_datagram(path4(), 8), g = a_datagram(path6(), 8);

	(void)state;
	for (size_t n = 0; n < f.n; n++) {
		struct forged cut = f;

		cut.n = n;
		assert_int_not_equal(verdict(&cut), ROCE_GOOD);
	}
	for (g.n--; g.n; g.n--)
		assert_int_not_equal(verdict(&g), ROCE_GOOD);
}

/* Ethernet pads short frames. */
static void octets_behind_the_packet_are_ignored(void **state)
{
	struct forged f = a_datagram(path4(), 4);

	(void)state;
	f.n += 10;
	assert_int_equal(verdict(&f), ROCE_GOOD);
}

/* RFC 768: a checksum that is there must be right; it may be absent. */
static void udps_checksum_is_judged_if_it_is_there(void **state)
{
	const struct roce_path paths[] = { path4(), path6() };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct forged f = a_datagram(paths[i], 9);
		unsigned ip = ip_len(&f);
		uint8_t *udp = f.octets + ip;
		uint32_t sum = 17 + (uint32_t)(f.n - ip);

		for (size_t at = ip == 20 ? 12 : 8; at < f.n; at += 2)
			sum += uw_be16(f.octets + at);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		uw_put16(udp + 6, (uint16_t)~sum);
		assert_int_equal(verdict(&f), ROCE_GOOD);
		udp[6] ^= 1;
		assert_int_equal(verdict(&f), ROCE_BAD_SUM);
	}
}

static void each_field_has_its_verdict(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
		enum roce_verdict want;
	} cases[] = {
		{ 0, 0x46, ROCE_BAD_HEADER }, /* annex A17.3.1: no IP options */
		{ 6, 0x20, ROCE_BAD_HEADER }, /* a fragment */
		{ 9, 6, ROCE_BAD_HEADER },     { 25, 7, ROCE_BAD_HEADER }, /* UDP's length */
		{ 29, 0x01, ROCE_BAD_HEADER }, /* IBA §9.6.1.1.1: transport version */
		{ 30, 0x12, ROCE_BAD_PKEY },   /* IBA §9.6.1.1.3 */
		{ 30, 0x7f, ROCE_GOOD },       /* a limited member */
		{ 28, 0x04, ROCE_BAD_OPCODE }, /* of RC */
		{ 28, 0x66, ROCE_BAD_OPCODE }, { 32, 0xff, ROCE_GOOD }, /* reserved */
		{ 36, 0xff, ROCE_GOOD },				/* A, reserved */
		{ 8, 1, ROCE_GOOD },					/* TTL */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct forged f = a_datagram(path4(), 12);

		f.octets[cases[i].at] = cases[i].value;
		if (cases[i].at == 29 || cases[i].at == 25)
			f.octets[cases[i].at] = cases[i].value;
		if (verdict_repaired(&f) != cases[i].want)
			fail_msg("case %zu", i);
	}
}

/* The pad count takes octets away that are not there. */
static void a_pad_count_larger_than_the_payload_is_refused(void **state)
{
	struct forged f = a_datagram(path4(), 0);

	(void)state;
	f.octets[29] = 0x30;
	assert_int_equal(verdict_repaired(&f), ROCE_BAD_HEADER);
}

/* A packet in pieces of any size is the same packet. */
static void a_packet_in_pieces_reads_the_same(void **state)
{
	struct forged f = a_datagram(path4(), 77);
	struct prng r = { 3 };

	(void)state;
	for (unsigned i = 0; i < 500; i++) {
		struct uw_span v[8];
		struct uw_rope rope = { .v = v, .len = (uint32_t)f.n };
		struct roce_packet p;
		size_t at = 0;

		for (unsigned k = 0; k < 8; k++) {
			size_t n = k == 7 ? f.n - at : prng_below(&r, (uint32_t)(f.n - at) / 2 + 1);

			v[k] = (struct uw_span){ f.octets + at, n };
			at += n;
		}
		assert_int_equal(roce_packet_read(rope, &p), ROCE_GOOD);
		assert_int_equal(p.payload.len, 77);
	}
}

/* Annex A17.4.3, as drivers do it: the IPv4 header is in the last 20 of the 40 octets. */
static void the_grh_area_has_the_ip_header(void **state)
{
	struct forged f = a_datagram(path4(), 4), g = a_datagram(path6(), 4);
	static const uint8_t zeros[20];
	struct roce_packet p;
	uint8_t grh[40];

	(void)state;
	assert_int_equal(read_octets(f.octets, f.n, &p), ROCE_GOOD);
	roce_packet_grh(&p, false, grh);
	assert_memory_equal(grh, zeros, 20);
	assert_memory_equal(grh + 20, f.octets, 20);
	assert_int_equal(read_octets(g.octets, g.n, &p), ROCE_GOOD);
	roce_packet_grh(&p, false, grh);
	assert_memory_equal(grh, g.octets, 40);
}

/* IBA §8.3: version 6, the next header is InfiniBand's, and the GIDs are the addresses. */
static void as_infiniband_the_grh_is_one(void **state)
{
	const struct roce_path path[] = { path4(), path6() };

	(void)state;
	for (unsigned i = 0; i < COUNT(path); i++) {
		struct forged f = a_datagram(path[i], 5);
		struct roce_packet p;
		uint8_t grh[40];

		assert_int_equal(read_octets(f.octets, f.n, &p), ROCE_GOOD);
		roce_packet_grh(&p, true, grh);
		assert_int_equal(grh[0] >> 4, 6);
		assert_int_equal((grh[0] << 4 | grh[1] >> 4) & 0xff, path[i].tos);
		assert_int_equal(grh[4] << 8 | grh[5],
				 12 + 8 + 8 + 4); /* BTH, DETH, padded, ICRC */
		assert_int_equal(grh[6], 0x1b);
		assert_int_equal(grh[7], path[i].hops);
		assert_memory_equal(grh + 8, path[i].src.b, 16);
		assert_memory_equal(grh + 24, path[i].dst.b, 16);
	}
}

static void random_octets_break_nothing(void **state)
{
	struct prng r = { 11 };

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct forged f = a_datagram(i & 1 ? path4() : path6(), prng_below(&r, 100));

		for (unsigned k = prng_below(&r, 4) + 1; k--;)
			f.octets[prng_below(&r, (uint32_t)f.n)] = (uint8_t)prng_next(&r);
		f.n = prng_below(&r, 3) ? f.n : prng_below(&r, (uint32_t)f.n + 1);
		if (i & 2 && f.n > 72)
			verdict_repaired(&f);
		else
			verdict(&f);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_captured_packet_is_good_but_those_of_rc),
	cmocka_unit_test(what_is_read_is_written_the_same),
	cmocka_unit_test(the_udp_ports_are_those_of_rxe),
	cmocka_unit_test(every_length_of_payload_comes_back),
	cmocka_unit_test(one_bit_wrong_and_the_packet_is_not_good),
	cmocka_unit_test(a_packet_cut_anywhere_is_not_good),
	cmocka_unit_test(octets_behind_the_packet_are_ignored),
	cmocka_unit_test(udps_checksum_is_judged_if_it_is_there),
	cmocka_unit_test(each_field_has_its_verdict),
	cmocka_unit_test(a_pad_count_larger_than_the_payload_is_refused),
	cmocka_unit_test(a_packet_in_pieces_reads_the_same),
	cmocka_unit_test(the_grh_area_has_the_ip_header),
	cmocka_unit_test(as_infiniband_the_grh_is_one),
	cmocka_unit_test(random_octets_break_nothing),
};

UWTEST_MAIN(tests)
