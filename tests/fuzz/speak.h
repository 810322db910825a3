/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bed's peer: it speaks DDP and RDMAP with lengths, sequence numbers and answers that are
 * right, unless the feed wants one of them wrong; so that whatever lies deep is reached.
 */
#ifndef UWARP_FUZZ_SPEAK_H
#define UWARP_FUZZ_SPEAK_H

#include "bed.h"

#define SPEAK_MAX 2400u

struct speaker {
	uint32_t msn[RDMAP_QNS];
	uint32_t mo;	   /* of the Send under way */
	uint32_t answered; /* octets of the oldest read that have been sent */
	unsigned phase;	   /* markers: stream position modulo 512 */
};

void speak_init(struct speaker *s);
/* One segment to out (SPEAK_MAX octets); returns its size. */
size_t speak_ulpdu(struct speaker *s, struct bed *b, struct feed *f, uint8_t *out);
/* The same as an FPDU that arrives at the bed. */
void speak_fpdu(struct speaker *s, struct bed *b, struct feed *f);

#endif
