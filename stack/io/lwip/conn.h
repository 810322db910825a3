/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of a TCP connection. Private to stack/io/lwip. Everything in it belongs to the stack
 * lock.
 *
 * A record is made when a connection is asked for (edge_connect) or when a SYN opens a pcb
 * (pcb/listen.c). After the user has closed the connection, lwIP still has to send a FIN and
 * to wait; the record lives on as EDGE_CONN_DETACHED, without a user, until lwIP frees the pcb.
 * Freed records are kept on edge.spare for the next connection.
 */
#ifndef UWARP_LWIP_CONN_H
#define UWARP_LWIP_CONN_H

#include "io/lwip/edge.h"
#include "io/rx_queue.h"
#include "loss/rx_window.h"
#include "loss/stamp.h"

#define EDGE_CONN_HEAD 34 /* octets of an Ethernet and an IPv4 header */

struct llp_listener {
	struct tcp_pcb *pcb;
	struct edge_link *el;
	void *ctx; /* the user's */
};

/* What the user asked for. CLOSE and ABORT wait until lwIP's callback returns. */
enum edge_conn_end { EDGE_CONN_ON, EDGE_CONN_CLOSE, EDGE_CONN_ABORT, EDGE_CONN_DETACHED };

/* The fields are in the order in which a segment needs them. Rarely used ones come last. */
struct llp_conn {
	struct tcp_pcb *pcb; /* NULL: lwIP has freed it */
	void *ctx;	     /* the user's; NULL: not accepted yet, or nobody */
	struct flow_key flow;
	uint32_t hash; /* of flow */
	bool in_table; /* flow.c has it */
	bool active;   /* the pcb is on lwIP's list tcp_active_pcbs (active_list.c) */
	bool in_keepalive;
	bool in_callback; /* a callback of lwIP is running for this connection */

	struct uw_prefetch_list prefetch_list; /* memory that its next segment needs */

	struct edge_link *el;
	struct llp_conn *before;   /* the one in front of it on tcp_active_pcbs; only a hint */
	struct llp_conn *next_ack; /* edge.acks */
	uint8_t end;		   /* enum edge_conn_end */
	uint8_t stalled;	/* EDGE_CONN_DETACHED: polls without progress, the window closed */
	bool ack_due;		/* on edge.acks */
	bool prompt;		/* the peer waits for our ACK: none may wait for a timer */
	uint8_t acks_postponed; /* how often, since the last one (rx.c) */
	uint8_t ack_left;	/* rounds that its ACK was left for an answer (rx_ack.c) */
	uint8_t acks_alone;	/* so many more ACKs are not left */
	uint8_t answers;	/* so many ACKs that went alone had an answer soon after them */
	uint16_t lossy;		/* frames until the path is not lossy (rx.c) */
	bool paused;		/* the user takes no octets */
	bool connecting;	/* our SYN is not answered yet */
	bool is_recent;		/* in recent of active_list.c */
	bool fast;		/* tx_fast.c may send for it; head is filled in */
	bool cuts;		/* segments may be long (pcb/tx_long.c), ... */
	uint8_t bulk;		/* ... if so many were full of late */
	bool growing;		/* between begin and commit: the last one is long, and grows */
	uint32_t sent_end;	/* sequence number behind `sent` */
	uint32_t queued_seq;	/* sequence number of `queued` */
	size_t window_debt;	/* octets in rx_queue that are still missing in pcb->rcv_wnd */
	struct tcp_seg *tail; /* of unsent, between a commit and the next flush; NULL: not known */
	struct tcp_seg *queued;	   /* the last that tx_queue.c queued, maybe freed; NULL: unknown */
	struct tcp_seg *sent;	   /* the last segment of pcb->unacked; NULL: not known */
	struct rx_queue rx_queue;  /* octets that the user has not used up */
	unsigned pinned;	   /* buffers of the link in rx_queue and pcb->ooseq */
	bool ooseq_kept;	   /* pcb->ooseq was not empty when last counted */
	bool rx_shut;		   /* the peer was told a window of 0 for lack of memory */
	bool lost;		   /* the peer's process is dead, but the user has octets to take */
	struct io_frame *building; /* between edge_tx_begin and edge_tx_commit: the buffer, */
	struct tcp_seg *seg;	   /* and lwIP's record for it */
	uint64_t left_us;	   /* when its ACK was first left */
	uint64_t alone_us;	   /* when one went alone, with no octets of ours after it; or 0 */
	uint64_t probe_us;	   /* when to probe the peer's closed window; 0: it is open */
	uint8_t head[EDGE_CONN_HEAD]; /* Ethernet and IPv4 headers; lengths and ids are filled in */

	uint64_t probe_wait_us; /* between two window probes */
	uint32_t closing_ack;	/* EDGE_CONN_DETACHED: what was acknowledged at the last poll */
	uint64_t override_us;	/* when to send into a window that is below a segment; 0: no need */
	struct llp_conn *next, **link;			  /* edge.conns or edge.detached */
	struct llp_conn *keepalive_next, *keepalive_prev; /* active_list.c, while in_keepalive */
	uint64_t silent_us;				  /* when its last segment came */
	struct llp_listener *listener;			  /* while half open: whose SYN it was */
	struct llp_conn *syn_next, *syn_prev;		  /* its group of half-open connections */
	uint8_t syn_group;
	uint64_t syn_us; /* when its SYN came */
	bool keeps;	 /* on keepers of rx_pressure.c */
	struct llp_conn *keep_next, *keep_prev;
	size_t ooseq_copied;	     /* octets of our own memory in pcb->ooseq */
	unsigned ooseq_segments;     /* segments in pcb->ooseq when last counted */
	uint64_t challenge_us;	     /* since when challenge ACKs are counted */
	uint8_t challenges;	     /* how many were sent since then */
	struct edge_conn_loss *loss; /* loss.c; NULL: lwIP's own recovery */
	uint8_t ecn;		     /* loss_ecn.c */
	bool stamp_asks;	     /* stamps.c: our SYN has timestamps */
	struct stamp stamp;
	struct rx_window window; /* pcb/rx_window.c */
	/* path.c */
	uint16_t full_mss; /* EMSS that both ends agreed on; 0: not up, or no path to mind */
	uw_status icmp;	   /* while connecting: what routers or the peer said; UW_OK: nothing */
};

/* ---- conn.c ------------------------------------------------------------------------------ */

/* A new record, on edge.conns. NULL: no memory. */
struct llp_conn *edge_conn_new(struct edge_link *el, void *ctx);
/* A callback of lwIP ends: close or abort if the user asked for it meanwhile. Returns what the
 * callback has to return to lwIP. After ERR_ABRT the record is gone. */
err_t edge_conn_callback_end(struct llp_conn *c);
/* For the history of the connection (llp_user.note). */
static inline void edge_conn_tell(const struct llp_conn *c, enum llp_note what, uint32_t arg)
{
	if (edge.cfg.user->note && c->ctx && !c->listener && c->end == EDGE_CONN_ON)
		edge.cfg.user->note(c->ctx, what, arg);
}
/* The peer's process is dead: end the connection. The user hears of it. */
void edge_conn_lose(struct llp_conn *c);
/* The connection is over, and its pcb freed or about to be: the record is spare. */
void edge_conn_discard(struct llp_conn *c);
/* lwIP leads from the pcb to the record, and the record is freed with a pcb that outlives its user.
 * c NULL: no more. */
void edge_conn_own(struct tcp_pcb *pcb, struct llp_conn *c);
/* No callback of lwIP leads to the record any more. */
void edge_conn_detach(struct tcp_pcb *pcb);
/* The record of a pcb; NULL: none. */
static inline struct llp_conn *edge_conn_of(const struct tcp_pcb *pcb)
{
	return pcb ? pcb->ext_args[0].data : NULL;
}

/* ---- connect.c --------------------------------------------------------------------------- */

/* Tie a record to a pcb: lwIP's callbacks lead to it. */
void edge_conn_attach(struct llp_conn *c, struct tcp_pcb *pcb);
/* The handshake is over. */
void edge_conn_came_up(struct llp_conn *c);

/* ---- flow.c: the table from addresses and ports to connections ---------------------------- */

void edge_conn_flow_add(struct llp_conn *c);
void edge_conn_flow_remove(struct llp_conn *c);
/* NULL: no such connection. */
struct llp_conn *edge_conn_flow_find(const struct flow_key *k);
/* The same for a segment that came: prefetches what the next connections need. */
struct llp_conn *edge_conn_flow_lookup(const struct flow_key *k);

/* ---- pcb/active_list.c: lwIP's list tcp_active_pcbs ---------------------------------------- */

/* Put the pcb on the list, if it is not. To be called before anything that lwIP may have to repeat,
 * to time or to end. */
void edge_conn_activate(struct llp_conn *c);
/* The same, and in front of all others. Not for a pcb in TIME_WAIT. */
void edge_conn_flow_front(struct llp_conn *c);
/* Remember which connection is in front of a pcb; NULL: none. */
void edge_conn_flow_before(const struct tcp_pcb *pcb, struct llp_conn *before);
/* A segment came for it. */
void edge_conn_rx_seen(struct llp_conn *c);
/* The connection ends: forget it in all queues of active_list.c. */
void edge_conn_active_list_forget(struct llp_conn *c);

/* ---- pcb/syn_backlog.c --------------------------------------------------------------------- */

/* A SYN that came to ls has opened the connection: count it. */
void edge_conn_half_open(struct llp_conn *c, struct llp_listener *ls);
/* A half-open connection is up, or ends. Returns whose SYN it was. */
struct llp_listener *edge_conn_established(struct llp_conn *c);

/* ---- pcb/rx.c, pcb/rx_check.c, pcb/rx_pressure.c: octets that come -------------------------- */

/* RFC 9293 §3.10.7.4, RFC 5961: may the segment be from the peer, and is it new? False: drop it;
 * an ACK was sent if due. */
bool edge_conn_rx_check(struct llp_conn *c, const struct edge_segment *s);
/* loss_send.c: send an ACK for octets that have come before. SACK tells the peer of them (RFC 2883
 * §4). */
void edge_conn_loss_ack_duplicate(struct llp_conn *c, uint32_t seq, uint32_t octets);
/* stamps.c, RFC 7323 §5.2: may the segment be taken? False: drop it; *answer: answer it by an ACK.
 */
bool edge_conn_stamp_check(struct llp_conn *c, const struct edge_segment *s, bool *answer);
/* A segment came. True: drop it, because there is no memory for its octets; the peer was told. */
bool edge_conn_rx_refuse(struct llp_conn *c, const struct edge_segment *s);
/* Octets of one frame, in order; pcb->rcv_nxt has them already. The frame is the connection's now.
 */
void edge_conn_rx(struct llp_conn *c, struct io_frame *f);
/* lwIP's callback tcp_recv_fn. */
err_t edge_conn_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err);
/* Count again what the connection keeps, and copy out if the process keeps too much
 * (io/rx_budget.h). Not to be called from within the user's rx(). */
void edge_conn_rx_kept(struct llp_conn *c);
/* The connection keeps nothing any more. */
void edge_conn_rx_forget(struct llp_conn *c);
/* Is there memory for more octets of this connection? */
bool edge_conn_rx_room(const struct llp_conn *c);
/* Announce the window again that was shut for lack of memory. */
void edge_conn_rx_open(struct llp_conn *c);

/* ---- pcb/rx_ack.c: what the peer hears of them ---------------------------------------------- */

/* An ACK is due at the end of the burst. */
static inline void edge_conn_ack_later(struct llp_conn *c)
{
	if (c->ack_due)
		return;
	c->ack_due = true;
	c->next_ack = edge.acks;
	edge.acks = c;
}
/* Octets of ours go, the first since an ACK went alone. */
void edge_conn_answers(struct llp_conn *c);
/* Take the connection off edge.acks. */
void edge_conn_forget_ack(struct llp_conn *c);
/* The user took n octets: they are free in the window. */
void edge_conn_recved(struct llp_conn *c, size_t n);
/* The user has taken octets: announce the window that they leave. */
void edge_conn_window_pay(struct llp_conn *c);
/* Announce the whole window. lwIP wants that before an orderly close; else it sends an RST. */
void edge_conn_window_open_all(struct llp_conn *c);

/* ---- pcb/rx_window.c: how much the peer may send -----------------------------------------------
 */

/* The connection is up, and nothing has come on it. */
void edge_conn_window_begin(struct llp_conn *c);
/* The connection is over: what was promised is free. */
void edge_conn_window_end(struct llp_conn *c);
/* The same, and returns what is missing in lwIP's window. */
uint32_t edge_conn_window_kept_back(struct llp_conn *c);
/* The user took n octets. Returns by how many octets the window is to grow. */
uint32_t edge_conn_window_more(struct llp_conn *c, size_t n);

/* ---- pcb/tx_queue.c, pcb/tx_fast.c: octets that go ------------------------------------------ */

/* Give back what edge_tx_begin took. */
void edge_conn_drop_building(struct llp_conn *c);
/* The connection is up: may tx_fast.c send for it? Fills in the headers. */
void edge_conn_fast_start(struct llp_conn *c);
/* Fill in the headers again, because the DS field has changed. */
void edge_conn_fast_headers(struct llp_conn *c);
/* pcb/tx_long.c. May segments be long on the way that the connection takes? */
bool edge_conn_may_be_long(const struct llp_conn *c);
/* Were so many segments full of late that long ones are worth their memory? */
bool edge_conn_is_bulk(const struct llp_conn *c);
/* Where nothing seems to be lost: a frame for a long segment, made of segments of
 * emss octets; NULL: take a small one. It begins with n octets: the frame to keep, which is
 * f or a small one. */
struct io_frame *edge_conn_long_alloc(struct llp_conn *c, uint32_t emss);
struct io_frame *edge_conn_long_begun(struct llp_conn *c, struct io_frame *f, size_t n);
/* Where the next segment goes in the long one that was committed last; NULL: it has no room. Then n
 * octets are there; returns the EMSS of the long one. */
uint8_t *edge_conn_long_room(const struct llp_conn *c);
uint32_t edge_conn_long_grow(struct llp_conn *c, size_t n);
/* n octets were committed. Returns how many segments they are. */
unsigned edge_conn_long_note(struct llp_conn *c, size_t n);
/* lwIP's part of edge_conn_loss_cut. What finds no memory stays, and is sent again as a whole. */
void edge_conn_long_cut(struct llp_conn *c);
/* The header of a segment of the octets in p, which has room for it: the next of the connection. */
void edge_conn_fill_segment(struct tcp_seg *seg, const struct llp_conn *c, struct pbuf *p);
/* Send from pcb->unsent as long as each segment is new and within the window. last is the end of
 * pcb->unacked, NULL if that is empty. What remains in pcb->unsent is lwIP's. */
void edge_conn_tx_fast(struct llp_conn *c, struct tcp_seg *last);
/* Send a pure ACK. False: lwIP has to do it. */
bool edge_conn_ack_fast(struct llp_conn *c);

#endif
