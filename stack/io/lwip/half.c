/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that came with a SYN and are not up yet. They are in the flow table from the SYN on,
 * so that their next segment is not searched for, and they are counted here: lwIP counts to 255,
 * which a program that connects a thousand times at once is soon through with, and each SYN too
 * many costs it a retransmission's time.
 */
#include "io/lwip/loss.h"

#include "lwip/priv/tcp_priv.h"

#define HALF_OPEN_MAX 1024u /* as Linux's tcp_max_syn_backlog */

/* RFC 9293 §3.10.7.2 lets a SYN that finds no room go unanswered; it will come again. */
bool edge_half_room(void)
{
	bool room = edge.half_open < HALF_OPEN_MAX;

	edge.cfg.stats->tcp_syn_dropped += !room;
	return room;
}

/* lwIP puts what a SYN opened in front of the others. */
void edge_half_opened(void)
{
	struct tcp_pcb *pcb = tcp_active_pcbs;
	struct llp_listener *ls;
	struct llp_conn *c;

	if (!pcb || pcb->state != SYN_RCVD || conn_of(pcb))
		return;
	ls = pcb->callback_arg;
	c = conn_new(ls->el, NULL);
	if (!c) {
		tcp_abandon(pcb, 0);
		return;
	}
	tcp_backlog_accepted(pcb); /* we count */
	conn_attach(c, pcb);
	c->listed = true;
	c->half = ls;
	conn_ecn_half(c);
	edge.half_open++;
	conn_flow_add(c);
}

struct llp_listener *conn_whole(struct llp_conn *c)
{
	struct llp_listener *ls = c->half;

	c->half = NULL;
	edge.half_open--;
	return ls;
}
