/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue: one producer (the stack, under its lock), one consumer at a time (the
 * program; the engine serialises its threads). The caller owns the memory.
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
	/* Polling this completion frees the slots of sq before `upto`, or one slot of rq. Both may
	 * be NULL. */
	struct sq *sq;
	struct rq *rq;
	uint32_t upto;
	uint64_t stamp; /* time of the completion, by cq->now */
};

enum cq_armed { CQ_UNARMED, CQ_SOLICITED, CQ_ANY };

struct cq {
	struct cqe *ring; /* mask + 1 entries */
	uint32_t mask;
	uint32_t depth; /* completions that fit, as the program asked; <= mask + 1 */
	/* written by the producer (release), read by cq_take (acquire) */
	_Alignas(64) _Atomic uint32_t tail;
	/* written by the consumer (release), read by cq_begin (acquire); a queue's slots are freed
	 * after the places of their completions */
	_Alignas(64) _Atomic uint32_t head;
	_Atomic unsigned armed;
	_Atomic bool overflown;
	void (*notify)(void *ctx); /* NULL: the CQ is never armed */
	void (*error)(void *ctx);
	void *ctx;
	uint64_t (*now)(void *arg); /* clock for the stamps; NULL: no stamps */
	void *now_arg;
	bool ignore_overrun; /* a completion that does not fit is dropped without an error */
	/* Lock (on) and unlock around each completion if several stacks add some; NULL: only one
	 * stack does. */
	void (*guard)(void *ctx, bool on);
};

/* Producer; one at a time unless there is a guard. cq_begin returns the next free entry, whose wc
 * the caller fills in completely. NULL: the CQ is full; error() was called, and the CQ stays in
 * error. Then cq_end_sent makes the entry visible as the completion of a request of sq (polling it
 * frees the slots before `upto`), or cq_end_received as that of a receive that was taken from rq;
 * NULL: of no queue. */
struct cqe *cq_begin(struct cq *cq);
void cq_end_sent(struct cq *cq, struct cqe *e, struct sq *sq, uint32_t upto);
void cq_end_received(struct cq *cq, struct cqe *e, struct rq *rq, bool solicited);

/* Consumer: poll up to n completions; returns how many there were. stamps: NULL, or room for n. */
unsigned cq_take(struct cq *cq, unsigned n, struct uw_wc *wc, uint64_t *stamps);

/* Consumer: ask for a notification, by CQ_SOLICITED or CQ_ANY. A completion that cq_take does not
 * find after this call notifies (each side stores, fences and then loads, so one of them sees the
 * other). */
void cq_arm(struct cq *cq, enum cq_armed armed);

static inline uint32_t cq_count(const struct cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire) -
	       atomic_load_explicit(&cq->head, memory_order_relaxed);
}

/* The caller excludes producer and consumer. Drop the completions of one QP, as if they were
 * polled. */
void cq_forget(struct cq *cq, uint32_t qp_num);

/* The caller excludes producer and consumer. Move all completions to another ring of mask + 1
 * entries, which has room for all of them. */
void cq_move(struct cq *cq, struct cqe *ring, uint32_t mask, uint32_t depth);

#endif
