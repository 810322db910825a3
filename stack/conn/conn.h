/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection, from TCP connect over the MPA start-up frames (RFC 5044 §7.1) and the stream of a
 * QP to the end. Everything here runs under the lock of the connection's stack.
 */
#ifndef UWARP_CONN_CONN_H
#define UWARP_CONN_CONN_H

#include "cm/cm.h"
#include "conn/conn_qp.h"
#include "conn/history.h"

struct listener;

/* The table in conn.c says which state may follow which. */
enum conn_state {
	CONN_NEW,
	CONN_CONNECTING, /* TCP is connecting */
	CONN_RETRY,	 /* TCP was refused; the next round of timers connects again */
	CONN_STARTING,	 /* TCP is up; MPA start-up frames are exchanged */
	/* responder: the MPA Request has come; the program must accept or reject */
	CONN_REQUESTED,
	CONN_STREAMING, /* FPDUs are exchanged */
	CONN_CLOSING,	/* our FIN was sent, or waits behind queued octets */
	CONN_ENDED,	/* there is no TCP connection any more */
	CONN_STATES
};

enum conn_role { CONN_INITIATOR, CONN_RESPONDER };

/* Has the peer sent an FPDU yet? If not, an initiator sends something now and then (timers.c says
 * why). */
enum peer_silence {
	PEER_HEARD,
	PEER_SILENT,
	PEER_SILENT_WE_SENT, /* and we have sent something since the timer last checked */
};

/* Callbacks for the events of a connection: an endpoint or CM-less RC. */
struct conn_user {
	/* An event. ev->param is set for ESTABLISHED and REJECTED. */
	void (*event)(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev);
	/* The connection is not the user's any more, and may be freed at any time. May be NULL. */
	void (*dropped)(struct conn *c);
	/* Initiator: does the accepting Reply, in c->cm->peer, come from whom was called? False:
	 * the connection fails with REFUSED, and its QP stays as it was. NULL: it does. */
	bool (*meant)(const struct conn *c);
};

/* Initiator: the content of the MPA Request. Kept until TCP is up. */
struct conn_request {
	struct cm_param want; /* its private_data points to pd */
	uint8_t pd[UW_PRIVATE_DATA_MAX];
};

struct conn {
	/* The first cache line has all fields that a message uses. */
	struct stack *stack;
	struct conn_qp *qp; /* the QP whose stream this is; NULL before and after */
	struct llp_conn *llp;
	struct conn *tx_next;	 /* next in stack.tx_first */
	struct conn *acked_next; /* next in stack.acked_list */
	uint8_t *unsent;	 /* the unsent rest of a start-up frame; goes before any FPDU */
	uint16_t unsent_len;
	uint8_t state;	 /* enum conn_state; written by conn_enter alone */
	uint8_t silence; /* enum peer_silence */
	bool in_tx_list, in_acked_list;
	bool cm_less; /* CM-less RC: the connection has no endpoint, and this room frees it */

	_Alignas(64) struct conn *next, **link; /* list: stack.conns */
	const struct conn_user *user;		/* NULL: no callbacks */
	void *ctx;				/* argument of the callbacks */
	/* responder: the listener that accepted the connection; NULL: the listener is gone */
	struct listener *listener;
	struct io_link *l;
	struct cm_conn *cm; /* state of the start-up frames; NULL before and after */
	/* initiator: the content of the Request, until TCP is up; then NULL */
	struct conn_request *request;
	struct conn_qp *claimed; /* initiator, while starting: the QP that will get the stream */
	struct uw_ip local, remote;
	uint16_t lport, rport; /* network order */
	uint8_t tos;	       /* DS field, as in llp_ops.set_tos */
	uint8_t role;	       /* enum conn_role */
	uint8_t rnr;	       /* enum rnr_state */
	uint8_t nudges;	       /* how often something was sent to a silent peer */
	bool is_silent;	       /* silent.h: in that group */
	bool of_host;	       /* silent.h: counts among its host's connections, of that group */
	uint8_t silent_group;
	struct conn *silent_next, *silent_prev;
	/* initiator: list conn_domain.order_first, under its lock; order_link NULL: not in it */
	struct conn *order_next, **order_link;
	/* TCP is up, and the Request of this one goes first (order.h); may be gone */
	const struct conn *waits_for;
	bool rnr_for_ever;	/* a Send may wait for a receive without a limit */
	unsigned borrowed_port; /* local port from ports_borrow(); 0: none */
	uint64_t rnr_until_us;	/* RNR_WAITS: when the wait ends */
	/* connecting, disconnecting, closing, with an end_event: when to give up; 0: never */
	uint64_t deadline_us;
	uint32_t came_in;  /* disconnecting: octets that came, modulo 2^32 */
	uint32_t progress; /* disconnecting: disconnect.c */
	uint64_t nudge_us; /* PEER_SILENT: when to send something; 0: never */
	/* responder that may not send before the first FPDU of the peer: when to check; 0: never */
	uint64_t gate_us;
	/* connecting: before this time a refused connect is tried again */
	uint64_t retry_until_us;
	struct deadline timer; /* set to the earliest of these times or earlier */
	uint64_t since_us;     /* when the connection was made */
	struct history history;
};

/* How long a refused connect is tried again: some programs (perftest, qperf) tell the peer a port
 * just before they listen on it. */
#define CONN_PATIENCE_US 500000u
/* The initiator waits for the MPA Reply for so many times cfg.connect_ms. */
#define CONN_REPLY_TIMES 3u

/* ---- conn.c: record, states, timer ---------------------------------------------------------- */

/* A new connection in CONN_NEW. NULL: no memory. */
struct conn *conn_create(struct stack *s, enum conn_role role);
/* Change the state; no other function does. A change that the table does not allow is counted
 * (conn_bad_state) and ends in CONN_ENDED. */
void conn_enter(struct conn *c, enum conn_state to);
bool conn_may_enter(enum conn_state from, enum conn_state to);
const char *conn_state_name(unsigned state);
/* Add to the connection's history. Not for what happens to every message. */
void conn_note(struct conn *c, unsigned kind, uint32_t arg);
/* Close the TCP connection in order (FIN); the state becomes CONN_ENDED. The QP is not touched. */
void conn_end(struct conn *c);
/* Call user->event. */
void conn_event(struct conn *c, enum uw_cm_event_type type, uw_status why);
/* Set the timer. Call this after any change of the state or of the times in struct conn. */
void conn_arm(struct conn *c);
/* How long a responder waits between two looks whether it may send first (RFC 5044 §7.1.2). */
uint64_t conn_gate_period_us(const struct conn *c);
/* Queue c to send in the next round. */
void conn_send_soon(struct conn *c);
/* Queue c, whose requests the peer has acknowledged, to complete them at the end of the round. */
void conn_complete_soon(struct conn *c);
/* Undo conn_send_soon() and conn_complete_soon(). */
void conn_leave_lists(struct conn *c);
/* Free c->unsent. */
void conn_forget_unsent(struct conn *c);
/* Free what only the start-up needs. */
void conn_forget_startup(struct conn *c);

/* ---- send.c ------------------------------------------------------------------------------- */

/* Send a start-up frame, or keep it until there is room. */
uw_status conn_send_frame(struct conn *c, const uint8_t *frame, size_t n) UW_CHECK;
/* Send the rest of a start-up frame. False: some octets are still left, and nothing else may be
 * sent. */
bool conn_send_unsent(struct conn *c);
/* Hand segments of the QP to TCP, as long as there is room and it is this connection's turn. */
void conn_send_stream(struct conn *c);

/* ---- disconnect.c --------------------------------------------------------------------------- */

/* Close the connection, which is streaming, once everything posted is sent and answered. If a
 * second passes in which the peer takes nothing and sends nothing, the connection is reset, and
 * requests that are not done are flushed. DISCONNECTED follows either way. */
uw_status conn_disconnect(struct conn *c) UW_CHECK;
/* Disconnecting, and deadline_us has come. */
void conn_disconnect_timer(struct conn *c);

/* ---- drop.c ------------------------------------------------------------------------------- */

/* End the connection at once; its QP, if any, goes to error. No event follows. */
void conn_drop(struct conn *c);
/* conn_drop, and free c. */
void conn_free(struct conn *c);

/* ---- startup.c: RFC 5044 §7.1 ------------------------------------------------------------- */

/* Connect c->local, c->lport to c->remote, c->rport over c->l with the Request c->request, for `q`,
 * which must have no connection and be claimed by none. Refused connects are tried again for
 * patience_us. */
uw_status conn_connect(struct conn *c, struct conn_qp *q, uint64_t patience_us) UW_CHECK;
/* Start the TCP connect: the first time, or again after CONN_RETRY. */
uw_status conn_call(struct conn *c) UW_CHECK;
/* Answer a Request. UW_E_STATE: no Request is pending. UW_E_LLP_CLOSED: the peer gave up. */
uw_status conn_accept(struct conn *c, struct conn_qp *q, const struct cm_param *p) UW_CHECK;
uw_status conn_reject(struct conn *c, const struct cm_param *p) UW_CHECK;
/* Start-up failed: tell the user of an initiator. A responder that had no Request yet is freed, so
 * c may be invalid afterwards. */
void conn_startup_failed(struct conn *c, uw_status why);
/* Handle octets from TCP during start-up; returns how many are used up. */
size_t conn_startup_rx(struct conn *c, struct uw_rope in);
/* These are llp_user.connected and llp_user.accepted. */
void conn_connected(void *ctx);
/* Send the Request: TCP is up, and its turn has come. */
void conn_ask(struct conn *c);
/* ring_entry.fn of stack.turns: Requests of this stack whose turn has come (order.h). */
void conn_turns(struct ring_entry *r);
void *conn_accepted(void *listener_ctx, struct llp_conn *llp);
/* May q get a stream? UW_E_STATE: q has one, is claimed by a connection, or is in error. */
uw_status conn_check_qp(const struct conn_qp *q) UW_CHECK;

/* ---- timers.c ----------------------------------------------------------------------------- */

/* Handle every connection of the stack whose timer is due. */
void conn_timers(struct stack *s, uint64_t now_us);

/* ---- messages.c: what is said on stderr ---------------------------------------------------- */

/* Print why a connection could not be made. The same line comes once a minute. */
void conn_log_failed(struct stack *s, const struct uw_ip *to, uint16_t port, uw_status why);
/* The same for a start-up that timed out (UW_E_MPA_TIMEOUT). acknowledged: the peer's TCP has
 * acknowledged our start-up frame. */
void conn_log_unanswered(const struct conn *c, bool acknowledged);
/* A connection to c's peer came up: forget what was printed of it, so that the next failure is
 * printed at once. */
void conn_log_worked(const struct conn *c);
/* Print, once, that a program asked for a local address that no link has. */
void conn_log_no_address(const struct stack *s, const struct uw_ip *asked);
/* Another program has the port, in network order. */
void conn_log_port_taken(const struct uw_ip *addr, uint16_t port);
/* Print, once, that neither side may send first (RFC 5044 §7.1.2). */
void conn_log_both_wait(const struct conn *c);
/* conn_print_addr writes an address as text into CONN_ADDR_TEXT octets. */
#define CONN_ADDR_TEXT 46u
void conn_print_addr(const struct uw_ip *a, char out[CONN_ADDR_TEXT]);
/* Advice for the user about the error `why` of a connection of this stack. */
const char *conn_advice(const struct stack *s, uw_status why);

static inline const struct uw_config *conn_cfg(const struct conn *c)
{
	return c->stack->domain->cfg;
}
static inline const struct mpa_policy *conn_policy(const struct conn *c)
{
	const struct conn_domain *d = c->stack->domain;
	const struct conn_policies *p = c->l->flags & IO_INTACT ? &d->intact : &d->policies;

	return c->cm_less ? &p->rc : &p->cm;
}

#endif
