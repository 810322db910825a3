/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: made and ended. Listeners: listen.c, octets: stream.c. */
#include <stdlib.h>

#include "io/lwip/pcb/pcb.h"
#include "io/seq/seq.h"

#include "lwip/priv/tcp_priv.h"

#define TICK_US (TCP_TMR_INTERVAL * 1000u)

/* ---- under the core lock ----------------------------------------------------------------- */

/* Below it lwIP refers to nothing: a segment that is acknowledged in part stays whole. */
static uint32_t first_kept(const struct tcp_pcb *pcb)
{
	const struct tcp_seg *heads[] = { pcb->unacked, pcb->unsent };
	uint32_t at = pcb->lastack;

	for (unsigned i = 0; i < 2; i++) {
		uint32_t seqno = heads[i] ? lwip_ntohl(heads[i]->tcphdr->seqno) : at;

		if (TCP_SEQ_LT(seqno, at))
			at = seqno;
	}
	return at;
}

/* Is that worth telling? lwIP's thread, which has no ACKs, only looks in. */
static bool acked(struct llp_conn *c, const struct tcp_pcb *pcb)
{
	if (seq_is_lwips())
		return true;
	seq_tx_acked(c, first_kept(pcb));
	return c->end != SEQ_ON || c->shut || c->stuck || !c->full || !seq_tx_full(c);
}

void seq_on_event(struct netconn *nc, enum netconn_evt evt, u16_t len)
{
	static const unsigned events[] = { [NETCONN_EVT_RCVPLUS] = SEQ_READ,
					   [NETCONN_EVT_SENDPLUS] = SEQ_WRITE,
					   [NETCONN_EVT_ERROR] = SEQ_ERROR };
	struct seq_end *x;
	unsigned e;

	(void)len;
	/* Of what we took or wrote ourselves: in our thread. */
	if (evt == NETCONN_EVT_RCVMINUS || evt == NETCONN_EVT_SENDMINUS)
		return;
	/* It was accepted and nobody has taken it yet; whoever does looks at everything. */
	if (nc->callback_arg.socket == -1)
		return;
	x = nc->callback_arg.ptr;
	e = events[evt];
	if (evt == NETCONN_EVT_SENDPLUS && nc->pcb.tcp) {
		e |= SEQ_UP;
		atomic_store(&x->acked, nc->pcb.tcp->lastack);
		if (!acked((struct llp_conn *)x, nc->pcb.tcp))
			return;
		if (!atomic_exchange(&x->wants, false))
			return;
	}
	seq_ring(x, e);
}

static err_t swallow(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	(void)arg;
	(void)err;
	if (p) {
		tcp_recved(pcb, p->tot_len);
		pbuf_free(p);
	}
	return ERR_OK;
}

/* lwIP answers data that was not read with a reset, which would take from the peer what we sent
 * last: from now on everything counts as read. */
static err_t read_no_more(void *netconn)
{
	struct tcp_pcb *pcb = ((struct netconn *)netconn)->pcb.tcp;

	if (!pcb || pcb->state == LISTEN)
		return ERR_OK;
	pcb->rcv_wnd = TCP_WND_MAX(pcb);
	tcp_recv(pcb, swallow);
	return ERR_OK;
}

static err_t reset(void *netconn)
{
	struct tcp_pcb *pcb = ((struct netconn *)netconn)->pcb.tcp;

	if (pcb)
		tcp_abort(pcb); /* the netconn forgets it */
	return ERR_OK;
}

static err_t lose_peer(void *addr)
{
	edge_pcbs_lose(*(uint32_t *)addr, NULL);
	return ERR_OK;
}

static err_t count_finishing(void *n)
{
	*(unsigned *)n += edge_pcbs_finishing();
	return ERR_OK;
}

static bool has_port(const struct tcp_pcb *pcb, u16_t port)
{
	while (pcb && pcb->local_port != port)
		pcb = pcb->next;
	return pcb;
}

static err_t look_for_port(void *port)
{
	u16_t n = *(u16_t *)port;

	return has_port(tcp_active_pcbs, n) || has_port(tcp_tw_pcbs, n) ? ERR_USE : ERR_OK;
}

/* ---- its record -------------------------------------------------------------------------- */

static void connected(struct llp_conn *c)
{
	struct seq_setup s = { c, c->x.nc };

	if (seq_call(seq_came_up, &s)) {
		seq_conn_gone(c, UW_E_LLP_CLOSED);
		return;
	}
	c->connecting = false;
	seq.cfg.user->connected(c->ctx);
}

static void refused(struct llp_conn *c)
{
	/* ERR_RST, or lwIP gave up asking */
	seq_conn_gone(c, netconn_err(c->x.nc) == ERR_RST ? UW_E_REFUSED : UW_E_TIMEOUT);
}

static void on_ready(struct seq_end *x, unsigned events)
{
	struct llp_conn *c = (struct llp_conn *)x;

	c->in_callback = true;
	if (c->connecting && events & SEQ_UP)
		connected(c);
	else if (c->connecting && events & SEQ_ERROR)
		refused(c);
	if (x->dead || c->connecting)
		goto out;
	seq_read(c);
	if (!x->dead && events & SEQ_ERROR && netconn_err(x->nc) != ERR_OK)
		seq_conn_gone(c, UW_E_LLP_CLOSED);
	if (!x->dead && events & SEQ_WRITE) {
		seq_write_rest(c);
		if (c->ctx && c->end == SEQ_ON)
			seq.cfg.user->writable(c->ctx);
	}
out:
	c->in_callback = false;
	if (!x->dead)
		seq_settle(c);
}

struct llp_conn *seq_conn_new(struct seq_link *sl, void *ctx)
{
	struct llp_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->x.handle = on_ready;
	c->sl = sl;
	c->ctx = ctx;
	rx_queue_init(&c->rx_queue);
	c->next = seq.conns;
	c->link = &seq.conns;
	if (c->next)
		c->next->link = &c->next;
	seq.conns = c;
	return c;
}

/* The record goes, and what is left of the netconn with it. */
static void conn_free(struct llp_conn *c)
{
	rx_queue_drop(&c->rx_queue);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	/* Of what was not acknowledged lwIP knows as long as it has the connection. */
	if (c->x.nc && c->tx_first)
		seq_call(reset, c->x.nc);
	if (c->x.nc)
		netconn_delete(c->x.nc);
	seq_tx_forget(c);
	seq_end_free(&c->x);
}

void seq_conn_gone(struct llp_conn *c, uw_status why)
{
	void *ctx = c->end == SEQ_ON ? c->ctx : NULL;

	conn_free(c);
	if (ctx)
		seq.cfg.user->closed(ctx, why);
}

void seq_conn_drop(struct llp_conn *c)
{
	seq_call(reset, c->x.nc);
	conn_free(c);
}

/* ---- ending ------------------------------------------------------------------------------ */

static void listen_no_more(struct llp_conn *c)
{
	if (!c->deaf)
		seq_call(read_no_more, c->x.nc);
	c->deaf = true;
}

/* With our FIN netconn lets go of what tells us of acknowledgements, and until all is acknowledged
 * lwIP refers to our frames. So the FIN comes after that. */
void seq_settle(struct llp_conn *c)
{
	if (c->end == SEQ_ABORT) {
		seq_conn_drop(c);
		return;
	}
	if (c->end == SEQ_CLOSE)
		listen_no_more(c);
	else if (!c->shut || c->fin_sent)
		return;
	if (c->tx_first) {
		atomic_store(&c->x.wants, true);
	} else if (c->end == SEQ_CLOSE) {
		conn_free(c);
	} else {
		c->fin_sent = true;
		netconn_shutdown(c->x.nc, 0, 1);
	}
}

void seq_close(struct llp_conn *c)
{
	seq_tx_flush(c);
	c->end = SEQ_CLOSE;
	if (!c->in_callback)
		seq_settle(c);
}

void seq_shutdown(struct llp_conn *c)
{
	seq_tx_flush(c);
	c->shut = true;
	if (!c->in_callback)
		seq_settle(c);
}

void seq_abort(struct llp_conn *c)
{
	c->end = SEQ_ABORT;
	if (!c->in_callback)
		seq_settle(c);
}

void seq_peer_down(struct io_link *l, uint32_t addr)
{
	(void)l;
	seq_call(lose_peer, &addr);
}

unsigned seq_lingering(void)
{
	unsigned n = 0;

	for (const struct llp_conn *c = seq.conns; c; c = c->next)
		n += c->tx_first != NULL;
	seq_call(count_finishing, &n);
	return n;
}

/* lwIP's own timers are its thread's. The engine's matter between hosts: there somebody watches
 * the peer. */
uint64_t seq_next_timer_us(void)
{
	for (const struct llp_conn *c = seq.conns; c; c = c->next) {
		if (c->connecting || c->stuck || !(c->sl->io->flags & IO_P2P))
			return TICK_US;
	}
	return seq.conns ? 25 * TICK_US : UINT64_MAX;
}

/* Of what was closed lwIP knows for a while longer. */
bool seq_port_free(uint16_t port)
{
	u16_t n = lwip_ntohs(port);

	return !seq_call(look_for_port, &n);
}

/* ---- connecting -------------------------------------------------------------------------- */

uw_status seq_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		      struct llp_conn **out)
{
	ip_addr_t to = edge_addr(&a->remote), from = edge_addr(&a->local);
	struct llp_conn *c = seq_conn_new(seq_link_of(l), ctx);
	err_t err = ERR_MEM;

	if (!c)
		return UW_E_NOMEM;
	c->x.nc = netconn_new_with_callback(NETCONN_TCP, seq_on_event);
	if (!c->x.nc)
		goto fail;
	c->x.wants = true;
	c->connecting = true;
	c->x.nc->callback_arg.ptr = &c->x;
	seq_call(seq_prepare, c->x.nc);
	if (a->tos)
		seq_set_tos(c, a->tos);
	err = netconn_bind_if(c->x.nc, netif_get_index(&c->sl->nif));
	if (!err)
		err = netconn_bind(c->x.nc, &from, lwip_ntohs(a->lport));
	if (!err)
		err = netconn_connect(c->x.nc, &to, lwip_ntohs(a->rport));
	if (err && err != ERR_INPROGRESS)
		goto fail;
	*out = c;
	return UW_OK;
fail:
	conn_free(c);
	return edge_status(err);
}

struct llp_addrs seq_addrs(const struct llp_conn *c)
{
	return c->addrs;
}

void seq_set_tos(struct llp_conn *c, uint8_t tos)
{
	seq_call(seq_mark, &(struct seq_tos){ c->x.nc, tos });
}
