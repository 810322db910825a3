/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as lwIP interfaces: frames in, frames out, no copy where it can be helped. */
#include "io/lwip/assertion.h"
#include "io/lwip/loss.h"

#include <string.h>

#include "base/slab.h"

#include "lwip/init.h"
#include "lwip/priv/memp_priv.h"
#include "lwip/tcp.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

struct edge edge;

uint64_t uw_lwip_now_us(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

u32_t sys_now(void)
{
	return (u32_t)(uw_lwip_now_us() / 1000);
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

static struct edge_link *link_of_nif(struct netif *nif)
{
	return (struct edge_link *)((uint8_t *)nif - offsetof(struct edge_link, nif));
}

/* ---- out --------------------------------------------------------------------------------- */

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

static void capture(const struct io_frame *f)
{
	if (edge.cfg.capture)
		edge.cfg.capture(edge.cfg.arg, f);
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

/* A segment of ours goes as it is while nobody else holds it; everything else (SYN, ACK, FIN, a
 * retransmission still in the card's hands) is copied into a frame of its own. */
static struct io_frame *to_frame(struct edge_link *el, struct pbuf *p)
{
	struct io_link *l = el->io;
	struct io_frame *f;

	if (ours_alone(p))
		return edge_lend(p);
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

void edge_queue(struct edge_link *el, struct io_frame *f)
{
	capture(f);
	el->txq[el->tx_n++] = f;
}

err_t edge_nif_send(struct netif *nif, struct pbuf *p)
{
	struct edge_link *el = link_of_nif(nif);
	struct io_frame *f;

	/* lwIP leaves the segment queued on an error and tries again later. */
	if (el->tx_n == EDGE_TXQ && flush(el) == EDGE_TXQ)
		return ERR_MEM;
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
	f->len = pbuf_copy_partial(p, f->data, p->tot_len, 0);
	f->marks = el->io->flags & IO_TX_CSUM ? IO_FRAME_SUM_GOOD : 0; /* lwIP computed none */
	el->self[el->self_n++] = f;
	return ERR_OK;
}

/* ---- in ---------------------------------------------------------------------------------- */

/* A SYN of a connection that there is not. */
static void open_half(struct edge_link *el, struct pbuf *p)
{
	struct edge_lists all = edge_lists_hide();

	if (el->nif.input(p, &el->nif) != ERR_OK)
		pbuf_free(p);
	edge_lists_show(&all);
	edge_syn_opened();
}

/* The state of the connection is not what lwIP believes: it ends, and no other does. */
static void end_after_assertion(const struct edge_segment *s)
{
	unsigned failed = lwip_assertions_take();
	struct llp_conn *c;

	if (!failed)
		return;
	edge.cfg.stats->tcp_assertions += failed;
	c = s->tcp ? conn_flow_find(&s->flow) : NULL;
	if (!c)
		return;
	conn_activate(c);
	tcp_abort(c->pcb);
}

static bool lets_in(const struct edge_segment *s)
{
	if (edge_is_new_syn(s))
		return edge_syn_room(&s->flow.remote);
	return !s->c || (conn_rx_check(s->c, s) && !conn_rx_refuse(s->c, s->seq, s->len));
}

void edge_input(struct io_link *l, struct io_frame *f)
{
	struct edge_link *el = edge_link_of(l);
	struct edge_segment s;
	struct pbuf *p;

	capture(f);
	if (edge_rx_fast(el, f))
		return;
	edge_nif_trust(&el->nif, f);
	p = edge_wrap_rx(f);
	if (!edge_nif_wants(l, p)) {
		edge.cfg.stats->ip_rx_unwanted++;
		pbuf_free(p);
		return;
	}
	edge_flow_find(p, &s);
	if (!lets_in(&s)) {
		pbuf_free(p);
		return;
	}
	if (edge_is_new_syn(&s))
		open_half(el, p);
	else if (el->nif.input(p, &el->nif) != ERR_OK)
		pbuf_free(p);
	edge_loss_settle();
	/* It may be over and its record a spare one, which keeps nothing. */
	if (s.c)
		conn_rx_kept(s.c);
	end_after_assertion(&s);
}

unsigned edge_poll(void)
{
	unsigned total = 0;

	edge_loss_timers();
	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		struct edge_link *el = &edge.links[i];
		struct io_frame *v[EDGE_SELF];
		unsigned n = el->self_n;

		if (!n)
			continue;
		memcpy(v, el->self, n * sizeof(v[0]));
		el->self_n = 0;
		for (unsigned k = 0; k < n; k++)
			edge_input(el->io, v[k]);
		total += n;
	}
	return total;
}

/* ---- set-up ------------------------------------------------------------------------------ */

void edge_init(const struct llp_config *cfg)
{
	static bool once;

	edge.cfg = *cfg;
	edge_loss_init(cfg);
	edge_flow_init();
	edge_syn_init();
	if (once)
		return;
	once = true;
	slab_use_huge_pages(memp_pools[MEMP_TCP_PCB]->base,
			    (size_t)MEMP_NUM_TCP_PCB * sizeof(struct tcp_pcb));
	lwip_init();
}

void edge_add_link(struct io_link *l)
{
	struct edge_link *el = edge_link_of(NULL);

	if (!el)
		return;
	el->io = l;
	el->tx_n = el->self_n = 0;
	edge_nif_up(&el->nif, l, ethernet_input);
	if (l->flags & IO_TX_CSUM) /* of all that is marked in edge_nif_send */
		el->nif.chksum_flags &= (u16_t)~NETIF_CHECKSUM_GEN_TCP;
}

void edge_remove_link(struct io_link *l)
{
	struct edge_link *el = edge_link_of(l);

	if (!el)
		return;
	netif_remove(&el->nif);
	for (unsigned i = 0; i < el->tx_n; i++)
		io_free_chain(el->txq[i]);
	for (unsigned i = 0; i < el->self_n; i++)
		l->ops->free(el->self[i]);
	memset(el, 0, sizeof(*el));
}

void edge_timers(void)
{
	sys_check_timeouts();
	edge_active_list_timer();
	edge.cfg.stats->tcp_assertions += lwip_assertions_take();
}
