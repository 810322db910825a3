/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as lwIP interfaces: set-up, and frames in. Frames out: link_tx.c. */
#include "io/lwip/assertion.h"
#include "io/lwip/loss.h"
#include "io/lwip/path.h"

#include <string.h>

#include "base/slab.h"

#include "lwip/init.h"
#include "lwip/nd6.h"
#include "lwip/priv/memp_priv.h"
#include "lwip/tcp.h"
#include "netif/ethernet.h"

/* ---- in ---------------------------------------------------------------------------------- */

static void feed(struct edge_link *el, struct pbuf *p)
{
	if (el->nif.input(p, &el->nif) != ERR_OK)
		pbuf_free(p);
}

/* A SYN of a connection that there is not. */
static void open_half(struct edge_link *el, struct pbuf *p)
{
	struct edge_lists all = edge_lists_hide();

	feed(el, p);
	edge_lists_show(&all);
	edge_syn_opened();
}

/* Anybody may send segments of no connection, and of those that only wait: for each of them lwIP
 * would search all that there are. */
static void feed_unsearched(struct edge_link *el, struct pbuf *p, const struct edge_segment *s)
{
	struct edge_lists all = edge_lists_leave(s->c ? s->c->pcb : NULL);

	feed(el, p);
	edge_lists_show(&all);
}

/* For the time of TIME_WAIT. */
static bool waits(const struct edge_segment *s)
{
	return s->c && s->c->pcb && s->c->pcb->state == TIME_WAIT;
}

static void feed_segment(struct edge_link *el, struct pbuf *p, const struct edge_segment *s)
{
	if (edge_is_new_syn(s))
		open_half(el, p);
	else if (s->tcp && (!s->c || waits(s)))
		feed_unsearched(el, p, s);
	else
		feed(el, p);
}

/* The state of the connection is not what lwIP believes: it ends, and no other does. */
static void end_after_assertion(const struct edge_segment *s)
{
	unsigned failed = lwip_assertions_take();
	struct llp_conn *c;

	if (!failed)
		return;
	edge.cfg.stats->tcp_assertions += failed;
	c = s->tcp ? edge_conn_flow_find(&s->flow) : NULL;
	if (!c)
		return;
	edge_conn_activate(c);
	tcp_abort(c->pcb);
}

static bool lets_in(const struct edge_link *el, const struct edge_segment *s)
{
	if (edge_is_new_syn(s))
		return edge_syn_room(el, &s->flow.remote);
	return !s->c || (edge_conn_rx_check(s->c, s) && !edge_conn_rx_refuse(s->c, s));
}

void edge_input(struct io_link *l, struct io_frame *f)
{
	struct edge_link *el = edge_link_of(l);
	struct edge_segment s;
	struct pbuf *p;

	edge_capture(f);
	if (edge_rx_fast(el, f))
		return;
	if (edge_packet_rx(el, f))
		return;
	edge_defend(el, f);
	if (!(l->flags & IO_P2P) && (edge_icmp_in(f) || edge_member_in(el, f))) {
		io_free_chain(f);
		return;
	}
	edge_nif_trust(&el->nif, f);
	p = edge_wrap_rx(f);
	if (!edge_nif_wants(l, p, edge.cfg.stats)) {
		pbuf_free(p);
		return;
	}
	edge_flow_find(p, &s);
	edge_time_wait_end(&s);
	if (!lets_in(el, &s)) {
		pbuf_free(p);
		return;
	}
	feed_segment(el, p, &s);
	edge_loss_settle();
	/* It may be over and its record a spare one, which keeps nothing. */
	if (s.c)
		edge_conn_rx_kept(s.c);
	end_after_assertion(&s);
}

unsigned edge_poll(void)
{
	unsigned total = 0;

	edge_loss_timers();
	edge_path_timer();
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

uw_status edge_init(const struct llp_config *cfg)
{
	static bool once;

	edge.cfg = *cfg;
	edge_loss_init(cfg);
	edge_stamps_init(cfg);
	edge_flow_init();
	edge_syn_init();
	pmtu_init(&edge.paths);
	if (once)
		return UW_OK;
	once = true;
	slab_use_huge_pages(memp_pools[MEMP_TCP_PCB]->base,
			    (size_t)MEMP_NUM_TCP_PCB * sizeof(struct tcp_pcb));
	lwip_init();
	return UW_OK;
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

/* The neighbours are asked again, from the new address, by which they learn it; the others are
 * told. */
static void take_mac(struct edge_link *el)
{
	const struct io_link *l = el->io;

	if (!memcmp(el->nif.hwaddr, l->mac, sizeof(l->mac)))
		return;
	netif_set_down(&el->nif); /* forgets them */
	memcpy(el->nif.hwaddr, l->mac, sizeof(l->mac));
	netif_set_up(&el->nif);
	el->defence.announced = 0;
}

void edge_link_changed(struct io_link *l)
{
	struct edge_link *el = edge_link_of(l);

	if (!el)
		return;
	el->nif.mtu = (u16_t)l->mtu;
	take_mac(el);
	nd6_clear_destination_cache();
	edge_path_changed();
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
