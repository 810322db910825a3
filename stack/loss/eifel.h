/* SPDX-License-Identifier: BSD-3-Clause */
/* The Eifel detection algorithm, RFC 3522 §3.2: with timestamps the first ACK after a segment was
 * sent again tells which sending it answers. If the first one, nothing was lost. */
#ifndef UWARP_LOSS_EIFEL_H
#define UWARP_LOSS_EIFEL_H

#include <stdbool.h>
#include <stdint.h>

struct eifel {
	bool waits;	/* for the first ACK that covers the segment */
	uint32_t end;	/* sequence number behind the segment */
	uint32_t value; /* RetransmitTS: TSval of its second sending */
};

/* The first segment that a recovery sends again, with this TSval. */
void eifel_sent_again(struct eifel *e, uint32_t end, uint32_t value);
/* An ACK that moved SND.UNA to `ack`, with this TSecr. True: nothing was lost. */
bool eifel_acked(struct eifel *e, uint32_t ack, uint32_t echo);

#endif
