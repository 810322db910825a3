/* SPDX-License-Identifier: BSD-3-Clause */
/* Enters the SACK blocks of an ACK into the record. RFC 2018, RFC 2883, RFC 6675 §4 (Update). */
#ifndef UWARP_LOSS_SACK_H
#define UWARP_LOSS_SACK_H

#include "loss/delivery.h"
#include "loss/option.h"

struct sack {
	/* The blocks of the last ACK, shortened to whole segments. The next ACK repeats most of
	 * them, so only octets outside of these are looked up. */
	struct loss_block seen[LOSS_BLOCKS];
	unsigned n;
};

/* RFC 2883 §4: does the first block report octets that came twice (a D-SACK)? ack is SEG.ACK. */
bool sack_is_duplicate(uint32_t ack, const struct loss_block *b, unsigned n);
/* Set the segments in the n blocks to state sacked and add them to d. Blocks outside of SND.UNA to
 * SND.NXT are ignored (RFC 2018 §4), and so are segments that a block covers in part. */
void sack_take(struct sack *k, struct record *r, const struct loss_block *b, unsigned n,
	       struct delivery *d);
/* RFC 2018 §8: the peer has dropped octets that it had SACKed. All sacked segments become lost. */
void sack_forget(struct sack *k, struct record *r);

#endif
