/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/held.h"

#include <stdlib.h>
#include <string.h>

#include "io/rx_budget.h"

#define HELD_FLAT   (128u * 1024) /* an FPDU and as much again */
#define HELD_PAUSED 8u
#define FLAT_MIN    4096u

static void free_frame(struct io_frame *f)
{
	f->link->ops->free(f);
}

static void drop_flat(struct io_held *h)
{
	rx_budget_copy(-(ptrdiff_t)h->flat_cap);
	free(h->flat);
	h->flat = NULL;
	h->flat_off = h->flat_len = h->flat_cap = 0;
}

static struct io_frame *take_first(struct io_held *h)
{
	struct io_frame *f = h->first;

	h->first = f->next;
	if (!h->first)
		h->last = &h->first;
	f->next = NULL;
	h->count--;
	h->bytes -= f->len;
	return f;
}

void held_init(struct io_held *h)
{
	*h = (struct io_held){ .last = &h->first };
}

void held_drop(struct io_held *h)
{
	while (h->first)
		free_frame(take_first(h));
	drop_flat(h);
}

void held_add(struct io_held *h, struct io_frame *f)
{
	f->next = NULL;
	if (!f->len) {
		free_frame(f);
		return;
	}
	*h->last = f;
	h->last = &f->next;
	h->count++;
	h->bytes += f->len;
}

bool held_too_many(const struct io_held *h, bool paused)
{
	return h->flat_len || h->count > (paused ? HELD_PAUSED : HELD_SPANS / 2);
}

/* Room for `more` octets behind the copy; moving it is worth it once half of it has been used. */
static bool flat_room(struct io_held *h, size_t more)
{
	size_t have = h->flat_len - h->flat_off, cap = h->flat_cap ? h->flat_cap : FLAT_MIN;
	uint8_t *p = h->flat;

	if (h->flat_len + more <= h->flat_cap)
		return true;
	while (cap < have + more || (cap == h->flat_cap && have > h->flat_off))
		cap *= 2;
	if (cap != h->flat_cap)
		p = malloc(cap);
	if (!p)
		return false;
	if (have)
		memmove(p, h->flat + h->flat_off, have);
	if (p != h->flat)
		free(h->flat);
	rx_budget_copy((ptrdiff_t)(cap - h->flat_cap));
	h->flat = p;
	h->flat_cap = cap;
	h->flat_off = 0;
	h->flat_len = have;
	return true;
}

bool held_flatten(struct io_held *h, size_t more)
{
	if (held_octets(h) > HELD_FLAT + more || !flat_room(h, h->bytes))
		return false;
	while (h->first) {
		struct io_frame *f = take_first(h);

		memcpy(h->flat + h->flat_len, f->data, f->len);
		h->flat_len += f->len;
		free_frame(f);
	}
	return true;
}

struct uw_rope held_rope(const struct io_held *h, struct uw_span *v)
{
	struct uw_rope r = { .v = v };
	unsigned n = 0;

	if (h->flat_len) {
		v[n++] = (struct uw_span){ h->flat + h->flat_off, h->flat_len - h->flat_off };
		r.len = h->flat_len - h->flat_off;
	}
	for (const struct io_frame *f = h->first; f && n <= HELD_SPANS; f = f->next) {
		v[n++] = (struct uw_span){ f->data, f->len };
		r.len += f->len;
	}
	return r;
}

void held_consume(struct io_held *h, size_t n)
{
	if (h->flat_len) {
		size_t left = h->flat_len - h->flat_off, k = n < left ? n : left;

		h->flat_off += k;
		n -= k;
		if (h->flat_off == h->flat_len)
			drop_flat(h);
	}
	while (n && h->first) {
		struct io_frame *f = h->first;

		if (n < f->len) {
			f->data += n;
			f->len -= (uint32_t)n;
			h->bytes -= n;
			return;
		}
		n -= f->len;
		free_frame(take_first(h));
	}
}
