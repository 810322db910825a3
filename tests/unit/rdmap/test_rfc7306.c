/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics and immediate data, in both directions: RFC 7306. */
#include <endian.h>

#include "peer.h"
#include "uwtest.h"

static struct peer a, b; /* a asks, b is asked */
static uint64_t word[8], result[8];
static uint32_t words, results; /* their STags */

#define WITH_ATOMIC (ARENA_ALL | UW_ACCESS_REMOTE_ATOMIC)

static void pair(unsigned rights)
{
	peer_init(&a, PEER_READS, PEER_READS);
	peer_init(&b, PEER_READS, PEER_READS);
	b.s.remote_rights |= UW_ACCESS_REMOTE_ATOMIC;
	memset(word, 0, sizeof(word));
	memset(result, 0x5a, sizeof(result));
	results = arena_add(&a.mem, result, sizeof(result), UW_ACCESS_LOCAL_WRITE);
	words = arena_add(&b.mem, word, sizeof(word), rights);
}

static struct mem_sgl result_at(unsigned i)
{
	static struct uw_sge v[8];

	v[i] = sge_of(&result[i], 8, results);
	return sgl_of(&v[i], 1);
}

static uw_status ask(unsigned i, struct rdmap_atomic x)
{
	struct mem_sgl sink = result_at(i);
	uw_status st = rdmap_atomic(&a.s, &sink, &x);

	return st ? st : peer_carry(&a, &b, 100);
}

static uw_status add(unsigned i, uint64_t to, uint64_t n)
{
	return ask(i, (struct rdmap_atomic){
			      .aop = RDMAP_FETCH_ADD, .stag = words, .to = to, .add_swap = n });
}

static uw_status answer(void)
{
	rdmap_respond(&b.s);
	return peer_carry(&b, &a, 100);
}

/* An Atomic Request by hand, to b. */
static struct ulpdu request(uint32_t msn, unsigned aop, uint32_t stag, uint64_t to)
{
	uint8_t body[52] = { 0, 0, 0, (uint8_t)aop };

	put_octets(body + 4, 4, 0x0a0b0c0d);
	put_octets(body + 8, 4, stag);
	put_octets(body + 12, 8, to);
	put_octets(body + 20, 8, 1);
	return ulpdu_untagged(CTRL_ATOMIC, (const uint32_t[]){ 1, msn, 0 }, body, sizeof(body));
}

/* ---- atomics ----------------------------------------------------------------------------- */

/* RFC 7306 §5.2.1, §4.1: queue 1, one segment, every field in its place. */
static void a_request_octet_for_octet(void **state)
{
	struct rdmap_atomic x = { .aop = RDMAP_CMP_SWAP,
				  .stag = 0x01020304,
				  .to = 0x1000,
				  .add_swap = 5,
				  .add_swap_mask = 6,
				  .compare = 7,
				  .compare_mask = 8 };
	struct mem_sgl sink;
	struct ulpdu u;

	(void)state;
	pair(WITH_ATOMIC);
	sink = result_at(0);
	assert_status(rdmap_atomic(&a.s, &sink, &x), UW_OK);
	u = peer_segment(&a, 100);
	assert_int_equal(u.n, 18 + 52);
	assert_int_equal(octets(u.p, 2), CTRL_ATOMIC);
	assert_int_equal(octets(u.p + 2, 4), 0);
	assert_int_equal(octets(u.p + 6, 4), 1);
	assert_int_equal(octets(u.p + 10, 4), 1);
	assert_int_equal(octets(u.p + 18, 4), RDMAP_CMP_SWAP);
	assert_int_equal(octets(u.p + 26, 4), 0x01020304);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(octets(u.p + 38 + 8 * i, 8), 5 + i);
}

/* RFC 7306 §5.2.2: queue 3, the request's identifier, the original value. */
static void a_response_octet_for_octet(void **state)
{
	struct ulpdu u;

	(void)state;
	pair(WITH_ATOMIC);
	word[3] = 0x1122334455667788ull;
	u = request(1, RDMAP_FETCH_ADD, words, to_of(&word[3]));
	assert_status(peer_rx(&b, &u), UW_OK);
	assert_true(rdmap_response_due(&b.s));
	rdmap_respond(&b.s);
	u = peer_segment(&b, 100);
	assert_int_equal(u.n, 18 + 12);
	assert_int_equal(octets(u.p, 2), CTRL_ATOMIC_RESP);
	assert_int_equal(octets(u.p + 2, 4), 0);
	assert_int_equal(octets(u.p + 6, 4), 3);
	assert_int_equal(octets(u.p + 10, 4), 1);
	assert_int_equal(octets(u.p + 14, 4), 0);
	assert_int_equal(octets(u.p + 18, 4), 0x0a0b0c0d);
	assert_true(octets(u.p + 22, 8) == 0x1122334455667788ull);
	assert_true(word[3] == 0x1122334455667789ull);
	assert_true(rdmap_tx_idle(&b.s));
	assert_false(rdmap_response_due(&b.s));
}

/* RFC 7306 §5: the original value comes back, in the order of the host; the read is done. */
static void an_atomic_changes_the_word_and_brings_the_original(void **state)
{
	(void)state;
	pair(WITH_ATOMIC);
	word[2] = 40;
	assert_status(add(1, to_of(&word[2]), 2), UW_OK);
	assert_status(answer(), UW_OK);
	assert_int_equal(word[2], 42);
	assert_int_equal(result[1], 40);
	assert_int_equal(a.reads_done, 1);
	assert_status(ask(0, (struct rdmap_atomic){ .aop = RDMAP_CMP_SWAP,
						    .stag = words,
						    .to = to_of(&word[2]),
						    .compare = 42,
						    .compare_mask = UINT64_MAX,
						    .add_swap = 7,
						    .add_swap_mask = UINT64_MAX }),
		      UW_OK);
	assert_status(answer(), UW_OK);
	assert_int_equal(word[2], 7);
	assert_int_equal(result[0], 42);
	assert_true(result[2] == 0x5a5a5a5a5a5a5a5aull);
}

/* RFC 7306 §5, RFC 5040 §5.2: atomics and Reads share IRD, ORD and the order of answers; an atomic
 * behind a Read is carried out when its turn comes, any other one when it comes. */
static void atomics_and_reads_are_answered_in_order(void **state)
{
	struct mem_sgl sink;

	(void)state;
	pair(WITH_ATOMIC);
	assert_status(add(0, to_of(&word[0]), 1), UW_OK);
	sink = result_at(1);
	assert_status(rdmap_read(&a.s, &sink, words, to_of(&word[0])), UW_OK);
	assert_status(peer_carry(&a, &b, 100), UW_OK);
	assert_status(add(2, to_of(&word[0]), 10), UW_OK);
	sink = result_at(3);
	assert_status(rdmap_read(&a.s, &sink, words, to_of(&word[0])), UW_OK);
	assert_status(peer_carry(&a, &b, 100), UW_OK);
	assert_status(add(4, to_of(&word[0]), 100), UW_MORE);
	assert_int_equal(word[0], 1);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(a.reads_done, i);
		assert_status(answer(), UW_OK);
	}
	assert_int_equal(a.reads_done, 4);
	assert_int_equal(result[0], 0);
	assert_int_equal(result[1], 1);
	assert_int_equal(result[2], 1);
	assert_int_equal(result[3], 11);
	assert_false(rdmap_response_due(&b.s));
	assert_status(add(4, to_of(&word[0]), 100), UW_OK);
}

/* RFC 5040 §5.2: an atomic beyond IRD is not accepted. */
static void atomics_are_kept_up_to_ird(void **state)
{
	struct ulpdu u;

	(void)state;
	pair(WITH_ATOMIC);
	for (uint32_t i = 0; i < PEER_READS; i++) {
		u = request(i + 1, RDMAP_FETCH_ADD, words, to_of(word));
		assert_status(peer_rx(&b, &u), UW_OK);
	}
	u = request(PEER_READS + 1, RDMAP_FETCH_ADD, words, to_of(word));
	assert_status(peer_rx(&b, &u), UW_E_DDP_NO_BUFFER);
	assert_int_equal(word[0], PEER_READS);
}

/* RFC 7306 §5, §8.1: checked before anything is touched; the Terminate has no RDMAP header. */
static void an_atomic_that_fails_a_check_touches_nothing(void **state)
{
	static const struct {
		unsigned rights, aop;
		uint32_t stag_off;
		int64_t to_off;
		uw_status st;
		unsigned word;
	} rows[] = {
		{ WITH_ATOMIC, 0, 1, 0, UW_E_RDMAP_STAG, 0x0100 },
		{ WITH_ATOMIC, 0, 0, 57, UW_E_RDMAP_BOUNDS, 0x0101 },
		{ WITH_ATOMIC, 0, 0, -8, UW_E_RDMAP_BOUNDS, 0x0101 },
		{ ARENA_ALL, 0, 0, 0, UW_E_RDMAP_ACCESS, 0x0102 },
		{ WITH_ATOMIC, 0, 0, 4, UW_E_RDMAP_STREAM_CATASTROPHIC, 0x0207 },
		{ WITH_ATOMIC, 2, 0, 1, UW_E_RDMAP_STREAM_CATASTROPHIC, 0x0207 },
		{ WITH_ATOMIC, 1, 0, 0, UW_E_RDMAP_OPCODE, 0x0206 },
		{ WITH_ATOMIC, 3, 0, 0, UW_E_RDMAP_OPCODE, 0x0206 },
		{ WITH_ATOMIC, 13, 0, 0, UW_E_RDMAP_OPCODE, 0x0206 },
		{ WITH_ATOMIC, 14, 0, 0, UW_E_RDMAP_OPCODE, 0x0206 },
		{ WITH_ATOMIC, 15, 0, 4, UW_E_RDMAP_STREAM_CATASTROPHIC, 0x0207 },
		{ WITH_ATOMIC, 15, 1, 0, UW_E_RDMAP_STAG, 0x0100 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ulpdu u, t;

		pair(rows[i].rights);
		u = request(1, rows[i].aop, words + rows[i].stag_off,
			    to_of(word) + (uint64_t)rows[i].to_off);
		assert_status(peer_rx(&b, &u), rows[i].st);
		assert_false(rdmap_response_due(&b.s));
		for (unsigned k = 0; k < COUNT(word); k++)
			assert_int_equal(word[k], 0);
		t = peer_terminate(&b, rows[i].st);
		assert_int_equal(octets(t.p + 18, 2), rows[i].word);
		assert_int_equal(t.p[20], 0xc0);
		assert_int_equal(octets(t.p + 22, 2), u.n);
		assert_memory_equal(t.p + 24, u.p, 18);
		assert_int_equal(t.n, 24 + 18);
	}
}

static void the_stream_may_forbid_atomics(void **state)
{
	struct ulpdu u;

	(void)state;
	pair(WITH_ATOMIC);
	b.s.remote_rights &= ~(unsigned)UW_ACCESS_REMOTE_ATOMIC;
	u = request(1, RDMAP_FETCH_ADD, words, to_of(word));
	assert_status(peer_rx(&b, &u), UW_E_RDMAP_ACCESS);
}

/* RFC 5042 §6.2.2: memory that went before the atomic's turn came is not touched. RFC 7306 §8.1:
 * the Terminate has the request's DDP header, and nothing behind it. */
static void an_atomic_stops_when_the_memory_goes(void **state)
{
	uint8_t out[100], other[64] = { 0 };
	struct ulpdu u, t;
	size_t n;

	(void)state;
	pair(WITH_ATOMIC);
	/* a Read of memory that stays is to be answered before */
	u = ulpdu_read_request(1, 1, 32, arena_add(&b.mem, other, sizeof(other), ARENA_ALL),
			       to_of(other));
	assert_status(peer_rx(&b, &u), UW_OK);
	u = request(2, RDMAP_FETCH_ADD, words, to_of(word));
	assert_status(peer_rx(&b, &u), UW_OK);
	arena_drop(&b.mem, words);
	rdmap_respond(&b.s);
	peer_segment(&b, 100);
	rdmap_respond(&b.s);
	assert_status(rdmap_tx_segment(&b.s, out, sizeof(out), &n), UW_E_RDMAP_STAG);
	assert_int_equal(word[0], 0);
	t = peer_terminate(&b, UW_E_RDMAP_STAG);
	assert_int_equal(octets(t.p + 18, 2), 0x0100);
	assert_int_equal(t.p[20], 0xc0);
	assert_int_equal(octets(t.p + 22, 2), u.n);
	assert_memory_equal(t.p + 24, u.p, 18);
	assert_int_equal(t.n, 24 + 18);
}

/* What was executed is answered, whatever becomes of the memory. */
static void an_executed_atomic_needs_its_memory_no_more(void **state)
{
	uint8_t out[100];
	struct ulpdu u;
	size_t n;

	(void)state;
	pair(WITH_ATOMIC);
	word[0] = 41;
	u = request(1, RDMAP_FETCH_ADD, words, to_of(word));
	assert_status(peer_rx(&b, &u), UW_OK);
	arena_drop(&b.mem, words);
	word[0] = 0;
	rdmap_respond(&b.s);
	assert_status(rdmap_tx_segment(&b.s, out, sizeof(out), &n), UW_OK);
	assert_int_equal(octets(out + 18 + 4, 8), 41);
}

/* RFC 7306 §5.2: header and nothing else, one segment; for requests and for responses. */
static void atomic_messages_have_their_size(void **state)
{
	uint8_t body[16] = { 0 };
	struct ulpdu u;

	(void)state;
	pair(WITH_ATOMIC);
	u = request(1, RDMAP_FETCH_ADD, words, to_of(word));
	u.n--;
	assert_status(peer_rx(&b, &u), UW_E_RDMAP_UNSPEC);
	u.n += 2;
	assert_status(peer_rx(&b, &u), UW_E_RDMAP_UNSPEC);
	u.n--;
	u.p[0] &= ~0x40;
	assert_status(peer_rx(&b, &u), UW_E_DDP_MO);
	for (size_t n = 0; n < sizeof(body); n++) {
		u = ulpdu_untagged(CTRL_ATOMIC_RESP, (const uint32_t[]){ 3, 1, 0 }, body, n);
		/* none was asked for, whatever it looks like */
		assert_status(peer_rx(&a, &u), n == 12 ? UW_E_RDMAP_OPCODE : UW_E_RDMAP_UNSPEC);
	}
}

/* RFC 7306 §5.2.2: a Response belongs to the oldest request, which must be an atomic and have its
 * identifier; a Read is not answered with one, nor an atomic with a Read Response. */
static void a_response_belongs_to_the_oldest_request(void **state)
{
	struct mem_sgl sink;
	uint8_t body[12] = { 0 };
	struct ulpdu u;

	(void)state;
	pair(WITH_ATOMIC);
	assert_status(add(0, to_of(word), 1), UW_OK);
	put_octets(body, 4, 0x77777777);
	u = ulpdu_untagged(CTRL_ATOMIC_RESP, (const uint32_t[]){ 3, 1, 0 }, body, 12);
	assert_status(peer_rx(&a, &u), UW_E_RDMAP_STREAM_CATASTROPHIC);
	u = ulpdu_tagged(CTRL_READ_RESPONSE, PEER_SINK, 0, "12345678", 8);
	assert_int_not_equal(peer_rx(&a, &u), UW_OK);
	assert_true(result[0] == 0x5a5a5a5a5a5a5a5aull);
	assert_int_equal(a.reads_done, 0);

	pair(WITH_ATOMIC);
	sink = result_at(0);
	assert_status(rdmap_read(&a.s, &sink, words, to_of(word)), UW_OK);
	peer_segment(&a, 100);
	put_octets(body, 4, PEER_SINK);
	u = ulpdu_untagged(CTRL_ATOMIC_RESP, (const uint32_t[]){ 3, 1, 0 }, body, 12);
	assert_status(peer_rx(&a, &u), UW_E_RDMAP_OPCODE);
	assert_int_equal(a.reads_done, 0);
}

static void an_atomic_with_a_bad_sink_is_our_error(void **state)
{
	(void)state;
	pair(WITH_ATOMIC);
	assert_status(add(0, to_of(word), 1), UW_OK);
	arena_drop(&a.mem, results);
	assert_status(answer(), UW_E_LKEY);
	assert_int_equal(a.reads_done, 0);
}

/* ---- immediate data ---------------------------------------------------------------------- */

#define IMM htobe32(0x01020304)

static void post(struct peer *p, unsigned n)
{
	static struct uw_sge v;
	struct mem_sgl sgl;

	v = sge_of(result, sizeof(result), results);
	sgl = sgl_of(&v, 1);
	while (n--)
		peer_post(p, &sgl);
}

/* RFC 7306 §6.3: queue 0, exactly 8 octets; the program's four come first, in network order. */
static void immediate_data_octet_for_octet(void **state)
{
	(void)state;
	for (unsigned se = 0; se < 2; se++) {
		struct ulpdu u,
			want = ulpdu_untagged(se ? CTRL_IMM_SE : CTRL_IMM,
					      (const uint32_t[]){ 0, 1, 0 }, "\1\2\3\4\0\0\0\0", 8);

		pair(WITH_ATOMIC);
		memset(a.s.tx.bytes, 0xff, sizeof(a.s.tx.bytes));
		rdmap_imm(&a.s, IMM, se);
		u = peer_segment(&a, 100);
		assert_int_equal(u.n, want.n);
		assert_memory_equal(u.p, want.p, want.n);
		assert_true(rdmap_tx_idle(&a.s));
	}
}

/* RFC 7306 §6: it takes a receive, is delivered in order and says whether it is solicited; the
 * length is that of the Write in front of it. */
static void immediate_data_is_delivered_behind_its_write(void **state)
{
	static uint8_t data[300];
	struct uw_sge v;
	struct mem_sgl sgl;
	struct ulpdu none = ulpdu_tagged(CTRL_WRITE, 1, 0, NULL, 0);

	(void)state;
	pair(WITH_ATOMIC);
	post(&a, 3);
	v = sge_of(data, 60, arena_add(&b.mem, data, sizeof(data), 0));
	sgl = sgl_of(&v, 1);
	arena_put(&a.mem, (struct mem_region){ .stag = 0x0100,
					       .pd = ARENA_PD,
					       .base = (void *)result,
					       .to = 0,
					       .len = 64,
					       .rights = ARENA_ALL });
	rdmap_write(&b.s, &sgl, 0x0100, 0);
	assert_status(peer_carry(&b, &a, 40), UW_OK);
	assert_int_equal(a.delivered, 0);
	rdmap_imm(&b.s, IMM, true);
	assert_status(peer_carry(&b, &a, 100), UW_OK);
	assert_int_equal(a.delivered, 1);
	assert_int_equal(a.taken, 1);
	assert_true(a.got[0].has_imm && a.got[0].write_imm && a.got[0].solicited);
	assert_true(a.got[0].imm_be == IMM);
	assert_int_equal(a.got[0].length, 60);

	assert_status(peer_rx(&a, &none), UW_OK);
	rdmap_imm(&b.s, IMM, false);
	assert_status(peer_carry(&b, &a, 100), UW_OK);
	assert_false(a.got[1].solicited);
	assert_int_equal(a.got[1].length, 0);
}

/* RFC 7306 §6.3, §8.2: not 8 octets; RFC 5041 §7.2: no receive for it. */
static void immediate_data_has_its_size_and_its_receive(void **state)
{
	uint8_t body[10] = { 0 };
	struct ulpdu u;

	(void)state;
	for (size_t n = 0; n < sizeof(body); n++) {
		pair(WITH_ATOMIC);
		post(&a, 1);
		u = ulpdu_untagged(CTRL_IMM, (const uint32_t[]){ 0, 1, 0 }, body, n);
		assert_status(peer_rx(&a, &u), n == 8 ? UW_OK : UW_E_RDMAP_UNSPEC);
		assert_int_equal(a.delivered, n == 8);
	}
	pair(WITH_ATOMIC);
	u = ulpdu_untagged(CTRL_IMM, (const uint32_t[]){ 0, 1, 0 }, body, 8);
	assert_status(peer_rx(&a, &u), UW_E_DDP_NO_BUFFER);
}

/* RFC 6581 §9.2: what opens a stream that has agreed on a Send is that Send; immediate data in its
 * place has no receive to take, and must not be delivered into one. */
static void immediate_data_is_no_rtr(void **state)
{
	struct ulpdu u = ulpdu_untagged(CTRL_IMM, (const uint32_t[]){ 0, 1, 0 }, "12345678", 8);

	(void)state;
	pair(WITH_ATOMIC);
	a.s.rtr_send = true;
	post(&a, 1);
	assert_status(peer_rx(&a, &u), UW_E_RDMAP_OPCODE);
	assert_int_equal(a.delivered + a.taken, 0);
}

/* doc/adr/0004, RFC 6580 §3.4: a Send with its immediate data in RsvdULP of every segment. */
static void a_send_with_immediate_is_one_message(void **state)
{
	static uint8_t data[60];
	struct uw_sge v;
	struct mem_sgl sgl;
	struct ulpdu u;

	(void)state;
	for (unsigned se = 0; se < 2; se++) {
		pair(WITH_ATOMIC);
		post(&a, 1);
		memset(data, 0x66, sizeof(data));
		v = sge_of(data, 60, arena_add(&b.mem, data, sizeof(data), 0));
		sgl = sgl_of(&v, 1);
		rdmap_send_imm(&b.s, &sgl, IMM, se);
		for (unsigned i = 0; i < 2; i++) {
			u = peer_segment(&b, 50);
			assert_int_equal(u.p[1], se ? 0x5f : 0x4f);
			assert_int_equal(octets(u.p + 2, 4), 0x01020304);
			assert_status(peer_rx(&a, &u), UW_OK);
		}
		assert_int_equal(a.delivered, 1);
		assert_int_equal(a.taken, 1);
		assert_true(a.got[0].has_imm && !a.got[0].write_imm);
		assert_int_equal(a.got[0].solicited, se);
		assert_true(a.got[0].imm_be == IMM);
		assert_int_equal(a.got[0].length, 60);
		assert_memory_equal(result, data, 60);
	}
}

/* An ordinary Send has none, whatever its reserved fields say (RFC 5040 §4.1). */
static void an_ordinary_send_has_no_immediate(void **state)
{
	struct ulpdu u = ulpdu_send(1, "x", 1);

	(void)state;
	pair(WITH_ATOMIC);
	post(&a, 1);
	u.p[1] |= 0x30;
	put_octets(u.p + 2, 4, 0x01020304);
	assert_status(peer_rx(&a, &u), UW_OK);
	assert_false(a.got[0].has_imm || a.got[0].solicited);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_request_octet_for_octet),
	cmocka_unit_test(a_response_octet_for_octet),
	cmocka_unit_test(an_atomic_changes_the_word_and_brings_the_original),
	cmocka_unit_test(atomics_and_reads_are_answered_in_order),
	cmocka_unit_test(atomics_are_kept_up_to_ird),
	cmocka_unit_test(an_atomic_that_fails_a_check_touches_nothing),
	cmocka_unit_test(the_stream_may_forbid_atomics),
	cmocka_unit_test(an_atomic_stops_when_the_memory_goes),
	cmocka_unit_test(an_executed_atomic_needs_its_memory_no_more),
	cmocka_unit_test(atomic_messages_have_their_size),
	cmocka_unit_test(a_response_belongs_to_the_oldest_request),
	cmocka_unit_test(an_atomic_with_a_bad_sink_is_our_error),
	cmocka_unit_test(immediate_data_octet_for_octet),
	cmocka_unit_test(immediate_data_is_delivered_behind_its_write),
	cmocka_unit_test(immediate_data_has_its_size_and_its_receive),
	cmocka_unit_test(immediate_data_is_no_rtr),
	cmocka_unit_test(a_send_with_immediate_is_one_message),
	cmocka_unit_test(an_ordinary_send_has_no_immediate),
};

UWTEST_MAIN(tests)
