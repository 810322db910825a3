/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and what comes in on them. */
#include <stdlib.h>

#include "io/lwip/pcb/pcb.h"
#include "io/seq/seq.h"

#include "lwip/priv/tcp_priv.h"

struct llp_listener {
	struct seq_end x;
	struct seq_link *sl;
	void *ctx;
};

static void take(struct llp_listener *ls, struct netconn *nc)
{
	struct llp_conn *c = seq_conn_new(ls->sl, NULL);
	struct seq_setup s = { c, nc };

	if (!c) {
		netconn_delete(nc);
		return;
	}
	c->x.nc = nc;
	if (seq_call(seq_came_up, &s)) {
		seq_conn_drop(c);
		return;
	}
	c->in_callback = true;
	c->ctx = seq.cfg.user->accepted(ls->ctx, c);
	c->in_callback = false;
	if (!c->ctx)
		c->end = SEQ_ABORT;
	/* What came before its events were ours. */
	seq_ring(&c->x, SEQ_READ | SEQ_ERROR);
	seq_settle(c);
}

static void on_ready(struct seq_end *x, unsigned events)
{
	struct netconn *nc;
	err_t err = ERR_OK;

	(void)events;
	/* ERR_ABRT: there was no memory for one that came. */
	while (!x->dead && (err == ERR_OK || err == ERR_ABRT)) {
		err = netconn_accept(x->nc, &nc);
		if (!err)
			take((struct llp_listener *)x, nc);
	}
}

/* As the raw API does it (io/lwip/conn.c): a listener that shared its port would see another link's
 * for its own; connections that come in on it share. */
static err_t share_not(void *netconn)
{
	ip_reset_option(((struct netconn *)netconn)->pcb.ip, SOF_REUSEADDR);
	return ERR_OK;
}

static err_t share(void *netconn)
{
	ip_set_option(((struct netconn *)netconn)->pcb.ip, SOF_REUSEADDR);
	return ERR_OK;
}

static err_t start(struct llp_listener *ls, const ip_addr_t *addr, u16_t port, int backlog)
{
	struct netconn *nc = ls->x.nc;
	err_t err;

	seq_call(seq_prepare, nc);
	netconn_set_ipv6only(nc, IP_IS_V6(addr)); /* else it takes :: for both */
	err = netconn_bind_if(nc, netif_get_index(&ls->sl->nif));
	if (!err)
		err = netconn_bind(nc, addr, port);
	if (err)
		return err;
	seq_call(share_not, nc);
	err = netconn_listen_with_backlog(nc, (u8_t)(backlog < 1 || backlog > 255 ? 255 : backlog));
	if (!err)
		seq_call(share, nc);
	return err;
}

uw_status seq_listen(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
		     struct llp_listener **out)
{
	struct llp_listener *ls = calloc(1, sizeof(*ls));
	ip_addr_t addr = edge_listen_addr(l, at);
	err_t err = ERR_MEM;

	if (!ls)
		return UW_E_NOMEM;
	*ls = (struct llp_listener){ .x.handle = on_ready, .sl = seq_link_of(l), .ctx = ctx };
	ls->x.nc = netconn_new_with_callback(NETCONN_TCP, seq_on_event);
	if (!ls->x.nc)
		goto fail;
	ls->x.nc->callback_arg.ptr = &ls->x;
	if (at->tos)
		seq_call(seq_mark, &(struct seq_tos){ ls->x.nc, at->tos });
	err = start(ls, &addr, lwip_ntohs(at->port), backlog);
	if (err)
		goto fail;
	*out = ls;
	return UW_OK;
fail:
	seq_unlisten(ls);
	return edge_status(err);
}

void seq_unlisten(struct llp_listener *ls)
{
	if (ls->x.nc)
		netconn_delete(ls->x.nc);
	seq_end_free(&ls->x);
}
