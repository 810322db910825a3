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
	unsigned new_left; /* FRTO_NEW: so many may still be sent */
};

void frto_begin(struct frto *f);
/* An ACK: `advanced` moved SND.UNA; `original` told that a segment arrived which was sent once only
 * and before the RTO fired. */
enum frto_said frto_acked(struct frto *f, bool advanced, bool original);
/* Is it time to send new segments instead of repeats? */
bool frto_wants_new(const struct frto *f);
/* One was sent; or there is none (step 2b: then it cannot be told, and the repeats go on). */
void frto_sent_new(struct frto *f);
void frto_nothing_new(struct frto *f);

#endif
