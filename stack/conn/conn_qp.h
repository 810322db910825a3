/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of a QP that its connection uses; the verbs room's QP begins with this struct. The first
 * two cache lines have the fields that a message and a post use.
 */
#ifndef UWARP_CONN_CONN_QP_H
#define UWARP_CONN_CONN_QP_H

#include "base/spin.h"
#include "base/prefetch.h"
#include "conn/persist.h"
#include "conn/rnr.h"
#include "conn/stack.h"
#include "qp/qp.h"

struct rc;
struct rc_self;
struct dgram;
struct conn_qp;

/* Callbacks into CM-less RC for a QP with a named peer (rc/rc.h). Under the stack lock. */
struct conn_peer_ops {
	/* A request was posted, and the QP has no stream. */
	void (*posted)(struct conn_qp *q);
	/* The stream ended, and the QP is not in error. */
	void (*lost)(struct conn_qp *q);
	/* A message came while the QP is in RTR. */
	void (*heard)(struct conn_qp *q);
	/* Until when a Send that finds no receive now may wait; UINT64_MAX: without a limit. */
	uint64_t (*rnr_until)(const struct conn_qp *q, uint64_t now_us);
};

struct conn_qp {
	struct ring_entry ring; /* ring.home is the stack of the QP */
	struct conn *conn;	/* the connection that carries its stream; under the stack lock */
	struct rnr_srq *srq;	/* NULL: the QP has its own RQ; constant */
	struct spin sq_lock, rq_lock; /* used by the verbs room, among threads that post */
	_Atomic bool rnr;	      /* no SRQ: a Send waits for a receive (rnr.h) */
	bool rnr_woken; /* SRQ: the QP was taken off the list to go on; under rnr_srq.takes */
	struct uw_prefetch_list
		*llp_prefetch_list; /* prefetch.h: the transport's copy of the list; NULL: none */
	struct uw_prefetch_list prefetch_list; /* memory that its messages use */
	struct qp qp;
	/* the fields below are under the stack lock */
	struct conn *claimed_by;  /* a connection that is starting and will carry its stream */
	struct conn_qp *rnr_next; /* next in rnr_srq.first */
	void *stream;		  /* one block of memory: the read queues of the stream */
	uint8_t *scratch;	  /* MPA_FPDU_MAX octets, to remove markers from FPDUs */
	/* CM-less RC, once the peer was named, UC and UD, and where the peer left; else NULL */
	const struct conn_peer_ops *peer_ops;
	struct rc *rc;	      /* the named peer is another QP */
	struct rc_self *self; /* the named peer is the QP itself */
	struct dgram *dgram;  /* UC or UD; NULL: RC (dgram/dgram.h) */
	struct uw_path path;  /* CM-less RC: retry counts and timers */
	struct persist_job flush;
};

static_assert(offsetof(struct conn_qp, prefetch_list) == UW_LINE,
	      "a post finds its way by two lines");

/* Any thread: the QP's stack at this moment. */
static inline struct stack *conn_qp_stack(const struct conn_qp *q)
{
	return stack_of(atomic_load_explicit(&q->ring.home, memory_order_relaxed));
}

/* ---- conn_qp.c ---------------------------------------------------------------------------- */

/* Under all locks: move a QP without a stream to another stack. */
void conn_qp_move(struct conn_qp *q, struct stack *to);
/* All below under the stack lock. The QP cannot go on, or its connection ended: flush all requests,
 * send a Terminate if one is due, and report events to the program. */
void conn_qp_down(struct conn_qp *q, uw_status why);
/* The peer or TCP ended the stream. A CM-less QP stays usable; one of rdma_cm's with the identity
 * of RoCE or InfiniBand stays in RTS if the peer disconnected and nothing is under way, and fails
 * with the next request (doc/adr/0007). */
void conn_qp_lost(struct conn_qp *q, uw_status why);
/* The QP is reset: it has no peer that left. */
void conn_qp_forget_peer(struct conn_qp *q);
/* q is about to be destroyed: no starting connection may give its stream to q. */
void conn_qp_forget(struct conn_qp *q);

/* Receives were posted: continue a Send that waits for a receive. */
void conn_qp_rnr_wake(struct conn_qp *q);
/* Check whether a Send on c has waited for a receive for too long. */
void conn_qp_rnr_timer(struct conn *c, uint64_t now_us);

/* ---- transmit.c --------------------------------------------------------------------------- */

/* ring_entry.fn of a QP: requests were posted, or receives that a Send waits for. */
void conn_qp_posted(struct ring_entry *r);

/* Send what can be sent now. */
void conn_qp_transmit(struct conn_qp *q);
/* Tell the program if SQD has been reached (qp_drained). */
void conn_qp_tell_drained(struct conn_qp *q);

#endif
