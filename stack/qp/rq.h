/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive queue, of one QP or shared (SRQ): the program puts receives in (one thread at a time),
 * the stack takes them out under its lock. Memory is the caller's.
 */
#ifndef UWARP_QP_RQ_H
#define UWARP_QP_RQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "uwarp/types.h"

struct rqe {
	uint64_t wr_id;
	uint64_t length;
	uint32_t num_sge;
	uint32_t pad;
	/* struct uw_sge[] follows */
};

struct rq {
	uint8_t *slots;
	uint32_t slot_size;
	uint32_t mask, depth, max_sge;
	uint32_t limit;			  /* SRQ: event when fewer are left; 0 unarmed */
	void (*limit_reached)(void *ctx); /* NULL: nobody wants to know */
	void *ctx;
	/* All in one cache line: with thousands of QPs each line more is one more to fetch. */
	_Atomic uint32_t tail; /* program's; its release pairs with rq_first's acquire */
	/* How many were taken and are the program's again: as with hardware, a receive has its
	 * place until its completion is polled (release; pairs with rq_post's acquire). So who
	 * bounds a CQ by what the receive queues take does so. */
	_Atomic uint32_t freed;
	_Atomic uint32_t head; /* stack's; receives before it are taken */
};

uint32_t rq_slot_size(uint32_t max_sge);

static inline struct rqe *rq_at(const struct rq *rq, uint32_t i)
{
	return (struct rqe *)(rq->slots + (size_t)(i & rq->mask) * rq->slot_size);
}
static inline struct uw_sge *rqe_sge(struct rqe *e)
{
	return (struct uw_sge *)(e + 1);
}

/* Program. UW_E_NOMEM full, UW_E_INVAL too many SGEs. */
uw_status rq_post(struct rq *rq, const struct uw_recv_wr *wr) UW_CHECK;

/* Stack: the oldest receive, NULL when there is none. It is the first until rq_drop, and takes up
 * its place until rq_free. */
struct rqe *rq_first(const struct rq *rq);
void rq_drop(struct rq *rq);
/* The completions of n that were dropped have been polled, or there will be none. Any thread. */
static inline void rq_free(struct rq *rq, uint32_t n)
{
	atomic_fetch_add_explicit(&rq->freed, n, memory_order_release);
}

static inline uint32_t rq_count(const struct rq *rq)
{
	return atomic_load_explicit(&rq->tail, memory_order_acquire) -
	       atomic_load_explicit(&rq->head, memory_order_relaxed);
}
/* Posted, and its completion not polled yet. Program. */
static inline uint32_t rq_outstanding(const struct rq *rq)
{
	return atomic_load_explicit(&rq->tail, memory_order_relaxed) -
	       atomic_load_explicit(&rq->freed, memory_order_acquire);
}

#endif
