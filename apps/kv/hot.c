/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hot.h"

#define FADE_EACH (1u << 16) /* accesses until a sketch forgets half of what it counted */
#define WORTH	  2u	     /* a score below is chance */
#define PROBES	  16u

/* ---- a client's -------------------------------------------------------------------------- */

static uint16_t estimate(struct sketch *s, uint64_t tag)
{
	uint16_t least = UINT16_MAX;

	for (unsigned r = 0; r < SKETCH_ROWS; r++) {
		uint16_t *c = &s->cell[r][mix64(tag + r) % SKETCH_CELLS];

		if (*c < UINT16_MAX)
			++*c;
		least = *c < least ? *c : least;
	}
	return least;
}

static void fade(struct sketch *s)
{
	for (unsigned r = 0; r < SKETCH_ROWS; r++)
		for (unsigned i = 0; i < SKETCH_CELLS; i++)
			s->cell[r][i] /= 2;
}

void sketch_count(struct sketch *s, const struct kv_key *key)
{
	uint64_t tag = kv_tag(key->octets, key->length);
	struct kv_hot *l = &s->line[tag % SKETCH_LINES];
	uint16_t count = estimate(s, tag);

	if (++s->seen % FADE_EACH == 0)
		fade(s);
	if (l->length == key->length && !memcmp(l->key, key->octets, key->length)) {
		l->count++;
	} else if (!l->length || count > l->count) {
		/* the line belongs to the one that comes more often */
		l->count = count;
		l->length = key->length;
		memcpy(l->key, key->octets, key->length);
	}
}

unsigned sketch_tell(struct sketch *s, struct kv_hot *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SKETCH_LINES && n < KV_HOT_MAX; i++) {
		struct kv_hot *l = &s->line[s->told++ % SKETCH_LINES];

		if (!l->count)
			continue;
		out[n++] = *l;
		l->count = 0;
	}
	return n;
}

/* ---- the host's -------------------------------------------------------------------------- */

int hot_open(struct hot *h, unsigned limit)
{
	memset(h, 0, sizeof(*h));
	h->limit = limit;
	h->line = calloc(HOT_LINES, sizeof(*h->line));
	h->by_score = calloc(HOT_LINES, sizeof(*h->by_score));
	return h->line && h->by_score ? 0 : -ENOMEM;
}

void hot_close(struct hot *h)
{
	free(h->line);
	free(h->by_score);
}

/* The key's line, or one that it may have; NULL: its neighbours are all more worth. */
static struct hot_line *line_of(struct hot *h, const uint8_t *key, uint8_t length)
{
	uint64_t tag = kv_tag(key, length);
	struct hot_line *weak = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		struct hot_line *l = &h->line[(tag + i) % HOT_LINES];

		if (l->tag == tag && l->key.length == length)
			return l;
		if (!l->at_soc && l->score < WORTH && !weak)
			weak = l;
	}
	if (weak) {
		*weak = (struct hot_line){ .tag = tag, .key.length = length };
		memcpy(weak->key.octets, key, length);
	}
	return weak;
}

void hot_hear(struct hot *h, const struct kv_hot *count)
{
	struct hot_line *l = h->limit ? line_of(h, count->key, count->length) : NULL;

	if (l)
		l->score += count->count;
}

void hot_moved(struct hot *h, const struct kv_key *key, bool out)
{
	struct hot_line *l = h->limit ? line_of(h, key->octets, key->length) : NULL;

	if (l)
		l->at_soc = out;
}

static int downwards(const void *a, const void *b)
{
	uint32_t x = (*(struct hot_line *const *)a)->score,
		 y = (*(struct hot_line *const *)b)->score;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void plan(struct hot *h, const struct hot_line *l, bool out)
{
	if (h->planned == HOT_PLAN)
		return;
	h->plan[h->planned].key = l->key;
	h->plan[h->planned++].out = out;
}

/* Places at the SoC that are free; those that are behind, and whose places others want, are
 * planned. */
static unsigned free_places(struct hot *h, unsigned n, unsigned top, unsigned wanted)
{
	unsigned taken = 0, room;

	for (unsigned i = 0; i < n; i++)
		taken += h->by_score[i]->at_soc;
	room = taken < h->limit ? h->limit - taken : 0;
	/* from the least popular one on, and only if it is clearly behind */
	for (unsigned i = n; i > top && room < wanted; i--) {
		struct hot_line *l = h->by_score[i - 1];

		if (!l->at_soc || l->score > h->by_score[top - 1]->score / 2)
			continue;
		plan(h, l, false);
		wanted--;
	}
	return room;
}

static bool wants_place(const struct hot_line *l)
{
	return !l->at_soc && l->score >= WORTH;
}

/* The lines that count, the most popular ones first. Returns how many. */
static unsigned sort_lines(struct hot *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HOT_LINES; i++)
		if (h->line[i].key.length && (h->line[i].score >= WORTH || h->line[i].at_soc))
			h->by_score[n++] = &h->line[i];
	qsort(h->by_score, n, sizeof(*h->by_score), downwards);
	return n;
}

void hot_balance(struct hot *h)
{
	unsigned n, top, wanted = 0, room;

	if (!h->limit || h->planned)
		return;
	n = sort_lines(h);
	top = n < h->limit ? n : h->limit;
	for (unsigned i = 0; i < top; i++)
		wanted += wants_place(h->by_score[i]);
	room = top ? free_places(h, n, top, wanted) : 0;
	for (unsigned i = 0; i < top && room; i++)
		if (wants_place(h->by_score[i])) {
			plan(h, h->by_score[i], true);
			room--;
		}
	for (unsigned i = 0; i < n; i++)
		h->by_score[i]->score -= h->by_score[i]->score / 4;
}

bool hot_next(struct hot *h, struct kv_key *key, bool *out)
{
	if (!h->planned)
		return false;
	*key = h->plan[--h->planned].key;
	*out = h->plan[h->planned].out;
	return true;
}
