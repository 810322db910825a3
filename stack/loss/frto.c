/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/frto.h"

void frto_begin(struct frto *f)
{
	*f = (struct frto){ .state = FRTO_FIRST };
}

static enum frto_said end(struct frto *f, enum frto_said said)
{
	f->state = FRTO_OFF;
	return said;
}

enum frto_said frto_acked(struct frto *f, bool advanced, bool original)
{
	if (f->state == FRTO_OFF)
		return FRTO_UNKNOWN;
	/* RFC 5682 §3.1 step 3b; in the first round trip, too: it was there before the repeat. */
	if (original)
		return end(f, FRTO_SPURIOUS);
	if (f->state == FRTO_FIRST && advanced) { /* step 2b */
		f->state = FRTO_NEW;
		f->new_left = FRTO_NEW_SEGMENTS;
		return FRTO_UNKNOWN;
	}
	return end(f, FRTO_LOSS); /* steps 2a and 3a */
}

bool frto_wants_new(const struct frto *f)
{
	return f->state == FRTO_NEW && f->new_left;
}

void frto_sent_new(struct frto *f)
{
	if (f->new_left)
		f->new_left--;
}

void frto_nothing_new(struct frto *f)
{
	if (f->state == FRTO_NEW && f->new_left == FRTO_NEW_SEGMENTS)
		f->state = FRTO_OFF;
	f->new_left = 0;
}
