/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/line.h"

#include <stdbool.h>
#include <stdlib.h>

/* A binary heap of what waits. The octets stay where they are: `held` beyond `count` keeps those
 * that are free. */
struct impair_line {
	unsigned frames, count;
	uint32_t room;
	uint64_t added;
	uint8_t *octets;
	struct impair_held held[];
};

uw_status impair_line_open(unsigned frames, uint32_t room, struct impair_line **out)
{
	struct impair_line *q = calloc(1, sizeof(*q) + frames * sizeof(q->held[0]));

	if (!q)
		return UW_E_NOMEM;
	q->octets = malloc((size_t)frames * room);
	if (!q->octets) {
		free(q);
		return UW_E_NOMEM;
	}
	q->frames = frames;
	q->room = room;
	for (unsigned i = 0; i < frames; i++)
		q->held[i].octets = q->octets + (size_t)i * room;
	*out = q;
	return UW_OK;
}

void impair_line_close(struct impair_line *q)
{
	if (!q)
		return;
	free(q->octets);
	free(q);
}

static bool before(const struct impair_held *a, const struct impair_held *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap(struct impair_line *q, unsigned i, unsigned k)
{
	struct impair_held h = q->held[i];

	q->held[i] = q->held[k];
	q->held[k] = h;
}

uint8_t *impair_line_add(struct impair_line *q, uint64_t due_ns, uint32_t len)
{
	unsigned i = q->count;
	uint8_t *octets;

	if (i == q->frames || len > q->room)
		return NULL;
	q->count++;
	q->held[i].due_ns = due_ns;
	q->held[i].order = q->added++;
	q->held[i].len = len;
	octets = q->held[i].octets;
	for (; i && before(&q->held[i], &q->held[(i - 1) / 2]); i = (i - 1) / 2)
		swap(q, i, (i - 1) / 2);
	return octets;
}

const struct impair_held *impair_line_first(const struct impair_line *q)
{
	return q->count ? &q->held[0] : NULL;
}

void impair_line_remove_first(struct impair_line *q)
{
	unsigned i = 0, child;

	swap(q, 0, --q->count);
	while ((child = 2 * i + 1) < q->count) {
		if (child + 1 < q->count && before(&q->held[child + 1], &q->held[child]))
			child++;
		if (!before(&q->held[child], &q->held[i]))
			return;
		swap(q, i, child);
		i = child;
	}
}

unsigned impair_line_count(const struct impair_line *q)
{
	return q->count;
}
