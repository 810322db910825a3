/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP: any octets as a header; headers that go out come back the same; any ULPDU into a stream; a
 * message cut into segments arrives in order and whole. RFC 5041 §4, §5.
 */
#include "ddp/ddp.h"
#include "fuzz.h"

#define SEGMENT_MAX 2048u

static void decode(struct feed *f)
{
	uint8_t out[DDP_HDR_MAX];
	struct uw_span s = feed_span(f, feed_below(f, 24));
	uint8_t *in = fuzz_copy(s.p, s.n);
	struct ddp_hdr h = { 0 }, again = { 0 };
	unsigned n;

	if (!ddp_hdr_decode((struct uw_span){ in, s.n }, &h)) {
		n = ddp_hdr_encode(&h, out);
		CHECK(n == ddp_hdr_size(h.tagged) && n <= s.n);
		/* All but the version and the reserved bits (RFC 5041 §4.1). */
		CHECK((out[0] & 0xc0) == (in[0] & 0xc0) && !memcmp(out + 1, in + 1, n - 1));
		CHECK(!ddp_hdr_decode((struct uw_span){ out, n }, &again));
		CHECK(again.version == DDP_VERSION);
		again.version = h.version;
		CHECK(again.tagged == h.tagged && again.last == h.last && again.stag == h.stag &&
		      again.to == h.to && again.qn == h.qn && again.msn == h.msn &&
		      again.mo == h.mo && again.rsvd_ulp == h.rsvd_ulp &&
		      again.rsvd_ulp32 == h.rsvd_ulp32);
	}
	free(in);
}

/* What the check let through is what the header said. */
static void check_taken(const struct ddp_stream *s, const struct ddp_seg *seg, size_t n)
{
	CHECK(seg->hdr_len == ddp_hdr_size(seg->hdr.tagged));
	CHECK(seg->hdr_len + seg->payload.len == n && seg->length == (uint16_t)n);
	CHECK(seg->hdr.version == DDP_VERSION);
	if (!seg->hdr.tagged)
		CHECK(seg->hdr.qn < DDP_QUEUES && seg->hdr.msn == s->rx_msn[seg->hdr.qn]);
}

static void receive(struct ddp_stream *s, struct feed *f)
{
	struct uw_span all = feed_span(f, feed_length(f, SEGMENT_MAX));
	struct ddp_seg seg;
	struct cut c;
	uw_status st;

	cut_make(&c, all, f);
	memset(&seg, 0xee, sizeof(seg));
	st = ddp_rx(s, c.rope, &seg);
	CHECK(st != UW_MORE);
	if (!st) {
		uint8_t *payload = fuzz_alloc(seg.payload.len);

		check_taken(s, &seg, all.n);
		uw_rope_copy(seg.payload, payload, seg.payload.len);
		free(payload);
		if (seg.hdr.last)
			ddp_rx_delivered(s, &seg);
	} else if (all.n < 2) {
		CHECK(st == UW_E_DDP_LOCAL && !seg.hdr_len);
	}
	cut_free(&c);
}

static void begin(struct ddp_stream *tx, struct ddp_msg *m, struct feed *f, uint64_t len)
{
	if (feed_bool(f))
		ddp_msg_tagged(m, feed_u32(f), feed_u64(f), len);
	else
		ddp_msg_untagged(tx, m, feed_below(f, DDP_QUEUES), len);
	m->hdr.rsvd_ulp = feed_u8(f);
}

/* A whole message from one stream to another: contiguous, L on the last segment only. */
static void carry(struct ddp_stream *tx, struct ddp_stream *rx, struct feed *f)
{
	uint64_t len = feed_length(f, 3000), sum = 0, to;
	uint8_t out[SEGMENT_MAX];
	struct ddp_msg m;

	begin(tx, &m, f, len);
	to = m.hdr.to;
	while (!ddp_msg_done(&m)) {
		size_t max = DDP_HDR_MAX + 1 + feed_length(f, SEGMENT_MAX - DDP_HDR_MAX - 1);
		struct ddp_seg seg;
		size_t payload;
		unsigned hdr = ddp_tx_segment(tx, &m, out, max, &payload);
		struct uw_span one = { out, hdr + payload };

		CHECK(one.n <= max);
		memset(out + hdr, 0x5a, payload);
		CHECK(!ddp_rx(rx, uw_rope_of(&one), &seg));
		CHECK(seg.hdr.tagged ? seg.hdr.to == to + sum : seg.hdr.mo == sum);
		sum += payload;
		CHECK(seg.hdr.last == ddp_msg_done(&m));
		if (seg.hdr.last)
			ddp_rx_delivered(rx, &seg);
	}
	CHECK(sum == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	struct uw_stats stats = { 0 };
	struct ddp_stream tx, rx, hostile;

	ddp_stream_init(&tx, &stats);
	ddp_stream_init(&rx, &stats);
	ddp_stream_init(&hostile, &stats);
	/* MSNs wrap (RFC 5041 §5.1). */
	for (unsigned q = 0; q < DDP_QUEUES && feed_bool(&f); q++)
		tx.tx_msn[q] = rx.rx_msn[q] = UINT32_MAX - feed_below(&f, 4);
	while (f.n) {
		switch (feed_below(&f, 4)) {
		case 0:
			decode(&f);
			break;
		case 1:
			carry(&tx, &rx, &f);
			break;
		default:
			receive(&hostile, &f);
			break;
		}
	}
	return 0;
}
