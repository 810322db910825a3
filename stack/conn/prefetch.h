/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With many QPs, what a message touches is in no near cache when its turn comes. Each QP keeps the
 * addresses of those lines (base/prefetch.h), and a post or a segment has them fetched at once.
 * Under the stack lock, but for prefetch_post. Nothing happens with few QPs, or over a transport
 * that has no use for it.
 */
#ifndef UWARP_CONN_PREFETCH_H
#define UWARP_CONN_PREFETCH_H

#include "conn/conn_qp.h"

/* The QP has got its stream. */
void prefetch_start(struct conn_qp *q);

void prefetch_own(const struct conn_qp *q);
void prefetch_next_slots(struct conn_qp *q);
void prefetch_receive_buffer(struct conn_qp *q);
void prefetch_send_buffer(struct conn_qp *q);

static inline bool prefetch_is_on(const struct conn_qp *q)
{
	return q->llp_prefetch_list &&
	       atomic_load_explicit(&conn_qp_stack(q)->domain->n_qps, memory_order_relaxed) >=
		       UW_PREFETCH_FROM;
}

/* Any thread, no lock: something is about to be posted. */
static inline void prefetch_post(const struct conn_qp *q)
{
	__builtin_prefetch(&q->prefetch_list);
	if (atomic_load_explicit(&conn_qp_stack(q)->domain->n_qps, memory_order_relaxed) >=
	    UW_PREFETCH_FROM)
		prefetch_own(q);
}
/* The queues' next slots are others now. */
static inline void prefetch_next(struct conn_qp *q)
{
	if (prefetch_is_on(q))
		prefetch_next_slots(q);
}
/* Octets came: where will they go? */
static inline void prefetch_receive(struct conn_qp *q)
{
	if (prefetch_is_on(q))
		prefetch_receive_buffer(q);
}
/* Something is to be sent: where is it? */
static inline void prefetch_send(struct conn_qp *q)
{
	if (prefetch_is_on(q))
		prefetch_send_buffer(q);
}

#endif
