/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder share: lwIP's types meet ours here and nowhere else. */
#ifndef UWARP_LWIP_EDGE_H
#define UWARP_LWIP_EDGE_H

#include "io/llp.h"
#include "io/lwip/frame.h"
#include "io/lwip/nif.h"
#include "io/lwip/pcb/pcb.h"
#include "io/siphash.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"

#define EDGE_TXQ	256u
#define EDGE_SELF	256u
#define EDGE_LINKS	4u
#define EDGE_UPCOMING	32u
#define EDGE_RECENT	64u
#define EDGE_SYN_GROUPS 64u

/* One link with its lwIP interface. */
struct edge_link {
	struct io_link *io;
	struct netif nif;
	struct io_frame *txq[EDGE_TXQ];
	unsigned tx_n;
	struct io_frame *self[EDGE_SELF]; /* sent to our own address */
	unsigned self_n;
};

/* syn_backlog.c: connections that are half open, of peers that share a group; the oldest first. */
struct edge_syn_group {
	struct llp_conn *first, *last;
	unsigned n;
};

/* The instance: lwIP's state is global, so this is too. */
struct edge {
	struct llp_config cfg;
	struct edge_link links[EDGE_LINKS];
	struct llp_conn *conns;	   /* all that have a pcb and a user */
	struct llp_conn *detached; /* ... only a pcb any more */
	struct llp_conn *spare;	   /* freed ones */
	unsigned refers;	   /* pbufs that refer to octets elsewhere: refer.c */
	struct llp_conn *acks;	   /* have an ACK due at the end of the burst */
	/* active_list.c: those that are asked when they are silent, the longest silent first */
	struct llp_conn *keepalive, *keepalive_last;
	/* active_list.c: many connections: those that something came for, the last EDGE_RECENT at
	 * most */
	struct llp_conn *recent[EDGE_RECENT];
	unsigned recent_first, recent_n;
	bool rx_seen; /* something did, in this round */
	/* rx_pressure.c: those that keep frames of a link; the longest first */
	struct llp_conn *keepers, *keepers_last;
	struct edge_syn_group syn_groups[EDGE_SYN_GROUPS]; /* syn_backlog.c */
	unsigned half_open;				   /* in all groups */
	struct siphash_key syn_key;			   /* of whose group a peer is in */
	uint16_t ip_id;					   /* tx_fast.c */
	unsigned flows;					   /* in the table */
	const struct llp_conn *prefetched;		   /* whose memory was fetched last */
	/* whose frames come next: upcoming[upcoming_at] to upcoming[upcoming_n - 1] */
	const struct llp_conn *upcoming[EDGE_UPCOMING];
	unsigned upcoming_at, upcoming_n;
};
extern struct edge edge;

struct edge_link *edge_link_of(const struct io_link *l);

/* The two ends of a connection. Network order; all of it there is. */
struct flow_key {
	struct uw_ip local, remote;
	uint16_t lport, rport;
};

/* A frame that came: what matters of its TCP header, host order. */
struct edge_segment {
	struct flow_key flow;
	const uint8_t *tcp; /* the header; NULL: the frame is no TCP segment */
	struct llp_conn *c; /* whose it is; NULL: nobody's */
	uint32_t seq, ack;
	uint16_t len; /* octets of payload, as the IP header says */
	uint8_t flags;
};

/* flow.c: a new key for the table's hash. */
void edge_flow_init(void);
/* flow.c: read the header, and make it quick for lwIP to find whom the frame is for. */
void edge_flow_find(const struct pbuf *p, struct edge_segment *s);
/* Does it ask for a connection that there is not? */
bool edge_is_new_syn(const struct edge_segment *s);

/* active_list.c: connections of which nothing is under way leave lwIP's timers; and the time until
 * one has been silent for too long. */
void edge_active_list_timer(void);
/* At the end of a round: what is due for those of which nothing came for a while. */
void edge_active_list_round(void);
uint64_t edge_active_list_next_us(void);

/* syn_backlog.c: a new key for the groups; may a SYN of that peer open a connection? After it: what
 * it opened. */
void edge_syn_init(void);
bool edge_syn_room(const struct uw_ip *peer);
void edge_syn_opened(void);

/* refer.c: segments that refer to octets elsewhere. */
/* Is p a buffer of a segment of ours? */
bool edge_is_segment(const struct pbuf *p);
bool edge_refers(const struct llp_conn *c);
void edge_tx_commit_around(struct llp_conn *c, size_t n, const struct llp_ref *r);
void edge_own(struct llp_conn *c);
void edge_own_all(const void *p, size_t n);

/* rx_fast.c: take a frame in if it is the next of a connection and nothing else. False: it is
 * lwIP's.
 */
bool edge_rx_fast(const struct edge_link *el, struct io_frame *f);

/* netif.c */
/* A segment of ours as a frame, and a reference of it for the link; and a frame to send. */
struct io_frame *edge_lend(struct pbuf *p);
void edge_queue(struct edge_link *el, struct io_frame *f);
void edge_init(const struct llp_config *cfg);
void edge_add_link(struct io_link *l);
void edge_remove_link(struct io_link *l);
void edge_input(struct io_link *l, struct io_frame *f);
unsigned edge_poll(void);
bool edge_flush_links(void);
void edge_timers(void);

/* conn.c */
uint64_t edge_next_timer_us(void);
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
uint32_t edge_in_flight(const struct llp_conn *c);
void edge_ack_promptly(struct llp_conn *c);
struct llp_addrs edge_addrs(const struct llp_conn *c);
void edge_set_tos(struct llp_conn *c, uint8_t tos);

/* flow.c: what the table does not know needs no search: lwIP's lists are empty meanwhile. */
struct edge_lists {
	struct tcp_pcb *active, *ended;
};
struct edge_lists edge_lists_hide(void);
void edge_lists_show(const struct edge_lists *l);

/* flow.c */
void edge_prefetch(struct io_frame *const *v, unsigned n);
struct uw_prefetch_list *edge_prefetch_list(struct llp_conn *c, struct uw_prefetch_list *w);

/* recv.c */
void edge_acks(void);
void edge_pause(struct llp_conn *c);
void edge_resume(struct llp_conn *c);

/* tx_queue.c */
uint8_t *edge_tx_begin(struct llp_conn *c, size_t *room);
void edge_tx_commit(struct llp_conn *c, size_t n);
void edge_tx_flush(struct llp_conn *c);

#endif
