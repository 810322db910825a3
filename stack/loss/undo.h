/* SPDX-License-Identifier: BSD-3-Clause */
/* What a recovery has changed, so that it can be taken back when every segment that it sent again
 * had arrived after all: by D-SACK (RFC 3708 §3) as RFC 4015 §3 responds. */
#ifndef UWARP_LOSS_UNDO_H
#define UWARP_LOSS_UNDO_H

#include <stdbool.h>
#include <stdint.h>

#include "loss/option.h"

struct undo {
	bool armed;
	bool again;	 /* something was sent again */
	uint32_t marker; /* SND.UNA when it began */
	uint32_t cwnd, ssthresh;
	uint32_t expected; /* segments sent again, less those reported as duplicates */
};

void undo_arm(struct undo *u, uint32_t una, uint32_t cwnd, uint32_t ssthresh);
void undo_sent_again(struct undo *u);
/* A duplicate was reported; true: all of them have been. */
bool undo_duplicate(struct undo *u, const struct loss_block *b, uint32_t mss);

#endif
