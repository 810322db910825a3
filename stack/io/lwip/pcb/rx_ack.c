/* SPDX-License-Identifier: BSD-3-Clause */
/* What the peer hears of the octets that came: ACKs at the end of a burst, and the window. */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

/* ---- ACKs -------------------------------------------------------------------------------- */

void conn_forget_ack(struct llp_conn *c)
{
	struct llp_conn **p = &edge.acks;

	if (!c->ack_due)
		return;
	while (*p != c)
		p = &(*p)->next_ack;
	*p = c->next_ack;
	c->ack_due = false;
}

void edge_ack_promptly(struct llp_conn *c)
{
	c->prompt = true;
}

void edge_acks(void)
{
	struct llp_conn *c;

	while ((c = edge.acks)) {
		edge.acks = c->next_ack;
		c->ack_due = false;
		c->acks_postponed = 0;
		if (!(c->pcb->flags & TF_ACK_DELAY)) /* what was sent has it */
			continue;
		if (conn_ack_fast(c))
			continue;
		tcp_ack_now(c->pcb);
		tcp_output(c->pcb);
	}
	edge_active_list_round();
}

/* ---- the window -------------------------------------------------------------------------- */

void conn_recved(struct llp_conn *c, size_t n)
{
	n += conn_window_more(c, n);
	while (n) {
		uint16_t part = (uint16_t)(n < UINT16_MAX ? n : UINT16_MAX);

		tcp_recved(c->pcb, part);
		n -= part;
	}
}

static uint32_t update_threshold(const struct llp_conn *c)
{
	return c->window.size ? c->window.size / 4 : TCP_WND_UPDATE_THRESHOLD;
}

/* What is owed is the end of what is held. */
void conn_window_pay(struct llp_conn *c)
{
	size_t held = rx_queue_octets(&c->rx_queue);
	size_t still = !c->paused ? 0 : held < c->window_debt ? held : c->window_debt;
	tcpwnd_size_t before = c->pcb->rcv_ann_wnd;

	conn_recved(c, c->window_debt - still);
	c->window_debt = still;
	if (c->rx_shut && conn_rx_room(c))
		conn_rx_open(c);
	/* lwIP speaks up for a quarter of the window only; a peer that was stopped waits for less.
	 */
	if (before < update_threshold(c) && c->pcb->rcv_ann_wnd > before) {
		tcp_ack_now(c->pcb);
		tcp_output(c->pcb);
	}
}

void conn_window_open_all(struct llp_conn *c)
{
	conn_recved(c, c->window_debt + conn_window_kept_back(c));
	c->window_debt = 0;
}
