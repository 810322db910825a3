/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FPDUs: anything TCP may bring through mpa_rx_next, plain and with markers, CRC on and off, in any
 * pieces; and what mpa_tx_finish makes comes out of mpa_rx_next as it was, and does not when an
 * octet was changed on the way. RFC 5044 §4.
 */
#include "fuzz.h"
#include "mpa/fpdu.h"
#include "mpa/markers.h"

#define STREAM_MAX 40000u

struct ends {
	struct mpa_tx tx;
	struct mpa_rx rx;
	struct uw_stats stats;
	uint8_t scratch[MPA_FPDU_MAX];
};

static void ends_init(struct ends *e, uint8_t bits)
{
	e->stats = (struct uw_stats){ 0 };
	e->tx = (struct mpa_tx){ .crc = bits & 1, .markers = bits & 2, .stats = &e->stats };
	e->rx = (struct mpa_rx){ .crc = bits & 1, .markers = bits & 2, .stats = &e->stats };
	e->rx.scratch = e->rx.markers ? e->scratch : NULL;
}

/* Everything that is there, in pieces; the octets before `at` were used up before. */
static size_t take_all(struct ends *e, struct uw_span s, struct feed *f)
{
	size_t used, at = 0;
	uw_status st;

	do {
		struct uw_rope ulpdu = { 0 };
		struct cut c;

		cut_make(&c, (struct uw_span){ s.p + at, s.n - at }, f);
		st = mpa_rx_next(&e->rx, c.rope, &ulpdu, &used);
		if (st) {
			CHECK(used == 0);
		} else {
			uint8_t *all = fuzz_alloc(ulpdu.len);

			CHECK(used > ulpdu.len && used <= c.rope.len && used % 4 == 0);
			uw_rope_copy(ulpdu, all, ulpdu.len);
			free(all);
		}
		cut_free(&c);
		at += used;
	} while (!st && at < s.n);
	if (st > UW_MORE) {
		struct uw_rope none = { 0 };
		size_t again;

		CHECK(st == UW_E_MPA_CRC || st == UW_E_MPA_MARKER);
		CHECK(mpa_rx_next(&e->rx, none, &none, &again) == st); /* repeats itself */
	}
	return at;
}

static void anything(struct ends *e, struct feed *f)
{
	struct uw_span how = feed_span(f, 6);
	struct feed cuts = { how.p, how.n };
	uint8_t *copy = fuzz_copy(f->p, f->n);
	size_t have = 0, used = 0, n = f->n;

	/* It arrives bit by bit; what was not used is offered again with more. */
	while (have < n && !e->rx.failed) {
		have += 1 + feed_length(&cuts, n - have - 1 < 65535 ? (uint32_t)(n - have - 1) : 0);
		used += take_all(e, (struct uw_span){ copy + used, have - used }, f);
		if (!cuts.n && have < n)
			have = n - 1; /* the rest at once */
	}
	free(copy);
}

/* One FPDU at the end of the stream; returns its size. */
static size_t put(struct ends *e, struct feed *f, uint8_t *at, size_t room)
{
	size_t fit = mpa_tx_fit(&e->tx, room), n;

	CHECK(!fit || fit < room);
	if (!fit)
		return 0;
	n = feed_length(f, (uint32_t)fit);
	feed_fill(f, mpa_tx_ulpdu(at), n);
	n = mpa_tx_finish(&e->tx, at, n);
	CHECK(n <= room && n % 4 == 0);
	return n;
}

static void round_trip(struct ends *e, struct feed *f)
{
	uint8_t *stream = fuzz_alloc(STREAM_MAX);
	unsigned sent = 0;
	size_t n, total = 0;
	bool damage = feed_rarely(f, 4);

	while (f->n && (n = put(e, f, stream + total, feed_length(f, STREAM_MAX - total))))
		total += n, sent++;
	if (damage && total && e->rx.crc) {
		uint8_t bit = feed_u8(f);

		stream[feed_u16(f) % total] ^= (uint8_t)(1u << (bit & 7));
		/* A changed length makes it wait for more; nothing else may pass. */
		take_all(e, (struct uw_span){ stream, total }, f);
		CHECK(e->stats.mpa_rx_fpdus < sent);
	} else if (total) {
		CHECK(take_all(e, (struct uw_span){ stream, total }, f) == total);
		CHECK(e->stats.mpa_rx_fpdus == sent && !e->rx.failed);
		CHECK(e->rx.phase == e->tx.phase);
	}
	free(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ends e;
	struct feed f = { data, size };
	uint8_t bits = feed_u8(&f);

	ends_init(&e, bits);
	(bits & 4 ? round_trip : anything)(&e, &f);
	return 0;
}
