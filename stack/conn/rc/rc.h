/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM-less RC: QPs whose peer the program names, without rdma_cm (doc/adr/0006). One side connects
 * again and again until the other side answers; the other side waits for that Request. cm/rc.h says
 * which side does what. Everything is under the lock of the first stack, on which every such QP is.
 */
#ifndef UWARP_CONN_RC_RC_H
#define UWARP_CONN_RC_RC_H

#include "cm/rc.h"
#include "conn/conn.h"
#include "roce/mad.h"
#include "roce/packet.h"

/* The table in rc.c says which state may follow which. */
enum rc_state {
	RC_WAITING,   /* waits until the next try, or for the peer to connect */
	RC_RESOLVING, /* the resolver thread resolves the address, without the lock */
	RC_CALLING,   /* our connection to the peer is starting */
	RC_UP,
	RC_LOST, /* the stream was up and has ended */
	RC_STATES
};

/* A QP whose peer was named. */
struct rc {
	struct conn_qp *q;
	/* list: rc_stack.list; link NULL: not on the list, since the stream is up */
	struct rc *next, **link;
	enum rc_state state;
	bool heard;   /* the program was told that the peer has sent something */
	bool ready;   /* the retry counts are known, or the program had 20 ms to set them */
	bool claimed; /* rc_claim */
	uint8_t peer_rnr_retry;
	struct io_link *l;
	struct rc_end self, peer;
	uint16_t ird;
	uint8_t tos;
	uint64_t serial;   /* tells this struct from a later one for the same QP */
	struct conn *call; /* in RC_CALLING: the connection */
	uint16_t
		peer_port; /* the TCP port that leads to the peer; 0: RC_PORT, as far as is known */
	uint64_t ask_tid;  /* names our question for it; 0: never asked */
	uw_status last;	   /* why the last try failed */
	uint64_t ready_us; /* `ready` is set at this time at the latest */
	uint64_t since_us; /* time of the first try */
	uint64_t next_us;  /* time of the next try */
	uint64_t deadline_us; /* when posted requests fail; 0: none is posted */
};

/* A received Request that waits until its QP is ready. */
struct rc_call {
	struct rc_call *next, **link; /* list: rc_stack.calls */
	struct conn *c;
	struct rc_hello hello;
	uint64_t until_us;
};

/* ---- rc.c: a QP's side ---------------------------------------------------------------------- */

/* q has no peer any more: reset, in error, or about to be destroyed. q may never have had a peer.
 */
void rc_forget(struct conn_qp *q);
/* The program has taken the QP to RTS. q may have no peer. */
void rc_ready(struct conn_qp *q);
/* Run the due timers of all CM-less QPs and of all Requests that wait. */
void rc_timers(struct stack *s, uint64_t now_us);
/* When the next of these timers is due; UINT64_MAX: none. */
uint64_t rc_next_timer_us(const struct stack *s, uint64_t now_us);
bool rc_may_enter(enum rc_state from, enum rc_state to);

/* The part of uw_qp_name_peer after the start of the engine; under all locks. */
uw_status rc_name_peer(struct conn_qp *q, const struct uw_peer *p) UW_CHECK;

/* ---- rc_connect.c: the side that connects ---------------------------------------------------- */

/* Try to connect now. */
void rc_try(struct rc *rc);
/* The resolver has finished with st. */
void rc_resolved(struct rc *rc, uw_status st);
void rc_drop_call(struct rc *rc);

/* ---- rc_ask.c: where processes share an address, which TCP port leads to a QP ----------------
 */

/* Ask for the port of rc's peer, who was not found where we called. */
void rc_ask(struct rc *rc);
/* This process answers questions for the QP's port, until rc_unclaim (io_ops.claim_packets). */
void rc_claim(struct rc *rc);
void rc_unclaim(struct rc *rc);
/* Such a question came, or such an answer. */
void rc_asked(struct stack *s, struct io_link *l, const struct roce_packet *p, const struct mad *m);
void rc_answered(struct stack *s, const struct roce_packet *p, const struct mad *m);
/* The TCP port at which this process is called on the link; 0: it does not listen there. */
unsigned rc_port_of(const struct stack *s, const struct io_link *l);

/* ---- rc_accept.c: the side that is called ---------------------------------------------------- */

/* Listen on a link; called with the first CM-less QP. */
uw_status rc_listen(struct stack *s, struct io_link *l) UW_CHECK;
/* The QP with this number has changed its state: examine the Requests that wait for the QP again.
 */
void rc_judge_calls(struct stack *s, uint32_t qpn);
void rc_calls_timer(struct stack *s, uint64_t now_us);
/* Forget all waiting Requests when the process ends; the stack ends their connections. */
void rc_accept_stop(struct stack *s);

/* ---- rc_self.c: a QP that names itself ------------------------------------------------------- */

/* Take the QP from INIT to RTR. reads: most Reads and atomics in flight, inbound and outbound. */
uw_status rc_self_start(struct conn_qp *q, uint16_t reads) UW_CHECK;
/* Undo rc_self_start, if q was started so. */
void rc_self_forget(struct conn_qp *q);

/* ---- rc_resolver.c: finding the way to a peer may block, so a thread does it ------------------
 */

/* For links with io_ops.resolve. Under the lock, except the last two. */
uw_status rc_resolver_start(struct stack *s) UW_CHECK;
/* Wake the resolver: a struct rc is in RC_RESOLVING. */
void rc_resolver_kick(struct stack *s);
/* Stop the thread and wait for its end. No lock held. Timers may still kick it: in vain. */
void rc_resolver_stop(struct stack *s);
/* After rc_resolver_stop, when no other thread uses s. */
void rc_resolver_free(struct stack *s);

/* ---- shared by the files of this folder ------------------------------------------------------ */

void rc_enter(struct rc *rc, enum rc_state to);
/* Make the timers of CM-less RC run at this time. */
static inline void rc_due_at(struct stack *s, uint64_t us)
{
	if (us < s->rc.due_us)
		s->rc.due_us = us;
}
void rc_take_off_list(struct rc *rc);
/* The QP has no stream and will get none: requests that are posted fail; if none is, an event tells
 * the program. */
void rc_give_up_and_tell(struct conn_qp *q);

static inline struct stack *rc_stack(const struct rc *rc)
{
	return conn_qp_stack(rc->q);
}

/* rc_log.c: count and print that no peer answered in time; that the peer refused. Of one host the
 * same line comes once a minute. */
void rc_log_no_peer(const struct rc *rc);
void rc_log_refused(const struct rc *rc, enum rc_refusal why);

#endif
