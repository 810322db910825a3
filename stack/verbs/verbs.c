/* SPDX-License-Identifier: BSD-3-Clause */
/* What all objects share, and protection domains. */
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

#define MEM_SLOTS 256u

uw_status verbs_init(struct verbs *v, struct conn_domain *conn)
{
	struct mem_region **slots = calloc(MEM_SLOTS, sizeof(*slots));

	if (!slots)
		return UW_E_NOMEM;
	v->conn = conn;
	mem_table_init(&v->mem, slots, MEM_SLOTS);
	v->mem.reachable = verbs_is_reachable;
	v->mem.persist = verbs_persist;
	atomic_init(&v->next_pd, 1);
	return UW_OK;
}

void verbs_free(struct verbs *v)
{
	free(v->mem.slots);
	idmap_free(&v->qps);
}

struct conn_qp *verbs_find_qp(void *arg, uint32_t qpn)
{
	struct verbs *v = arg;
	struct uw_qp *qp = idmap_get(&v->qps, qpn);

	return qp ? &qp->c : NULL;
}

/* The QPs of CQs that overflowed. */
static void fail_qps(struct verbs *v, struct stack *s)
{
	for (uint32_t i = 0; i < v->qps.n; i++) {
		struct uw_qp *qp = v->qps.v[i].what;

		if (qp && conn_qp_stack(&qp->c) == s && (qp->scq->failed || qp->rcq->failed))
			conn_qp_down(&qp->c, UW_E_NOMEM);
	}
}

void verbs_run(struct verbs *v, struct stack *s)
{
	_Atomic bool *failed = &v->cq_failed[s->sched.index];

	if (atomic_load_explicit(failed, memory_order_relaxed)) {
		atomic_store_explicit(failed, false, memory_order_relaxed);
		fail_qps(v, s);
	}
	if (v->moderated)
		verbs_run_moderated(v, stack_now_us(s));
}

uint64_t verbs_next_due_us(const struct verbs *v, const struct stack *s)
{
	uint64_t next = UINT64_MAX;

	for (const struct uw_cq *cq = v->moderated; cq && cq->sched == &s->sched;
	     cq = cq->moderated) {
		if (cq->due_us < next)
			next = cq->due_us;
	}
	return next;
}

/* ---- fork -------------------------------------------------------------------------------- */

/* No event and no notify: their descriptors are the parent's as well. */
static void orphan_cq(struct uw_cq *cq)
{
	cq->cq.notify = cq->cq.error = NULL;
	cq->due_us = 0;
	atomic_store(&cq->telling, 0); /* by threads that are not here */
	spin_reset(&cq->lock);
	spin_reset(&cq->pushes);
}

static void orphan_srq(struct uw_srq *srq)
{
	srq->event = NULL;
	srq->r.first = NULL;
	atomic_store(&srq->r.waited, false);
	spin_reset(&srq->lock);
	spin_reset(&srq->r.takes);
}

static void orphan_qp(struct conn_qp *q)
{
	q->conn = q->claimed_by = NULL;
	q->rc = NULL;
	q->self = NULL;
	q->peer_ops = NULL;
	q->qp.event = NULL;
	q->rnr_woken = false;
	atomic_store(&q->flush.state, PERSIST_NO);
	atomic_store(&q->rnr, false);
	atomic_store(&q->ring.queued, false);
	spin_reset(&q->sq_lock);
	spin_reset(&q->rq_lock);
	qp_detach(&q->qp);
	qp_fail(&q->qp, UW_E_FLUSHED);
}

void verbs_after_fork(struct verbs *v)
{
	for (struct uw_cq *cq = v->cqs; cq; cq = cq->next)
		orphan_cq(cq);
	for (struct uw_srq *srq = v->srqs; srq; srq = srq->next)
		orphan_srq(srq);
	for (uint32_t i = 0; i < v->qps.n; i++) {
		if (v->qps.v[i].what)
			orphan_qp(&((struct uw_qp *)v->qps.v[i].what)->c);
	}
	v->moderated = NULL;
}

/* ---- protection domains ------------------------------------------------------------------- */

int verbs_make_pd(struct verbs *v, struct uw_pd **out)
{
	struct uw_pd *pd;
	int err = verbs_count_in(&v->n_pds, VERBS_PDS_MAX);

	if (err)
		return err;
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		verbs_count_out(&v->n_pds);
		return -ENOMEM;
	}
	pd->v = v;
	pd->id = atomic_fetch_add(&v->next_pd, 1);
	*out = pd;
	return 0;
}

int uw_pd_dealloc(struct uw_pd *pd)
{
	if (atomic_load(&pd->users))
		return -EBUSY;
	verbs_count_out(&pd->v->n_pds);
	free(pd);
	return 0;
}
