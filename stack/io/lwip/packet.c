/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of RoCEv2, which are UDP's, past lwIP's IP and UDP: the packet's ICRC covers the IP
 * header as it is on the wire, so the user makes and reads that one (doc/adr/0032). lwIP finds the
 * neighbour.
 */
#include "io/lwip/edge.h"

#include "base/be.h"
#include "io/addr.h"
#include "io/route/table.h"
#include "lwip/etharp.h"
#include "lwip/prot/ethernet.h"
#include "netif/ethernet.h"

#define PIECES	  40u
#define IP4_LEN	  20u
#define IP6_LEN	  40u
#define UDP_PROTO 17u
#define ROCE_PORT 4791u

/* ---- in ---------------------------------------------------------------------------------- */

static bool is_roce(const uint8_t *udp)
{
	return uw_be16(udp + 2) == ROCE_PORT;
}

/* Its destination, if it is such a packet: the ports are in the first buffer. */
static bool read_destination(const struct io_frame *f, struct uw_ip *to)
{
	const uint8_t *ip = f->data + SIZEOF_ETH_HDR;
	uint16_t type = f->len < SIZEOF_ETH_HDR ? 0 : uw_be16(f->data + 12);
	uint32_t v4;

	if (type == 0x0800 && f->len >= SIZEOF_ETH_HDR + IP4_LEN + 8 && ip[0] == 0x45 &&
	    ip[9] == UDP_PROTO && is_roce(ip + IP4_LEN)) {
		memcpy(&v4, ip + 16, sizeof(v4));
		*to = uw_ip_v4(v4);
		return true;
	}
	if (type == 0x86dd && f->len >= SIZEOF_ETH_HDR + IP6_LEN + 8 && ip[6] == UDP_PROTO &&
	    is_roce(ip + IP6_LEN)) {
		memcpy(to->b, ip + 24, sizeof(to->b));
		return true;
	}
	return false;
}

static void hand_over(struct io_link *l, const struct io_frame *f)
{
	struct uw_span v[PIECES];
	struct uw_rope r = { .v = v };
	unsigned n = 0;

	for (; f && n < PIECES; f = f->next) {
		v[n++] = (struct uw_span){ f->data, f->len };
		r.len += f->len;
	}
	if (!f)
		edge.cfg.user->packet(edge.cfg.arg, l,
				      uw_rope_sub(r, SIZEOF_ETH_HDR, r.len - SIZEOF_ETH_HDR));
}

bool edge_packet_rx(const struct edge_link *el, struct io_frame *f)
{
	struct uw_ip to;

	if (!read_destination(f, &to))
		return false;
	if ((io_has(el->io, &to) || uw_ip_is_multicast(&to)) && edge.cfg.user->packet)
		hand_over(el->io, f);
	else
		edge.cfg.stats->ip_rx_unwanted++;
	io_free_chain(f);
	return true;
}

/* ---- out --------------------------------------------------------------------------------- */

static bool has_room(const struct edge_link *el, const struct uw_ip *to)
{
	struct io_link *l = el->io;

	if (el->tx_n == EDGE_TXQ || el->self_n == EDGE_SELF)
		return false;
	return !to || !l->ops->has_room || l->ops->has_room(l, to, el->tx_n);
}

static bool find_room(struct edge_link *el, const struct uw_ip *to)
{
	if (has_room(el, to))
		return true;
	if (!el->tx_n)
		return false;
	edge_flush_links();
	return has_room(el, to);
}

uint8_t *edge_packet_begin(struct io_link *l, const struct uw_ip *to, size_t *room)
{
	struct edge_link *el = edge_link_of(l);
	struct io_frame *f = el && find_room(el, to) ? l->ops->alloc(l) : NULL;

	if (!f)
		return NULL;
	el->packet = f;
	*room = f->room - (size_t)(f->data - f->buf);
	if (*room > l->mtu)
		*room = l->mtu;
	return f->data;
}

/* RFC 1112 §6.4, RFC 2464 §7. Also between processes, where all get a copy. */
static void output_to_group(struct netif *nif, struct pbuf *p, const struct uw_ip *to)
{
	const uint8_t *b = to->b;
	struct eth_addr four = { { 0x01, 0x00, 0x5e, b[13] & 0x7f, b[14], b[15] } };
	struct eth_addr six = { { 0x33, 0x33, b[12], b[13], b[14], b[15] } };
	bool is4 = uw_ip_is_v4(to);

	ethernet_output(nif, p, (struct eth_addr *)nif->hwaddr, is4 ? &four : &six,
			is4 ? ETHTYPE_IP : ETHTYPE_IPV6);
}

/* The link brings it to all processes that share the address. */
static bool is_for_others(const struct io_link *l, const struct uw_ip *to)
{
	unsigned version = uw_ip_is_v4(to) ? IO_V4 : IO_V6;

	return l->ops->is_ours && io_shared_versions(l) & version && io_has(l, to);
}

static void output(struct netif *nif, struct pbuf *p, const struct uw_ip *to, bool others)
{
	struct eth_addr *own = (struct eth_addr *)nif->hwaddr;
	ip_addr_t a = edge_addr(to);

	if (others && is_for_others(nif->state, to))
		ethernet_output(nif, p, own, own, uw_ip_is_v4(to) ? ETHTYPE_IP : ETHTYPE_IPV6);
	else if (uw_ip_is_multicast(to))
		output_to_group(nif, p, to);
	else if (uw_ip_is_v4(to))
		nif->output(nif, p, ip_2_ip4(&a));
	else
		nif->output_ip6(nif, p, ip_2_ip6(&a));
}

void edge_packet_end(struct io_link *l, size_t n, const struct uw_ip *to, bool others)
{
	struct edge_link *el = edge_link_of(l);
	struct io_frame *f = el->packet;
	struct pbuf *p;

	el->packet = NULL;
	f->len = (uint32_t)n;
	p = edge_wrap_tx(f);
	if (n)
		output(&el->nif, p, to, others);
	pbuf_free(p);
}
