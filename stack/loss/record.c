/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/record.h"

#include <stddef.h>

#include "loss/seq.h"

static struct sent_list *list_of(struct record *r, enum sent_state state)
{
	return state == SENT_FLYING ? &r->flying : state == SENT_LOST ? &r->lost : NULL;
}

static void unlink_from(struct record *r, uint32_t id, struct sent_list *l)
{
	struct sent *s = record_at(r, id);

	if (s->before == RECORD_NONE)
		l->first = s->after;
	else
		record_at(r, s->before)->after = s->after;
	if (s->after == RECORD_NONE)
		l->last = s->before;
	else
		record_at(r, s->after)->before = s->before;
}

/* Behind `before`, RECORD_NONE: in front of all. */
static void link_behind(struct record *r, uint32_t id, struct sent_list *l, uint32_t before)
{
	struct sent *s = record_at(r, id);

	s->before = before;
	s->after = before == RECORD_NONE ? l->first : record_at(r, before)->after;
	if (s->before == RECORD_NONE)
		l->first = id;
	else
		record_at(r, s->before)->after = id;
	if (s->after == RECORD_NONE)
		l->last = id;
	else
		record_at(r, s->after)->before = id;
}

/* What has just been sent goes to the end; only what was marked lost by mistake goes back to where
 * it was, which is looked for from `before` on. */
static void link_flying(struct record *r, uint32_t id, uint32_t before)
{
	const uint64_t sent_us = record_at(r, id)->sent_us;
	uint32_t next;

	while (before != RECORD_NONE && record_at(r, before)->sent_us > sent_us)
		before = record_at(r, before)->before;
	next = before == RECORD_NONE ? r->flying.first : record_at(r, before)->after;
	for (; next != RECORD_NONE && record_at(r, next)->sent_us <= sent_us;
	     next = record_at(r, next)->after)
		before = next;
	link_behind(r, id, &r->flying, before);
}

static void leave(struct record *r, uint32_t id)
{
	struct sent *s = record_at(r, id);

	r->octets[s->state] -= s->len;
	if (s->state == SENT_SACKED)
		r->sacked--;
	else
		unlink_from(r, id, list_of(r, s->state));
}

static void enter(struct record *r, uint32_t id, enum sent_state state)
{
	struct sent *s = record_at(r, id);

	s->state = (uint8_t)state;
	r->octets[state] += s->len;
	if (state == SENT_SACKED) {
		r->sacked++;
		s->after = record_next(id);
	} else if (state == SENT_FLYING) {
		link_flying(r, id, r->flying.last);
	} else {
		link_behind(r, id, &r->lost, r->lost.last);
	}
}

void record_init(struct record *r, struct sent *slot, uint32_t n)
{
	*r = (struct record){ .slot = slot,
			      .size = n,
			      .flying = { RECORD_NONE, RECORD_NONE },
			      .lost = { RECORD_NONE, RECORD_NONE } };
}

void record_grow(struct record *r, struct sent *slot, uint32_t n)
{
	for (uint32_t id = r->first; id != r->end; id = record_next(id))
		slot[id & (n - 1)] = *record_at(r, id);
	r->slot = slot;
	r->size = n;
}

struct sent *record_append(struct record *r, uint32_t seq, uint32_t len, uint64_t now_us)
{
	uint32_t id = r->end;
	struct sent *s;

	if (record_full(r))
		return NULL;
	s = record_at(r, id);
	*s = (struct sent){ .seq = seq, .len = len, .sent_us = now_us, .times = 1 };
	r->end = record_next(id);
	enter(r, id, SENT_FLYING);
	return s;
}

void record_set(struct record *r, uint32_t id, enum sent_state state)
{
	leave(r, id);
	enter(r, id, state);
}

/* They were marked, and sent, nearly in order: each one's place is near the one before. */
void record_unmark(struct record *r)
{
	uint32_t id = r->lost.first, behind = r->flying.last;

	for (; id != RECORD_NONE; id = r->lost.first) {
		struct sent *s = record_at(r, id);

		leave(r, id);
		s->state = SENT_FLYING;
		r->octets[SENT_FLYING] += s->len;
		link_flying(r, id, behind);
		behind = id;
	}
}

void record_sort_lost(struct record *r)
{
	for (uint32_t id = r->first; id != r->end; id = record_next(id)) {
		if (record_at(r, id)->state == SENT_LOST)
			record_set(r, id, SENT_LOST);
	}
}

void record_pop(struct record *r)
{
	leave(r, r->first);
	r->first = record_next(r->first);
}

void record_trim(struct record *r, uint32_t n)
{
	struct sent *s = record_at(r, r->first);

	r->octets[s->state] -= n;
	s->seq += n;
	s->len -= n;
}

static uint32_t pieces(const struct sent *s, uint32_t len)
{
	return s->len > len ? (s->len + len - 1) / len : 1;
}

uint32_t record_pieces(const struct record *r, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t id = r->first; id != r->end; id = record_next(id))
		sum += pieces(record_at(r, id), len);
	return sum;
}

static void add_piece(struct record *r, struct sent piece)
{
	uint32_t id = r->end;

	*record_at(r, id) = piece;
	r->end = record_next(id);
	enter(r, id, piece.state);
}

void record_cut(struct record *r, struct sent *slot, uint32_t n, uint32_t len)
{
	struct record old = *r;

	record_init(r, slot, n);
	r->first = r->end = old.first;
	for (uint32_t id = old.first; id != old.end; id = record_next(id)) {
		struct sent s = *record_at(&old, id), piece = s;

		for (uint32_t left = s.len; left; left -= piece.len) {
			piece.len = left < len ? left : len;
			add_piece(r, piece);
			piece.seq += piece.len;
		}
	}
}

uint32_t record_find(const struct record *r, uint32_t seq)
{
	uint32_t low = 0, high = record_count(r);

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (seq_lt(record_at(r, (r->first + mid) & RECORD_IDS)->seq, seq))
			low = mid + 1;
		else
			high = mid;
	}
	return (r->first + low) & RECORD_IDS;
}
