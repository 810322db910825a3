/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection: TCP comes up, the MPA start-up frames are exchanged (RFC 5044 §7.1), a QP's
 * stream runs over it, and it ends. Everything here runs under the lock of the connection's stack.
 */
#ifndef UWARP_CONN_CONN_H
#define UWARP_CONN_CONN_H

#include "cm/cm.h"
#include "conn/conn_qp.h"

struct listener;

/* conn.c has the table of which state may follow which. */
enum conn_state {
	CONN_NEW,
	CONN_CONNECTING, /* TCP's SYN is on its way */
	CONN_RETRY,	 /* TCP was refused; the next round of timers connects again */
	CONN_STARTING,	 /* TCP is up; start-up frames */
	CONN_REQUESTED,	 /* responder: the Request is here, the program has to answer */
	CONN_STREAMING,	 /* FPDUs */
	CONN_CLOSING,	 /* our FIN is sent, or queued behind what is to be sent */
	CONN_ENDED,	 /* there is no TCP connection any more */
	CONN_STATES
};

enum conn_role { CONN_INITIATOR, CONN_RESPONDER };

/* Has the peer said anything on the stream? An initiator asks (timers.c has the reason). */
enum peer_silence {
	PEER_HEARD,
	PEER_SILENT,
	PEER_SILENT_WE_SENT, /* we sent something since the last look */
};

/* Who is told of a connection's events, and gets Requests. */
struct conn_user {
	/* An event of the connection. param is set for ESTABLISHED and REJECTED. */
	void (*event)(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev);
	/* The connection is about to be freed. NULL: no need to know. */
	void (*freed)(struct conn *c);
};

/* Initiator: what the Request is to say. Kept until TCP is up. */
struct conn_request {
	struct cm_param want; /* its private data is pd */
	uint8_t pd[UW_PRIVATE_DATA_MAX];
};

struct conn {
	/* The first cache line has all that a message touches. */
	struct stack *stack;
	struct conn_qp *qp; /* its stream is the QP's; NULL before and after */
	struct llp_conn *llp;
	struct conn *tx_next;	 /* stack.tx_first */
	struct conn *acked_next; /* stack.acked_list */
	uint8_t *unsent;	 /* the rest of a start-up frame; it goes before the stream */
	uint16_t unsent_len;
	uint8_t state;	 /* enum conn_state; written by conn_enter alone */
	uint8_t silence; /* enum peer_silence */
	bool in_tx_list, in_acked_list;
	bool cm_less; /* without rdma_cm: nobody but us destroys it */

	_Alignas(64) struct conn *next, **link; /* stack.conns */
	const struct conn_user *user;		/* NULL: nobody is told */
	void *ctx;				/* the user's */
	struct listener *listener; /* responder: it came in on; NULL: the listener is gone */
	struct io_link *l;
	struct cm_conn *cm;	      /* while starting */
	struct conn_request *request; /* initiator, until TCP is up */
	struct conn_qp *claimed; /* initiator, while starting: the QP that is to have the stream */
	struct uw_ip local, remote;
	uint16_t lport, rport;	 /* network order */
	uint8_t tos;		 /* as llp_ops.set_tos */
	uint8_t role;		 /* enum conn_role */
	uint8_t rnr;		 /* enum rnr_state */
	uint8_t nudges;		 /* how often a silent peer was sent something */
	bool rnr_for_ever;	 /* a Send may wait for a receive without a limit */
	unsigned borrowed_port;	 /* ports_borrow(); 0: none */
	uint64_t rnr_until_us;	 /* RNR_WAITS: until then */
	uint64_t deadline_us;	 /* connecting, closing: give up then; 0: never */
	uint64_t nudge_us;	 /* PEER_SILENT: send something then; 0: never */
	uint64_t gate_us;	 /* responder: look then whether the peer has spoken; 0: never */
	uint64_t retry_until_us; /* connecting: a refusal before this is tried again */
	struct deadline timer;	 /* no later than the first of all these times */
};

/* A refused connect is tried again for so long: programs tell each other a port just before they
 * listen on it (perftest, qperf). */
#define CONN_PATIENCE_US 500000u

/* ---- conn.c: record, states, timer ---------------------------------------------------------- */

/* In CONN_NEW. NULL: no memory. */
struct conn *conn_create(struct stack *s, enum conn_role role);
/* The one place where the state changes. A change that the table does not allow is counted
 * (conn_bad_state) and ends in CONN_ENDED. */
void conn_enter(struct conn *c, enum conn_state to);
bool conn_may_enter(enum conn_state from, enum conn_state to);
/* The TCP connection ends in order (FIN); the state is CONN_ENDED. The QP is not touched. */
void conn_end(struct conn *c);
/* Tell the user. */
void conn_event(struct conn *c, enum uw_cm_event_type type, uw_status why);
/* After setting any of the connection's times, or a state in which another of them counts. */
void conn_arm(struct conn *c);
uint64_t conn_gate_period_us(const struct conn *c);
/* It has something to send: in the next round. */
void conn_send_soon(struct conn *c);
/* The peer acknowledged requests of its QP: completions at the end of the round. */
void conn_complete_soon(struct conn *c);
void conn_leave_lists(struct conn *c);
void conn_forget_unsent(struct conn *c);
void conn_forget_startup(struct conn *c);

/* ---- send.c ------------------------------------------------------------------------------- */

/* Send a start-up frame, or keep it until there is room. */
uw_status conn_send_frame(struct conn *c, const uint8_t *frame, size_t n) UW_CHECK;
/* Send the rest of it. False: there is still some left, and nothing may overtake it. */
bool conn_send_unsent(struct conn *c);
/* Fill TCP with the QP's segments as long as there is room and it is this connection's turn. */
void conn_send_stream(struct conn *c);

/* ---- drop.c ------------------------------------------------------------------------------- */

/* End it now; its QP, if it has one, goes to error. No event any more. */
void conn_drop(struct conn *c);
/* The same, and free it. */
void conn_free(struct conn *c);

/* ---- startup.c: RFC 5044 §7.1 ------------------------------------------------------------- */

/* Connect from c->local, c->lport to c->remote, c->rport over c->l, with what c->request says, for
 * `q`, which must have no connection and be claimed by none. */
uw_status conn_connect(struct conn *c, struct conn_qp *q, uint64_t patience_us) UW_CHECK;
/* TCP alone: the first time, or once more after CONN_RETRY. */
uw_status conn_call(struct conn *c) UW_CHECK;
/* Answer a Request. UW_E_STATE: there is none to answer, UW_E_LLP_CLOSED: the peer gave up. */
uw_status conn_accept(struct conn *c, struct conn_qp *q, const struct cm_param *p) UW_CHECK;
uw_status conn_reject(struct conn *c, const struct cm_param *p) UW_CHECK;
/* Start-up failed: the initiator's user hears of it. A responder whose Request never came is freed:
 * c may be gone afterwards. */
void conn_startup_failed(struct conn *c, uw_status why);
/* Octets from TCP while starting; returns how many are used up. */
size_t conn_startup_rx(struct conn *c, struct uw_rope in);
/* llp_user.connected and accepted. */
void conn_connected(void *ctx);
void *conn_accepted(void *listener_ctx, struct llp_conn *llp);
/* May a QP get a stream? UW_E_STATE: it has one, is to have one, or is in error. */
uw_status conn_check_qp(const struct conn_qp *q) UW_CHECK;

/* ---- timers.c ----------------------------------------------------------------------------- */

/* Every connection of the stack whose time has come. */
void conn_timers(struct stack *s, uint64_t now_us);

/* ---- messages.c: what is said on stderr ---------------------------------------------------- */

/* Why a connection could not be made. The same line is not repeated. */
void conn_log_failed(const struct uw_ip *to, uint16_t port, uw_status why);
/* Neither side may send first (RFC 5044 §7.1.2). Said once. */
void conn_log_both_wait(const struct conn *c);
/* An address as text. */
#define CONN_ADDR_TEXT 46u
void conn_print_addr(const struct uw_ip *a, char out[CONN_ADDR_TEXT]);
/* What may help against `why`. */
const char *conn_advice(uw_status why);

static inline const struct uw_config *conn_cfg(const struct conn *c)
{
	return c->stack->domain->cfg;
}
static inline const struct mpa_policy *conn_policy(const struct conn *c)
{
	return c->cm_less ? &c->stack->domain->rc_policy : &c->stack->domain->policy;
}

#endif
