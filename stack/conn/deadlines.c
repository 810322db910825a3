/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/deadlines.h"

#include <stddef.h>

/* Two heaps become one; either may be NULL. */
static struct deadline *meld(struct deadline *a, struct deadline *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->at_us < a->at_us) {
		struct deadline *t = a;

		a = b;
		b = t;
	}
	b->next = a->child;
	if (b->next)
		b->next->prev = b;
	b->prev = a;
	a->child = b;
	return a;
}

/* Siblings become one heap: two and two from the left, then those from the right. */
static struct deadline *meld_all(struct deadline *list)
{
	struct deadline *pairs = NULL, *heap = NULL;

	while (list) {
		struct deadline *a = list, *b = list->next;

		list = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct deadline *rest = pairs->next;

		pairs->next = NULL;
		heap = meld(heap, pairs);
		pairs = rest;
	}
	if (heap)
		heap->prev = NULL;
	return heap;
}

static void cut(struct deadline *d)
{
	if (d->prev->child == d)
		d->prev->child = d->next;
	else
		d->prev->next = d->next;
	if (d->next)
		d->next->prev = d->prev;
}

void deadline_clear(struct deadlines *h, struct deadline *d)
{
	struct deadline *below;

	if (!d->set)
		return;
	below = meld_all(d->child);
	if (d == h->first) {
		h->first = below;
	} else {
		cut(d);
		h->first = meld(h->first, below);
	}
	*d = (struct deadline){ 0 };
}

void deadline_set(struct deadlines *h, struct deadline *d, uint64_t at_us)
{
	deadline_clear(h, d);
	d->at_us = at_us;
	d->set = true;
	h->first = meld(h->first, d);
}

struct deadline *deadline_take(struct deadlines *h, uint64_t now_us)
{
	struct deadline *d = h->first;

	if (!d || d->at_us > now_us)
		return NULL;
	deadline_clear(h, d);
	return d;
}
