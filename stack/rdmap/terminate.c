/* SPDX-License-Identifier: BSD-3-Clause */
/* What a Terminate says about the segment that failed: RFC 5040 §4.8, §5.4, §7. */
#include "rdmap/rdmap.h"

#include <string.h>

enum { LAYER_RDMAP, LAYER_DDP, LAYER_LLP };
enum { ETYPE_LOCAL, ETYPE_PROTECTION };

/* RFC 5040 figure 10: which headers go along with which error. */
static void attach_headers(const struct rdmap_stream *s, struct rdmap_term *t)
{
	bool about_segment =
		t->layer == LAYER_DDP || (t->layer == LAYER_RDMAP && t->etype != ETYPE_LOCAL);

	if (!about_segment || !s->bad.hdr_len)
		return;
	t->has_ddp = true;
	t->ddp_length = s->bad.length;
	t->ddp_hdr_len = s->bad.hdr_len;
	memcpy(t->ddp_hdr, s->bad.raw, s->bad.hdr_len);
	/* The RDMAP header only for a remote protection error of a Read Request; an Atomic Request
	 * has none (RFC 7306 §8.1). */
	if (t->layer == LAYER_RDMAP && t->etype == ETYPE_PROTECTION && s->bad_read) {
		t->has_rdmap = true;
		memcpy(t->rdmap_hdr, s->bad_hdr, sizeof(t->rdmap_hdr));
	}
}

/* A Read's own header names its sink; siw puts the size where the MSN belongs. */
static bool names(const struct rdmap_term *t, const struct rdmap_orq_entry *e, uint32_t msn)
{
	struct rdmap_read r;
	struct ddp_hdr h;

	if (t->has_rdmap) {
		rdmap_read_decode(t->rdmap_hdr, &r);
		return !e->atomic && r.sink_stag == e->stag;
	}
	return t->has_ddp && !ddp_hdr_decode((struct uw_span){ t->ddp_hdr, t->ddp_hdr_len }, &h) &&
	       !h.tagged && h.msn == msn;
}

unsigned rdmap_blamed(const struct rdmap_stream *s, const struct rdmap_term *t)
{
	uint32_t oldest = s->ddp.tx_msn[RDMAP_QN_READ] - s->orq.count;
	unsigned known = 0;

	for (unsigned i = 0; i < s->orq.count; i++) {
		const struct rdmap_orq_entry *e =
			&s->orq.v[rdmap_queue_at(s->orq.head, i, s->orq.cap)];

		if (names(t, e, oldest + i))
			return known;
		known += !e->hidden;
	}
	return 0;
}

bool rdmap_terminate(struct rdmap_stream *s, uw_status why)
{
	struct uw_term_code c = uw_status_term(why);
	struct rdmap_term t = { .layer = c.layer, .etype = c.etype, .code = c.code };
	unsigned n;

	/* RFC 5040 §5.4: one Terminate per direction; after one came, none goes back. */
	if (s->term_sent || s->term_rcvd || !c.sends)
		return false;
	attach_headers(s, &t);
	n = rdmap_term_encode(&t, s->tx.bytes);
	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_TERMINATE, n);
	s->tx.opcode = RDMAP_TERMINATE;
	s->tx.msg.hdr.rsvd_ulp = rdmap_ctrl(RDMAP_TERMINATE);
	s->tx.source = RDMAP_FROM_BYTES;
	s->tx.off = 0;
	s->tx.answers = false;
	s->term_sent = true;
	s->stats->rdmap_tx_terminates++;
	return true;
}
