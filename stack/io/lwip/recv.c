/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets from lwIP to the user, without copying: what is not consumed stays in its frames. */
#include <string.h>

#include "io/lwip/conn.h"

#define HELD_SPANS 64u		 /* frames of one rope; more than a 64 KiB FPDU at MTU 1500 has */
#define HELD_FLAT  (128u * 1024) /* an FPDU and as much again */

static void free_frame(struct io_frame *f)
{
	pbuf_free(&edge_pbuf(f)->pbuf);
}

void conn_drop_held(struct llp_conn *c)
{
	struct conn_held *h = &c->held;

	while (h->first) {
		struct io_frame *f = h->first;

		h->first = f->next;
		f->next = NULL;
		free_frame(f);
	}
	h->last = &h->first;
	h->count = 0;
	h->bytes = 0;
	free(h->flat);
	h->flat = NULL;
	h->flat_len = 0;
}

/* Take a chain apart: each pbuf is one frame buffer and is freed alone. */
static void hold(struct conn_held *h, struct pbuf *p)
{
	while (p) {
		struct pbuf *next = p->next;
		struct io_frame *f = edge_frame(p);

		p->next = NULL;
		p->tot_len = p->len;
		if (!p->len) {
			pbuf_free(p);
			p = next;
			continue;
		}
		f->data = p->payload;
		f->len = p->len;
		f->next = NULL;
		*h->last = f;
		h->last = &f->next;
		h->count++;
		h->bytes += f->len;
		p = next;
	}
}

/* A peer that cuts an FPDU into crumbs would pin one frame for each: copy them together. False:
 * more than any FPDU needs is held, or no memory. */
static bool flatten(struct llp_conn *c)
{
	struct conn_held *h = &c->held;

	if (!h->flat)
		h->flat = malloc(HELD_FLAT);
	if (!h->flat || h->flat_len + h->bytes > HELD_FLAT)
		return false;
	while (h->first) {
		struct io_frame *f = h->first;

		memcpy(h->flat + h->flat_len, f->data, f->len);
		h->flat_len += f->len;
		h->first = f->next;
		f->next = NULL;
		free_frame(f);
	}
	h->last = &h->first;
	h->count = 0;
	h->bytes = 0;
	return true;
}

static unsigned spans_of(const struct conn_held *h, struct uw_span *v, size_t *len)
{
	unsigned n = 0;

	*len = 0;
	if (h->flat_len) {
		v[n++] = (struct uw_span){ h->flat, h->flat_len };
		*len = h->flat_len;
	}
	for (struct io_frame *f = h->first; f && n <= HELD_SPANS; f = f->next) {
		v[n++] = (struct uw_span){ f->data, f->len };
		*len += f->len;
	}
	return n;
}

static void consume(struct conn_held *h, size_t n)
{
	if (h->flat_len) {
		size_t k = n < h->flat_len ? n : h->flat_len;

		memmove(h->flat, h->flat + k, h->flat_len - k);
		h->flat_len -= k;
		n -= k;
		if (!h->flat_len) {
			free(h->flat);
			h->flat = NULL;
		}
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
		h->bytes -= f->len;
		h->count--;
		h->first = f->next;
		if (!h->first)
			h->last = &h->first;
		f->next = NULL;
		free_frame(f);
	}
}

/* Offer until nothing more is consumed: one rope shows at most HELD_SPANS frames. */
static void offer(struct llp_conn *c)
{
	struct uw_span v[HELD_SPANS + 2];
	size_t len, used;

	do {
		struct uw_rope r = { .v = v };

		spans_of(&c->held, v, &len);
		if (!len)
			return;
		r.len = len;
		used = edge.cfg.user->rx(c->ctx, r);
		if (c->end != CONN_ON)
			return;
		consume(&c->held, used);
	} while (used);
}

static void take(struct llp_conn *c, struct pbuf *p)
{
	edge.cfg.stats->tcp_rx_bytes += p->tot_len;
	tcp_recved(c->pcb, p->tot_len);
	hold(&c->held, p);
	if ((c->held.count > HELD_SPANS / 2 || c->held.flat_len) && !flatten(c)) {
		void *ctx = c->ctx;

		llp_abort(c);
		edge.cfg.user->closed(ctx, UW_E_LLP_CLOSED);
		return;
	}
	offer(c);
}

err_t conn_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct llp_conn *c = arg;

	(void)err;
	(void)pcb;
	c->in_callback = true;
	if (p)
		take(c, p);
	else
		edge.cfg.user->closed(c->ctx, UW_OK);
	return conn_settle(c);
}
