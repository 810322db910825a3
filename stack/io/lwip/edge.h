/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder share: lwIP's types meet ours here and nowhere else. */
#ifndef UWARP_LWIP_EDGE_H
#define UWARP_LWIP_EDGE_H

#include "io/llp.h"
#include "io/lwip/frame.h"
#include "io/lwip/nif.h"
#include "io/lwip/pcb.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"

#define EDGE_TXQ   256u
#define EDGE_SELF  256u
#define EDGE_LINKS 4u
#define EDGE_SOON  32u
#define EDGE_LATE  64u

/* One link with its lwIP interface. */
struct edge_link {
	struct io_link *io;
	struct netif nif;
	struct io_frame *txq[EDGE_TXQ];
	unsigned tx_n;
	struct io_frame *self[EDGE_SELF]; /* sent to our own address */
	unsigned self_n;
};

/* The instance: lwIP's state is global, so this is too. */
struct edge {
	struct llp_config cfg;
	struct edge_link links[EDGE_LINKS];
	struct llp_conn *conns;	 /* all that have a pcb and a user */
	struct llp_conn *parted; /* ... only a pcb any more */
	struct llp_conn *spare;	 /* freed ones */
	struct llp_conn *acks;	 /* have an ACK due at the end of the burst */
	/* idle.c: those that are asked when they are silent, the longest silent first */
	struct llp_conn *idle, *idle_last;
	/* idle.c: many connections: those that something came for, the last EDGE_LATE at most */
	struct llp_conn *late[EDGE_LATE];
	unsigned late_first, late_n;
	bool came;		     /* something did, in this round */
	unsigned half_open;	     /* half.c */
	uint16_t ip_id;		     /* direct.c */
	unsigned flows;		     /* in the table */
	const struct llp_conn *warm; /* whose memory was fetched last */
	/* whose frames come next: soon[soon_at] to soon[soon_n - 1] */
	const struct llp_conn *soon[EDGE_SOON];
	unsigned soon_at, soon_n;
};
extern struct edge edge;

struct edge_link *edge_link_of(const struct io_link *l);

/* flow.c: make it quick for lwIP to find whom a frame is for. False: a SYN that nobody knows. */
bool edge_flow_find(const struct pbuf *p);

/* idle.c: connections of which nothing is under way leave lwIP's timers; and the time until one has
 * been silent for too long. */
void edge_idle_timer(void);
/* At the end of a round: what is due for those of which nothing came for a while. */
void edge_idle_round(void);
uint64_t edge_idle_next_us(void);

/* half.c: may one more be half open? After a SYN: what it opened. */
bool edge_half_room(void);
void edge_half_opened(void);

/* expected.c: take a frame in if it is the next of a connection and nothing else. False: it is
 * lwIP's.
 */
bool edge_expected(const struct edge_link *el, struct io_frame *f);

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
struct edge_lists edge_hide_lists(void);
void edge_show_lists(const struct edge_lists *l);

/* flow.c */
void edge_expect(struct io_frame *const *v, unsigned n);
struct uw_touches *edge_touches(struct llp_conn *c, struct uw_touches *w);

/* recv.c */
void edge_acks(void);
void edge_pause(struct llp_conn *c);
void edge_resume(struct llp_conn *c);

/* send.c */
uint8_t *edge_tx_begin(struct llp_conn *c, size_t *room);
void edge_tx_commit(struct llp_conn *c, size_t n);
void edge_tx_flush(struct llp_conn *c);

#endif
