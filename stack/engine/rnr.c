/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiver not ready: a Send came and no receive is posted (doc/adr/0005). The connection's octets
 * stay where they are and TCP's window closes, until a receive is posted or the time is over. Other
 * connections do not notice.
 */
#include "engine/engine.h"

/* A peer that has said good-bye will not help: its last Sends get this long to be wanted. */
#define FIN_WAITS_US 1000000u

bool engine_hungry(_Atomic bool *hungry)
{
	/* Dekker with engine_starve: the post is stored, fence, is anybody hungry? */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(hungry, memory_order_relaxed);
}

/* ---- the SRQ's queue of those who wait: first come, first served -------------------------- */

static void join(struct uw_srq *srq, struct uw_qp *qp)
{
	if (!srq->starved)
		srq->starved_last = &srq->starved;
	qp->next_starved = NULL;
	*srq->starved_last = qp;
	srq->starved_last = &qp->next_starved;
}

static void leave(struct uw_srq *srq, const struct uw_qp *qp)
{
	struct uw_qp **p = &srq->starved;

	while (*p != qp)
		p = &(*p)->next_starved;
	*p = qp->next_starved;
	if (!*p)
		srq->starved_last = p;
	if (!srq->starved)
		atomic_store_explicit(&srq->hungry, false, memory_order_relaxed);
}

/* Is there still no receive? If so, who posts one hears of it. */
static bool none_left(_Atomic bool *hungry, const struct rq *rq)
{
	atomic_store_explicit(hungry, true, memory_order_relaxed);
	/* Dekker with engine_hungry: say so, fence, look once more. */
	atomic_thread_fence(memory_order_seq_cst);
	return !rq_count(rq);
}

static bool starve_alone(struct uw_qp *qp)
{
	bool none = none_left(&qp->hungry, &qp->qp.own_rq);

	if (!none)
		atomic_store_explicit(&qp->hungry, false, memory_order_relaxed);
	return none;
}

static bool starve_shared(struct uw_srq *srq, struct uw_qp *qp)
{
	bool none;

	spin_lock(&srq->takes);
	none = none_left(&srq->hungry, &srq->rq);
	if (none)
		join(srq, qp);
	else if (!srq->starved)
		atomic_store_explicit(&srq->hungry, false, memory_order_relaxed);
	spin_unlock(&srq->takes);
	return none;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static uint64_t wait_limit(const struct uw_ep *ep)
{
	if (ep->rc)
		return engine_rc_rnr_limit(ep->qp, engine_now_us(ep->e));
	if (ep->patient)
		return UINT64_MAX;
	return engine_now_us(ep->e) + ep->e->cfg.rnr_ms * 1000ull;
}

bool engine_starve(struct uw_qp *qp)
{
	struct uw_ep *ep = qp->ep;

	if (!(qp->srq ? starve_shared(qp->srq, qp) : starve_alone(qp)))
		return false;
	if (!ep->rnr_until_us) {
		ep->rnr_until_us = wait_limit(ep);
		engine_ep_arm(ep);
		ep->e->stats.rnr_waits++;
	}
	llp_pause(ep->e->llp, ep->c);
	return true;
}

void engine_rnr_forget(struct uw_qp *qp)
{
	if (!qp->ep || !qp->ep->rnr_until_us)
		return;
	qp->ep->rnr_until_us = 0;
	if (!qp->srq) {
		atomic_store_explicit(&qp->hungry, false, memory_order_relaxed);
		return;
	}
	spin_lock(&qp->srq->takes);
	leave(qp->srq, qp);
	spin_unlock(&qp->srq->takes);
}

void engine_feed(struct uw_qp *qp)
{
	struct uw_ep *ep = qp->ep;

	if (!ep || !ep->rnr_until_us || !rq_count(qp->qp.rq))
		return;
	engine_rnr_forget(qp);
	llp_resume(ep->e->llp, ep->c);
	if (qp->ep == ep && ep->fin_waits && !ep->rnr_until_us)
		engine_qp_lost(qp, UW_OK);
}

void engine_feed_srq(struct ring_entry *r)
{
	struct uw_srq *srq = (struct uw_srq *)((uint8_t *)r - offsetof(struct uw_srq, ring));

	engine_lock_others(srq->pd->e);
	while (srq->starved && rq_count(&srq->rq))
		engine_feed(srq->starved);
	engine_unlock_others(srq->pd->e);
}

/* ---- the end of waiting ------------------------------------------------------------------ */

bool engine_rnr_fin(struct uw_ep *ep)
{
	uint64_t until = engine_now_us(ep->e) + FIN_WAITS_US;

	if (!ep->rnr_until_us || ep->state != EP_STREAMING)
		return false;
	ep->fin_waits = true;
	if (ep->rnr_until_us > until && !ep->rc)
		ep->rnr_until_us = until;
	engine_ep_arm(ep);
	return true;
}

/* RFC 5041 §7.1: no buffer, and now the peer is told so. */
void engine_rnr_timer(struct uw_ep *ep, uint64_t now_us)
{
	if (!ep->rnr_until_us || now_us < ep->rnr_until_us)
		return;
	ep->e->stats.rnr_timeouts++;
	if (ep->rc)
		engine_qp_refuse(ep->qp, UW_E_DDP_NO_BUFFER);
	else
		engine_qp_down(ep->qp, UW_E_DDP_NO_BUFFER);
}
