/* SPDX-License-Identifier: BSD-3-Clause */
/* The program asks for the end: what it has posted is sent first, as long as that makes progress.
 */
#include "conn/conn.h"

/* A peer that takes nothing and sends nothing for this long gets no more: its program, too, may
 * wait for the end, and post no receive any more. */
#define STALLED_US 1000000u

/* Changes whenever the peer takes octets, or sends some. */
static uint32_t progress(const struct conn *c)
{
	const struct qp *qp = &c->qp->qp;

	return qp->out + qp->acked + c->came_in +
	       atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

static void wait_for_progress(struct conn *c)
{
	c->progress = progress(c);
	c->deadline_us = stack_now_us(c->stack) + STALLED_US;
	conn_arm(c);
}

/* RFC 5040 §5.4: the LLP stream ends without a Terminate, which would stand behind what the peer
 * does not take. */
static void end_stalled(struct conn *c)
{
	struct llp_conn *llp = c->llp;

	c->stack->sched.stats.conn_stalled++;
	c->llp = NULL;
	c->stack->llp->abort(llp);
	conn_qp_down(c->qp, UW_E_LLP_CLOSED);
}

void conn_disconnect_timer(struct conn *c)
{
	/* What the peer sent, answers too, may stand behind its FLUSH, which waits for our disk. */
	bool ours = persist_state(c->qp) == PERSIST_WAITS;

	if (progress(c) == c->progress && c->llp && !ours)
		end_stalled(c);
	else
		wait_for_progress(c);
}

uw_status conn_disconnect(struct conn *c)
{
	uw_status st = qp_modify(&c->qp->qp, UW_QPS_SQD);

	if (st)
		return st;
	conn_qp_transmit(c->qp);
	if (c->state == CONN_STREAMING && c->qp && !c->deadline_us)
		wait_for_progress(c);
	return UW_OK;
}
