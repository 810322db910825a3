/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rx_queue.h"

#include <stdlib.h>
#include <string.h>

#include "io/rx_budget.h"

#define RX_QUEUE_COPY_MAX (128u * 1024) /* an FPDU and as much again */
#define RX_QUEUE_PAUSED	  8u
#define COPY_MIN	  4096u

static void free_frame(struct io_frame *f)
{
	f->link->ops->free(f);
}

static void drop_copy(struct rx_queue *q)
{
	rx_budget_copy(-(ptrdiff_t)q->copy_cap);
	free(q->copy);
	q->copy = NULL;
	q->copy_off = q->copy_len = q->copy_cap = 0;
}

static struct io_frame *take_first(struct rx_queue *q)
{
	struct io_frame *f = q->first;

	q->first = f->next;
	if (!q->first)
		q->last = &q->first;
	f->next = NULL;
	q->count--;
	q->bytes -= f->len;
	return f;
}

void rx_queue_init(struct rx_queue *q)
{
	*q = (struct rx_queue){ .last = &q->first };
}

void rx_queue_drop(struct rx_queue *q)
{
	while (q->first)
		free_frame(take_first(q));
	drop_copy(q);
}

void rx_queue_add(struct rx_queue *q, struct io_frame *f)
{
	f->next = NULL;
	if (!f->len) {
		free_frame(f);
		return;
	}
	*q->last = f;
	q->last = &f->next;
	q->count++;
	q->bytes += f->len;
}

bool rx_queue_too_long(const struct rx_queue *q, bool paused)
{
	return q->copy_len || q->count > (paused ? RX_QUEUE_PAUSED : RX_QUEUE_SPANS / 2);
}

/* Room for `more` octets behind the copy; moving it is worth it once half of it has been used. */
static bool copy_room(struct rx_queue *q, size_t more)
{
	size_t have = q->copy_len - q->copy_off, cap = q->copy_cap ? q->copy_cap : COPY_MIN;
	uint8_t *p = q->copy;

	if (q->copy_len + more <= q->copy_cap)
		return true;
	while (cap < have + more || (cap == q->copy_cap && have > q->copy_off))
		cap *= 2;
	if (cap != q->copy_cap)
		p = malloc(cap);
	if (!p)
		return false;
	if (have)
		memmove(p, q->copy + q->copy_off, have);
	if (p != q->copy)
		free(q->copy);
	rx_budget_copy((ptrdiff_t)(cap - q->copy_cap));
	q->copy = p;
	q->copy_cap = cap;
	q->copy_off = 0;
	q->copy_len = have;
	return true;
}

bool rx_queue_copy_out(struct rx_queue *q, size_t more)
{
	if (rx_queue_octets(q) > RX_QUEUE_COPY_MAX + more || !copy_room(q, q->bytes))
		return false;
	while (q->first) {
		struct io_frame *f = take_first(q);

		memcpy(q->copy + q->copy_len, f->data, f->len);
		q->copy_len += f->len;
		free_frame(f);
	}
	return true;
}

struct uw_rope rx_queue_rope(const struct rx_queue *q, struct uw_span *v)
{
	struct uw_rope r = { .v = v };
	unsigned n = 0;

	if (q->copy_len) {
		v[n++] = (struct uw_span){ q->copy + q->copy_off, q->copy_len - q->copy_off };
		r.len = q->copy_len - q->copy_off;
	}
	for (const struct io_frame *f = q->first; f && n <= RX_QUEUE_SPANS; f = f->next) {
		v[n++] = (struct uw_span){ f->data, f->len };
		r.len += f->len;
	}
	return r;
}

void rx_queue_consume(struct rx_queue *q, size_t n)
{
	if (q->copy_len) {
		size_t left = q->copy_len - q->copy_off, k = n < left ? n : left;

		q->copy_off += k;
		n -= k;
		if (q->copy_off == q->copy_len)
			drop_copy(q);
	}
	while (n && q->first) {
		struct io_frame *f = q->first;

		if (n < f->len) {
			f->data += n;
			f->len -= (uint32_t)n;
			q->bytes -= n;
			return;
		}
		n -= f->len;
		free_frame(take_first(q));
	}
}
