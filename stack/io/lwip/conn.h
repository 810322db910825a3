/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP connection's own record; private to this folder. */
#ifndef UWARP_LWIP_CONN_H
#define UWARP_LWIP_CONN_H

#include "io/rx_queue.h"
#include "io/lwip/edge.h"

#define CONN_HEAD 34 /* octets in front of a TCP header */

struct llp_listener {
	struct tcp_pcb *pcb;
	struct edge_link *el;
	void *ctx;
};

enum conn_end { CONN_ON, CONN_CLOSE, CONN_ABORT, CONN_DETACHED };

/* In the order in which a segment touches it; what few need is behind. */
struct llp_conn {
	struct tcp_pcb *pcb;
	void *ctx;
	struct flow_key flow;
	uint32_t hash; /* flow.c: of its key */
	bool in_table;
	bool active;	   /* active_list.c: its pcb is on lwIP's list of active ones */
	bool in_keepalive; /* active_list.c: it is on edge.keepalive */
	bool in_callback;  /* lwIP is on the stack: closing waits until the callback returns */

	struct uw_prefetch_list prefetch_list; /* what its segments touch */

	struct edge_link *el;
	struct llp_conn *before;   /* in front of it in lwIP's list, perhaps */
	struct llp_conn *next_ack; /* edge.acks */
	uint8_t end;		   /* enum conn_end */
	bool ack_due, prompt, paused, connecting;
	bool is_recent;	     /* active_list.c: is in edge.recent */
	bool fast;	     /* tx_fast.c: may go to the link without lwIP, behind head */
	uint32_t sent_end;   /* see sent */
	uint32_t queued_seq; /* of queued */
	size_t window_debt;  /* of what is held: the peer's window does not know yet that there is
				room */
	struct tcp_seg *queued; /* tx_queue.c: the last segment that was queued, ... */
	struct tcp_seg *sent;	/* ... the last that was sent, NULL: not known, and where it ends */
	struct rx_queue rx_queue;
	unsigned pinned;	   /* rx_pressure.c: frames of a link, here and in pcb->ooseq */
	bool ooseq_kept;	   /* rx_pressure.c: there was something in pcb->ooseq */
	bool rx_shut;		   /* rx_pressure.c: the peer was told that the window is 0 */
	struct io_frame *building; /* edge_tx_begin without its commit */
	struct tcp_seg *seg;	   /* for it */
	uint64_t probe_us;	   /* the peer's window is closed: when to ask; 0 not yet */
	uint8_t head[CONN_HEAD];

	uint64_t probe_wait_us;
	uint64_t override_us; /* its window is below a segment: when to send one all the same */
	struct llp_conn *next, **link; /* edge.conns or edge.detached */
	struct llp_conn *keepalive_next,
		*keepalive_prev;	      /* edge.keepalive, if it is asked when silent */
	uint64_t silent_us;		      /* since */
	struct llp_listener *listener;	      /* syn_backlog.c: not accepted yet */
	struct llp_conn *syn_next, *syn_prev; /* its group's */
	uint8_t syn_group;
	uint64_t syn_us;			/* since */
	bool keeps;				/* rx_pressure.c: is on edge.keepers */
	struct llp_conn *keep_next, *keep_prev; /* edge.keepers */
	size_t ooseq_copied;			/* octets of copies in pcb->ooseq */
	uint64_t challenge_us;			/* rx_check.c: since when, ... */
	uint8_t challenges;			/* ... so many challenge ACKs were sent */
	uint64_t serial;			/* of its SYN: llp_config.serial */
};

/* After a callback: carry out what the user asked meanwhile; the value to return to lwIP. */
err_t conn_callback_end(struct llp_conn *c);

/* A record for a connection; its pcb's callbacks are ours from now on; no more. */
struct llp_conn *conn_new(struct edge_link *el, void *ctx);
void conn_attach(struct llp_conn *c, struct tcp_pcb *pcb);
/* The connection of a pcb, NULL before it has one. One that its user has closed keeps its record
 * until lwIP frees it: nobody is to be told anything (CONN_DETACHED), but its segments are still
 * found. */
struct llp_conn *conn_of(const struct tcp_pcb *pcb);
/* lwIP has freed the pcb of one that had parted. */
void conn_release(struct llp_conn *c);

/* flow.c: from now on segments find it; its pcb is on lwIP's list of active ones. */
void conn_flow_add(struct llp_conn *c);
/* In front of all others on that list, unless it is on another. */
void conn_flow_front(struct llp_conn *c);
/* Off that list. */
void conn_flow_unlist(struct llp_conn *c);
void conn_flow_remove(struct llp_conn *c);
struct llp_conn *conn_flow_find(const struct flow_key *k);
/* The record of a pcb is c, NULL: nobody's. */
void conn_flow_own(struct tcp_pcb *pcb, struct llp_conn *c);
struct llp_conn *conn_flow_lookup(const struct flow_key *k);
/* before, NULL: nothing of ours, is in front of pcb in lwIP's list. */
void conn_flow_before(const struct tcp_pcb *pcb, struct llp_conn *before);

/* active_list.c: lwIP's timers see it again. Before anything that lwIP may have to repeat or to
 * end. */
void conn_activate(struct llp_conn *c);
void conn_active_list_forget(struct llp_conn *c);
/* Something came for it. */
void conn_rx_seen(struct llp_conn *c);

/* rx_pressure.c: what it keeps may be more or less than it was. Not from within the user's rx(). */
void conn_rx_kept(struct llp_conn *c);
/* It keeps nothing any more, and its pcb is not its own. */
void conn_rx_forget(struct llp_conn *c);
/* Is there memory for more octets? Then its window may open again. */
bool conn_rx_room(const struct llp_conn *c);
void conn_rx_open(struct llp_conn *c);
/* A segment came for it. True: there is no memory for its octets; the peer was told. */
bool conn_rx_refuse(struct llp_conn *c, uint32_t seq, size_t octets);

/* rx_check.c: may a segment be its peer's? False: it is to be dropped; it was answered. */
bool conn_rx_check(struct llp_conn *c, const struct edge_segment *s);

/* syn_backlog.c: it is accepted, or will not be. */
struct llp_listener *conn_established(struct llp_conn *c);

/* tx_queue.c: the segment that was begun is p */
void conn_queue(struct llp_conn *c, struct pbuf *p);
/* tx_queue.c: give back what edge_tx_begin took */
void conn_drop_building(struct llp_conn *c);

/* tx_fast.c: it is up. */
void conn_fast_start(struct llp_conn *c);
/* Something in the pcb that its headers have is another now. */
void conn_fast_headers(struct llp_conn *c);
/* Send what is unsent, as far as nothing about it is special; last: the end of pcb->unacked. */
void conn_tx_fast(struct llp_conn *c, struct tcp_seg *last);
/* An acknowledgement; false: lwIP has to do it. */
bool conn_ack_fast(struct llp_conn *c);

/* recv.c */
/* One frame's octets more; lwIP's window knows. */
void conn_rx(struct llp_conn *c, struct io_frame *f);
err_t conn_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err);
void conn_forget_ack(struct llp_conn *c);
/* Tell lwIP that everything was taken, as it wants before an orderly close. */
void conn_window_open_all(struct llp_conn *c);

#endif
