/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue: one producer (the stack, under its lock), one consumer at a time (the
 * program; the engine serialises several). Memory is the caller's.
 */
#ifndef UWARP_QP_CQ_H
#define UWARP_QP_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "uwarp/types.h"

struct sq;
struct rq;

struct cqe {
	struct uw_wc wc;
	/* What is free once this is polled: the slots of sq up to `upto`, one of rq's. Or NULL. */
	struct sq *sq;
	struct rq *rq;
	uint32_t upto;
	uint64_t stamp; /* when it came */
};

enum cq_armed { CQ_UNARMED, CQ_SOLICITED, CQ_ANY };

struct cq {
	struct cqe *ring; /* mask + 1 entries */
	uint32_t mask;
	uint32_t depth; /* what the program asked: <= mask + 1 */
	/* producer's; its release pairs with cq_take's acquire */
	_Alignas(64) _Atomic uint32_t tail;
	/* consumer's; its release pairs with cq_push's acquire */
	_Alignas(64) _Atomic uint32_t head;
	_Atomic unsigned armed;
	_Atomic bool overflown;
	void (*notify)(void *ctx); /* NULL: never armed */
	void (*error)(void *ctx);
	void *ctx;
	uint64_t (*now)(void *arg); /* for the stamps; NULL: nobody wants them */
	void *now_arg;
	bool ignore_overrun; /* what does not fit is dropped, and that is all */
	/* Around each push, so that several stacks may push; NULL: only one does. */
	void (*guard)(void *ctx, bool on);
};

/* Producer: one at a time unless there is a guard. False: the queue is full; it is in error from
 * then on and error() was called. */
bool cq_push(struct cq *cq, const struct uw_wc *wc, bool solicited);

/* The same in steps, so that it is written once and where it stays. The place of the next
 * completion, whose wc is to be filled in, all of it; NULL as false above. Then one of the ends:
 * for a request of sq (the program has its slots back, up to `upto`, when it polls this), or for a
 * receive that was taken from rq. */
struct cqe *cq_begin(struct cq *cq);
void cq_end_sent(struct cq *cq, struct cqe *e, struct sq *sq, uint32_t upto);
void cq_end_received(struct cq *cq, struct cqe *e, struct rq *rq, bool solicited);

/* Consumer: up to n completions; returns how many. stamps NULL, or room for n. */
unsigned cq_take(struct cq *cq, unsigned n, struct uw_wc *wc, uint64_t *stamps);

/* Consumer. A push that cq_take did not see after this call notifies (Dekker: both sides store,
 * fence, load). */
void cq_arm(struct cq *cq, bool solicited_only);

static inline uint32_t cq_count(const struct cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire) -
	       atomic_load_explicit(&cq->head, memory_order_relaxed);
}

/* Producer and consumer both excluded: drop the completions of one QP, as if they were polled. */
void cq_forget(struct cq *cq, uint32_t qp_num);

/* Producer and consumer both excluded: move to a ring of mask + 1 entries that holds them all. */
void cq_move(struct cq *cq, struct cqe *ring, uint32_t mask, uint32_t depth);

#endif
