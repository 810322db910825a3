/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks of lwIP that we fill in. Included by lwIP's sources. */
#ifndef UWARP_LWIP_HOOKS_H
#define UWARP_LWIP_HOOKS_H

#include "arch/cc.h"

/* The initial sequence number of a connection: io/isn.h. Where lwIP asks, `pcb` is whose it is. */
struct tcp_pcb;
uint32_t uw_lwip_isn(struct tcp_pcb *pcb);
#define LWIP_HOOK_TCP_ISN(lip, lp, rip, rp) uw_lwip_isn(pcb)

/* The next hop of an IPv6 packet. lwIP believes that every network is a /64; ours may be longer or
 * shorter. NULL: there is no way. */
struct netif;
struct ip6_addr;
const struct ip6_addr *uw_lwip_next_hop(const struct netif *nif, const struct ip6_addr *to);
#define LWIP_HOOK_ND6_GET_GW(netif, dest) uw_lwip_next_hop(netif, dest)

#endif
