/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(): the connections, the links and the memory that links share stay the parent's. The child
 * has copies of all objects, which must not reach any of that: its QPs are in error, so what it
 * posts on them is flushed, and what it destroys is gone for it alone.
 */
#include "engine/engine.h"
#include "io/dense.h"

static bool nothing_queued(void)
{
	return false;
}

static void nothing(void)
{
}

static unsigned none(void)
{
	return 0;
}

static uint64_t never(void)
{
	return UINT64_MAX;
}

/* All that is called without a link or a connection. */
static const struct llp_ops nowhere = {
	.flush_links = nothing_queued,
	.acks = nothing,
	.timers = nothing,
	.poll = none,
	.lingering = none,
	.next_timer_us = never,
};

static void orphan_ep(struct uw_ep *ep)
{
	ep->c = NULL;
	ep->ls = NULL;
	ep->fn = NULL;
	ep->qp = NULL;
	ep->owned = ep->claimed = ep->unresolved = ep->stalled = ep->settles = false;
	ep->rnr_until_us = ep->parked_until_us = ep->deadline_us = 0;
	ep->state = EP_ENDED;
}

/* No event and no notify either: their descriptors are the parent's as well. */
static void orphan_qp(struct uw_qp *qp)
{
	qp->ep = NULL;
	qp->rc = NULL;
	qp->qp.event = NULL;
	qp->scq->cq.notify = qp->rcq->cq.notify = NULL;
	qp->scq->cq.error = qp->rcq->cq.error = NULL;
	if (qp->srq) {
		qp->srq->starved = NULL;
		atomic_store(&qp->srq->hungry, false);
		atomic_store(&qp->srq->ring.rung, false);
	}
	atomic_store(&qp->hungry, false);
	atomic_store(&qp->ring.rung, false);
	qp_detach(&qp->qp);
	qp_fail(&qp->qp, UW_E_FLUSHED);
}

static void orphan(struct uw_engine *e)
{
	atomic_store(&e->lock, ENGINE_FREE);
	atomic_store(&e->waiters, 0);
	atomic_store(&e->started, false);
	atomic_store(&e->rung, NULL);
	e->n_links = 0;
	e->doorbell = &e->own_doorbell;
	e->due = NULL;
	e->stalled_eps = e->settling_eps = e->parked = NULL;
	e->rcs = NULL;
	e->pcap = NULL;
	e->llp = &nowhere;
	for (struct uw_ep *ep = e->eps; ep; ep = ep->next)
		orphan_ep(ep);
}

static void orphan_all(struct uw_engine *lead)
{
	for (struct uw_engine *e = lead; e; e = e->next)
		orphan(e);
	for (uint32_t i = 0; i < lead->qps.n; i++) {
		struct uw_qp *qp = idmap_get(&lead->qps, i);

		if (qp)
			orphan_qp(qp);
	}
}

void uw_engine_fork(struct uw_engine *e, enum uw_fork when)
{
	switch (when) {
	case UW_FORK_PREPARE: /* nothing is half done in the copy */
		engine_lock_all(e);
		dense_hold();
		break;
	case UW_FORK_PARENT:
		dense_let_go();
		engine_unlock_all(e);
		break;
	case UW_FORK_CHILD:
		dense_let_go();
		orphan_all(e);
		break;
	}
}
