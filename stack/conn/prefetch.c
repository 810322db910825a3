/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/prefetch.h"

#include "conn/conn.h"

#define SLOT_MOST 128u /* octets of a slot; what is behind are SGEs that few have */

void prefetch_start(struct conn_qp *q)
{
	struct uw_prefetch_list *t = &q->prefetch_list;
	struct conn *c = q->conn;

	uw_prefetch_list_set(t, UW_PREFETCH_QP,
			     uw_prefetch_lines(q, offsetof(struct conn_qp, qp.rd.tx.src_stag)));
	uw_prefetch_list_set(t, UW_PREFETCH_OTHER,
			     (uw_lines)q->qp.event_ctx & ~(uw_lines)(UW_LINE - 1));
	q->llp_prefetch_list =
		c->stack->llp->prefetch_list ? c->stack->llp->prefetch_list(c->llp, t) : NULL;
	uw_prefetch_list_set(t, UW_PREFETCH_OTHER,
			     uw_prefetch_lines(c, offsetof(struct conn, next)));
	prefetch_next(q);
}

static uw_lines slot(const void *p, uint32_t size)
{
	return uw_prefetch_lines(p, size < SLOT_MOST ? size : SLOT_MOST);
}

void prefetch_next_slots(struct conn_qp *q)
{
	const struct sq *sq = &q->qp.sq;
	const struct rq *rq = q->qp.rq;
	struct uw_prefetch_list *there = q->llp_prefetch_list;
	uint32_t next = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	uw_lines send = slot(sq_at(sq, next), sq->slot_size);

	uw_prefetch_list_set(there, UW_PREFETCH_SEND, send);
	uw_prefetch_list_set(&q->prefetch_list, UW_PREFETCH_SEND, send);
	if (q->srq) /* other QPs go on taking */
		return;
	next = atomic_load_explicit(&rq->head, memory_order_relaxed);
	uw_prefetch_list_set(there, UW_PREFETCH_RECV, slot(rq_at(rq, next), rq->slot_size));
}

void prefetch_own(const struct conn_qp *q)
{
	static __thread const struct conn_qp *last;
	const struct uw_prefetch_list *t = &q->prefetch_list;

	if (last == q)
		return;
	last = q;
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

void prefetch_receive_buffer(struct conn_qp *q)
{
	struct rqe *e = q->srq ? NULL : rq_first(q->qp.rq);

	if (e && e->num_sge)
		fetch_buffer(q->qp.mem, rqe_sge(e), q->llp_prefetch_list);
}

void prefetch_send_buffer(struct conn_qp *q)
{
	struct sqe *e;

	if (!sq_ready(&q->qp.sq))
		return;
	e = sq_at(&q->qp.sq, q->qp.sq.tx);
	if (e->num_sge && !(e->flags & UW_SEND_INLINE))
		fetch_buffer(q->qp.mem, sqe_sge(e), &q->prefetch_list);
}
