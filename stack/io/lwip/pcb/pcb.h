/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions on lwIP's connections and addresses that both transports over lwIP need. Compiled for
 * each of the two lwIPs (io/lwip, io/seq). */
#ifndef UWARP_LWIP_PCB_H
#define UWARP_LWIP_PCB_H

#include <assert.h>

#include "io/llp.h"
#include "lwip/tcp.h"

static_assert(LWIP_IPV6_NUM_ADDRESSES == IO_IP6_MAX, "an interface has a link's addresses");

static inline struct uw_ip edge_ip6(const ip6_addr_t *a)
{
	struct uw_ip ip;

	memcpy(ip.b, a->addr, sizeof(ip.b));
	return ip;
}
static inline struct uw_ip edge_ip(const ip_addr_t *a)
{
	return IP_IS_V6(a) ? edge_ip6(ip_2_ip6(a)) : uw_ip_v4(ip_addr_get_ip4_u32(a));
}
static inline ip_addr_t edge_addr(const struct uw_ip *ip)
{
	ip_addr_t a = IPADDR4_INIT(uw_ip_v4_be(ip));

	if (!uw_ip_is_v4(ip)) {
		IP_SET_TYPE_VAL(a, IPADDR_TYPE_V6);
		memcpy(ip_2_ip6(&a)->addr, ip->b, sizeof(ip->b));
	}
	return a;
}

/* The address that lwIP has to listen on for a place. */
ip_addr_t edge_listen_addr(const struct io_link *l, const struct llp_place *at);
uw_status edge_status(err_t err);

/* The handshake is over: set the first congestion window, forget what the SYN's repetition did to
 * the RTO, and ask for keepalives every keepalive_ms (0: never) where no link tells that a peer
 * died.
 */
void edge_pcb_came_up(struct tcp_pcb *pcb, const struct io_link *l, uint32_t keepalive_ms);
struct llp_addrs edge_pcb_addrs(const struct tcp_pcb *pcb);
/* End a connection. Nothing is sent, and its user hears of it. */
void edge_pcb_drop(struct tcp_pcb *pcb);
/* Free a pcb that is in TIME_WAIT. False: it is not. */
bool edge_pcb_drop_time_wait(struct tcp_pcb *pcb);
/* How many have something to send, or a FIN that is not acknowledged. */
unsigned edge_pcbs_finishing(void);
/* End every connection to the process at that address (io.h; 0: all connections), which is dead,
 * but for those that `keep` wants to keep (NULL: none). Nothing is sent. */
void edge_pcbs_lose(uint32_t addr, bool (*keep)(const struct tcp_pcb *pcb));

#endif
