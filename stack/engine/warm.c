/* SPDX-License-Identifier: BSD-3-Clause */
/* Many QPs: what the next message of each touches is kept beside it, to be fetched in one go. */
#include "engine/engine.h"

#include "engine/warm.h"

#define SLOT_MOST 128u /* octets of a slot; what is behind are SGEs that few have */

void engine_warm_start(struct uw_qp *qp)
{
	struct uw_prefetch_list *t = &qp->prefetch_list;
	struct uw_ep *ep = qp->ep;

	uw_prefetch_list_set(t, UW_PREFETCH_QP,
			     uw_prefetch_lines(qp, offsetof(struct uw_qp, qp.rd.tx.src_stag)));
	uw_prefetch_list_set(t, UW_PREFETCH_OTHER,
			     (uw_lines)qp->qp.event_ctx & ~(uw_lines)(UW_LINE - 1));
	qp->at_llp = llp_prefetch_list(ep->e->llp, ep->c, t);
	uw_prefetch_list_set(t, UW_PREFETCH_OTHER,
			     uw_prefetch_lines(ep, offsetof(struct uw_ep, next)));
	engine_warm_next(qp);
}

static uw_lines slot(const void *p, uint32_t size)
{
	return uw_prefetch_lines(p, size < SLOT_MOST ? size : SLOT_MOST);
}

void engine_warm_next_slots(struct uw_qp *qp)
{
	const struct sq *sq = &qp->qp.sq;
	const struct rq *rq = qp->qp.rq;
	struct uw_prefetch_list *there = qp->at_llp;
	uint32_t next = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	uw_lines send = slot(sq_at(sq, next), sq->slot_size);

	uw_prefetch_list_set(there, UW_PREFETCH_SEND, send);
	uw_prefetch_list_set(&qp->prefetch_list, UW_PREFETCH_SEND, send);
	if (qp->srq) /* other QPs go on taking */
		return;
	next = atomic_load_explicit(&rq->head, memory_order_relaxed);
	uw_prefetch_list_set(there, UW_PREFETCH_RECV, slot(rq_at(rq, next), rq->slot_size));
}

void engine_warm_own(const struct uw_qp *qp)
{
	static __thread const struct uw_qp *last;
	const struct uw_prefetch_list *t = &qp->prefetch_list;

	if (last == qp)
		return;
	last = qp;
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_QP);
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_SEND);
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_PCB);
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_CONN);
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_OTHER);
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_ENTRY);
	uw_prefetch_list_fetch_one(t, UW_PREFETCH_REGION);
}

/* Where the octets of an SGE are, and who allows it. Nothing waits for what is found here. */
static void fetch_buffer(const struct mem_table *mem, const struct uw_sge *s,
			 struct uw_prefetch_list *t)
{
	const struct mem_region *r = mem_find_index(mem, s->lkey);

	__builtin_prefetch((const void *)(uintptr_t)s->addr);
	uw_prefetch_list_set(t, UW_PREFETCH_ENTRY,
			     uw_prefetch_lines(mem_entry(mem, s->lkey), sizeof(void *)));
	if (r)
		uw_prefetch_list_set(t, UW_PREFETCH_REGION,
				     uw_prefetch_lines(r, offsetof(struct mem_region, parent)));
}

void engine_warm_recv_buffer(struct uw_qp *qp)
{
	struct rqe *e = qp->srq ? NULL : rq_first(qp->qp.rq);

	if (e && e->num_sge)
		fetch_buffer(qp->qp.mem, rqe_sge(e), qp->at_llp);
}

void engine_warm_send_buffer(struct uw_qp *qp)
{
	struct sqe *e;

	if (!sq_ready(&qp->qp.sq))
		return;
	e = sq_at(&qp->qp.sq, qp->qp.sq.tx);
	if (e->num_sge && !(e->flags & UW_SEND_INLINE))
		fetch_buffer(qp->qp.mem, sqe_sge(e), &qp->prefetch_list);
}
