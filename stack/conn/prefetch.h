/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prefetching for many QPs: the memory that a message uses is then in no near cache when the
 * message comes. Each QP keeps the addresses of that memory (base/prefetch.h), and a post or a
 * segment prefetches all of it. Under the stack lock, except prefetch_post. The functions do
 * nothing with few QPs, or over a transport that does not use prefetching.
 */
#ifndef UWARP_CONN_PREFETCH_H
#define UWARP_CONN_PREFETCH_H

#include "conn/conn_qp.h"

/* The QP got a stream: fill in the list. */
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

/* Any thread, no lock: a request is about to be posted. */
static inline void prefetch_post(const struct conn_qp *q)
{
	__builtin_prefetch(&q->prefetch_list);
	if (atomic_load_explicit(&conn_qp_stack(q)->domain->n_qps, memory_order_relaxed) >=
	    UW_PREFETCH_FROM)
		prefetch_own(q);
}
/* The next slots of SQ and RQ have changed: update the list. */
static inline void prefetch_next(struct conn_qp *q)
{
	if (prefetch_is_on(q))
		prefetch_next_slots(q);
}
/* Octets of a message came: prefetch the receive buffer. */
static inline void prefetch_receive(struct conn_qp *q)
{
	if (prefetch_is_on(q))
		prefetch_receive_buffer(q);
}
/* A request will be sent: prefetch its buffer. */
static inline void prefetch_send(struct conn_qp *q)
{
	if (prefetch_is_on(q))
		prefetch_send_buffer(q);
}

#endif
