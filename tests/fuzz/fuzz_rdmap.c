/* SPDX-License-Identifier: BSD-3-Clause */
/* ULPDUs, well-formed, slightly wrong and any octets at all, into an RDMAP stream with memory,
 * receives and outstanding reads; what it answers is checked. RFC 5040, RFC 7306. */
#include "bed.h"
#include "speak.h"

static void receive(struct bed *b, struct uw_span all, struct feed *f)
{
	struct cut c;
	uw_status st;

	cut_make(&c, all, f);
	b->qp->gated = false;
	st = rdmap_rx(&b->qp->rd, c.rope);
	cut_free(&c);
	CHECK(st != UW_MORE);
	if (st) {
		b->qp->sending_sq = false;
		qp_fail(b->qp, st);
	}
	bed_poll(b);
}

static void one(struct bed *b, struct speaker *s, struct feed *f)
{
	uint8_t out[SPEAK_MAX];

	switch (feed_below(f, 8)) {
	case 0:
		bed_post_recv(b, f);
		break;
	case 1:
		bed_post_send(b, f);
		break;
	case 2:
		bed_pull(b, (uint8_t[BED_ROOM]){ 0 }, 64 + feed_length(f, 1460));
		break;
	case 3:
		receive(b, feed_span(f, feed_length(f, 200)), f);
		break;
	default:
		receive(b, (struct uw_span){ out, speak_ulpdu(s, b, f, out) }, f);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct bed b;
	struct speaker s;

	bed_open(&b, &f);
	speak_init(&s);
	while (f.n && b.qp->state == UW_QPS_RTS)
		one(&b, &s, &f);
	bed_pull_all(&b, 1460);
	bed_close(&b);
	return 0;
}
