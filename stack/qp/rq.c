/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/rq.h"

#include <string.h>

uint32_t rq_slot_size(uint32_t max_sge)
{
	return (uint32_t)((sizeof(struct rqe) + max_sge * sizeof(struct uw_sge) + 7) & ~(size_t)7);
}

uw_status rq_post(struct rq *rq, const struct uw_recv_wr *wr)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	struct rqe *e = rq_at(rq, tail);

	/* pairs with the release in rq_free, which comes behind that of head in rq_drop */
	if (rq_outstanding(rq) >= rq->depth)
		return UW_E_NOMEM;
	if (wr->num_sge > rq->max_sge)
		return UW_E_INVAL;
	*e = (struct rqe){ .wr_id = wr->wr_id, .num_sge = wr->num_sge };
	for (uint32_t i = 0; i < wr->num_sge; i++) {
		rqe_sge(e)[i] = wr->sg_list[i];
		e->length += wr->sg_list[i].length;
	}
	atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
	return UW_OK;
}

struct rqe *rq_first(const struct rq *rq)
{
	return rq_count(rq) ? rq_at(rq, atomic_load_explicit(&rq->head, memory_order_relaxed))
			    : NULL;
}

void rq_drop(struct rq *rq)
{
	atomic_store_explicit(&rq->head, atomic_load_explicit(&rq->head, memory_order_relaxed) + 1,
			      memory_order_release);
}
