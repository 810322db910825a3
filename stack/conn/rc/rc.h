/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM-less RC: QPs whose peer the program names itself, without rdma_cm (doc/adr/0006). One side
 * connects, again and again until somebody answers; the other takes the Request that it waits for.
 * cm/rc.h says which side does what. All under the lock of the first stack, on which every such QP
 * is.
 */
#ifndef UWARP_CONN_RC_RC_H
#define UWARP_CONN_RC_RC_H

#include "cm/rc.h"
#include "conn/conn.h"

/* rc.c has the table of which state may follow which. */
enum rc_state {
	RC_WAITING,   /* the next try, or the peer's, is due */
	RC_RESOLVING, /* the resolver looks for the way, without the lock */
	RC_CALLING,   /* a connection is under way */
	RC_UP,
	RC_LOST, /* it was up */
	RC_STATES
};

/* A QP whose peer was named. */
struct rc {
	struct conn_qp *q;
	struct rc *next, **link; /* rc_stack.list; link NULL: it is up, and not on the list */
	enum rc_state state;
	bool heard; /* the program was told that the peer has spoken */
	bool ready; /* its retry counts are known, or it has had the time to set them */
	uint8_t peer_rnr_retry;
	struct io_link *l;
	struct rc_end self, peer;
	uint16_t ird;
	uint8_t tos;
	uint64_t serial;      /* tells this from a later use of the QP number */
	struct conn *call;    /* RC_CALLING */
	uw_status last;	      /* why the last try failed */
	uint64_t ready_us;    /* `ready` is set then at the latest */
	uint64_t since_us;    /* the first try */
	uint64_t next_us;     /* the next try */
	uint64_t deadline_us; /* what is posted fails then; 0: nothing is */
};

/* A Request that waits because its QP is not ready. */
struct rc_call {
	struct rc_call *next, **link; /* rc_stack.calls */
	struct conn *c;
	struct rc_hello hello;
	uint64_t until_us;
};

/* ---- rc.c: a QP's side ---------------------------------------------------------------------- */

/* It has no peer any more: reset, in error, about to be destroyed. It may never have had one. */
void rc_forget(struct conn_qp *q);
/* The program has taken the QP to RTS. It may have no peer. */
void rc_ready(struct conn_qp *q);
/* The timers of every such QP and of every Request that waits. */
void rc_timers(struct stack *s, uint64_t now_us);
/* When they have something to do; UINT64_MAX: never. */
uint64_t rc_next_timer_us(const struct stack *s, uint64_t now_us);
bool rc_may_enter(enum rc_state from, enum rc_state to);

/* What uw_qp_name_peer does once the engine has started; under all locks. */
uw_status rc_name_peer(struct conn_qp *q, const struct uw_peer *p) UW_CHECK;

/* ---- rc_connect.c: the side that connects ---------------------------------------------------- */

/* The next try. */
void rc_try(struct rc *rc);
/* The resolver knows the way, or that there is none. */
void rc_resolved(struct rc *rc, uw_status st);
void rc_drop_call(struct rc *rc);

/* ---- rc_accept.c: the side that is called ---------------------------------------------------- */

/* Listen on a link, from the first QP on. */
uw_status rc_listen(struct stack *s, struct io_link *l) UW_CHECK;
/* The state of the QP of that number has changed: its Requests are judged again. */
void rc_judge_calls(struct stack *s, uint32_t qpn);
void rc_calls_timer(struct stack *s, uint64_t now_us);
/* Forget the Requests, when the process ends; their connections are the stack's. */
void rc_accept_stop(struct stack *s);

/* ---- rc_resolver.c: finding the way to a peer may block, so a thread does it ------------------
 */

/* For links with io_ops.resolve. Under the lock but for the last. */
uw_status rc_resolver_start(struct stack *s) UW_CHECK;
/* There is a struct rc in RC_RESOLVING. */
void rc_resolver_kick(struct stack *s);
/* Its thread has ended afterwards. No lock held. */
void rc_resolver_stop(struct stack *s);

/* ---- shared by the files of this folder ------------------------------------------------------ */

void rc_enter(struct rc *rc, enum rc_state to);
/* The timers have something to do at that time. */
void rc_due_at(struct stack *s, uint64_t us);
void rc_add_to_list(struct rc *rc);
void rc_take_off_list(struct rc *rc);
/* The QP has no stream and will have none. event: say so even if nothing is posted. */
void rc_give_up(struct conn_qp *q, bool event);

static inline struct stack *rc_stack(const struct rc *rc)
{
	return conn_qp_stack(rc->q);
}

/* rc_log.c: nobody was there in time; the peer says no. */
void rc_log_no_peer(const struct rc *rc);
void rc_log_refused(const struct rc *rc, enum rc_refusal why);

#endif
