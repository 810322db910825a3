/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by lwIP's sources: the places where it asks us. */
#ifndef UWARP_LWIP_HOOKS_H
#define UWARP_LWIP_HOOKS_H

#include "arch/cc.h"

/* RFC 6528 asks for sequence numbers that cannot be guessed. Where lwIP asks, `pcb` is whose it
 * is. */
struct tcp_pcb;
uint32_t uw_lwip_isn(struct tcp_pcb *pcb);
#define LWIP_HOOK_TCP_ISN(lip, lp, rip, rp) uw_lwip_isn(pcb)

/* lwIP takes every network for a /64. What is in one of ours is its own next hop; NULL: no way. */
struct netif;
struct ip6_addr;
const struct ip6_addr *uw_lwip_next_hop(const struct netif *nif, const struct ip6_addr *to);
#define LWIP_HOOK_ND6_GET_GW(netif, dest) uw_lwip_next_hop(netif, dest)

#if NO_SYS
/* loss.c: a segment came for pcb (host order, before lwIP looks at it), or is about to go. */
struct pbuf;
struct tcp_hdr;
struct uw_lwip_segment {
	const struct tcp_hdr *hdr;
	unsigned optlen;      /* octets of options behind it */
	const struct pbuf *p; /* what follows them */
};
void uw_lwip_segment_in(struct tcp_pcb *pcb, const struct uw_lwip_segment *s);
void uw_lwip_sending(const struct pbuf *p, struct tcp_hdr *hdr, struct tcp_pcb *pcb);
#define LWIP_HOOK_TCP_INPACKET_PCB(pcb, hdr, optlen, opt1len, opt2, p)                             \
	(uw_lwip_segment_in(                                                                       \
		 pcb, &(struct uw_lwip_segment){ hdr, (opt2) ? (opt1len) : (optlen), p }),         \
	 ERR_OK)
#define LWIP_HOOK_TCP_OUT_ADD_TCPOPTS(p, hdr, pcb, opts)                                           \
	(uw_lwip_sending(p, hdr, (struct tcp_pcb *)(uintptr_t)(pcb)), opts)
#endif

#endif
