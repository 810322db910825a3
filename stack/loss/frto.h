/* SPDX-License-Identifier: BSD-3-Clause */
/* Did the RTO fire although nothing was lost? The SACK-enhanced F-RTO of RFC 5682 §3.1. */
#ifndef UWARP_LOSS_FRTO_H
#define UWARP_LOSS_FRTO_H

#include <stdbool.h>

#define FRTO_NEW_SEGMENTS 2u

enum frto_state {
	FRTO_OFF,
	FRTO_FIRST, /* step 1 is done: the first segment was sent again */
	FRTO_NEW,   /* step 2b: SND.UNA moved, two new segments go out instead of repeats */
};
enum frto_said { FRTO_UNKNOWN, FRTO_SPURIOUS, FRTO_LOSS };

struct frto {
	enum frto_state state;
	unsigned new_left; /* FRTO_NEW: number of new segments that may still be sent */
};

void frto_begin(struct frto *f);
/* An ACK came. advanced: the ACK moved SND.UNA. original: the ACK delivered a segment that was sent
 * only once, before the RTO fired. */
enum frto_said frto_acked(struct frto *f, bool advanced, bool original);
/* Must new segments be sent now instead of repeats? (step 2b) */
bool frto_wants_new(const struct frto *f);
/* frto_sent_new: a new segment was sent. frto_nothing_new: the program has no new data, so F-RTO
 * cannot decide (step 2b), and repeats go on. */
void frto_sent_new(struct frto *f);
void frto_nothing_new(struct frto *f);

#endif
