/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP and its connection part. */
#include "conn/conn_qp.h"

#include "conn/end_event.h"
#include "conn/verdict.h"

void conn_qp_move(struct conn_qp *q, struct stack *to)
{
	if (conn_qp_stack(q) == to)
		return;
	qp_move(&q->qp, &to->sched.stats);
	/* release: pairs with the acquire in sched_post */
	atomic_store_explicit(&q->ring.home, &to->sched, memory_order_release);
}

/* Which asynchronous event the verbs have for it; 0: none, the completions tell. */
static unsigned fatal_event(uw_status why)
{
	switch (why) {
	case UW_OK:
	case UW_E_FLUSHED:
	case UW_E_LLP_CLOSED:
		return 0;
	case UW_E_DDP_STAG:
	case UW_E_DDP_BOUNDS:
	case UW_E_DDP_STREAM:
	case UW_E_RDMAP_STAG:
	case UW_E_RDMAP_BOUNDS:
	case UW_E_RDMAP_ACCESS:
	case UW_E_RDMAP_STREAM:
		return UW_EVENT_QP_ACCESS_ERR;
	default:
		return UW_EVENT_QP_FATAL;
	}
}

static void raise(const struct qp *qp, unsigned event)
{
	if (qp->event)
		qp->event(qp->event_ctx, (enum uw_event)event);
}

static void part(struct conn_qp *q, struct conn *c)
{
	q->conn = NULL;
	q->llp_prefetch_list = NULL;
	c->qp = NULL;
	conn_end(c);
	c->stack->sched.stats.cm_closed++;
}

void conn_qp_down(struct conn_qp *q, uw_status why)
{
	struct conn *c = q->conn;
	unsigned fatal = q->qp.state == UW_QPS_ERR && !c ? 0 : fatal_event(why);
	struct end_event *end = NULL;

	if (c) {
		conn_failed(c, why);
		end = end_event_new(c, why);
	}
	rnr_forget(q);
	qp_fail(&q->qp, why);
	if (c) {
		if (c->llp)
			conn_send_stream(c); /* the Terminate */
		part(q, c);
		end_event_tell(c, end);
	}
	if (fatal)
		raise(&q->qp, fatal);
}

/* ---- the peer left ------------------------------------------------------------------------- */

/* A request to nobody. */
static void posted_too_late(struct conn_qp *q)
{
	if (q->qp.state == UW_QPS_ERR || sq_empty(&q->qp.sq))
		return;
	qp_give_up(&q->qp, UW_E_LLP_CLOSED);
}

static void nothing(struct conn_qp *q)
{
	(void)q;
}

static uint64_t at_once(const struct conn_qp *q, uint64_t now_us)
{
	(void)q;
	return now_us;
}

static const struct conn_peer_ops left_ops = { posted_too_late, nothing, nothing, at_once };

/* A QP of InfiniBand's stays as it is when its peer disconnects: the program is told, and is to end
 * it. An RNIC's goes to error with its stream. Who disconnects sends its messages to the end. */
static bool outlives_peer(const struct conn_qp *q, uw_status why)
{
	const struct qp *qp = &q->qp;

	return why == UW_OK && !q->peer_ops && qp->confirmed && qp->state == UW_QPS_RTS &&
	       !qp->rd.recv_open;
}

/* False: something is under way that the peer will not answer. */
static bool outlive_peer(struct conn_qp *q)
{
	struct conn *c = q->conn;
	struct end_event *end;

	qp_complete_acked(&q->qp);
	if (!sq_empty(&q->qp.sq))
		return false;
	end = end_event_new(c, UW_OK);
	rnr_forget(q);
	qp_detach(&q->qp);
	q->peer_ops = &left_ops;
	part(q, c);
	end_event_tell(c, end);
	return true;
}

void conn_qp_forget_peer(struct conn_qp *q)
{
	if (q->peer_ops == &left_ops)
		q->peer_ops = NULL;
}

void conn_qp_lost(struct conn_qp *q, uw_status why)
{
	if (outlives_peer(q, why) && outlive_peer(q))
		return;
	if (!q->peer_ops || q->qp.state == UW_QPS_ERR) {
		conn_qp_down(q, why);
		return;
	}
	rnr_forget(q);
	qp_detach(&q->qp);
	part(q, q->conn);
	q->peer_ops->lost(q);
}

/* CM-less: a request of the peer cannot be carried out, but the QP is not at fault: end the stream
 * with a Terminate. */
static void refuse_request(struct conn_qp *q, uw_status why)
{
	rnr_forget(q);
	qp_refuse(&q->qp, why);
	conn_send_stream(q->conn); /* the Terminate */
	part(q, q->conn);
	q->peer_ops->lost(q);
}

void conn_qp_forget(struct conn_qp *q)
{
	if (q->claimed_by)
		q->claimed_by->claimed = NULL;
	q->claimed_by = NULL;
	end_event_forget_qp(q);
}

/* ---- receiver not ready -------------------------------------------------------------------- */

/* Offer the stream its octets again; the peer's FIN may have come behind them. */
static void go_on(struct conn_qp *q, struct conn *c)
{
	bool fin = c->rnr == RNR_WAITS_FIN;

	c->rnr = RNR_NO;
	c->rnr_until_us = 0;
	c->stack->llp->resume(c->llp);
	if (q->conn != c || !fin)
		return;
	if (c->rnr == RNR_NO)
		conn_qp_lost(q, UW_OK);
	else
		rnr_fin(c);
}

void conn_qp_rnr_wake(struct conn_qp *q)
{
	struct conn *c = q->conn;

	if (!c || c->rnr == RNR_NO || !rnr_may_go_on(q))
		return;
	go_on(q, c);
	if (q->srq)
		rnr_wake_next(q->srq);
}

/* RFC 5041 §7.1: no buffer, and now the peer is told so. */
void conn_qp_rnr_timer(struct conn *c, uint64_t now_us)
{
	if (c->rnr == RNR_NO || now_us < c->rnr_until_us)
		return;
	c->stack->sched.stats.rnr_timeouts++;
	if (c->cm_less)
		refuse_request(c->qp, UW_E_DDP_NO_BUFFER);
	else
		conn_qp_down(c->qp, UW_E_DDP_NO_BUFFER);
}
