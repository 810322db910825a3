/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments whose payload stays in the program's memory (doc/adr/0011). Whoever frees such a pbuf
 * has no need of the octets any more: the peer has acknowledged them, or the connection is over. If
 * the link has the frame all the same, to be sent or sent again, it gets a copy.
 */
#include <string.h>

#include "io/lwip/conn.h"
#include "io/lwip/frame.h"

#include "lwip/priv/tcp_priv.h"

static void own(struct pbuf *p)
{
	struct io_frame *f = edge_frame(p);

	f->link->ops->own(f);
	p->payload = f->data;
	edge_now_tx(p);
	edge.refers--;
	edge.cfg.stats->payload_tx_copied += f->len;
}

static void let_go(struct pbuf *p)
{
	struct io_frame *f = edge_frame(p);

	if (f->link->ops->refs(f) > 1)
		own(p);
	else
		edge.refers--;
	f->link->ops->free(f);
}

static bool is_ref(const struct pbuf *p)
{
	return edge_freed_by(p, let_go);
}

bool edge_is_segment(const struct pbuf *p)
{
	return edge_is_tx(p) || is_ref(p);
}

static void own_within(struct tcp_seg *seg, uintptr_t from, uintptr_t to)
{
	for (; seg; seg = seg->next) {
		for (struct pbuf *p = seg->p; p; p = p->next) {
			uintptr_t at = (uintptr_t)p->payload;

			if (is_ref(p) && at < to && at + p->len > from)
				own(p);
		}
	}
}

static void own_of(const struct llp_conn *c, uintptr_t from, uintptr_t to)
{
	if (!edge.refers || !c->pcb)
		return;
	own_within(c->pcb->unacked, from, to);
	own_within(c->pcb->unsent, from, to);
}

void edge_own(struct llp_conn *c)
{
	own_of(c, 0, UINTPTR_MAX);
}

void edge_own_all(const void *p, size_t n)
{
	for (struct llp_conn *c = edge.conns; c; c = c->next)
		own_of(c, (uintptr_t)p, (uintptr_t)p + n);
}

bool edge_refers(const struct llp_conn *c)
{
	return c->el->io->flags & IO_REFERS;
}

/* No buffers left: the octets go where they would have gone. */
static void copy_in(struct llp_conn *c, size_t n, const struct llp_ref *r)
{
	uint8_t *at = c->building->data + r->at;

	memmove(at + r->octets.n, at, n - r->at);
	memcpy(at, r->octets.p, r->octets.n);
	edge.cfg.stats->payload_tx_copied += r->octets.n;
	edge_tx_commit(c, n + r->octets.n);
}

static struct pbuf *wrap_around(struct io_frame *head, struct io_frame *mid, struct io_frame *tail)
{
	struct pbuf *p = edge_wrap_tx(head), *q = edge_wrap_ref(mid, let_go);

	q->next = edge_wrap_tx(tail);
	q->tot_len = (u16_t)(q->len + q->next->len);
	p->next = q;
	p->tot_len = (u16_t)(p->len + q->tot_len);
	edge.refers++;
	return p;
}

void edge_tx_commit_around(struct llp_conn *c, size_t n, const struct llp_ref *r)
{
	struct io_link *l = c->el->io;
	struct io_frame *head = c->building, *tail = l->ops->alloc(l);
	struct io_frame *mid = tail ? l->ops->refer(l, r->octets.p, (uint32_t)r->octets.n) : NULL;

	if (!mid) {
		if (tail)
			l->ops->free(tail);
		copy_in(c, n, r);
		return;
	}
	tail->len = (uint32_t)(n - r->at);
	memcpy(tail->data, head->data + r->at, tail->len);
	head->len = (uint32_t)r->at;
	conn_queue(c, wrap_around(head, mid, tail));
}
