/* SPDX-License-Identifier: BSD-3-Clause */
/* What one ACK delivers. ack.c adds segment by segment; RTT, RACK, F-RTO and congestion control
 * read the sum. */
#ifndef UWARP_LOSS_DELIVERY_H
#define UWARP_LOSS_DELIVERY_H

#include "loss/record.h"

struct delivery {
	/* set before the first delivery_take() */
	uint64_t now_us;
	uint64_t min_rtt_us; /* minimum RTT; UINT64_MAX: not known */
	/* RACK.fack before this ACK: highest end of a delivered segment, RFC 8985 §5.2 */
	uint32_t fack;
	uint32_t una_before; /* SND.UNA before this ACK */
	/* F-RTO: segments below it that were sent once were in flight when the RTO fired */
	uint32_t frto_end;
	/* sums over the delivered segments */
	uint32_t octets;   /* octets newly delivered */
	uint32_t segments; /* segments newly delivered */
	uint32_t highest;  /* highest end of a newly delivered segment */
	bool resent;	   /* some segment was sent more than once */
	uint64_t rtt_us;   /* RTT of the most recently sent segment that was sent once; 0: none */
	bool any;	   /* `newest` is set */
	/* the most recently sent segment, except those whose ACK may be of an earlier sending */
	struct sent newest;
	/* a segment below fack that was sent once: reordering, RFC 8985 §6.2 step 3 */
	bool reordered;
	bool original; /* a segment below frto_end that was sent once was delivered */
};

/* Add s, which SEG.ACK or SACK has acknowledged for the first time. */
void delivery_take(struct delivery *d, const struct sent *s);
/* The RTT sample of this ACK; 0: none. RFC 6298 §3 (Karn): no sample if the ACK covers a segment
 * that was sent again, since the others waited for its arrival. */
static inline uint64_t delivery_rtt(const struct delivery *d)
{
	return d->resent ? 0 : d->rtt_us;
}
/* RACK_sent_after of RFC 8985 §6.2: was segment 1 sent after segment 2? At equal times the higher
 * end counts as later. */
bool sent_after(uint64_t us1, uint32_t end1, uint64_t us2, uint32_t end2);

#endif
