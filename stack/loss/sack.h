/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgements into the record. RFC 2018, RFC 2883, RFC 6675 §4 (Update). */
#ifndef UWARP_LOSS_SACK_H
#define UWARP_LOSS_SACK_H

#include "loss/delivery.h"
#include "loss/option.h"

struct sack {
	/* What the last ACK's blocks said, on borders of segments: the next ACK says most of it
	 * again, and only what is new is looked at. */
	struct loss_block seen[LOSS_BLOCKS];
	unsigned n;
};

/* RFC 2883 §4: is the first block a report of what came twice? `ack` is SEG.ACK. */
bool sack_is_duplicate(uint32_t ack, const struct loss_block *b, unsigned n);
/* Mark what the n blocks say; those that are not between una and nxt say nothing (RFC 9293
 * §3.10.7.4). A segment that is not within them as a whole is left as it is. */
void sack_take(struct sack *k, struct record *r, const struct loss_block *b, unsigned n,
	       struct delivery *d);
/* RFC 2018 §8: the peer has thrown away what it had: nothing is sacked any more, all that was is
 * lost. */
void sack_forget(struct sack *k, struct record *r);

#endif
