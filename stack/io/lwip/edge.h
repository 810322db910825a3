/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport `raw`: io/llp.h by means of lwIP's raw API. This header is what the files of the
 * folder share.
 *
 * A function named edge_* is an entry of the transport's table (ops.c) or works on the whole
 * transport; "edge" because lwIP's types meet the engine's here and nowhere else. A function named
 * edge_conn_* works on one connection (conn.h). Files that read or write private fields of lwIP are
 * in pcb/.
 *
 * The .c files stand in levels. A file calls functions of lower levels, and of its own level those
 * of the files that are named before it; only the three files of loss call each other. What a lower
 * file has to tell a higher one, it tells by a callback that lwIP keeps for the connection. From
 * the bottom up:
 *
 *   frames       assertion.c, edge.c (the state, the clock), frame.c, pcb/rx_pressure.c (memory for
 *                what came), link_tx.c and link_cut.c (frames to a link), nif.c, pcb/pcb.c
 *   connections  pcb/tx_fast.c (a segment or an ACK straight to the link), pcb/active_list.c,
 *                flow.c, pcb/syn_backlog.c, pcb/rx_ack.c (ACKs and the window), pcb/rx_check.c
 *   sending      loss.c, loss_ecn.c, loss_send.c, path.c (path MTU, ICMP), pcb/tx_long.c,
 *                pcb/tx_queue.c
 *   records      conn.c: a record is made and freed, a connection ends
 *   receiving    pcb/rx.c (octets to the user), pcb/rx_fast.c
 *   beginning    connect.c (and the callbacks that lwIP gets), pcb/listen.c
 *   packets      packet.c (RoCEv2), defend.c (other hosts with our address)
 *   entry        netif.c (frames in), pcb/timers.c, ops.c (the transport's table)
 *
 * lwIP's state is global, so there is one struct edge. A process with several stacks has several
 * copies of this folder and of lwIP (stack/meson.build). Everything runs under the stack lock.
 */
#ifndef UWARP_LWIP_EDGE_H
#define UWARP_LWIP_EDGE_H

#include "io/dad/dad.h"
#include "io/member/member.h"
#include "io/llp.h"
#include "io/lwip/frame.h"
#include "io/lwip/nif.h"
#include "io/lwip/pcb/pcb.h"
#include "io/route/pmtu.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"

#define EDGE_TXQ   256u /* frames that wait for a link */
#define EDGE_SELF  256u /* frames that this process sent to itself */
#define EDGE_LINKS 4u
#define EDGE_ASKED 16u /* neighbours that may be asked again in a second (neighbour.c) */

/* A link and its interface in lwIP. */
struct edge_link {
	struct io_link *io; /* NULL: this place is free */
	struct netif nif;
	struct io_frame *txq[EDGE_TXQ]; /* to be sent, the oldest first */
	unsigned tx_n;
	struct io_frame *self[EDGE_SELF]; /* sent to our own address, taken in by edge_poll */
	unsigned self_n;
	struct io_frame *packet;    /* begun by edge_packet_begin */
	struct dad_defence defence; /* defend.c */
	struct members members;	    /* member.c */
};

/* What more than one file uses. What one file alone uses is static there. */
struct edge {
	struct llp_config cfg;
	struct edge_link links[EDGE_LINKS];
	struct llp_conn *conns;	   /* connections that have a user, and half-open ones */
	struct llp_conn *detached; /* connections that their users have closed */
	struct llp_conn *spare;	   /* records that are free */
	struct llp_conn *acks; /* connections with an ACK due at the end of the burst, or left */
	bool losing;	       /* connections end because the peer's process has */
	unsigned half_open; /* syn_backlog.c: connections that are, but for those of IO_P2P links */
	unsigned flows;	    /* connections in flow.c's table */
	struct pmtu_table paths; /* path.c, path_mtu.c */
	bool paths_changed;	 /* segments are to be fitted to them */
};
/* Hidden, or position-independent code would load its address from a table in each function. */
extern struct edge edge __attribute__((visibility("hidden")));

/* NULL: a link that was not added. With l NULL: a free place, or NULL. */
static inline struct edge_link *edge_link_of(const struct io_link *l)
{
	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		if (edge.links[i].io == l)
			return &edge.links[i];
	}
	return NULL;
}

static inline void edge_capture(const struct io_frame *f)
{
	if (edge.cfg.capture)
		edge.cfg.capture(edge.cfg.arg, f);
}

/* Octets of payload in each segment that the link cuts p into; 0: it sends p as it is. */
static inline uint32_t edge_cut(const struct edge_link *el, struct pbuf *p)
{
	return el->io->ops->alloc_long && edge_is_tx(p) ? edge_frame(p)->cut : 0;
}

/* The two ends of a connection, in network order. Nothing else is in it: it is compared as it is.
 */
struct flow_key {
	struct uw_ip local, remote;
	uint16_t lport, rport;
};

/* What matters of a received TCP segment. Host order, but for flow. */
struct edge_segment {
	struct flow_key flow;
	const uint8_t
		*tcp; /* its header; NULL: the frame is no TCP segment, nothing else is valid */
	struct llp_conn *c; /* its connection; NULL: none */
	uint32_t seq, ack;
	uint16_t len; /* octets of payload, as the IP header has it */
	uint8_t flags;
	uint8_t options; /* octets of options that lie behind the header */
};

/* ---- flow.c ------------------------------------------------------------------------------ */

/* Draw a new key for the table's hash, if the table is empty. */
void edge_flow_init(void);
/* Read a frame's TCP header into *s, find its connection, and have lwIP find it at once. */
void edge_flow_find(const struct pbuf *p, struct edge_segment *s);
/* Does the segment ask for a connection that does not exist? */
bool edge_is_new_syn(const struct edge_segment *s);
/* llp_ops.prefetch and .prefetch_list */
void edge_prefetch(struct io_frame *const *v, unsigned n);
struct uw_prefetch_list *edge_prefetch_list(struct llp_conn *c, struct uw_prefetch_list *w);

/* ---- pcb/active_list.c --------------------------------------------------------------------- */

/* With lwIP's timers: probe peers that are silent for too long; take idle connections off the list.
 */
void edge_active_list_timer(void);
/* At the end of a round in which nothing came: settle the connection that waits longest. */
void edge_active_list_round(void);
/* Microseconds until the next silent peer is to be probed; UINT64_MAX: none. */
uint64_t edge_active_list_next_us(void);

/* lwIP searches its lists for the connection of a new SYN and for a port. Where flow.c knows that
 * the search finds nothing, the lists are hidden meanwhile. What was added in between comes first.
 */
struct edge_lists {
	struct tcp_pcb *active, *ended;
	struct tcp_pcb *left, *behind; /* of ended: what was not hidden, and what is behind it */
};
struct edge_lists edge_lists_hide(void);
/* All but this one in TIME_WAIT, NULL: all. Until they are shown no other comes or goes. */
struct edge_lists edge_lists_leave(struct tcp_pcb *waiting);
void edge_lists_show(const struct edge_lists *l);
/* Is there room for one more connection? If need be those end that are in TIME_WAIT for longest,
 * many at once: to find one takes as long. */
bool edge_lists_room(void);

/* ---- pcb/syn_backlog.c ----------------------------------------------------------------------- */

void edge_syn_init(void);
/* A SYN of that peer came: is there a place for one more half-open connection? */
bool edge_syn_room(const struct edge_link *el, const struct uw_ip *peer);
/* A segment came: if it ends a connection in TIME_WAIT, or is a SYN that begins anew in place of
 * it, that one is freed and s->c is NULL. */
void edge_time_wait_end(struct edge_segment *s);

/* ---- pcb/listen.c ---------------------------------------------------------------------------- */

/* lwIP has seen the SYN: make a record for the pcb that it opened, if it did. */
void edge_syn_opened(void);

/* ---- pcb/rx_fast.c --------------------------------------------------------------------------- */

/* Take a frame in if it is the next segment of an established connection and nothing about it is
 * unusual. False: it is still the caller's, and lwIP's to take. */
bool edge_rx_fast(const struct edge_link *el, struct io_frame *f);

/* ---- packet.c ------------------------------------------------------------------------------- */

/* Hand a frame to the user if it holds a packet of RoCEv2. False: it is still the caller's. */
bool edge_packet_rx(const struct edge_link *el, struct io_frame *f);

/* ---- pcb/rx_pressure.c ----------------------------------------------------------------------- */

/* A frame for an ACK or another segment that must go out: for want of one, octets that connections
 * keep in frames of this link are copied out of them. NULL: there is none all the same. */
struct io_frame *edge_alloc_urgent(struct io_link *l);

/* ---- link_tx.c ------------------------------------------------------------------------------- */

/* A queued segment as a frame for a link, with one reference more; its pbuf stays lwIP's. */
struct io_frame *edge_lend(struct pbuf *p);
/* Queue a frame for the link. There must be room: tx_n < EDGE_TXQ. */
void edge_queue(struct edge_link *el, struct io_frame *f);

/* ---- link_cut.c -------------------------------------------------------------------------- */

/* A packet of TCP over IPv4 may not be fragmented, unless its path wants that (RFC 1191 §3). */
void edge_set_df(uint8_t *frame, size_t n);
/* Is p (a frame, Ethernet header first) a TCP segment with octets that its path does not take? cut:
 * the link makes segments of so many octets of it; 0: p is one. */
bool edge_is_too_long(const struct edge_link *el, const struct pbuf *p, uint32_t cut);
/* Queue it as several. ERR_MEM: nothing was queued. */
err_t edge_send_cut(struct edge_link *el, struct pbuf *p);

/* ---- entries of llp_ops (io/llp.h) -------------------------------------------------------------
 */

uw_status edge_init(const struct llp_config *cfg) UW_CHECK;
void edge_add_link(struct io_link *l);
void edge_remove_link(struct io_link *l);
void edge_link_changed(struct io_link *l);
void edge_link_up(struct io_link *l);
void edge_input(struct io_link *l, struct io_frame *f);
unsigned edge_poll(void);
bool edge_flush_links(void);
void edge_timers(void);
uint64_t edge_next_timer_us(void);

/* ---- member.c ---------------------------------------------------------------------------- */

/* llp_ops.group */
uw_status edge_group(struct io_link *l, const struct uw_ip *group, bool in) UW_CHECK;
/* True: the frame is a message of IGMP or MLD, and still the caller's. */
bool edge_member_in(struct edge_link *el, const struct io_frame *f);
/* Send the reports that are due. */
void edge_member_timer(void);
/* Microseconds until the next one; UINT64_MAX: none. */
uint64_t edge_member_next_us(void);

/* ---- defend.c ---------------------------------------------------------------------------- */

/* A frame came on a link that is a network: count, say and answer another host's use of our
 * address. */
void edge_defend(struct edge_link *el, const struct io_frame *f);
/* Tell the network of our addresses while they are new. */
void edge_defend_timer(void);
/* Microseconds until the next time; UINT64_MAX: none. */
uint64_t edge_defend_next_us(void);

uw_status edge_listen(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
		      struct llp_listener **out) UW_CHECK;
void edge_unlisten(struct llp_listener *ls);
uw_status edge_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		       struct llp_conn **out) UW_CHECK;
void edge_close(struct llp_conn *c);
void edge_shutdown(struct llp_conn *c);
void edge_abort(struct llp_conn *c);
void edge_peer_down(struct io_link *l, uint32_t addr);
unsigned edge_lingering(void);
struct llp_addrs edge_addrs(const struct llp_conn *c);
void edge_info(const struct llp_conn *c, struct llp_info *out);
void edge_set_tos(struct llp_conn *c, uint8_t tos);

void edge_acks(enum llp_acks which);
bool edge_acks_left(void);
/* Microseconds until an ACK that waits for an answer that comes soon may wait no longer; 0: its
 * time is over; UINT64_MAX: none waits so. */
uint64_t edge_acks_next_us(void);
void edge_ack_promptly(struct llp_conn *c);
void edge_pause(struct llp_conn *c);
void edge_resume(struct llp_conn *c);

uint8_t *edge_tx_begin(struct llp_conn *c, size_t *room);
uint8_t *edge_tx_begin_many(struct llp_conn *c, size_t *room, size_t *each);
void edge_tx_commit(struct llp_conn *c, size_t n);
void edge_tx_flush(struct llp_conn *c);
bool edge_neighbour(struct io_link *l, const struct uw_ip *to);
/* The peer does not answer: its host, or the router, may have another MAC address by now. ARP has
 * no notice of that (RFC 1122 §2.3.2.1 (4), advice from above); IPv6 looks by itself (RFC 4861
 * §7.3). */
void edge_ask_again(const struct llp_conn *c);
uint8_t *edge_packet_begin(struct io_link *l, const struct uw_ip *to, size_t *room);
void edge_packet_end(struct io_link *l, size_t n, const struct uw_ip *to, bool others);
uint32_t edge_in_flight(const struct llp_conn *c);

#endif
