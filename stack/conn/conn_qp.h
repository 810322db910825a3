/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP as its connection sees it. The verbs room's QP has this in front; what a message and a post
 * touch comes first, in two cache lines.
 */
#ifndef UWARP_CONN_CONN_QP_H
#define UWARP_CONN_CONN_QP_H

#include "base/spin.h"
#include "base/prefetch.h"
#include "conn/rnr.h"
#include "conn/stack.h"
#include "qp/qp.h"

struct rc;
struct rc_self;
struct conn_qp;

/* What CM-less RC wants to hear of a QP whose peer was named (rc/rc.h). Under the stack lock. */
struct conn_peer_ops {
	/* Something was posted, and there is no stream. */
	void (*posted)(struct conn_qp *q);
	/* The stream ended without an error of the QP's. */
	void (*lost)(struct conn_qp *q);
	/* Something came while the QP is in RTR. */
	void (*heard)(struct conn_qp *q);
	/* Until when a Send that finds no receive now may wait; UINT64_MAX: for ever. */
	uint64_t (*rnr_until)(const struct conn_qp *q, uint64_t now_us);
};

struct conn_qp {
	struct ring_entry ring;	      /* its home is the QP's stack */
	struct conn *conn;	      /* its stream; under the stack lock */
	struct rnr_srq *srq;	      /* NULL: the QP has its own RQ; constant */
	struct spin sq_lock, rq_lock; /* the verbs room's: among threads that post */
	_Atomic bool rnr;	      /* no SRQ: a Send waits for a receive (rnr.h) */
	bool rnr_woken;		      /* SRQ: it was taken off the list to go on */
	struct uw_prefetch_list
		*llp_prefetch_list; /* prefetch.h: the transport's copy; NULL: it has none */
	struct uw_prefetch_list prefetch_list; /* what its messages touch */
	struct qp qp;
	/* under the stack lock */
	struct conn *claimed_by;  /* a connection that is to be its stream, once it is up */
	struct conn_qp *rnr_next; /* rnr_srq.first */
	void *stream;		  /* one block: the stream's read queues */
	uint8_t *scratch;	  /* MPA_FPDU_MAX octets: FPDUs without their markers */
	/* CM-less RC: its peer was named. NULL: it was not */
	const struct conn_peer_ops *peer_ops;
	struct rc *rc;	      /* its peer is another QP */
	struct rc_self *self; /* its peer is itself */
	struct uw_path path;  /* CM-less RC: retry counts and timers */
};

static_assert(offsetof(struct conn_qp, prefetch_list) == UW_LINE,
	      "a post finds its way by two lines");

static inline struct conn_qp *conn_qp_of(struct qp *qp)
{
	return (struct conn_qp *)((uint8_t *)qp - offsetof(struct conn_qp, qp));
}
/* Any thread: the QP's stack at this moment. */
static inline struct stack *conn_qp_stack(const struct conn_qp *q)
{
	return stack_of(atomic_load_explicit(&q->ring.home, memory_order_relaxed));
}

/* ---- conn_qp.c ---------------------------------------------------------------------------- */

/* Under all locks: a QP without a stream becomes another stack's. */
void conn_qp_move(struct conn_qp *q, struct stack *to);
/* All below under the stack lock. The QP cannot go on, or its connection ended: everything posted
 * is flushed, the peer gets a Terminate if there is one to send, the program its events. */
void conn_qp_down(struct conn_qp *q, uw_status why);
/* The peer or TCP ended the stream. CM-less, the QP outlives it. */
void conn_qp_lost(struct conn_qp *q, uw_status why);
/* CM-less: the peer's request cannot be carried out, which is no fault of the QP's: its stream ends
 * with a Terminate. */
void conn_qp_refuse(struct conn_qp *q, uw_status why);
/* It is about to be destroyed: no connection that is under way will be its stream. */
void conn_qp_forget(struct conn_qp *q);

/* Receives were posted: a Send that waits for one goes on. */
void conn_qp_rnr_wake(struct conn_qp *q);
/* The time that c's Send may wait for a receive may be over. */
void conn_qp_rnr_timer(struct conn *c, uint64_t now_us);

/* ---- transmit.c --------------------------------------------------------------------------- */

/* A post ring's call: requests were posted, or receives that a Send waits for. */
void conn_qp_posted(struct ring_entry *r);

/* Send what can be sent now. */
void conn_qp_transmit(struct conn_qp *q);

#endif
