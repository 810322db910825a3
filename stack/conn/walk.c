/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/walk.h"

#include <string.h>

void conn_walk_begin(struct conn_walk *w, struct stack *s)
{
	*w = (struct conn_walk){ .stack = s, .at = s->conns, .next = s->walks };
	s->walks = w;
}

struct conn *conn_walk_next(struct conn_walk *w)
{
	struct conn *c = w->at;

	if (c)
		w->at = c->next;
	return c;
}

void conn_walk_end(struct conn_walk *w)
{
	struct conn_walk **p = &w->stack->walks;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
}

static void report_qp(const struct qp *qp, struct conn_report *out)
{
	const struct sq *sq = &qp->sq;

	out->qpn = qp->num;
	out->sends = atomic_load_explicit(&sq->tail, memory_order_acquire) -
		     atomic_load_explicit(&sq->head, memory_order_relaxed);
	out->recvs = qp->shared_rq ? 0 : rq_count(qp->rq);
	out->ird = qp->rd.irq.cap;
	out->ord = qp->rd.orq.cap;
}

void conn_report(const struct conn *c, struct conn_report *out)
{
	const struct llp_ops *llp = c->stack->llp;

	*out = (struct conn_report){ .state = conn_state_name(c->state),
				     .initiator = c->role == CONN_INITIATOR,
				     .cm_less = c->cm_less,
				     .local = c->local,
				     .remote = c->remote,
				     .lport = c->lport,
				     .rport = c->rport,
				     .rnr = c->rnr != RNR_NO && !(c->qp && persist_state(c->qp)),
				     .since_us = c->since_us };
	if (c->qp)
		report_qp(&c->qp->qp, out);
	if (c->llp && llp->info)
		llp->info(c->llp, &out->llp);
}
