/* SPDX-License-Identifier: BSD-3-Clause */
/* What one ACK says was delivered: summed up segment by segment, then read by the others. */
#ifndef UWARP_LOSS_DELIVERY_H
#define UWARP_LOSS_DELIVERY_H

#include "loss/record.h"

struct delivery {
	/* set before the first segment */
	uint64_t now_us;
	uint64_t min_rtt_us;	/* UINT64_MAX: not known */
	uint32_t fack;		/* highest end delivered before this ACK, RFC 8985 §5.2 */
	uint32_t flying_before; /* octets */
	uint32_t frto_end;	/* segments below it that were sent once flew when the RTO fired */
	/* summed up */
	uint32_t octets;    /* newly delivered */
	uint32_t segments;  /* the same */
	uint32_t highest;   /* end of what is delivered now */
	bool resent;	    /* one of them was sent more than once */
	uint64_t rtt_us;    /* of the segment sent last of those sent once; 0: no sample */
	bool any;	    /* newest is set */
	struct sent newest; /* of all but ambiguous ones the one sent last */
	bool reordered;	    /* RFC 8985 §6.2 step 3 */
	bool original;	    /* one below frto_end that was sent once only */
};

/* s is delivered: cumulatively or selectively, now for the first time. */
void delivery_take(struct delivery *d, const struct sent *s);
/* RFC 8985 §5.2: was the first sent later, or at the same time and higher? */
/* RFC 6298 §3 (Karn): a sample, 0: none. What a repeat has filled up to has waited for it. */
static inline uint64_t delivery_rtt(const struct delivery *d)
{
	return d->resent ? 0 : d->rtt_us;
}
bool sent_after(uint64_t us1, uint32_t end1, uint64_t us2, uint32_t end2);

#endif
