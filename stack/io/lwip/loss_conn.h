/* SPDX-License-Identifier: BSD-3-Clause */
/* What loss.c (what is heard and counted) and loss_send.c (what is sent) share. */
#ifndef UWARP_LWIP_LOSS_CONN_H
#define UWARP_LWIP_LOSS_CONN_H

#include "io/lwip/conn.h"
#include "io/lwip/hooks.h"
#include "loss/loss.h"

struct edge_conn_loss {
	struct llp_conn *c;
	struct edge_conn_loss *next, **link; /* with a timer; link NULL: not in the list */
	uint64_t retry_us;		     /* the link was full; 0: it was not */
	uint64_t delivered;		     /* octets, by the last ACK */
	bool shut;			     /* the peer's window was closed when it spoke last */
	bool moved;			     /* it moved SND.UNA: lwIP tells the user */
	struct loss loss;
};

void edge_conn_loss_retry(struct edge_conn_loss *k);
/* What its window is now, by a segment that came. */
void edge_conn_loss_peer_window(struct edge_conn_loss *k, uint32_t window);
/* Its deadline is over. May end the connection. */
void edge_conn_loss_due(struct edge_conn_loss *k, uint64_t now_us);
/* Send again what is to be, then what is new; tell the user if there is room. May end it. */
void edge_conn_loss_go_on(struct edge_conn_loss *k);

/* loss.c: is ECN to be used? */
bool edge_conn_loss_ecn(void);

/* loss_ecn.c: a header is about to go, of octets that were never sent before or of anything else; a
 * segment came: does it say that there was a mark? */
void edge_conn_ecn_sending(struct tcp_pcb *pcb, struct tcp_hdr *h, bool is_new);
bool edge_conn_ecn_in(struct tcp_pcb *pcb, const struct uw_lwip_segment *s);

/* stamps.c. A header is about to go; a segment came, before lwIP looks at it. */
void edge_conn_stamp_sending(const struct tcp_hdr *h, struct llp_conn *c);
void edge_conn_stamp_in(struct tcp_pcb *pcb, const struct uw_lwip_segment *s);

#endif
