/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames out, to a link or to this process itself: no copy where it can be helped. */
#include "io/lwip/edge.h"

#include <string.h>

#include "lwip/prot/ethernet.h"
#include "lwip/prot/ip4.h"
#include "lwip/prot/tcp.h"

static struct edge_link *link_of_nif(struct netif *nif)
{
	return (struct edge_link *)((uint8_t *)nif - offsetof(struct edge_link, nif));
}

static unsigned flush(struct edge_link *el)
{
	unsigned n;

	if (!el->tx_n)
		return 0;
	n = el->io->ops->tx(el->io, el->txq, el->tx_n);
	el->tx_n -= n;
	if (el->tx_n)
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

static bool ours_alone(struct pbuf *p)
{
	return edge_is_tx(p) && edge_frame(p)->link->ops->refs(edge_frame(p)) == 1;
}

struct io_frame *edge_lend(struct pbuf *p)
{
	struct io_frame *f = edge_frame(p);

	f->link->ops->ref(f);
	f->data = p->payload;
	f->len = p->len;
	return f;
}

/* False: it has no room for that much. */
static bool copy_into(struct io_frame *f, const struct pbuf *p)
{
	if (p->tot_len > f->room - (uint32_t)(f->data - f->buf))
		return false;
	f->len = pbuf_copy_partial(p, f->data, p->tot_len, 0);
	return true;
}

/* A segment of ours goes as it is while nobody else holds it; everything else (SYN, ACK, FIN, a
 * retransmission still in the card's hands) is copied into a frame of its own. */
static struct io_frame *to_frame(struct edge_link *el, struct pbuf *p)
{
	struct io_link *l = el->io;
	struct io_frame *f;

	if (ours_alone(p))
		return edge_lend(p);
	f = edge_alloc_urgent(l);
	if (!f)
		return NULL;
	if (!copy_into(f, p)) {
		l->ops->free(f);
		return NULL;
	}
	edge.cfg.stats->tcp_tx_copied += f->len;
	return f;
}

void edge_queue(struct edge_link *el, struct io_frame *f)
{
	edge_capture(f);
	el->txq[el->tx_n++] = f;
}

/* Does the path take it? The first look is at what most paths take, and at the least headers. */
static bool is_too_long(const struct edge_link *el, struct pbuf *p)
{
	const uint32_t least = SIZEOF_ETH_HDR + IP_HLEN + TCP_HLEN, cut = edge_cut(el, p);
	uint32_t n = cut ? LWIP_MIN(p->tot_len, least + cut) : p->tot_len;

	return n > SIZEOF_ETH_HDR + LWIP_MIN(el->io->mtu, edge.paths.least) &&
	       edge_is_too_long(el, p, cut);
}

err_t edge_nif_send(struct netif *nif, struct pbuf *p)
{
	struct edge_link *el = link_of_nif(nif);
	struct io_frame *f;

	/* lwIP leaves the segment queued on an error and tries again later. */
	if (el->tx_n == EDGE_TXQ && flush(el) == EDGE_TXQ)
		return ERR_MEM;
	if (!(el->io->flags & IO_P2P)) {
		edge_set_df(p->payload, p->len);
		if (is_too_long(el, p))
			return edge_send_cut(el, p);
	}
	f = to_frame(el, p);
	if (!f)
		return ERR_MEM;
	f->marks = el->io->flags & IO_TX_CSUM ? IO_FRAME_SUM : 0;
	edge_queue(el, f);
	return ERR_OK;
}

/* To our own address: a copy, so that sender and receiver each own theirs. */
err_t edge_nif_send_self(struct netif *nif, struct pbuf *p)
{
	struct edge_link *el = link_of_nif(nif);
	struct io_frame *f;

	if (el->self_n == EDGE_SELF)
		return ERR_MEM;
	f = el->io->ops->alloc(el->io);
	if (!f)
		return ERR_MEM;
	if (!copy_into(f, p)) {
		el->io->ops->free(f);
		return ERR_MEM;
	}
	f->marks = el->io->flags & IO_TX_CSUM ? IO_FRAME_SUM_GOOD : 0; /* lwIP computed none */
	el->self[el->self_n++] = f;
	return ERR_OK;
}
