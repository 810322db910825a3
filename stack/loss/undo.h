/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a recovery back when D-SACKs report that every segment sent again had arrived before (RFC
 * 3708 §3). The response is that of RFC 4015 §3. */
#ifndef UWARP_LOSS_UNDO_H
#define UWARP_LOSS_UNDO_H

#include <stdbool.h>
#include <stdint.h>

#include "loss/option.h"

struct undo {
	bool armed;		 /* a recovery has begun and was not taken back */
	bool again;		 /* a segment was sent again */
	uint32_t marker;	 /* SND.UNA at the start of the recovery */
	uint32_t cwnd, ssthresh; /* at the start of the recovery */
	uint32_t end;		 /* of what was sent again, the highest sequence number */
	uint32_t expected;	 /* segments sent again minus segments reported as duplicates */
};

void undo_arm(struct undo *u, uint32_t una, uint32_t cwnd, uint32_t ssthresh);
/* A segment that ends there was sent again in the recovery. */
void undo_sent_again(struct undo *u, uint32_t end);
/* A D-SACK b came. True: all segments sent again have been reported as duplicates. */
bool undo_duplicate(struct undo *u, const struct loss_block *b, uint32_t mss);

#endif
