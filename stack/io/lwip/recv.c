/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets from lwIP to the user, without copying: what is not consumed stays in its frames. */
#include <string.h>

#include "io/lwip/conn.h"

#include "lwip/priv/tcp_priv.h"

#define HELD_SPANS 64u		 /* frames of one rope; more than a 64 KiB FPDU at MTU 1500 has */
#define HELD_FLAT  (128u * 1024) /* an FPDU and as much again */
/* Paused: the frames are everybody's, so more than these few are copied out. What is copied is the
 * peer's to bound: no more than the window comes. */
#define HELD_PAUSED 8u

static void free_frame(struct io_frame *f)
{
	pbuf_free(&edge_pbuf(f)->pbuf);
}

static void drop_flat(struct conn_held *h)
{
	free(h->flat);
	h->flat = NULL;
	h->flat_off = h->flat_len = h->flat_cap = 0;
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
	drop_flat(h);
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

/* Room for `more` octets behind the copy; moving it is worth it once half of it has been used. */
static bool flat_room(struct conn_held *h, size_t more)
{
	size_t have = h->flat_len - h->flat_off, cap = h->flat_cap ? h->flat_cap : HELD_FLAT;
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
	h->flat = p;
	h->flat_cap = cap;
	h->flat_off = 0;
	h->flat_len = have;
	return true;
}

/* A peer that cuts an FPDU into crumbs would pin one frame for each: copy them together. False:
 * more than any FPDU needs is held, or no memory. */
static bool flatten(struct llp_conn *c)
{
	struct conn_held *h = &c->held;
	size_t limit = HELD_FLAT + (c->paused ? TCP_WND : 0);

	if (h->flat_len - h->flat_off + h->bytes > limit || !flat_room(h, h->bytes))
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
		v[n++] = (struct uw_span){ h->flat + h->flat_off, h->flat_len - h->flat_off };
		*len = h->flat_len - h->flat_off;
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
	} while (used && !c->paused);
}

static void recved(struct llp_conn *c, size_t n)
{
	while (n) {
		uint16_t part = (uint16_t)(n < UINT16_MAX ? n : UINT16_MAX);

		tcp_recved(c->pcb, part);
		n -= part;
	}
}

/* What is owed is the end of what is held. */
static void pay(struct llp_conn *c)
{
	struct conn_held *h = &c->held;
	size_t held = h->bytes + h->flat_len - h->flat_off;
	size_t still = !c->paused ? 0 : held < h->owed ? held : h->owed;
	tcpwnd_size_t before = c->pcb->rcv_ann_wnd;

	recved(c, h->owed - still);
	h->owed = still;
	/* lwIP speaks up for a quarter of the window only; a peer that was stopped waits for less.
	 */
	if (before < TCP_WND_UPDATE_THRESHOLD && c->pcb->rcv_ann_wnd > before) {
		tcp_ack_now(c->pcb);
		tcp_output(c->pcb);
	}
}

void conn_settle_window(struct llp_conn *c)
{
	recved(c, c->held.owed);
	c->held.owed = 0;
}

void edge_pause(struct llp_conn *c)
{
	c->paused = true;
}

void edge_resume(struct llp_conn *c)
{
	c->paused = false;
	c->in_callback = true;
	offer(c);
	if (c->end == CONN_ON)
		pay(c);
	conn_settle(c);
}

static bool too_many_frames(const struct llp_conn *c)
{
	return c->held.flat_len || c->held.count > (c->paused ? HELD_PAUSED : HELD_SPANS / 2);
}

static void take(struct llp_conn *c, struct pbuf *p)
{
	edge.cfg.stats->tcp_rx_bytes += p->tot_len;
	if (c->paused)
		c->held.owed += p->tot_len;
	else
		tcp_recved(c->pcb, p->tot_len);
	hold(&c->held, p);
	if (too_many_frames(c) && !flatten(c)) {
		void *ctx = c->ctx;

		edge_abort(c);
		edge.cfg.user->closed(ctx, UW_E_LLP_CLOSED);
		return;
	}
	if (!c->paused)
		offer(c);
}

/* ---- acknowledging ----------------------------------------------------------------------- */

/* lwIP acknowledges every second segment. On a link that neither loses nor shares, and where every
 * peer is like us, once for all that came in one burst is enough; and what the burst makes the user
 * send may carry it. */
static void postpone_ack(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	if (!(c->el->io->flags & IO_P2P) || !(pcb->flags & TF_ACK_NOW))
		return;
	tcp_clear_flags(pcb, TF_ACK_NOW);
	tcp_set_flags(pcb, TF_ACK_DELAY);
	if (c->ack_due)
		return;
	c->ack_due = true;
	c->next_ack = edge.acks;
	edge.acks = c;
}

void conn_forget_ack(struct llp_conn *c)
{
	struct llp_conn **p = &edge.acks;

	if (!c->ack_due)
		return;
	while (*p != c)
		p = &(*p)->next_ack;
	*p = c->next_ack;
	c->ack_due = false;
}

void edge_acks(void)
{
	struct llp_conn *c;

	while ((c = edge.acks)) {
		edge.acks = c->next_ack;
		c->ack_due = false;
		if (!(c->pcb->flags & TF_ACK_DELAY)) /* what was sent has it */
			continue;
		tcp_ack_now(c->pcb);
		tcp_output(c->pcb);
	}
}

/* ---- lwIP's callback --------------------------------------------------------------------- */

err_t conn_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct llp_conn *c = arg;

	(void)err;
	(void)pcb;
	c->in_callback = true;
	if (p) {
		take(c, p);
		postpone_ack(c);
	} else {
		edge.cfg.user->closed(c->ctx, UW_OK);
	}
	return conn_settle(c);
}
