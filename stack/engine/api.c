/* SPDX-License-Identifier: BSD-3-Clause */
/* Public calls that need the whole engine, and the table that libuwarp.so hands out. */
#include "conn/dgram/dgram.h"
#include "conn/endpoint.h"
#include "conn/rc/rc.h"
#include "engine/engine.h"

int uw_pd_alloc(struct uw_engine *e, struct uw_pd **out)
{
	return verbs_make_pd(&e->verbs, out);
}

int uw_cq_create(struct uw_engine *e, const struct uw_cq_attr *a, struct uw_cq **out)
{
	return verbs_make_cq(&e->verbs, a, out);
}

int uw_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	int err = uw_engine_start(e);

	return err ? err : ep_create(&e->conn, fn, ctx, out);
}

int uw_qp_name_peer(struct uw_qp *qp, const struct uw_peer *p)
{
	struct uw_engine *e = engine_of(qp->pd->v->conn);
	int err = uw_engine_start(e);
	uw_status st;

	if (err)
		return err;
	if (qp->c.dgram)
		dgram_find_way(e->stack[0], p);
	verbs_lock(&e->verbs);
	st = qp->c.dgram ? dgram_name_peer(&qp->c, p) : rc_name_peer(&qp->c, p);
	verbs_unlock(&e->verbs);
	sched_wake(&e->stack[0]->sched); /* it may have to be ready before anything else happens */
	return engine_errno(st);
}

int uw_ah_make(struct uw_pd *pd, const struct uw_ah_attr *a, struct uw_ah *out)
{
	struct uw_engine *e = engine_of(pd->v->conn);
	int err = uw_engine_start(e);

	return err ? err : engine_errno(dgram_address(e->stack[0], a, out));
}

bool uw_later(struct uw_stack *stack, void (*fn)(void *arg), void *arg)
{
	return sched_defer(&((struct stack *)stack)->sched, fn, arg);
}
