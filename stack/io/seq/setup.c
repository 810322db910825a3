/* SPDX-License-Identifier: BSD-3-Clause */
/* What a pcb is told that netconn has no function for; under the core lock. */
#include "io/lwip/pcb/pcb.h"
#include "io/seq/seq.h"

#include "lwip/priv/tcp_priv.h"

err_t seq_prepare(void *netconn)
{
	struct netconn *nc = netconn;

	netconn_set_nonblocking(nc, 1);
	ip_set_option(nc->pcb.tcp, SOF_REUSEADDR);
	tcp_nagle_disable(nc->pcb.tcp);
	return ERR_OK;
}

err_t seq_mark(void *tos)
{
	const struct seq_tos *t = tos;

	if (t->nc->pcb.tcp)
		t->nc->pcb.tcp->tos = t->tos;
	return ERR_OK;
}

err_t seq_came_up(void *setup)
{
	struct seq_setup *s = setup;
	struct llp_conn *c = s->c;
	struct tcp_pcb *pcb = s->nc->pcb.tcp;

	if (!pcb)
		return ERR_CLSD;
	seq_prepare(s->nc);
	edge_pcb_came_up(pcb, c->sl->io, seq.cfg.keepalive_ms);
	c->addrs = edge_pcb_addrs(pcb);
	c->emss = tcp_mss(pcb);
	c->sent = c->taken = pcb->snd_lbb;
	atomic_store_explicit(&c->x.acked, pcb->lastack, memory_order_relaxed);
	s->nc->callback_arg.ptr = &c->x;
	return ERR_OK;
}
