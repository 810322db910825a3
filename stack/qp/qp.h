/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair: its state, its two queues and, while connected, its stream. Octets from TCP go into
 * qp_rx, octets for TCP come out of qp_tx; completions go to the CQs. RFC 5040 has no QP states:
 * they are the verbs' (and RFC 5044 §7.1's rule on who may speak first).
 */
#ifndef UWARP_QP_QP_H
#define UWARP_QP_QP_H

#include "mpa/fpdu.h"
#include "mpa/handshake.h"
#include "qp/cq.h"
#include "qp/rq.h"
#include "qp/sq.h"
#include "rdmap/rdmap.h"

enum qp_why { QP_ALIVE, QP_CLOSED_BY_PEER, QP_CLOSED_BY_US, QP_FAILED };

/* In the order of the cache lines that a message touches; what few need is behind. */
struct qp {
	uint32_t num;
	uint32_t pd;
	_Atomic enum uw_qp_state state; /* written by the stack, read by posting threads */
	bool on;			/* there is a stream */
	bool gated;	   /* RFC 5044 §7.1.2: the responder is silent until the first FPDU came */
	bool respond_next; /* Sends and Read Responses take turns, message by message */
	bool sending_sq;   /* the message in rd.tx is sq.tx's */
	bool sq_failed;	   /* a request completed in error */
	bool patient;	   /* a Send without a receive waits (doc/adr/0005) */
	bool starved;	   /* ... and one does: qp_rx goes on when there is a receive */
	bool fin_wanted;   /* close once everything posted is sent */
	bool named;	   /* CM-less: the states are the program's, as with InfiniBand */
	bool unheard;	   /* it was unplugged before the peer had said anything */
	bool drained;	   /* ... SQD: all that was begun is done */
	bool confirmed;	   /* a request is done when the peer's TCP has it: confirm.c */
	bool shared_rq;
	uint32_t settled; /* the first request that may not be acknowledged; sq.head or later */
	struct cq *scq, *rcq;
	struct rq *rq; /* own_rq, or the SRQ's */
	/* Octets of the stream modulo 2^32: given to TCP, and acknowledged. */
	uint32_t out, acked;
	/* (a line) */
	_Alignas(64) struct sq sq;
	uint64_t taken_wr_id;
	/* depth 0 with an SRQ */
	_Alignas(64) struct rq own_rq;
	/* the stream */
	_Alignas(64) struct mpa_rx mrx;
	struct mpa_tx mtx;
	_Alignas(64) struct rdmap_stream rd;

	/* SRQ: the SGEs of the receive being filled, rq->max_sge of them */
	struct uw_sge *taken;
	struct mem_table *mem;
	uw_status cause;	     /* why it went to error; UW_OK: it was closed */
	struct rdmap_term peer_term; /* what the peer's Terminate said */
	void (*event)(void *ctx, enum uw_event ev);
	void *event_ctx;
	struct uw_stats *stats;
	/* Around each taking from an SRQ that several stacks take from; NULL: only one does. */
	void (*guard)(struct rq *srq, bool on);
};

struct qp_setup {
	uint32_t num, pd;
	struct cq *scq, *rcq;
	struct rq *srq; /* or NULL */
	bool patient;	/* see struct qp */
	struct mem_table *mem;
	struct uw_stats *stats;
	void (*guard)(struct rq *srq, bool on); /* see struct qp */
};

/* sq and own_rq (or srq and taken) are set up by the caller before. */
void qp_init(struct qp *qp, const struct qp_setup *s);

/* Without a stream: another stack's from now on, with its counters. */
void qp_move(struct qp *qp, struct uw_stats *stats);

/* ---- life -------------------------------------------------------------------------------- */

struct qp_stream {
	const struct mpa_agreed *agreed;
	struct rdmap_queues queues;
	uint8_t *scratch; /* MPA_FPDU_MAX octets when markers are received, else NULL */
	bool initiator;
	/* A Send or a Write completes when the peer's TCP has acknowledged it, not when ours has
	 * taken it (doc/adr/0014): then it is in the peer's memory. */
	bool confirmed;
};
/* The MPA start-up is done: the stream is ours; state becomes RTS. UW_E_STATE: it has one, or is in
 * error. An initiator that agreed on it opens with the RTR (RFC 6581 §9.2). */
uw_status qp_start(struct qp *qp, const struct qp_stream *s) UW_CHECK;

/* To error: everything queued completes flushed. `why` UW_OK: an orderly end. What may still have
 * to be sent afterwards is a Terminate: qp_tx_pending tells. */
void qp_fail(struct qp *qp, uw_status why);

/* The stream is gone without an error of its own; the state stays. With `named`. */
void qp_unplug(struct qp *qp);

/* The same, and the peer is told why: its Terminate waits in qp_tx. */
void qp_refuse(struct qp *qp, uw_status why);

/* What is posted cannot be carried out any more: the oldest request fails with `why`, the others
 * are flushed. */
void qp_give_up(struct qp *qp, uw_status why);

/* Verbs modify: RESET, INIT, RTR, RTS, SQD, ERR; see uw_qp_modify. */
uw_status qp_modify(struct qp *qp, enum uw_qp_state to) UW_CHECK;

/* SQD is reached, i.e. what was begun is done and nothing else is. True once. */
bool qp_drained(struct qp *qp);

/* Flush what was posted since the QP went to error. */
void qp_flush(struct qp *qp);

/* ---- stream ------------------------------------------------------------------------------ */

/* Take in what TCP has; returns the octets consumed. UW_OK also when an FPDU is incomplete, or
 * waits for a receive (qp->starved: offer it again when there is one). On error the QP has gone to
 * error already, its Terminate (if any) waits in qp_tx. */
uw_status qp_rx(struct qp *qp, struct uw_rope in, size_t *consumed) UW_CHECK;

/* Is there anything to send now? */
bool qp_tx_pending(struct qp *qp);

/* Fill one TCP segment of at most `room` octets with whole FPDUs; returns the octets used. Small
 * messages that were posted together share it, and one that takes several segments may begin behind
 * another; one that does not is never cut just to fill it. */
size_t qp_tx(struct qp *qp, uint8_t *out, size_t room);

/* Queue a zero-length RDMA Write, which the peer's program does not see. False: there is something
 * to send anyway, or it may not be sent now. */
bool qp_nudge(struct qp *qp);

/* Responder: do not wait any longer for the first FPDU (RFC 5044 §7.1.2). */
void qp_open_gate(struct qp *qp);

/* Of what qp_tx gave out the last in_flight octets are not acknowledged. True: requests wait for
 * qp_settle, which is called when all that came in the same segment has been taken in: a Terminate
 * in it may be about one of them. */
bool qp_acked(struct qp *qp, uint32_t in_flight);
void qp_settle(struct qp *qp);

/* ---- between the files of this folder ----------------------------------------------------- */

/* The request in transmission has been handed to TCP whole; qp_reap completes it. */
void qp_sent(struct qp *qp);
/* Completions for what is done, in the order of posting. */
void qp_reap(struct qp *qp);
/* The Send or Write that fails with the peer's Terminate, or NULL: the one that the Terminate
 * names, if its completion is not out; else, without `confirmed`, the next one behind it. Those
 * before the one that is named are done: the peer took them. */
struct sqe *qp_blamed(struct qp *qp, const struct rdmap_term *t);

#endif
