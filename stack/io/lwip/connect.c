/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection begins: the callbacks that lwIP gets, and connecting. Accepting: pcb/listen.c. */
#include "io/lwip/loss.h"
#include "io/lwip/path.h"
#include "io/lwip/loss_conn.h"

/* ---- lwIP's callbacks -------------------------------------------------------------------- */

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t len)
{
	struct llp_conn *c = arg;

	(void)pcb;
	(void)len;
	c->in_callback = true;
	edge.cfg.user->writable(c->ctx);
	return edge_conn_callback_end(c);
}

static uint32_t ms_since(uint64_t t_us)
{
	return t_us ? (uint32_t)((edge.cfg.now_us(edge.cfg.arg) - t_us) / 1000) : 0;
}

static void note_unanswered(const struct llp_conn *c, const struct loss *l)
{
	if (l && l->rto.unanswered)
		edge_conn_tell(c, LLP_TIMEOUTS, l->rto.unanswered);
	edge_conn_tell(c, LLP_UNANSWERED, l ? ms_since(l->delivered_us) : 0);
}

/* lwIP gives a connection up for one reason, and does not say which: repeats, or keepalives, that
 * nobody answers. */
static void note_end(const struct llp_conn *c, err_t err)
{
	const struct loss *l = c->loss ? &c->loss->loss : NULL;

	if (c->lost || edge.losing)
		edge_conn_tell(c, LLP_PROCESS_GONE, 0);
	else if (err == ERR_RST)
		edge_conn_tell(c, LLP_RESET, 0);
	else if (c->connecting || (l && !record_count(&l->rec)))
		edge_conn_tell(c, c->connecting ? LLP_UNANSWERED : LLP_SILENT,
			       ms_since(c->silent_us));
	else
		note_unanswered(c, l);
}

static uw_status why_not_connected(const struct llp_conn *c, err_t err)
{
	if (err == ERR_RST)
		return UW_E_REFUSED;
	if (edge.losing)
		return UW_E_UNREACHABLE;
	return c->icmp ? c->icmp : UW_E_TIMEOUT;
}

/* lwIP has freed the pcb already. */
static void on_err(void *arg, err_t err)
{
	struct llp_conn *c = arg;
	void *ctx = c->ctx;
	uw_status why = UW_E_LLP_CLOSED;

	if (c->connecting)
		why = why_not_connected(c, err);
	if (c->end != EDGE_CONN_ON)
		ctx = NULL;
	else
		note_end(c, err);
	c->pcb = NULL;
	edge_conn_discard(c);
	if (ctx)
		edge.cfg.user->closed(ctx, why);
}

void edge_conn_attach(struct llp_conn *c, struct tcp_pcb *pcb)
{
	c->pcb = pcb;
	tcp_arg(pcb, c);
	tcp_recv(pcb, edge_conn_recv);
	tcp_sent(pcb, on_sent);
	tcp_err(pcb, on_err);
	tcp_nagle_disable(pcb);
	edge_conn_own(pcb, c);
}

void edge_conn_came_up(struct llp_conn *c)
{
	edge_pcb_came_up(c->pcb, c->el->io, edge.cfg.keepalive_ms);
	edge_conn_stamp_came_up(c);
	edge_conn_loss_begin(c);
	edge_conn_window_begin(c);
	edge_conn_path_begin(c);
	edge_conn_fast_start(c);
}

/* ---- connecting -------------------------------------------------------------------------- */

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct llp_conn *c = arg;

	(void)pcb;
	(void)err; /* always ERR_OK: failures come to on_err */
	edge_conn_came_up(c);
	c->connecting = false;
	c->in_callback = true;
	edge.cfg.user->connected(c->ctx);
	return edge_conn_callback_end(c);
}

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
	struct llp_conn *c = edge_conn_flow_find(k);

	return !c || (l->flags & IO_P2P && edge_pcb_drop_time_wait(c->pcb));
}

uw_status edge_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		       struct llp_conn **out)
{
	struct edge_link *el = edge_link_of(l);
	struct llp_conn *c = edge_conn_new(el, ctx);
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
	edge_conn_attach(c, pcb);
	c->connecting = true;
	edge_conn_stamp_ask(c, &a->remote);
	pcb->tos = a->tos;
	/* lwIP would search all lists for it. */
	ip_reset_option(pcb, SOF_REUSEADDR);
	err = tcp_connect(pcb, &to, lwip_ntohs(a->rport), on_connected);
	ip_set_option(pcb, SOF_REUSEADDR);
	if (err) {
		edge_conn_detach(pcb);
		goto fail;
	}
	c->active = true;
	edge_conn_flow_add(c);
	*out = c;
	return UW_OK;
fail:
	if (pcb)
		tcp_close(pcb);
	if (c)
		edge_conn_discard(c);
	return edge_status(err);
}
