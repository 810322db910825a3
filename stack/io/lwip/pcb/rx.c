/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets from lwIP to the user, without a copy. What the user does not use up stays in rx_queue.
 * What the peer hears of them: rx_ack.c. */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

/* Offer until nothing more is consumed: one rope shows at most RX_QUEUE_SPANS frames. */
static void offer(struct llp_conn *c)
{
	struct uw_span v[RX_QUEUE_SPANS + 2];
	size_t used;

	do {
		struct uw_rope r = rx_queue_rope(&c->rx_queue, v);

		if (!r.len)
			return;
		used = edge.cfg.user->rx(c->ctx, r);
		if (c->end != EDGE_CONN_ON)
			return;
		rx_queue_consume(&c->rx_queue, used);
	} while (used && !c->paused);
}

void edge_pause(struct llp_conn *c)
{
	c->paused = true;
}

void edge_resume(struct llp_conn *c)
{
	bool lost;

	edge_conn_activate(c);
	c->paused = false;
	c->in_callback = true;
	offer(c);
	if (c->end == EDGE_CONN_ON)
		edge_conn_window_pay(c);
	lost = c->lost && !c->paused && c->end == EDGE_CONN_ON;
	edge_conn_callback_end(c);
	if (lost) /* now that the user has taken what came */
		edge_conn_lose(c);
}

/* ---- acknowledging ----------------------------------------------------------------------- */

/* What one ACK on a network may be for. With fewer ACKs a sender bursts; a card that merges what it
 * receives (GRO, LRO) makes its host acknowledge more seldom. */
#define ACK_SEGMENTS 16u
#define ACK_OCTETS   32768u
/* The same of merged frames, of which a long message is two or three. */
#define MERGED_SEGMENTS 96u
#define MERGED_OCTETS	131072u

/* A path that lost a segment a short while ago loses ACKs as well. Where one ACK was for a whole
 * window the sender hears nothing until its probe timer fires; and where one segment is all that it
 * has under way, as at the end of a recovery, it waits for a timer of ours. Both are tens of round
 * trips of a short path. So on such a path every second segment has its ACK (RFC 5681 §4.2), and
 * none waits. */
#define LOSSY_FRAMES 256u

static void note_hole(struct llp_conn *c)
{
	if (c->ooseq_kept || c->pcb->ooseq)
		c->lossy = LOSSY_FRAMES;
	else if (c->lossy)
		c->lossy--;
}

/* An ACK that tells of a hole, or of one that was just filled, must go at once (RFC 5681 §4.2). */
static bool ack_may_wait(struct llp_conn *c, bool merged)
{
	unsigned segments = merged ? MERGED_SEGMENTS : ACK_SEGMENTS;
	unsigned octets = merged ? MERGED_OCTETS : ACK_OCTETS;
	const struct tcp_pcb *pcb = c->pcb;

	if (c->el->io->flags & IO_P2P)
		return true;
	/* The first is for two segments, each other one for one more. */
	if (c->lossy || LWIP_TCP_SACK_VALID(pcb, 0) || pcb->state != ESTABLISHED ||
	    c->acks_postponed + 2u >= segments || (c->acks_postponed + 2u) * pcb->mss >= octets) {
		c->acks_postponed = 0;
		return false;
	}
	c->acks_postponed++;
	return true;
}

/* lwIP acknowledges every second segment, and one that stays alone at its next tick.
 * Once for all that came in one burst is enough; and what the burst makes the user send may carry
 * it. On a network no more than ACK_SEGMENTS wait, and none for longer than the burst takes:
 * it came faster than it was looked at. */
static void postpone_ack(struct llp_conn *c, bool merged)
{
	struct tcp_pcb *pcb = c->pcb;

	note_hole(c);
	if (pcb->flags & TF_ACK_NOW && ack_may_wait(c, merged)) {
		tcp_clear_flags(pcb, TF_ACK_NOW);
		tcp_set_flags(pcb, TF_ACK_DELAY);
	} else if (!(c->prompt || c->lossy) || !(pcb->flags & TF_ACK_DELAY)) {
		return;
	}
	edge_conn_ack_later(c);
}

/* ---- what comes -------------------------------------------------------------------------- */

/* Take a chain apart: each pbuf is one frame buffer and is freed alone. */
static void hold(struct rx_queue *h, struct pbuf *p)
{
	while (p) {
		struct pbuf *next = p->next;
		struct io_frame *f = edge_frame(p);

		f->data = p->payload;
		f->len = p->len;
		rx_queue_add(h, f);
		p = next;
	}
}

/* More is held than was. */
static void look(struct llp_conn *c)
{
	if (rx_queue_too_long(&c->rx_queue, c->paused) &&
	    !rx_queue_copy_out(&c->rx_queue, c->paused ? TCP_WND : 0)) {
		void *ctx = c->ctx;

		edge_abort(c);
		edge.cfg.user->closed(ctx, UW_E_LLP_CLOSED);
		return;
	}
	if (!c->paused)
		offer(c);
}

/* RFC 5681 §4.2: an ACK for at least every second full-sized segment. lwIP counts a frame that a
 * link merged from several as one. */
static void acknowledge_merged(struct llp_conn *c, const struct pbuf *p)
{
	unsigned n;

	tcp_set_flags(c->pcb, TF_ACK_NOW);
	/* all but one, which ack_may_wait counts, and the very first */
	n = c->acks_postponed + (p->tot_len - 1u) / c->pcb->mss - !c->acks_postponed;
	c->acks_postponed = (uint8_t)(n < MERGED_SEGMENTS ? n : MERGED_SEGMENTS);
}

static void take(struct llp_conn *c, struct pbuf *p)
{
	bool merged = p->tot_len > c->pcb->mss;

	edge.cfg.stats->tcp_rx_bytes += p->tot_len;
	if (c->paused)
		c->window_debt += p->tot_len;
	else
		edge_conn_recved(c, p->tot_len);
	if (merged)
		acknowledge_merged(c, p);
	hold(&c->rx_queue, p);
	look(c);
	postpone_ack(c, merged);
}

void edge_conn_rx(struct llp_conn *c, struct io_frame *f)
{
	bool any = f->len;

	edge.cfg.stats->tcp_rx_bytes += f->len;
	rx_queue_add(&c->rx_queue, f);
	if (!any)
		return;
	if (c->end == EDGE_CONN_ON)
		look(c);
	postpone_ack(c, false);
}

/* ---- lwIP's callback --------------------------------------------------------------------- */

err_t edge_conn_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct llp_conn *c = arg;

	(void)err;
	(void)pcb;
	c->in_callback = true;
	if (p) {
		take(c, p);
	} else {
		edge.cfg.user->closed(c->ctx, UW_OK);
	}
	return edge_conn_callback_end(c);
}
