/* SPDX-License-Identifier: BSD-3-Clause */
/* A link as an interface of lwIP. Compiled for each of the two lwIPs (io/lwip, io/seq). netif.state
 * is the link. */
#ifndef UWARP_LWIP_NIF_H
#define UWARP_LWIP_NIF_H

#include "base/stats.h"
#include "io/io.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"

bool edge_nif_up(struct netif *nif, struct io_link *l, netif_input_fn input);
/* Should lwIP see a received frame? It reads some headers without checking that they are there, and
 * reacts to messages that a host without routers has no use for. What it should not is counted. */
bool edge_nif_wants(const struct io_link *l, const struct pbuf *p, struct uw_stats *stats);

/* llp_ops.has_way. Between processes there always is one; to a multicast group it is the link. */
bool edge_nif_has_way(const struct io_link *l, const struct uw_ip *to);

/* Has the administrator fixed the MAC address of this neighbour? Then it is not asked for. */
bool edge_nif_is_fixed(const struct io_link *l, const struct uw_ip *hop);

/* Before it goes to lwIP: is its TCP checksum to be verified? Not if the link's marks say that it
 * is good. */
void edge_nif_trust(struct netif *nif, const struct io_frame *f);

/* Each transport has its own two. Send a frame, Ethernet header first, over the link, ... */
err_t edge_nif_send(struct netif *nif, struct pbuf *p);
/* ... or to this process. ERR_MEM: not now; lwIP keeps the segment and tries again. */
err_t edge_nif_send_self(struct netif *nif, struct pbuf *p);

#endif
