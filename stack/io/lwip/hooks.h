/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by lwIP's sources: the places where it asks us. */
#ifndef UWARP_LWIP_HOOKS_H
#define UWARP_LWIP_HOOKS_H

#include "arch/cc.h"

/* The initial sequence number of a connection: io/isn.h. Where lwIP asks, `pcb` is whose it is. */
struct tcp_pcb;
uint32_t uw_lwip_isn(struct tcp_pcb *pcb);
#define LWIP_HOOK_TCP_ISN(lip, lp, rip, rp) uw_lwip_isn(pcb)

/* lwIP takes every network for a /64. What is in one of ours is its own next hop; NULL: no way. */
struct netif;
struct ip6_addr;
const struct ip6_addr *uw_lwip_next_hop(const struct netif *nif, const struct ip6_addr *to);
#define LWIP_HOOK_ND6_GET_GW(netif, dest) uw_lwip_next_hop(netif, dest)

#endif
