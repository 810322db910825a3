/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the connections that SYNs open. How many may be half open: pcb/syn_backlog.c. */
#include "io/lwip/loss.h"
#include "io/lwip/pcb/private.h"

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct llp_conn *c = arg;
	struct llp_listener *ls;

	if (err != ERR_OK || !pcb) {
		edge.cfg.stats->tcp_syn_dropped++;
		return ERR_VAL; /* lwIP had no pcb: the SYN will come again */
	}
	ls = edge_conn_established(c);
	edge_conn_came_up(c);
	c->in_callback = true;
	c->ctx = edge.cfg.user->accepted(ls->ctx, c);
	if (!c->ctx)
		c->end = EDGE_CONN_ABORT;
	return edge_conn_callback_end(c);
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

/* ---- SYNs -------------------------------------------------------------------------------- */

/* lwIP puts what a SYN opened in front of the others. */
void edge_syn_opened(void)
{
	struct tcp_pcb *pcb = tcp_active_pcbs;
	struct llp_listener *ls;
	struct llp_conn *c;

	if (!pcb || pcb->state != SYN_RCVD || edge_conn_of(pcb))
		return;
	ls = pcb->callback_arg;
	c = edge_conn_new(ls->el, NULL);
	if (!c) {
		edge.cfg.stats->tcp_syn_dropped++;
		tcp_abandon(pcb, 0);
		return;
	}
	tcp_backlog_accepted(pcb); /* we count */
	edge_conn_attach(c, pcb);
	c->active = true;
	edge_conn_ecn_half(c);
	edge_conn_stamp_half(c);
	edge_conn_flow_add(c);
	edge_conn_half_open(c, ls);
}
