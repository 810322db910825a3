/* SPDX-License-Identifier: BSD-3-Clause */
/* A look at all of a record of sent segments (stack/loss/record.h). */
#ifndef UWARP_TEST_RECORD_SOUND_H
#define UWARP_TEST_RECORD_SOUND_H

#include <string.h>

#include "loss/record.h"

/* RECORD_NONE: it is no list of entries in that state. */
static inline uint32_t record_list_length(const struct record *r, const struct sent_list *l,
					  enum sent_state state)
{
	uint32_t n = 0, before = RECORD_NONE;

	for (uint32_t id = l->first; id != RECORD_NONE; id = record_at(r, id)->after) {
		if (record_at(r, id)->state != state || record_at(r, id)->before != before ||
		    n++ > record_count(r))
			return RECORD_NONE;
		before = id;
	}
	return l->last == before ? n : RECORD_NONE;
}

/* One that has arrived leads past others that have. */
static inline bool record_leads_on(const struct record *r, uint32_t id)
{
	uint32_t to = record_at(r, id)->after, n = 0;

	while (id != to && id != r->end && record_at(r, id)->state == SENT_SACKED) {
		id = record_next(id);
		n++;
	}
	return id == to && n;
}

/* Do the lists and sums agree with the entries? */
static inline bool record_sound(const struct record *r)
{
	uint32_t octets[3] = { 0 }, n[3] = { 0 };

	for (uint32_t id = r->first; id != r->end; id = record_next(id)) {
		const struct sent *s = record_at(r, id);
		uint32_t next = record_next(id);

		octets[s->state] += s->len;
		n[s->state]++;
		if (s->state == SENT_SACKED && !record_leads_on(r, id))
			return false;
		if (next != r->end && sent_end(s) != record_at(r, next)->seq)
			return false;
	}
	return !memcmp(octets, r->octets, sizeof(octets)) && n[SENT_SACKED] == r->sacked &&
	       record_list_length(r, &r->flying, SENT_FLYING) == n[SENT_FLYING] &&
	       record_list_length(r, &r->lost, SENT_LOST) == n[SENT_LOST];
}

#endif
