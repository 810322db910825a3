/* SPDX-License-Identifier: BSD-3-Clause */
/* What a pcb is told that netconn has no function for; in lwIP's thread. */
#include "io/seq/seq.h"

#include "lwip/priv/tcp_priv.h"

/* As of the raw API: io/lwip/conn.c says why. */
#define INITIAL_SEGMENTS 10u
#define MSS_MIN		 140u
#define KEEPALIVES	 3u

err_t seq_prepare(void *netconn)
{
	struct netconn *nc = netconn;

	netconn_set_nonblocking(nc, 1);
	ip_set_option(nc->pcb.tcp, SOF_REUSEADDR);
	tcp_nagle_disable(nc->pcb.tcp);
	return ERR_OK;
}

static void open_window(struct tcp_pcb *pcb, const struct io_link *l)
{
	pcb->mss = LWIP_MAX(pcb->mss, MSS_MIN);
	pcb->cwnd = l->flags & IO_P2P ? TCP_SND_BUF : INITIAL_SEGMENTS * (tcpwnd_size_t)pcb->mss;
	pcb->ssthresh = TCP_SND_BUF;
}

static void watch_peer(struct tcp_pcb *pcb, const struct io_link *l)
{
	if (!seq.cfg.keepalive_ms || l->flags & IO_P2P)
		return;
	ip_set_option(pcb, SOF_KEEPALIVE);
	pcb->keep_idle = pcb->keep_intvl = seq.cfg.keepalive_ms;
	pcb->keep_cnt = KEEPALIVES;
}

err_t seq_came_up(void *setup)
{
	struct seq_setup *s = setup;
	struct llp_conn *c = s->c;
	struct tcp_pcb *pcb = s->nc->pcb.tcp;

	if (!pcb)
		return ERR_CLSD;
	seq_prepare(s->nc);
	open_window(pcb, c->sl->io);
	watch_peer(pcb, c->sl->io);
	c->addrs = (struct llp_addrs){
		.local = uw_ip_v4(ip_addr_get_ip4_u32(&pcb->local_ip)),
		.remote = uw_ip_v4(ip_addr_get_ip4_u32(&pcb->remote_ip)),
		.lport = lwip_htons(pcb->local_port),
		.rport = lwip_htons(pcb->remote_port),
	};
	c->emss = tcp_mss(pcb);
	c->sent = pcb->snd_lbb;
	atomic_store_explicit(&c->x.acked, pcb->lastack, memory_order_relaxed);
	s->nc->callback_arg.ptr = &c->x;
	return ERR_OK;
}
