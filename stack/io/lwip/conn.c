/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: listening, connecting, accepting, ending. Octets: pcb/rx.c and pcb/tx_queue.c. */
#include "io/lwip/loss.h"

#include <string.h>

#include "base/slab.h"

static void list(struct llp_conn *c, struct llp_conn **head)
{
	c->next = *head;
	c->link = head;
	if (c->next)
		c->next->link = &c->next;
	*head = c;
}

static void unlist(struct llp_conn *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
}

struct llp_conn *conn_new(struct edge_link *el, void *ctx)
{
	struct llp_conn *c = edge.spare;

	if (c)
		edge.spare = c->next;
	else
		c = slab_alloc(sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->el = el;
	c->ctx = ctx;
	rx_queue_init(&c->rx_queue);
	list(c, &edge.conns);
	return c;
}

/* It has no user any more. */
static void leave(struct llp_conn *c)
{
	rx_queue_drop(&c->rx_queue);
	conn_rx_kept(c);
	conn_drop_building(c);
	conn_forget_ack(c);
	conn_active_list_forget(c);
	if (c->listener)
		conn_established(c);
	c->ctx = NULL;
}

void conn_release(struct llp_conn *c)
{
	conn_flow_remove(c);
	conn_loss_end(c);
	conn_rx_forget(c);
	unlist(c);
	c->pcb = NULL;
	c->next = edge.spare;
	edge.spare = c;
}

static void conn_free(struct llp_conn *c)
{
	leave(c);
	conn_release(c);
}

static void detach(struct tcp_pcb *pcb)
{
	tcp_arg(pcb, NULL);
	tcp_recv(pcb, NULL);
	tcp_sent(pcb, NULL);
	tcp_err(pcb, NULL);
	conn_flow_own(pcb, NULL);
}

/* What lwIP has yet to do, it does without us; until the pcb is freed its segments are found. */
static void part(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	leave(c);
	unlist(c);
	list(c, &edge.detached);
	detach(pcb);
	c->end = CONN_DETACHED;
	c->prefetch_list = (struct uw_prefetch_list){ 0 };
	conn_flow_own(pcb, c);
	tcp_close(pcb);
}

/* ---- lwIP's callbacks -------------------------------------------------------------------- */

err_t conn_callback_end(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	enum conn_end end = c->end;

	c->in_callback = false;
	if (end == CONN_ON) {
		/* pcb->ooseq: edge_input looks at it afterwards */
		if (c->rx_queue.count != c->pinned)
			conn_rx_kept(c);
		return ERR_OK;
	}
	if (end == CONN_CLOSE && !c->lost) {
		conn_window_open_all(c);
		part(c);
		return ERR_OK;
	}
	conn_free(c);
	detach(pcb);
	tcp_abort(pcb);
	return ERR_ABRT;
}

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
	struct llp_conn *c = arg;

	(void)pcb;
	(void)len;
	c->in_callback = true;
	edge.cfg.user->writable(c->ctx);
	return conn_callback_end(c);
}

/* lwIP has freed the pcb already. */
static void on_err(void *arg, err_t err)
{
	struct llp_conn *c = arg;
	void *ctx = c->ctx;
	uw_status why = UW_E_LLP_CLOSED;

	if (c->connecting)
		why = err == ERR_RST ? UW_E_REFUSED : UW_E_TIMEOUT;
	if (c->end != CONN_ON)
		ctx = NULL;
	c->pcb = NULL;
	conn_free(c);
	if (ctx)
		edge.cfg.user->closed(ctx, why);
}

void conn_attach(struct llp_conn *c, struct tcp_pcb *pcb)
{
	c->pcb = pcb;
	tcp_arg(pcb, c);
	tcp_recv(pcb, conn_recv);
	tcp_sent(pcb, on_sent);
	tcp_err(pcb, on_err);
	tcp_nagle_disable(pcb);
	conn_flow_own(pcb, c);
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct llp_conn *c = arg;

	(void)pcb;
	(void)err; /* always ERR_OK: failures come to on_err */
	edge_pcb_came_up(c->pcb, c->el->io, edge.cfg.keepalive_ms);
	conn_loss_begin(c);
	conn_fast_start(c);
	c->connecting = false;
	c->in_callback = true;
	edge.cfg.user->connected(c->ctx);
	return conn_callback_end(c);
}

/* ---- listeners --------------------------------------------------------------------------- */

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct llp_conn *c = arg;
	struct llp_listener *ls;

	if (err != ERR_OK || !pcb) {
		edge.cfg.stats->tcp_syn_dropped++;
		return ERR_VAL; /* lwIP had no pcb: the SYN will come again */
	}
	ls = conn_established(c);
	edge_pcb_came_up(c->pcb, c->el->io, edge.cfg.keepalive_ms);
	conn_loss_begin(c);
	conn_fast_start(c);
	c->in_callback = true;
	c->ctx = edge.cfg.user->accepted(ls->ctx, c);
	if (!c->ctx)
		c->end = CONN_ABORT;
	return conn_callback_end(c);
}

uw_status edge_listen(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
		      struct llp_listener **out)
{
	struct edge_link *el = edge_link_of(l);
	struct llp_listener *ls = malloc(sizeof(*ls));
	struct tcp_pcb *pcb = tcp_new(), *lpcb;
	ip_addr_t addr = edge_listen_addr(l, at);
	err_t err = ERR_MEM;

	if (!ls || !pcb)
		goto fail;
	tcp_bind_netif(pcb, &el->nif);
	ip_set_option(pcb, SOF_REUSEADDR);
	err = tcp_bind(pcb, &addr, lwip_ntohs(at->port));
	if (err)
		goto fail;
	/* It would see another link's listener for ours; ports are the engine's to give out. */
	ip_reset_option(pcb, SOF_REUSEADDR);
	(void)backlog; /* of those that ask; the user has them. The others: syn_backlog.c */
	pcb->tos = at->tos;
	lpcb = tcp_listen_with_backlog_and_err(pcb, UINT8_MAX, &err);
	if (!lpcb)
		goto fail;
	*ls = (struct llp_listener){ .pcb = lpcb, .el = el, .ctx = ctx };
	ip_set_option(lpcb, SOF_REUSEADDR); /* accepted pcbs inherit it */
	tcp_arg(lpcb, ls);
	tcp_accept(lpcb, on_accept);
	*out = ls;
	return UW_OK;
fail:
	if (pcb)
		tcp_close(pcb);
	free(ls);
	return edge_status(err);
}

void edge_unlisten(struct llp_listener *ls)
{
	tcp_close(ls->pcb);
	free(ls);
}

/* ---- connecting and ending --------------------------------------------------------------- */

/* Ports are the engine's to give out: only for one of its own lwIP has to look who has which. */
static err_t bind_pcb(struct tcp_pcb *pcb, const struct llp_addrs *a)
{
	ip_addr_t from = edge_addr(&a->local);
	struct edge_lists all = { 0 };
	err_t err;

	ip_set_option(pcb, SOF_REUSEADDR);
	if (a->lport)
		all = edge_lists_hide();
	err = tcp_bind(pcb, &from, lwip_ntohs(a->lport));
	edge_lists_show(&all);
	return err;
}

/* Of a connection that has ended, and waits in case something of it comes, nothing can come any
 * more from another process. */
static bool is_free(const struct io_link *l, const struct flow_key *k)
{
	struct llp_conn *c = conn_flow_find(k);

	return !c || (l->flags & IO_P2P && edge_pcb_drop_time_wait(c->pcb));
}

uw_status edge_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		       struct llp_conn **out)
{
	struct edge_link *el = edge_link_of(l);
	struct llp_conn *c = conn_new(el, ctx);
	struct tcp_pcb *pcb = tcp_new();
	ip_addr_t to = edge_addr(&a->remote);
	err_t err = ERR_MEM;

	if (!c || !pcb)
		goto fail;
	tcp_bind_netif(pcb, &el->nif);
	err = bind_pcb(pcb, a);
	if (err)
		goto fail;
	err = ERR_USE;
	if (!is_free(l, &(struct flow_key){ a->local, a->remote, a->lport, a->rport }))
		goto fail;
	conn_attach(c, pcb);
	c->connecting = true;
	pcb->tos = a->tos;
	/* lwIP would search all lists for it. */
	ip_reset_option(pcb, SOF_REUSEADDR);
	err = tcp_connect(pcb, &to, lwip_ntohs(a->rport), on_connected);
	ip_set_option(pcb, SOF_REUSEADDR);
	if (err) {
		detach(pcb);
		goto fail;
	}
	c->active = true;
	conn_flow_add(c);
	*out = c;
	return UW_OK;
fail:
	if (pcb)
		tcp_close(pcb);
	if (c)
		conn_free(c);
	return edge_status(err);
}

void conn_lose(struct llp_conn *c)
{
	conn_activate(c);
	edge_pcb_drop(c->pcb);
}

static void conn_lose_quietly(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	conn_free(c);
	detach(pcb);
	edge_pcb_drop(pcb);
}

void edge_close(struct llp_conn *c)
{
	if (c->in_callback) {
		c->end = CONN_CLOSE;
		return;
	}
	conn_activate(c);
	if (c->lost) {
		conn_lose_quietly(c);
		return;
	}
	conn_window_open_all(c);
	part(c);
}

void edge_shutdown(struct llp_conn *c)
{
	conn_activate(c);
	tcp_shutdown(c->pcb, 0, 1);
}

void edge_abort(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	if (c->in_callback) {
		c->end = CONN_ABORT;
		return;
	}
	conn_activate(c);
	conn_free(c);
	detach(pcb);
	tcp_abort(pcb);
}

/* What the process sent before it died has arrived, and its Sends were completed: a user that waits
 * for receives gets it first. */
static bool has_octets_for_user(const struct tcp_pcb *pcb)
{
	struct llp_conn *c = conn_of(pcb);

	if (!c || c->end != CONN_ON || !c->paused || !rx_queue_octets(&c->rx_queue))
		return false;
	c->lost = true;
	return true;
}

void edge_peer_down(struct io_link *l, uint32_t addr)
{
	(void)l;
	for (struct llp_conn *c = edge.conns; c; c = c->next)
		conn_activate(c);
	edge_pcbs_lose(addr, has_octets_for_user);
}

unsigned edge_lingering(void)
{
	return edge_pcbs_finishing();
}

struct llp_addrs edge_addrs(const struct llp_conn *c)
{
	struct llp_addrs a = edge_pcb_addrs(c->pcb);

	return a;
}

void edge_set_tos(struct llp_conn *c, uint8_t tos)
{
	c->pcb->tos = tos;
	conn_fast_headers(c);
}
