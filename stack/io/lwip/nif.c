/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/nif.h"

#include <string.h>

#include "base/be.h"
#include "io/addr.h"
#include "io/lwip/hooks.h"
#include "io/lwip/pcb/pcb.h"
#include "io/route/table.h"

#include "lwip/etharp.h"
#include "lwip/ethip6.h"
#include "lwip/prot/icmp6.h"
#include "lwip/prot/ip6.h"
#include "netif/ethernet.h"

/* ---- out --------------------------------------------------------------------------------- */

/* ethernet_output would hand it to the link: put the header on by hand. */
static err_t to_self(struct netif *nif, struct pbuf *p, u16_t type)
{
	if (pbuf_add_header(p, SIZEOF_ETH_HDR))
		return ERR_BUF;
	memcpy(p->payload, nif->hwaddr, 6);
	memcpy((u8_t *)p->payload + 6, nif->hwaddr, 6);
	((u8_t *)p->payload)[12] = (u8_t)(type >> 8);
	((u8_t *)p->payload)[13] = (u8_t)type;
	return edge_nif_send_self(nif, p);
}

static err_t to_process(struct netif *nif, struct pbuf *p, uint32_t host, u16_t type)
{
	struct eth_addr dst;

	io_mac_of(host, dst.addr);
	return ethernet_output(nif, p, (struct eth_addr *)nif->hwaddr, &dst, type);
}

bool edge_nif_is_fixed(const struct io_link *l, const struct uw_ip *hop)
{
	return l->routes && route_mac(l->routes, hop);
}

/* A neighbour whose MAC address is fixed. False: it is not. */
static bool to_fixed(struct netif *nif, struct pbuf *p, const struct uw_ip *hop, u16_t type,
		     err_t *out)
{
	const struct io_link *l = nif->state;
	struct eth_addr dst;

	if (!edge_nif_is_fixed(l, hop))
		return false;
	memcpy(dst.addr, route_mac(l->routes, hop), sizeof(dst.addr));
	*out = ethernet_output(nif, p, (struct eth_addr *)nif->hwaddr, &dst, type);
	return true;
}

/* etharp_output would have one gateway only: it is given the neighbour (LWIP_HOOK_ETHARP_GET_GW).
 */
static err_t to_neighbor(struct netif *nif, struct pbuf *p, const ip4_addr_t *to)
{
	const struct uw_ip dst = uw_ip_v4(to->addr);
	struct uw_ip hop;
	ip4_addr_t next;
	err_t err;

	if (!route_next_hop(nif->state, &dst, &hop))
		return ERR_RTE;
	if (to_fixed(nif, p, &hop, ETHTYPE_IP, &err))
		return err;
	next.addr = uw_ip_v4_be(&hop);
	return etharp_output(nif, p, &next);
}

/* p begins with the IP header, of which TCP's is behind. */
static bool is_for_us(struct io_link *l, const struct pbuf *p)
{
	const uint8_t *ip = p->payload;
	bool four = ip[0] >> 4 == 4;
	uint16_t port;

	if (!l->ops->is_ours || ip[four ? 9 : 6] != IP_PROTO_TCP)
		return true;
	memcpy(&port, ip + (four ? (ip[0] & 15u) * 4 : IP6_HLEN) + 2, sizeof(port));
	return l->ops->is_ours(l, port, four ? IO_V4 : IO_V6);
}

static err_t to_own(struct netif *nif, struct pbuf *p, u16_t type)
{
	if (is_for_us(nif->state, p))
		return to_self(nif, p, type);
	return ethernet_output(nif, p, (struct eth_addr *)nif->hwaddr,
			       (struct eth_addr *)nif->hwaddr, type);
}

static err_t output(struct netif *nif, struct pbuf *p, const ip4_addr_t *to)
{
	const struct io_link *l = nif->state;

	if (to->addr == l->addr)
		return to_own(nif, p, ETHTYPE_IP);
	if (l->flags & IO_P2P)
		return to_process(nif, p, to->addr, ETHTYPE_IP);
	return to_neighbor(nif, p, to);
}

bool edge_nif_has_way(const struct io_link *l, const struct uw_ip *to)
{
	struct uw_ip hop;

	return l->flags & IO_P2P || uw_ip_is_multicast(to) || io_has(l, to) ||
	       route_next_hop(l, to, &hop);
}

static err_t output_ip6(struct netif *nif, struct pbuf *p, const ip6_addr_t *to)
{
	const struct io_link *l = nif->state;
	struct uw_ip dst = edge_ip6(to), hop;
	err_t err;

	if (io_has(l, &dst))
		return to_own(nif, p, ETHTYPE_IPV6);
	if (l->flags & IO_P2P)
		return to_process(nif, p, uw_ip_v4_be(&dst), ETHTYPE_IPV6);
	if (l->routes && l->routes->n_near && route_next_hop(l, &dst, &hop) &&
	    to_fixed(nif, p, &hop, ETHTYPE_IPV6, &err))
		return err;
	return ethip6_output(nif, p, to);
}

const struct ip6_addr *uw_lwip_next_hop(const struct netif *nif, const struct ip6_addr *to)
{
	static ip6_addr_t next;
	struct uw_ip dst = edge_ip6(to), hop;
	ip_addr_t six;

	if (!route_next_hop(nif->state, &dst, &hop))
		return NULL;
	six = edge_addr(&hop);
	next = *ip_2_ip6(&six);
	return &next;
}

#define ND_HEADER 24 /* octets of a solicitation or advertisement without options */

/* ---- in ---------------------------------------------------------------------------------- */

/* ICMPv6 that a host without routers has a use for: its neighbours, and somebody who asks whether
 * it is there. Between processes, whose MACs are known, neither. */
static bool wants_icmp6(const struct io_link *l, u8_t type)
{
	return !(l->flags & IO_P2P) &&
	       (type == ICMP6_TYPE_NS || type == ICMP6_TYPE_NA || type == ICMP6_TYPE_EREQ);
}

/* RFC 4861 §7.1.1, §7.1.2: no option has a length of 0; and none is longer than the message, of
 * which lwIP does not make sure. n: octets from the IP header on. */
static bool options_fit(const uint8_t *ip, size_t n)
{
	size_t at = IP6_HLEN + ND_HEADER, end = IP6_HLEN + uw_be16(ip + 4);

	if (end > n || at > end)
		return false;
	for (; at < end; at += ip[at + 1] * 8u) {
		if (end - at < 8 || !ip[at + 1] || ip[at + 1] * 8u > end - at)
			return false;
	}
	return true;
}

/* An IPv6 packet goes up if it is TCP or such ICMPv6, without any extension header. Routers, whose
 * word would change where we send, and fragments and options, which no TCP needs, are not heard. */
static bool wants_ip6(const struct io_link *l, const struct pbuf *p)
{
	const uint8_t *ip = (const uint8_t *)p->payload + SIZEOF_ETH_HDR;

	if (ip[6] == IP6_NEXTH_TCP)
		return true;
	if (ip[6] != IP6_NEXTH_ICMP6 || !wants_icmp6(l, ip[IP6_HLEN]))
		return false;
	return ip[IP6_HLEN] == ICMP6_TYPE_EREQ || options_fit(ip, p->len - SIZEOF_ETH_HDR);
}

#define MF_AND_OFFSET 0x3fffu /* RFC 791 §3.1 */

static bool is_fragment(const uint8_t *ip, uint16_t type)
{
	if (type == ETHTYPE_IP)
		return uw_be16(ip + 6) & MF_AND_OFFSET;
	return type == ETHTYPE_IPV6 && ip[6] == IP6_NEXTH_FRAGMENT;
}

/* Nothing that lwIP knows is shorter than ARP, and it reads ARP's fields without asking whether
 * they are there. Nobody puts fragments together: TCP sends none, and pieces that wait for the rest
 * would be memory that anybody can take. */
bool edge_nif_wants(const struct io_link *l, const struct pbuf *p, struct uw_stats *stats)
{
	const uint8_t *ip = (const uint8_t *)p->payload + SIZEOF_ETH_HDR;
	bool whole = p->len >= SIZEOF_ETH_HDR + SIZEOF_ETHARP_HDR;
	uint16_t type = whole ? uw_be16(ip - 2) : 0;

	if (type == ETHTYPE_IPV6)
		whole = p->len >= SIZEOF_ETH_HDR + IP6_HLEN + ICMP6_HLEN;
	if (whole && is_fragment(ip, type)) {
		stats->ip_rx_fragments++;
		return false;
	}
	if (whole && (type != ETHTYPE_IPV6 || wants_ip6(l, p)))
		return true;
	stats->ip_rx_unwanted++;
	return false;
}

void edge_nif_trust(struct netif *nif, const struct io_frame *f)
{
	const struct io_link *l = nif->state;

	if (io_unsummed(l) || !(l->flags & (IO_RX_CSUM | IO_TX_CSUM)))
		return;
	if (f->marks & IO_FRAME_SUM_GOOD)
		nif->chksum_flags &= (u16_t)~NETIF_CHECKSUM_CHECK_TCP;
	else
		nif->chksum_flags |= NETIF_CHECKSUM_CHECK_TCP;
}

/* ---- set-up ------------------------------------------------------------------------------ */

/* A connection remembers the place of its neighbour, whichever it is. */
_Static_assert(sizeof(((struct netif_hint *)NULL)->addr_hint) == sizeof(netif_addr_idx_t),
	       "lwip-nd6-neighbors.diff");
_Static_assert(ARP_TABLE_SIZE <= NETIF_ADDR_IDX_MAX &&
		       LWIP_ND6_NUM_DESTINATIONS <= NETIF_ADDR_IDX_MAX,
	       "places of neighbours");

static err_t netif_setup(struct netif *nif)
{
	const struct io_link *l = nif->state;

	nif->name[0] = 'u';
	nif->name[1] = 'w';
	nif->mtu = (u16_t)l->mtu;
	nif->hwaddr_len = 6;
	memcpy(nif->hwaddr, l->mac, 6);
	nif->flags = NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
	if (!(l->flags & IO_P2P))
		nif->flags |= NETIF_FLAG_BROADCAST;
	nif->output = output;
	nif->output_ip6 = output_ip6;
	nif->linkoutput = edge_nif_send;
	/* Shared memory does not flip bits, and MPA has its CRC: no TCP checksum on IO_P2P,
	 * unless the link says otherwise. */
	NETIF_SET_CHECKSUM_CTRL(nif, io_unsummed(l) ? NETIF_CHECKSUM_DISABLE_ALL
						    : NETIF_CHECKSUM_ENABLE_ALL);
	return ERR_OK;
}

bool edge_nif_up(struct netif *nif, struct io_link *l, netif_input_fn input)
{
	ip4_addr_t addr = { l->addr }, mask = { l->mask }, gw = { 0 };

	if (!netif_add(nif, &addr, &mask, &gw, l, netif_setup, input))
		return false;
	for (unsigned i = 0; i < l->n_ip6; i++) {
		ip_addr_t six = edge_addr(&l->ip6[i].ip);

		/* No search for duplicates: the addresses are given out by whoever starts us. */
		netif_ip6_addr_set(nif, (s8_t)i, ip_2_ip6(&six));
		netif_ip6_addr_set_state(nif, (s8_t)i, IP6_ADDR_PREFERRED);
	}
	netif_set_up(nif);
	if (!netif_default)
		netif_set_default(nif);
	return true;
}
