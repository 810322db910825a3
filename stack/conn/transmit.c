/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that have something to send, and whose turn it is. */
#include "conn/conn.h"
#include "conn/dgram/dgram.h"
#include "conn/end_event.h"
#include "conn/prefetch.h"

#define ROUND_CONNS 16u	     /* connections of the list in one round */
#define CLOSE_US    3000000u /* for the peer's FIN after ours */

static bool all_sent(const struct qp *qp)
{
	return sq_empty(&qp->sq) && rdmap_tx_idle(&qp->rd) && !rdmap_response_due(&qp->rd);
}

void conn_qp_tell_drained(struct conn_qp *q)
{
	struct qp *qp = &q->qp;

	if (qp_drained(qp) && qp->event)
		qp->event(qp->event_ctx, UW_EVENT_SQ_DRAINED);
}

static void without_stream(struct conn_qp *q)
{
	conn_qp_tell_drained(q);
	if (q->qp.state == UW_QPS_ERR)
		qp_flush(&q->qp);
	else if (q->peer_ops)
		q->peer_ops->posted(q);
}

/* The program wants the stream closed, and everything it posted is sent. */
static void close_stream(struct conn *c)
{
	conn_enter(c, CONN_CLOSING);
	c->deadline_us = stack_now_us(c->stack) + CLOSE_US;
	conn_arm(c);
	c->stack->llp->shutdown(c->llp);
}

void conn_qp_transmit(struct conn_qp *q)
{
	struct conn *c = q->conn;

	if (!c || !c->llp) {
		without_stream(q);
		return;
	}
	if (!conn_send_unsent(c))
		return;
	prefetch_send(q);
	conn_send_stream(c);
	prefetch_next(q);
	if (q->qp.state == UW_QPS_ERR) {
		conn_qp_down(q, q->qp.cause);
		return;
	}
	conn_qp_tell_drained(q);
	if (q->qp.fin_wanted && c->state == CONN_STREAMING && all_sent(&q->qp))
		close_stream(c);
}

void conn_qp_posted(struct ring_entry *r)
{
	struct conn_qp *q = (struct conn_qp *)((uint8_t *)r - offsetof(struct conn_qp, ring));

	conn_qp_rnr_wake(q);
	conn_qp_transmit(q);
}

/* ---- the stack's lists --------------------------------------------------------------------- */

void stack_complete_acked(struct stack *s)
{
	struct conn *c;

	while ((c = s->acked_list)) {
		s->acked_list = c->acked_next;
		c->in_acked_list = false;
		if (c->qp)
			qp_complete_acked(&c->qp->qp);
	}
}

static struct conn *take_first(struct stack *s)
{
	struct conn *c = s->tx_first;

	s->tx_first = c->tx_next;
	if (!s->tx_first)
		s->tx_last = NULL;
	c->in_tx_list = false;
	return c;
}

/* Those that are on the list now, in their order; one that is not done goes to the end of it. One
 * that cannot send has its turn, too: where the link is behind, none of thousands can. */
static void send_waiting(struct stack *s)
{
	const struct conn *last = s->tx_last;
	struct conn *c = NULL;
	unsigned turns = 0;

	while (s->tx_first && c != last && turns < ROUND_CONNS) {
		c = take_first(s);
		turns++;
		if (conn_send_unsent(c) && c->qp)
			conn_qp_transmit(c->qp);
	}
}

void stack_transmit(struct stack *s, enum llp_acks acks)
{
	send_waiting(s);
	if (s->end_events)
		end_events_look(s);
	if (s->dgram_first)
		dgram_send_waiting(s);
	s->llp->acks(acks);
	s->llp->flush_links();
}
