/* SPDX-License-Identifier: BSD-3-Clause */
#include "ddp/ddp.h"

#include <string.h>

void ddp_stream_init(struct ddp_stream *s, struct uw_stats *stats)
{
	for (unsigned q = 0; q < DDP_QUEUES; q++)
		s->tx_msn[q] = s->rx_msn[q] = 1;
	s->stats = stats;
}

static uw_status check(const struct ddp_stream *s, const struct ddp_hdr *h)
{
	if (h->version != DDP_VERSION) /* RFC 5041 §4.1 */
		return h->tagged ? UW_E_DDP_T_VERSION : UW_E_DDP_U_VERSION;
	if (h->tagged)
		return UW_OK;
	if (h->qn >= DDP_QUEUES) /* RFC 5041 §7.1 1. */
		return UW_E_DDP_QN;
	/* RFC 5041 §5.1: MSNs count up by one; the LLP is in order and a sender finishes a message
	 * before the next, so any other number is out of range. */
	return h->msn == s->rx_msn[h->qn] ? UW_OK : UW_E_DDP_MSN;
}

uw_status ddp_rx(struct ddp_stream *s, struct uw_rope ulpdu, struct ddp_seg *seg)
{
	size_t n = ulpdu.len < DDP_HDR_MAX ? ulpdu.len : DDP_HDR_MAX;
	struct uw_span head = uw_rope_head(ulpdu);
	uw_status st;

	seg->hdr_len = 0;
	seg->length = (uint16_t)ulpdu.len;
	if (n == DDP_HDR_MAX) /* nearly always: a length that the compiler knows */
		uw_rope_copy(ulpdu, seg->raw, DDP_HDR_MAX);
	else
		uw_rope_copy(ulpdu, seg->raw, n);
	/* From where it was for longer: what was just stored cannot be loaded in other pieces. */
	st = ddp_hdr_decode((struct uw_span){ head.n < n ? seg->raw : head.p, n }, &seg->hdr);
	if (!st) {
		seg->hdr_len = (uint8_t)ddp_hdr_size(seg->hdr.tagged);
		st = check(s, &seg->hdr);
	}
	if (st) {
		s->stats->ddp_rx_errors++;
		return st;
	}
	seg->payload = uw_rope_sub(ulpdu, seg->hdr_len, ulpdu.len - seg->hdr_len);
	if (seg->hdr.tagged)
		s->stats->ddp_rx_tagged++;
	else
		s->stats->ddp_rx_untagged++;
	return UW_OK;
}

void ddp_rx_put_back(struct ddp_stream *s, const struct ddp_seg *seg)
{
	if (seg->hdr.tagged)
		s->stats->ddp_rx_tagged--;
	else
		s->stats->ddp_rx_untagged--;
}

void ddp_rx_delivered(struct ddp_stream *s, const struct ddp_seg *seg)
{
	if (!seg->hdr.tagged)
		s->rx_msn[seg->hdr.qn]++; /* RFC 5041 §5.1: modulo 2^32 */
}

void ddp_msg_untagged(struct ddp_stream *s, struct ddp_msg *m, uint32_t qn, uint64_t len)
{
	memset(m, 0, sizeof(*m));
	m->hdr.qn = qn;
	m->hdr.msn = s->tx_msn[qn]++;
	m->left = len;
}

void ddp_msg_tagged(struct ddp_msg *m, uint32_t stag, uint64_t to, uint64_t len)
{
	memset(m, 0, sizeof(*m));
	m->hdr.tagged = true;
	m->hdr.stag = stag;
	m->hdr.to = to;
	m->left = len;
}

unsigned ddp_tx_segment(struct ddp_stream *s, struct ddp_msg *m, uint8_t *out, size_t max,
			size_t *payload)
{
	size_t room = max - ddp_hdr_size(m->hdr.tagged);
	size_t n = m->left < room ? (size_t)m->left : room;
	unsigned size;

	m->left -= n;
	m->started = true;
	m->hdr.last = !m->left; /* RFC 5041 §4.1: L on the last segment only */
	size = ddp_hdr_encode(&m->hdr, out);
	/* RFC 5041 §5.2.1: the next segment starts where this one ends. */
	if (m->hdr.tagged) {
		m->hdr.to += n;
		s->stats->ddp_tx_tagged++;
	} else {
		m->hdr.mo += (uint32_t)n;
		s->stats->ddp_tx_untagged++;
	}
	*payload = n;
	return size;
}
