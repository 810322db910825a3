/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as lwIP interfaces: frames in, frames out, no copy where it can be helped. */
#include "io/lwip/edge.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/init.h"
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

static err_t output(struct netif *nif, struct pbuf *p, const ip4_addr_t *to)
{
	struct edge_link *el = nif->state;
	struct eth_addr dst;
	err_t err;

	if (to->addr != el->io->addr && !(el->io->flags & IO_P2P))
		return etharp_output(nif, p, to);
	io_mac_of(to->addr, dst.addr);
	if (to->addr != el->io->addr)
		return ethernet_output(nif, p, (struct eth_addr *)nif->hwaddr, &dst, ETHTYPE_IP);
	/* ethernet_output would hand it to the link: put the header on by hand. */
	if (pbuf_add_header(p, SIZEOF_ETH_HDR))
		return ERR_BUF;
	memcpy(p->payload, nif->hwaddr, 6);
	memcpy((u8_t *)p->payload + 6, nif->hwaddr, 6);
	((u8_t *)p->payload)[12] = 0x08;
	((u8_t *)p->payload)[13] = 0x00;
	err = self_output(el, p);
	pbuf_remove_header(p, SIZEOF_ETH_HDR);
	return err;
}

/* ---- in ---------------------------------------------------------------------------------- */

void edge_input(struct io_link *l, struct io_frame *f)
{
	struct edge_link *el = edge_link_of(l);
	struct pbuf *p;

	capture(f);
	p = edge_wrap_rx(f);
	/* lwIP reads ARP's fields without asking whether they are there. Nothing that it knows is
	 * shorter. */
	if (p->len < SIZEOF_ETH_HDR + SIZEOF_ETHARP_HDR) {
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
