/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/prefetch.h"

#include "conn/conn.h"

#define SLOT_MOST 128u /* octets of a slot; what is behind are SGEs that few have */

void prefetch_start(struct conn_qp *q)
{
	struct uw_touches *t = &q->touches;
	struct conn *c = q->conn;

	uw_touches_set(t, UW_TOUCH_QP, uw_warm_of(q, offsetof(struct conn_qp, qp.rd.tx.src_stag)));
	uw_touches_set(t, UW_TOUCH_OTHER, (uw_warm)q->qp.event_ctx & ~(uw_warm)(UW_LINE - 1));
	q->llp_touches = c->stack->llp->touches ? c->stack->llp->touches(c->llp, t) : NULL;
	uw_touches_set(t, UW_TOUCH_OTHER, uw_warm_of(c, offsetof(struct conn, next)));
	prefetch_next(q);
}

static uw_warm slot(const void *p, uint32_t size)
{
	return uw_warm_of(p, size < SLOT_MOST ? size : SLOT_MOST);
}

void prefetch_next_slots(struct conn_qp *q)
{
	const struct sq *sq = &q->qp.sq;
	const struct rq *rq = q->qp.rq;
	struct uw_touches *there = q->llp_touches;
	uint32_t next = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	uw_warm send = slot(sq_at(sq, next), sq->slot_size);

	uw_touches_set(there, UW_TOUCH_SEND, send);
	uw_touches_set(&q->touches, UW_TOUCH_SEND, send);
	if (q->srq) /* other QPs go on taking */
		return;
	next = atomic_load_explicit(&rq->head, memory_order_relaxed);
	uw_touches_set(there, UW_TOUCH_RECV, slot(rq_at(rq, next), rq->slot_size));
}

void prefetch_own(const struct conn_qp *q)
{
	static __thread const struct conn_qp *last;
	const struct uw_touches *t = &q->touches;

	if (last == q)
		return;
	last = q;
	uw_touches_fetch_one(t, UW_TOUCH_QP);
	uw_touches_fetch_one(t, UW_TOUCH_SEND);
	uw_touches_fetch_one(t, UW_TOUCH_PCB);
	uw_touches_fetch_one(t, UW_TOUCH_CONN);
	uw_touches_fetch_one(t, UW_TOUCH_OTHER);
	uw_touches_fetch_one(t, UW_TOUCH_ENTRY);
	uw_touches_fetch_one(t, UW_TOUCH_REGION);
}

/* Where the octets of an SGE are, and who allows it. Nothing waits for what is found here. */
static void fetch_buffer(const struct mem_table *mem, const struct uw_sge *s, struct uw_touches *t)
{
	const struct mem_region *r = mem_find_index(mem, s->lkey);

	__builtin_prefetch((const void *)(uintptr_t)s->addr);
	uw_touches_set(t, UW_TOUCH_ENTRY, uw_warm_of(mem_entry(mem, s->lkey), sizeof(void *)));
	if (r)
		uw_touches_set(t, UW_TOUCH_REGION,
			       uw_warm_of(r, offsetof(struct mem_region, parent)));
}

void prefetch_receive_buffer(struct conn_qp *q)
{
	struct rqe *e = q->srq ? NULL : rq_first(q->qp.rq);

	if (e && e->num_sge)
		fetch_buffer(q->qp.mem, rqe_sge(e), q->llp_touches);
}

void prefetch_send_buffer(struct conn_qp *q)
{
	struct sqe *e;

	if (!sq_ready(&q->qp.sq))
		return;
	e = sq_at(&q->qp.sq, q->qp.sq.tx);
	if (e->num_sge && !(e->flags & UW_SEND_INLINE))
		fetch_buffer(q->qp.mem, sqe_sge(e), &q->touches);
}
