/* SPDX-License-Identifier: BSD-3-Clause */
/* Long segments into the conduit: what the uwarpd sees there. */
#include <arpa/inet.h>
#include <unistd.h>

#include "base/be.h"
#include "io/packet/segments.h"
#include "io/switch/classify.h"
#include "io/uwarpd/link.h"
#include "made.h"

enum { ALICE = 1, ALICES = 4000, MTU = 1500, MSS = 1448, HEADERS = 54 };

struct bed {
	struct uwarpd_link u;
	struct conduit daemon; /* the uwarpd's end */
	struct switch_table table;
	_Atomic uint32_t bell;
};

static struct io_frame *alloc(struct io_link *l)
{
	return frames_take(&uwarpd_link_of(l)->frames.small, l);
}

static const struct io_ops ops = {
	.alloc = alloc, .free = frames_free, .ref = frames_ref, .refs = frames_refs
};

static int up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	int ours, theirs;

	assert_non_null(b);
	b->u.l.ops = &ops;
	b->u.l.mtu = MTU;
	b->u.l.flags = IO_TSO | IO_TX_CSUM;
	b->u.up = true;
	b->u.peer.fd = b->u.peer.ring_fd = -1;
	b->u.peer.bell = &b->bell;
	assert_true(frames_open(&b->u.frames, MTU + 14));
	assert_status(conduit_make(&b->u.peer.conduit, &ours), UW_OK);
	assert_status(conduit_make(&b->daemon, &theirs), UW_OK);
	assert_status(conduit_attach(&b->u.peer.conduit, theirs), UW_OK);
	assert_status(conduit_attach(&b->daemon, ours), UW_OK);
	b->table = (struct switch_table){ .addr = MADE_HOST(1), .mtu = MTU, .merges = true };
	b->table.holder[ALICES] = ALICE;
	*state = b;
	return 0;
}

static int down(void **state)
{
	struct bed *b = *state;

	conduit_free(&b->u.peer.conduit);
	conduit_free(&b->daemon);
	frames_close(&b->u.frames);
	free(b);
	return 0;
}

static struct made made_of(uint32_t payload)
{
	return (struct made){ .src_port = ALICES,
			      .dst_port = 7000,
			      .ip_id = 3,
			      .seq = 77,
			      .flags = ACK | PSH,
			      .payload = payload };
}

static struct io_frame *long_frame(struct bed *b, const struct made *m, uint32_t cut)
{
	struct io_frame *f = frames_take_long(&b->u.frames, &b->u.l);

	assert_non_null(f);
	f->len = made_octets(m, f->data);
	f->cut = cut;
	f->marks = IO_FRAME_SUM;
	return f;
}

/* The next record of the conduit, which a uwarpd lets out to its port. */
static const uint8_t *next(struct bed *b, uint32_t *len, struct conduit_meta *meta)
{
	const uint8_t *at;
	struct switch_frame f = { 0 };
	struct switch_result r;

	assert_int_equal(conduit_look(&b->daemon.in, &at, len, meta), CONDUIT_OK);
	f = (struct switch_frame){ at, *len, *len, meta->gso_size };
	r = switch_out(&b->table, ALICE, &f);
	assert_int_equal(r.verdict, SWITCH_TO_PORT);
	assert_int_equal(r.headers, HEADERS);
	conduit_step(&b->daemon.in);
	conduit_tell(&b->daemon.in);
	return at;
}

static bool is_empty(struct bed *b)
{
	struct conduit_meta meta;
	const uint8_t *at;
	uint32_t len;

	return conduit_look(&b->daemon.in, &at, &len, &meta) == CONDUIT_NONE;
}

static void a_long_segment_is_one_record(void **state)
{
	struct bed *b = *state;
	const struct made m = made_of(44 * MSS + 99);
	struct io_frame *f = long_frame(b, &m, MSS);
	static uint8_t octets[65536];
	struct conduit_meta meta;
	uint32_t len;
	const uint8_t *at;

	assert_int_equal(uwarpd_tx(&b->u.l, &f, 1), 1);
	at = next(b, &len, &meta);
	assert_int_equal(len, made_octets(&m, octets));
	assert_int_equal(meta.gso_size, MSS);
	assert_true(meta.sum);
	assert_memory_equal(at, octets, HEADERS - 4); /* but for the checksum */
	assert_memory_equal(at + HEADERS, octets + HEADERS, len - HEADERS);
	assert_true(is_empty(b));
	assert_int_equal(b->u.l.stats.tx_frames, 45);
	assert_int_equal(b->u.l.stats.tx_merged, 45);
	assert_int_equal(b->u.l.stats.tx_chains, 1);
	assert_int_equal(b->u.l.stats.tx_bytes, len);
	assert_ptr_equal(frames_take_long(&b->u.frames, &b->u.l), f); /* it was given back */
}

/* The uwarpd takes no more than SWITCH_SEGMENTS_MAX segments in a record. RFC 3168 §6.1.2: CWR goes
 * with the first segment only. */
static void one_of_many_pieces_is_several(void **state)
{
	struct bed *b = *state;
	enum { CUT = 500, PIECES = 129 };
	struct made m = made_of((PIECES - 1) * CUT + 7);
	struct io_frame *f;
	static const uint32_t payload[] = { 64 * CUT, 64 * CUT, 7 };
	static uint8_t octets[65536];

	m.flags |= CWR;
	f = long_frame(b, &m, CUT);
	made_octets(&m, octets);
	assert_int_equal(uwarpd_tx(&b->u.l, &f, 1), 1);
	for (unsigned i = 0, at = 0; i < 3; at += payload[i++]) {
		struct conduit_meta meta;
		uint32_t len;
		const uint8_t *h = next(b, &len, &meta);

		assert_int_equal(len, HEADERS + payload[i]);
		assert_int_equal(uw_be16(h + 16), len - 14);
		assert_int_equal(uw_be16(h + 18), 3 + i * 64);
		assert_int_equal(uw_be32(h + 38), 77 + at);
		assert_int_equal(h[47], ACK | (i ? 0 : CWR) | (i == 2 ? PSH : 0));
		assert_int_equal(meta.gso_size, i == 2 ? 0 : CUT);
		assert_true(meta.sum);
		assert_memory_equal(h + HEADERS, octets + HEADERS + at, payload[i]);
	}
	assert_true(is_empty(b));
	assert_int_equal(b->u.l.stats.tx_frames, PIECES);
	assert_int_equal(b->u.l.stats.tx_chains, 2);
}

/* Nothing of it goes, and it stays the caller's. The first frame leaves room for one record of the
 * last one, which needs three. */
static void a_full_conduit_takes_no_part_of_it(void **state)
{
	struct bed *b = *state;
	const struct made m = made_of(130 * 500), small = made_of(20 * 500);
	struct io_frame *f = long_frame(b, &small, 500);
	struct conduit_meta meta;
	unsigned records = 0;
	uint32_t len;

	assert_int_equal(uwarpd_tx(&b->u.l, &f, 1), 1);
	for (;;) {
		f = long_frame(b, &m, 500);
		if (!uwarpd_tx(&b->u.l, &f, 1))
			break;
		records += 3;
	}
	assert_int_equal(b->u.l.stats.tx_full, 1);
	assert_int_equal(b->u.l.stats.tx_frames, 20 + records / 3 * 130);
	for (records++; records; records--)
		next(b, &len, &meta);
	assert_true(is_empty(b));
	assert_int_equal(uwarpd_tx(&b->u.l, &f, 1), 1);
	assert_int_equal(uw_be32(next(b, &len, &meta) + 38), 77);
}

static void without_a_uwarpd_it_is_lost_and_counted(void **state)
{
	struct bed *b = *state;
	const struct made m = made_of(10 * MSS);
	struct io_frame *f = long_frame(b, &m, MSS);

	b->u.up = false;
	assert_int_equal(uwarpd_tx(&b->u.l, &f, 1), 1);
	assert_int_equal(b->u.l.stats.tx_drops, 10);
	assert_true(is_empty(b));
}

/* A cut that is longer than the segment, or than the link allows: the uwarpd sees what it is. */
static void a_cut_that_lies_is_not_let_out(void **state)
{
	struct bed *b = *state;
	const struct made m = made_of(3 * MTU);
	struct io_frame *f = long_frame(b, &m, MTU);
	struct switch_frame seen = { 0 };
	struct conduit_meta meta;
	const uint8_t *at;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uwarpd_tx(&b->u.l, &f, 1), 1);
		assert_int_equal(conduit_look(&b->daemon.in, &at, &seen.len, &meta), CONDUIT_OK);
		seen.head = at;
		seen.head_len = seen.len;
		seen.gso_size = meta.gso_size;
		assert_int_equal(switch_out(&b->table, ALICE, &seen).verdict, SWITCH_DROP);
		conduit_step(&b->daemon.in);
		f = long_frame(b, &m, 4 * MTU); /* one segment of 4500 octets, then */
	}
	io_free_chain(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_long_segment_is_one_record),
		TEST(one_of_many_pieces_is_several),
		TEST(a_full_conduit_takes_no_part_of_it),
		TEST(without_a_uwarpd_it_is_lost_and_counted),
		TEST(a_cut_that_lies_is_not_let_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
