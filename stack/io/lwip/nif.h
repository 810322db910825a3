/* SPDX-License-Identifier: BSD-3-Clause */
/* A link as an interface of lwIP; compiled for each of the two lwIPs (io/lwip, io/seq). The
 * interface's `state` is the link. */
#ifndef UWARP_LWIP_NIF_H
#define UWARP_LWIP_NIF_H

#include "io/io.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"

bool edge_nif_up(struct netif *nif, struct io_link *l, netif_input_fn input);
/* Is a frame that came for lwIP? */
bool edge_nif_wants(const struct io_link *l, const struct pbuf *p);

/* Each has its own: a frame, Ethernet header first, to the link; to this process itself. */
err_t edge_nif_send(struct netif *nif, struct pbuf *p);
err_t edge_nif_send_self(struct netif *nif, struct pbuf *p);

#endif
