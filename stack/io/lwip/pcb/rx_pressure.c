/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each connection keeps of the process's budget for received octets (io/rx_budget.h,
 * doc/adr/0025): frames in its rx_queue, and frames in pcb->ooseq, where lwIP queues segments that
 * came out of order. Connections that keep frames of a link are listed on keepers, the longest
 * first. Above the limit, the first one's octets are copied and its frames go back to their link.
 */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/be.h"
#include "io/rx_budget.h"

/* lwIP has one pool of records of segments for all that is queued, whether it came out of order or
 * is to be sent; SYNs are answered from it, too. What came may have a quarter of it, of which a
 * connection may hold a quarter of what is free: a whole TCP_OOSEQ_MAX_PBUFS while the others hold
 * little. A few it may hold whatever the others do, up to half of the pool. */
#define OOSEQ_MAX   (MEMP_NUM_TCP_SEG / 4u)
#define OOSEQ_FLOOR 16u
_Static_assert(TCP_OOSEQ_MAX_PBUFS <= OOSEQ_MAX / 5, "one connection has room for all it may hold");

static struct llp_conn *keepers, *keepers_last;
static unsigned ooseq_segments; /* that lwIP keeps out of order, of all connections */

/* ---- frames in memory of our own --------------------------------------------------------- */

static void heap_free(struct io_frame *f)
{
	free(f);
}

/* The link of copied frames: nothing is sent or received on it. */
static const struct io_ops heap_ops = { .name = "heap", .free = heap_free };
static struct io_link heap_link = { .ops = &heap_ops };

static bool is_copy(struct pbuf *p)
{
	return edge_frame(p)->link == &heap_link;
}

/* A frame that has the header and the octets of a segment; NULL: no memory. */
static struct io_frame *copy_of(const struct tcp_seg *seg)
{
	struct io_frame *f = malloc(sizeof(*f) + TCP_HLEN + seg->p->tot_len);

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->link = &heap_link;
	f->buf = (uint8_t *)(f + 1);
	f->room = TCP_HLEN + seg->p->tot_len;
	f->data = f->buf + TCP_HLEN;
	f->len = pbuf_copy_partial(seg->p, f->data, seg->p->tot_len, 0);
	memcpy(f->buf, seg->tcphdr, TCP_HLEN);
	return f;
}

/* False: no memory. */
static bool copy_segment(struct tcp_seg *seg)
{
	struct io_frame *f;

	if (is_copy(seg->p))
		return true;
	f = copy_of(seg);
	if (!f)
		return false;
	pbuf_free(seg->p);
	seg->p = edge_wrap_rx(f);
	seg->tcphdr = (struct tcp_hdr *)f->buf;
	edge.cfg.stats->tcp_rx_copied_out++;
	return true;
}

/* ---- what a connection keeps ------------------------------------------------------------- */

static void list(struct llp_conn *c)
{
	c->keeps = true;
	c->keep_next = NULL;
	c->keep_prev = keepers_last;
	if (keepers_last)
		keepers_last->keep_next = c;
	else
		keepers = c;
	keepers_last = c;
}

static void unlist(struct llp_conn *c)
{
	c->keeps = false;
	if (c->keep_prev)
		c->keep_prev->keep_next = c->keep_next;
	else
		keepers = c->keep_next;
	if (c->keep_next)
		c->keep_next->keep_prev = c->keep_prev;
	else
		keepers_last = c->keep_prev;
}

static void set_segments(struct llp_conn *c, unsigned n)
{
	ooseq_segments += n - c->ooseq_segments;
	c->ooseq_segments = n;
}

static void set_kept(struct llp_conn *c, unsigned pinned, size_t copied)
{
	if (c->pinned != pinned)
		rx_budget_pin((int)pinned - (int)c->pinned);
	if (c->ooseq_copied != copied)
		rx_budget_copy((ptrdiff_t)copied - (ptrdiff_t)c->ooseq_copied);
	c->pinned = pinned;
	c->ooseq_copied = copied;
	if (pinned && !c->keeps)
		list(c);
	else if (!pinned && c->keeps)
		unlist(c);
}

static void count(struct llp_conn *c)
{
	const struct tcp_seg *seg = c->pcb ? c->pcb->ooseq : NULL;
	unsigned pinned = c->rx_queue.count, segments = 0;
	size_t copied = 0;

	for (; seg; seg = seg->next) {
		segments++;
		for (struct pbuf *p = seg->p; p; p = p->next) {
			if (is_copy(p))
				copied += sizeof(struct io_frame) + edge_frame(p)->room;
			else
				pinned++;
		}
	}
	set_segments(c, segments);
	set_kept(c, pinned, copied);
}

static size_t copied_octets(const struct llp_conn *c)
{
	return c->rx_queue.copy_cap + c->ooseq_copied;
}

/* What is out of order may be forgotten: the peer sends it again (RFC 2018 §8). */
static void copy_out_of_order(struct llp_conn *c)
{
	bool room = c->end == EDGE_CONN_ON && rx_budget_has_room(copied_octets(c));

	for (struct tcp_seg *seg = c->pcb->ooseq; seg && room; seg = seg->next)
		room = copy_segment(seg);
	if (!room)
		tcp_free_ooseq(c->pcb);
}

static void copy_out(struct llp_conn *c)
{
	unsigned held = c->rx_queue.count;

	if (held && rx_queue_copy_out(&c->rx_queue, c->paused ? TCP_WND : 0))
		edge.cfg.stats->tcp_rx_copied_out += held;
	if (c->pcb && c->pcb->ooseq)
		copy_out_of_order(c);
	count(c);
}

/* One that is at work in a callback looks at its frames. */
static void relieve(void)
{
	struct llp_conn *c = keepers, *next;

	for (; c && rx_budget_pinned_too_many(); c = next) {
		next = c->keep_next;
		if (!c->in_callback)
			copy_out(c);
	}
}

/* The peer of one that keeps them all would never hear which octet is missing. */
struct io_frame *edge_alloc_urgent(struct io_link *l)
{
	struct io_frame *f = l->ops->alloc(l);
	struct llp_conn *c = keepers, *next;

	for (; c && !f; c = next) {
		next = c->keep_next;
		if (c->el->io != l || c->in_callback)
			continue;
		copy_out(c);
		f = l->ops->alloc(l);
	}
	return f;
}

void edge_conn_rx_kept(struct llp_conn *c)
{
	if (c->rx_queue.count == c->pinned && !c->ooseq_kept && !(c->pcb && c->pcb->ooseq))
		return;
	count(c);
	c->ooseq_kept = c->pcb && c->pcb->ooseq;
	if (rx_budget_pinned_too_many())
		relieve();
}

void edge_conn_rx_forget(struct llp_conn *c)
{
	set_segments(c, 0);
	set_kept(c, 0, 0);
	c->ooseq_kept = false;
}

/* ---- what is let in ---------------------------------------------------------------------- */

/* There is memory again: say so to a peer that was told that there is none. */
void edge_conn_rx_open(struct llp_conn *c)
{
	c->rx_shut = false;
	tcp_update_rcv_ann_wnd(c->pcb);
}

/* The peer hears which octet is expected next, and to send no more for now if what comes in order
 * is refused. RFC 9293 §3.8.6: a window may shrink in need. */
static void shut(struct llp_conn *c, bool in_order)
{
	if (in_order) {
		c->rx_shut = true;
		c->pcb->rcv_ann_wnd = 0;
	}
	tcp_ack_now(c->pcb);
	tcp_output(c->pcb);
}

bool edge_conn_rx_room(const struct llp_conn *c)
{
	return rx_budget_has_room(copied_octets(c));
}

/* RFC 5042 §6.4.1 */
static bool has_segments(const struct llp_conn *c)
{
	unsigned all = ooseq_segments, left = all < OOSEQ_MAX ? OOSEQ_MAX - all : 0;

	return c->ooseq_segments < left / 4 ||
	       (c->ooseq_segments < OOSEQ_FLOOR && all < 2 * OOSEQ_MAX);
}

/* Behind a hole a FIN is queued, too. */
static bool would_be_queued(const struct edge_segment *s, bool in_order)
{
	return !in_order && (s->len || s->flags & TCP_FIN);
}

/* What the user waits for has to get in, or it would wait for ever: it is bounded by the longest
 * FPDU (io/rx_queue.h). */
static bool has_room(const struct llp_conn *c, const struct edge_segment *s, bool in_order)
{
	return !s->len || c->end != EDGE_CONN_ON || (in_order && !c->paused) ||
	       edge_conn_rx_room(c);
}

bool edge_conn_rx_refuse(struct llp_conn *c, const struct edge_segment *s)
{
	bool in_order = TCP_SEQ_LEQ(s->seq, c->pcb->rcv_nxt);

	if (c->rx_shut && edge_conn_rx_room(c))
		edge_conn_rx_open(c);
	if (has_room(c, s, in_order) && (!would_be_queued(s, in_order) || has_segments(c)))
		return false;
	edge.cfg.stats->tcp_rx_no_memory++;
	shut(c, in_order);
	return true;
}
