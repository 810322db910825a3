/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP: messages to segments and back, RFC 5041. Placement itself is the ULP's (rdmap): DDP says
 * what a segment is, that it is in order, and which octets it carries.
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
	uint8_t raw[DDP_HDR_MAX]; /* the header as received: Terminate echoes it */
	uint8_t hdr_len;
	uint16_t length; /* header and payload, RFC 5040 §4.8 "DDP Segment Length" */
	struct uw_rope payload;
};

/* Take a ULPDU apart. Checks, in this order: header present, version (RFC 5041 §4.1), queue number,
 * MSN (§5.1, §7.1): UW_E_DDP_LOCAL, _T_VERSION/_U_VERSION, _QN, _MSN. On error seg's header fields
 * are filled in as far as they were there (hdr_len 0: not at all). */
uw_status ddp_rx(struct ddp_stream *s, struct uw_rope ulpdu, struct ddp_seg *seg) UW_CHECK;

/* Take back ddp_rx's counting of seg: the same segment will come again. */
void ddp_rx_put_back(struct ddp_stream *s, const struct ddp_seg *seg);

/* The message that seg ends is delivered: an untagged one lets the next MSN of its queue come. */
void ddp_rx_delivered(struct ddp_stream *s, const struct ddp_seg *seg);

/* ---- transmit ---------------------------------------------------------------------------- */

struct ddp_msg {
	struct ddp_hdr
		hdr;   /* as in the first segment; to and mo are advanced from segment to segment */
	uint64_t left; /* octets not yet in a segment */
	bool started;  /* a message without payload is one segment all the same */
};

/* Begin an untagged message on queue qn: takes its MSN. */
void ddp_msg_untagged(struct ddp_stream *s, struct ddp_msg *m, uint32_t qn, uint64_t len);
void ddp_msg_tagged(struct ddp_msg *m, uint32_t stag, uint64_t to, uint64_t len);

static inline bool ddp_msg_done(const struct ddp_msg *m)
{
	return m->started && !m->left;
}

/* Write the header of the next segment, at most max octets of ULPDU (> DDP_HDR_MAX); returns the
 * header's size and in *payload how much payload goes behind it. */
unsigned ddp_tx_segment(struct ddp_stream *s, struct ddp_msg *m, uint8_t *out, size_t max,
			size_t *payload);

#endif
