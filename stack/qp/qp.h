/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair: its state, its two queues and, while connected, its stream. qp_rx takes octets from
 * TCP, qp_tx makes octets for TCP; completions go to the CQs. The states are those of verbs, since
 * RFC 5040 has none. RFC 5044 §7.1 decides which side may send first.
 */
#ifndef UWARP_QP_QP_H
#define UWARP_QP_QP_H

#include "mpa/fpdu.h"
#include "mpa/handshake.h"
#include "qp/cq.h"
#include "qp/rq.h"
#include "qp/sq.h"
#include "rdmap/rdmap.h"

/* The fields are in the order in which a message uses them, so that a message uses few cache lines;
 * fields for rare events come last. */
struct qp {
	uint32_t num;
	uint32_t pd;
	_Atomic enum uw_qp_state state; /* written by the stack, read by posting threads */
	bool on;			/* the QP has a stream */
	bool gated;	   /* RFC 5044 §7.1.2: the responder is silent until the first FPDU came */
	bool respond_next; /* Sends and Read Responses take turns, message by message */
	bool sending_sq;   /* the message being sent (rd.tx) is the request sq.tx */
	bool sq_failed;	   /* a request completed in error */
	bool rnr_wait;	   /* a Send waits for a receive if there is none (doc/adr/0005) */
	/* a Send waits: call qp_rx again when there is a receive; or a FLUSH (persist) */
	bool rnr;
	bool fin_wanted;  /* close the stream once all posted requests are sent */
	bool cm_less;	  /* CM-less RC: the program sets the states, as with InfiniBand */
	bool peer_silent; /* qp_detach came before the peer's first FPDU */
	/* state SQD: all started requests are done, and qp_drained has returned true */
	bool drained;
	/* a request completes when the peer's TCP has acknowledged it: confirm.c */
	bool confirmed;
	bool shared_rq;
	/* index of the oldest request without an ACK; sq.head or later; moves only if confirmed, or
	 * with sq.head */
	uint32_t unacked;
	struct cq *scq, *rcq;
	struct rq *rq; /* own_rq, or the SRQ's */
	/* Number of octets of the stream, modulo 2^32, handed to TCP (out) and acknowledged by the
	 * peer's TCP (acked). */
	uint32_t out, acked;
	_Alignas(64) struct sq sq;
	uint64_t taken_wr_id;
	/* unused (depth 0) with an SRQ */
	_Alignas(64) struct rq own_rq;
	/* the stream, while `on` */
	_Alignas(64) struct mpa_rx mrx;
	struct mpa_tx mtx;
	_Alignas(64) struct rdmap_stream rd;

	/* SRQ: a copy of the SGEs of the current receive; room for rq->max_sge */
	struct uw_sge *taken;
	struct mem_table *mem;
	uw_status cause;	     /* why the QP went to error; UW_OK: the stream was closed */
	struct rdmap_term peer_term; /* the Terminate that the peer sent */
	void (*event)(void *ctx, enum uw_event ev);
	void *event_ctx;
	struct uw_stats *stats;
	/* Lock (on) and unlock an SRQ from which several stacks take receives; NULL: only one stack
	 * does. */
	void (*guard)(struct rq *srq, bool on);
	/* A FLUSH of the peer's, as in struct rdmap_ulp; NULL: mem->persist is called at once. */
	uw_status (*persist)(struct qp *qp, void *va, uint64_t len);
};

struct qp_setup {
	uint32_t num, pd;
	struct cq *scq, *rcq;
	struct rq *srq; /* NULL: the QP has its own RQ */
	bool rnr_wait;	/* see struct qp */
	struct mem_table *mem;
	struct uw_stats *stats;
	void (*guard)(struct rq *srq, bool on);			     /* see struct qp */
	uw_status (*persist)(struct qp *qp, void *va, uint64_t len); /* see struct qp */
};

/* The caller has set up sq and own_rq (or the SRQ and `taken`) before. */
void qp_init(struct qp *qp, const struct qp_setup *s);

/* Another stack runs the QP from now on and counts in `stats`. The QP must have no stream. */
void qp_move(struct qp *qp, struct uw_stats *stats);

/* ---- life -------------------------------------------------------------------------------- */

struct qp_stream {
	const struct mpa_agreed *agreed;
	struct rdmap_queues queues;
	uint8_t *scratch; /* MPA_FPDU_MAX octets when markers are received, else NULL */
	bool initiator;
	/* A Send or a Write completes when the peer's TCP has acknowledged its octets, so that they
	 * are in the peer's memory; else when our TCP has taken them (doc/adr/0014). */
	bool confirmed;
};
/* MPA start-up is done: the QP gets its stream, and its state becomes RTS. UW_E_STATE: the QP has a
 * stream already, or is in error. An initiator that agreed on an RTR sends it first (RFC 6581
 * §9.2). */
uw_status qp_start(struct qp *qp, const struct qp_stream *s) UW_CHECK;

/* The QP goes to error, and all queued requests are flushed. `why` UW_OK: an orderly end. If a
 * Terminate must be sent afterwards, qp_tx_prepare returns true. A QP of an SRQ raises
 * UW_EVENT_QP_LAST_WQE_REACHED, once. */
void qp_fail(struct qp *qp, uw_status why);

/* cm_less: the stream has ended without an error; the state of the QP stays. */
void qp_detach(struct qp *qp);

/* As qp_detach, and qp_tx returns a Terminate that tells the peer why. */
void qp_refuse(struct qp *qp, uw_status why);

/* Fail the oldest posted request with `why`, and flush the others. */
void qp_give_up(struct qp *qp, uw_status why);

/* Change the state to RESET, INIT, RTR, RTS, SQD or ERR, on behalf of the program. */
uw_status qp_modify(struct qp *qp, enum uw_qp_state to) UW_CHECK;

/* Has the QP reached SQD, with every started request done, and all that SQD still sends (stream of
 * rdma_cm's: everything posted)? True only once. */
bool qp_drained(struct qp *qp);

/* What was posted is gone without a completion, before the QP is reset or destroyed: a thread that
 * polls would see those that a flush makes. */
void qp_forget_posted(struct qp *qp);

/* Flush the requests that were posted since the QP went to error. */
void qp_flush(struct qp *qp);

/* ---- stream ------------------------------------------------------------------------------ */

/* Take in octets from TCP; *consumed is how many the caller drops. UW_OK also when the last FPDU is
 * incomplete, or waits (qp->rnr): the caller offers the rest again. Any other status:
 * the QP has gone to error, and qp_tx may have a Terminate to give out. */
uw_status qp_rx(struct qp *qp, struct uw_rope in, size_t *consumed) UW_CHECK;

/* Choose the next message to send, unless one is being sent: the next request, or a due Response.
 * Local requests in front of that (bind a window) are carried out. False: there is nothing to send
 * now. */
bool qp_tx_prepare(struct qp *qp);

/* How many segments of `each` octets what is left of the message that is being sent takes; 0: none
 * is, or another one waits behind it. */
size_t qp_tx_segments(const struct qp *qp, size_t each);

/* Fill one TCP segment of at most `room` octets with whole FPDUs; returns the octets used. Small
 * messages posted together share a segment. A message of several segments may begin after another
 * message in the same segment; a message that fits one segment is never split. */
size_t qp_tx(struct qp *qp, uint8_t *out, size_t room);
/* The same for several segments of `each` octets, one behind the other; room is a multiple of it.
 * Only the last may be shorter. So that they are full, a message of several segments begins after
 * another one even where little room is left. */
size_t qp_tx_many(struct qp *qp, uint8_t *out, size_t room, size_t each);

/* Begin a zero-length RDMA Write, which the peer's program does not notice. False: another message
 * is to be sent, or no message may be sent now. */
bool qp_tx_empty_write(struct qp *qp);

/* Responder: stop waiting for the first FPDU of the peer (RFC 5044 §7.1.2). */
void qp_open_gate(struct qp *qp);

/* The peer's TCP has acknowledged all octets of qp_tx except the last in_flight. True: requests may
 * be complete. Then call qp_complete_acked, but after qp_rx has got all octets of the TCP segment
 * with the ACK, since a Terminate among them may name one of the requests. */
bool qp_acked(struct qp *qp, uint32_t in_flight);
void qp_complete_acked(struct qp *qp);

/* ---- without a stream: UC and UD (roce/) --------------------------------------------------- */

/* Take the oldest receive for a message that comes. UW_MORE, UW_E_DDP_NO_BUFFER: there is none;
 * UW_E_LEN: it has not `least` octets, and stays. Of an SRQ this is decided under the guard: a QP
 * of another stack may take it at any time. */
uw_status qp_take_receive(struct qp *qp, uint64_t least, struct mem_sgl *sgl) UW_CHECK;
/* The receive taken last is complete. wc has all but wr_id and the QP number. */
void qp_received(struct qp *qp, const struct uw_wc *wc, bool solicited);
/* The request sq.tx is done: sent, or failed; the caller then calls qp_fail. */
void qp_request_sent(struct qp *qp);
void qp_request_failed(struct qp *qp, uw_status st);

/* ---- between the files of this folder ----------------------------------------------------- */

/* The current request has been handed to TCP completely; qp_reap completes the request. */
void qp_sent(struct qp *qp);
/* Add completions for all requests that are done, in the order of posting. */
void qp_reap(struct qp *qp);
/* The Send or Write that fails with the peer's Terminate, or NULL. This is the one that the
 * Terminate names, if not completed yet; else, without `confirmed`, the next one. Earlier requests
 * are done, since the peer took them. */
struct sqe *qp_blamed(struct qp *qp, const struct rdmap_term *t);

#endif
