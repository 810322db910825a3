/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks of lwIP that we fill in. Included by lwIP's sources. */
#ifndef UWARP_LWIP_HOOKS_H
#define UWARP_LWIP_HOOKS_H

#include "arch/cc.h"

/* The initial sequence number of a connection: io/isn.h. Where lwIP asks, `pcb` is whose it is. */
struct tcp_pcb;
uint32_t uw_lwip_isn(struct tcp_pcb *pcb);
#define LWIP_HOOK_TCP_ISN(lip, lp, rip, rp) uw_lwip_isn(pcb)

/* The neighbour that takes an IPv4 packet is known before lwIP asks (nif.c). */
#define LWIP_HOOK_ETHARP_GET_GW(netif, dest) (dest)

/* The next hop of an IPv6 packet, by the link's networks and routes. lwIP believes that every
 * network is a /64; ours may be longer or shorter. NULL: there is no way. lwIP copies the address.
 */
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
	(uw_lwip_segment_in(pcb,                                                                   \
			    &(struct uw_lwip_segment){ hdr, (opt2) ? (opt1len) : (optlen), p }),   \
	 ERR_OK)
/* stamps.c: octets of options beside the others, and writing them */
unsigned uw_lwip_options(const struct tcp_pcb *pcb, unsigned others);
uint32_t *uw_lwip_put_options(const struct pbuf *p, const struct tcp_pcb *pcb, uint32_t *at);
#define LWIP_HOOK_TCP_OUT_TCPOPT_LENGTH(pcb, others) ((u8_t)uw_lwip_options(pcb, others))
#define LWIP_HOOK_TCP_OUT_ADD_TCPOPTS(p, hdr, pcb, opts)                                           \
	(uw_lwip_sending(p, hdr, (struct tcp_pcb *)(uintptr_t)(pcb)),                              \
	 uw_lwip_put_options(p, pcb, opts))
#endif

#endif
