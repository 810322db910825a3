/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP connection's own record; private to this folder. */
#ifndef UWARP_LWIP_CONN_H
#define UWARP_LWIP_CONN_H

#include "io/held.h"
#include "io/lwip/edge.h"

#define CONN_HEAD 34 /* octets in front of a TCP header */

/* Network order; all of it there is. */
struct flow_key {
	struct uw_ip local, remote;
	uint16_t lport, rport;
};

struct llp_listener {
	struct tcp_pcb *pcb;
	struct edge_link *el;
	void *ctx;
};

enum conn_end { CONN_ON, CONN_CLOSE, CONN_ABORT, CONN_PARTED };

/* In the order in which a segment touches it; what few need is behind. */
struct llp_conn {
	struct tcp_pcb *pcb;
	void *ctx;
	struct flow_key flow;
	uint32_t hash; /* flow.c: of its key */
	bool in_table;
	bool listed;	  /* idle.c: its pcb is on lwIP's list of active ones */
	bool watched;	  /* idle.c: it is on edge.idle */
	bool in_callback; /* lwIP is on the stack: closing waits until the callback returns */

	struct uw_touches touches; /* what its segments touch */

	struct edge_link *el;
	struct llp_conn *before;   /* in front of it in lwIP's list, perhaps */
	struct llp_conn *next_ack; /* edge.acks */
	uint8_t end;		   /* enum conn_end */
	bool ack_due, prompt, paused, connecting;
	bool late;	   /* idle.c: is in edge.late */
	bool direct;	   /* direct.c: may go to the link without lwIP, behind head */
	uint32_t sent_end; /* see sent */
	size_t owed; /* of what is held: the peer's window does not know yet that there is room */
	struct tcp_seg *queued; /* send.c: the last segment that was queued, ... */
	struct tcp_seg *tail;	/* of lwIP's unsent queue, between a commit and the next flush */
	struct tcp_seg *sent;	/* ... the last that was sent, NULL: not known, and where it ends */
	struct io_held held;
	struct io_frame *building; /* edge_tx_begin without its commit */
	struct tcp_seg *seg;	   /* for it */
	uint64_t probe_us;	   /* the peer's window is closed: when to ask; 0 not yet */
	uint8_t head[CONN_HEAD];

	uint64_t probe_wait_us;
	struct llp_conn *next, **link;		/* edge.conns or edge.parted */
	struct llp_conn *idle_next, *idle_prev; /* edge.idle, if it is asked when silent */
	uint64_t idle_us;			/* since */
	struct llp_listener *half;		/* half.c: not accepted yet */
};

/* After a callback: carry out what the user asked meanwhile; the value to return to lwIP. */
err_t conn_settle(struct llp_conn *c);

/* A record for a connection; its pcb's callbacks are ours from now on; no more. */
struct llp_conn *conn_new(struct edge_link *el, void *ctx);
void conn_attach(struct llp_conn *c, struct tcp_pcb *pcb);
/* The connection of a pcb, NULL before it has one. One that its user has closed keeps its record
 * until lwIP frees it: nobody is to be told anything (CONN_PARTED), but its segments are still
 * found. */
struct llp_conn *conn_of(const struct tcp_pcb *pcb);
/* lwIP has freed the pcb of one that had parted. */
void conn_over(struct llp_conn *c);

/* flow.c: from now on segments find it; its pcb is on lwIP's list of active ones. */
void conn_flow_add(struct llp_conn *c);
/* Off that list. */
void conn_flow_unlist(struct llp_conn *c);
void conn_flow_remove(struct llp_conn *c);
struct llp_conn *conn_flow_find(const struct flow_key *k);
/* The record of a pcb is c, NULL: nobody's. */
void conn_flow_own(struct tcp_pcb *pcb, struct llp_conn *c);
struct llp_conn *conn_flow_lookup(const struct flow_key *k);
/* before, NULL: nothing of ours, is in front of pcb in lwIP's list. */
void conn_flow_before(const struct tcp_pcb *pcb, struct llp_conn *before);

/* idle.c: lwIP's timers see it again. Before anything that lwIP may have to repeat or to end. */
void conn_wake(struct llp_conn *c);
void conn_forget_idle(struct llp_conn *c);
/* Something came for it. */
void conn_came(struct llp_conn *c);

/* half.c: it is accepted, or will not be. */
struct llp_listener *conn_whole(struct llp_conn *c);

/* send.c: give back what edge_tx_begin took */
void conn_drop_building(struct llp_conn *c);

/* direct.c: it is up. */
void conn_go_direct(struct llp_conn *c);
/* Something in the pcb that its headers have is another now. */
void conn_remake_head(struct llp_conn *c);
/* Send what is unsent, as far as nothing about it is special; last: the end of pcb->unacked. */
void conn_send_direct(struct llp_conn *c, struct tcp_seg *last);
/* An acknowledgement; false: lwIP has to do it. */
bool conn_ack_direct(struct llp_conn *c);

/* recv.c */
/* One frame's octets more; lwIP's window knows. */
void conn_take(struct llp_conn *c, struct io_frame *f);
err_t conn_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err);
void conn_forget_ack(struct llp_conn *c);
/* Tell lwIP that everything was taken, as it wants before an orderly close. */
void conn_settle_window(struct llp_conn *c);

#endif
