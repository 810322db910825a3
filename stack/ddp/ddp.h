/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP, RFC 5041: splits messages into segments, and reads received segments. For a received segment
 * DDP checks the order and returns header and payload; rdmap places the payload in memory.
 */
#ifndef UWARP_DDP_DDP_H
#define UWARP_DDP_DDP_H

#include "base/span.h"
#include "base/stats.h"
#include "base/status.h"
#include "wire/ddp_wire.h"

#define DDP_QUEUES 4

struct ddp_stream {
	/* RFC 5041 §5.1: the first message of each queue has MSN 1. */
	uint32_t tx_msn[DDP_QUEUES], rx_msn[DDP_QUEUES];
	struct uw_stats *stats;
};

void ddp_stream_init(struct ddp_stream *s, struct uw_stats *stats);

/* ---- receive ----------------------------------------------------------------------------- */

struct ddp_seg {
	struct ddp_hdr hdr;
	uint8_t raw[DDP_HDR_MAX]; /* the header as received, for a Terminate */
	uint8_t hdr_len;
	uint16_t length; /* header and payload, RFC 5040 §4.8 "DDP Segment Length" */
	struct uw_rope payload;
};

/* Split a ULPDU into header and payload. Checks, in this order: header present, version (RFC 5041
 * §4.1), queue number, MSN (§5.1, §7.1): UW_E_DDP_LOCAL, _T_VERSION/_U_VERSION, _QN, _MSN. On an
 * error the header fields of seg are set as far as the header was present (hdr_len 0: not at all).
 */
uw_status ddp_rx(struct ddp_stream *s, struct uw_rope ulpdu, struct ddp_seg *seg) UW_CHECK;

/* Undo ddp_rx for seg: the same segment will come again. */
void ddp_rx_put_back(struct ddp_stream *s, const struct ddp_seg *seg);

/* The message that ends with seg is delivered: for an untagged message, expect the next MSN on its
 * queue. */
void ddp_rx_delivered(struct ddp_stream *s, const struct ddp_seg *seg);

/* ---- transmit ---------------------------------------------------------------------------- */

struct ddp_msg {
	struct ddp_hdr hdr; /* header of the next segment; to and mo advance with each segment */
	uint64_t left;	    /* octets not yet in a segment */
	bool started;	    /* a segment was made: also a message without payload has one segment */
};

/* Begin an untagged message on queue qn, with the next MSN of the queue. */
void ddp_msg_untagged(struct ddp_stream *s, struct ddp_msg *m, uint32_t qn, uint64_t len);
void ddp_msg_tagged(struct ddp_msg *m, uint32_t stag, uint64_t to, uint64_t len);

static inline bool ddp_msg_done(const struct ddp_msg *m)
{
	return m->started && !m->left;
}

/* Write the header of the next segment, whose ULPDU has at most max octets (> DDP_HDR_MAX). Returns
 * the size of the header; *payload: octets of payload after the header. */
unsigned ddp_tx_segment(struct ddp_stream *s, struct ddp_msg *m, uint8_t *out, size_t max,
			size_t *payload);

#endif
