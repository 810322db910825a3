/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as lwIP interfaces: frames in, frames out, no copy where it can be helped. */
#include "io/addr.h"
#include "io/lwip/edge.h"
#include "io/lwip/hooks.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/ethip6.h"
#include "lwip/init.h"
#include "lwip/prot/icmp6.h"
#include "lwip/prot/ip6.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

struct edge edge;

u32_t sys_now(void)
{
	return (u32_t)(edge.cfg.now_us(edge.cfg.arg) / 1000);
}

uint32_t uw_lwip_random(void)
{
	return edge.cfg.random(edge.cfg.arg);
}

struct edge_link *edge_link_of(const struct io_link *l)
{
	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		if (edge.links[i].io == l)
			return &edge.links[i];
	}
	return NULL;
}

/* ---- out --------------------------------------------------------------------------------- */

static unsigned flush(struct edge_link *el)
{
	unsigned n;

	if (!el->tx_n)
		return 0;
	n = el->io->ops->tx(el->io, el->txq, el->tx_n);
	el->tx_n -= n;
	memmove(el->txq, el->txq + n, el->tx_n * sizeof(el->txq[0]));
	return el->tx_n;
}

bool edge_flush_links(void)
{
	unsigned left = 0;

	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		if (edge.links[i].io)
			left += flush(&edge.links[i]);
	}
	return left;
}

static void capture(const struct io_frame *f)
{
	if (edge.cfg.capture)
		edge.cfg.capture(edge.cfg.arg, f);
}

/* A segment of ours goes as it is while nobody else holds it; everything else (SYN, ACK, FIN, a
 * retransmission still in the card's hands) is copied into a frame of its own. */
static struct io_frame *to_frame(struct edge_link *el, struct pbuf *p)
{
	struct io_link *l = el->io;
	struct io_frame *f;

	if (edge_is_tx(p)) {
		f = edge_frame(p);
		if (l->ops->refs(f) == 1) {
			l->ops->ref(f);
			f->data = p->payload;
			f->len = p->len;
			return f;
		}
	}
	f = l->ops->alloc(l);
	if (!f)
		return NULL;
	if (p->tot_len > f->room - (uint32_t)(f->data - f->buf)) {
		l->ops->free(f);
		return NULL;
	}
	f->len = pbuf_copy_partial(p, f->data, p->tot_len, 0);
	edge.cfg.stats->tcp_tx_copied += f->len;
	return f;
}

static err_t link_output(struct netif *nif, struct pbuf *p)
{
	struct edge_link *el = nif->state;
	struct io_frame *f;

	/* lwIP leaves the segment queued on an error and tries again later. */
	if (el->tx_n == EDGE_TXQ && flush(el) == EDGE_TXQ)
		return ERR_MEM;
	f = to_frame(el, p);
	if (!f)
		return ERR_MEM;
	capture(f);
	el->txq[el->tx_n++] = f;
	return ERR_OK;
}

/* To our own address: a copy, so that sender and receiver each own theirs. */
static err_t self_output(struct edge_link *el, struct pbuf *p)
{
	struct io_frame *f;

	if (el->self_n == EDGE_SELF)
		return ERR_MEM;
	f = el->io->ops->alloc(el->io);
	if (!f)
		return ERR_MEM;
	f->len = pbuf_copy_partial(p, f->data, p->tot_len, 0);
	el->self[el->self_n++] = f;
	return ERR_OK;
}

/* ethernet_output would hand it to the link: put the header on by hand. */
static err_t to_self(struct netif *nif, struct pbuf *p, u16_t type)
{
	err_t err;

	if (pbuf_add_header(p, SIZEOF_ETH_HDR))
		return ERR_BUF;
	memcpy(p->payload, nif->hwaddr, 6);
	memcpy((u8_t *)p->payload + 6, nif->hwaddr, 6);
	((u8_t *)p->payload)[12] = (u8_t)(type >> 8);
	((u8_t *)p->payload)[13] = (u8_t)type;
	err = self_output(nif->state, p);
	pbuf_remove_header(p, SIZEOF_ETH_HDR);
	return err;
}

static err_t to_process(struct netif *nif, struct pbuf *p, uint32_t host, u16_t type)
{
	struct eth_addr dst;

	io_mac_of(host, dst.addr);
	return ethernet_output(nif, p, (struct eth_addr *)nif->hwaddr, &dst, type);
}

static err_t output(struct netif *nif, struct pbuf *p, const ip4_addr_t *to)
{
	const struct io_link *l = ((struct edge_link *)nif->state)->io;

	if (to->addr == l->addr)
		return to_self(nif, p, ETHTYPE_IP);
	if (l->flags & IO_P2P)
		return to_process(nif, p, to->addr, ETHTYPE_IP);
	return etharp_output(nif, p, to);
}

static err_t output_ip6(struct netif *nif, struct pbuf *p, const ip6_addr_t *to)
{
	const struct io_link *l = ((struct edge_link *)nif->state)->io;
	struct uw_ip dst = edge_ip6(to);

	if (io_has(l, &dst))
		return to_self(nif, p, ETHTYPE_IPV6);
	if (l->flags & IO_P2P)
		return to_process(nif, p, uw_ip_v4_be(&dst), ETHTYPE_IPV6);
	return ethip6_output(nif, p, to);
}

const struct ip6_addr *uw_lwip_next_hop(const struct netif *nif, const struct ip6_addr *to)
{
	const struct io_link *l = ((const struct edge_link *)nif->state)->io;
	struct uw_ip dst = edge_ip6(to);

	for (unsigned i = 0; i < l->n_ip6; i++) {
		if (uw_net_has(&l->ip6[i], &dst))
			return to;
	}
	return NULL;
}

/* ---- in ---------------------------------------------------------------------------------- */

/* ICMPv6 that a host without routers has a use for: its neighbours, and somebody who asks whether
 * it is there. Between processes, whose MACs are known, neither. */
static bool wants_icmp6(const struct io_link *l, u8_t type)
{
	return !(l->flags & IO_P2P) &&
	       (type == ICMP6_TYPE_NS || type == ICMP6_TYPE_NA || type == ICMP6_TYPE_EREQ);
}

/* An IPv6 packet goes up if it is TCP or such ICMPv6, without any extension header. Routers, whose
 * word would change where we send, and fragments and options, which no TCP needs, are not heard. */
static bool wants_ip6(const struct io_link *l, const struct pbuf *p)
{
	const uint8_t *ip = (const uint8_t *)p->payload + SIZEOF_ETH_HDR;

	if (p->len < SIZEOF_ETH_HDR + IP6_HLEN + ICMP6_HLEN)
		return false;
	return ip[6] == IP6_NEXTH_TCP || (ip[6] == IP6_NEXTH_ICMP6 && wants_icmp6(l, ip[IP6_HLEN]));
}

/* Nothing that lwIP knows is shorter than ARP, and it reads ARP's fields without asking whether
 * they are there. */
static bool wants(const struct io_link *l, const struct pbuf *p)
{
	const uint8_t *f = p->payload;

	if (p->len < SIZEOF_ETH_HDR + SIZEOF_ETHARP_HDR)
		return false;
	return f[12] != 0x86 || f[13] != 0xdd || wants_ip6(l, p);
}

void edge_input(struct io_link *l, struct io_frame *f)
{
	struct edge_link *el = edge_link_of(l);
	struct pbuf *p;

	capture(f);
	p = edge_wrap_rx(f);
	if (!wants(l, p)) {
		edge.cfg.stats->ip_rx_unwanted++;
		pbuf_free(p);
		return;
	}
	edge_flow_find(p);
	if (el->nif.input(p, &el->nif) != ERR_OK)
		pbuf_free(p);
}

unsigned edge_poll(void)
{
	unsigned total = 0;

	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		struct edge_link *el = &edge.links[i];
		struct io_frame *v[EDGE_SELF];
		unsigned n = el->self_n;

		memcpy(v, el->self, n * sizeof(v[0]));
		el->self_n = 0;
		for (unsigned k = 0; k < n; k++)
			edge_input(el->io, v[k]);
		total += n;
	}
	return total;
}

/* ---- set-up ------------------------------------------------------------------------------ */

static err_t netif_setup(struct netif *nif)
{
	struct edge_link *el = nif->state;

	nif->name[0] = 'u';
	nif->name[1] = 'w';
	nif->mtu = (u16_t)el->io->mtu;
	nif->hwaddr_len = 6;
	memcpy(nif->hwaddr, el->io->mac, 6);
	nif->flags = NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
	if (!(el->io->flags & IO_P2P))
		nif->flags |= NETIF_FLAG_BROADCAST;
	nif->output = output;
	nif->output_ip6 = output_ip6;
	nif->linkoutput = link_output;
	/* Shared memory does not flip bits, and MPA has its CRC: no TCP checksum on IO_P2P. */
	NETIF_SET_CHECKSUM_CTRL(nif, el->io->flags & IO_P2P ? NETIF_CHECKSUM_DISABLE_ALL
							    : NETIF_CHECKSUM_ENABLE_ALL);
	return ERR_OK;
}

bool edge_netif_up(struct edge_link *el)
{
	ip4_addr_t addr = { el->io->addr }, mask = { el->io->mask }, gw = { 0 };

	if (!netif_add(&el->nif, &addr, &mask, &gw, el, netif_setup, ethernet_input))
		return false;
	for (unsigned i = 0; i < el->io->n_ip6; i++) {
		ip_addr_t six = edge_addr(&el->io->ip6[i].ip);

		/* No search for duplicates: the addresses are given out by whoever starts us. */
		netif_ip6_addr_set(&el->nif, (s8_t)i, ip_2_ip6(&six));
		netif_ip6_addr_set_state(&el->nif, (s8_t)i, IP6_ADDR_PREFERRED);
	}
	netif_set_up(&el->nif);
	if (!netif_default)
		netif_set_default(&el->nif);
	return true;
}

void edge_init(const struct llp_config *cfg)
{
	static bool once;

	edge.cfg = *cfg;
	if (once)
		return;
	once = true;
	lwip_init();
}

void edge_add_link(struct io_link *l)
{
	struct edge_link *el = edge_link_of(NULL);

	if (!el)
		return;
	el->io = l;
	el->tx_n = el->self_n = 0;
	edge_netif_up(el);
}

void edge_remove_link(struct io_link *l)
{
	struct edge_link *el = edge_link_of(l);

	if (!el)
		return;
	netif_remove(&el->nif);
	for (unsigned i = 0; i < el->tx_n; i++)
		l->ops->free(el->txq[i]);
	for (unsigned i = 0; i < el->self_n; i++)
		l->ops->free(el->self[i]);
	memset(el, 0, sizeof(*el));
}

void edge_timers(void)
{
	sys_check_timeouts();
}
