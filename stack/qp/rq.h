/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive queue, of one QP or shared (SRQ). The program adds receives (one thread at a time), the
 * stack takes them under its lock. The caller owns the memory.
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
	uint32_t limit; /* SRQ: raise an event when fewer receives are left; 0: disarmed */
	uint32_t pd;	/* SRQ: the protection domain of its receives, whatever QP takes them */
	void (*limit_reached)(void *ctx); /* NULL: no event */
	void *ctx;
	/* These fields share a cache line: with thousands of QPs every further line is a cache
	 * miss. */
	_Atomic uint32_t tail; /* written by the program (release), read by rq_first (acquire) */
	/* Number of slots freed so far (release; pairs with the acquire of rq_post). As with
	 * hardware, polling the completion of a receive frees its slot, so a CQ as deep as its
	 * receive queues cannot overflow. */
	_Atomic uint32_t freed;
	_Atomic uint32_t head; /* written by the stack; receives before head are taken */
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

/* Program: add a receive. UW_E_NOMEM: full; UW_E_INVAL: too many SGEs. */
uw_status rq_post(struct rq *rq, const struct uw_recv_wr *wr) UW_CHECK;

/* Stack: the oldest receive that is not taken; NULL: there is none. */
struct rqe *rq_first(const struct rq *rq);
/* Stack: take the receive of rq_first. Its slot stays in use until rq_free. */
void rq_drop(struct rq *rq);
/* Any thread: free n slots, whose completions were polled or will never come. */
static inline void rq_free(struct rq *rq, uint32_t n)
{
	atomic_fetch_add_explicit(&rq->freed, n, memory_order_release);
}

static inline uint32_t rq_count(const struct rq *rq)
{
	return atomic_load_explicit(&rq->tail, memory_order_acquire) -
	       atomic_load_explicit(&rq->head, memory_order_relaxed);
}
/* Program: number of receives whose slots are in use: posted, or taken while their completion was
 * not polled yet. */
static inline uint32_t rq_outstanding(const struct rq *rq)
{
	return atomic_load_explicit(&rq->tail, memory_order_relaxed) -
	       atomic_load_explicit(&rq->freed, memory_order_acquire);
}

#endif
