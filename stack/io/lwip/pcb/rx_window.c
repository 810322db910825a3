/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive window of connections over a network follows the need (loss/rx_window.h), within the
 * process's budget (io/rx_budget.h). Of lwIP's 4 MiB the rest is kept back until it is granted.
 * Windows below 64 KiB, of peers without window scaling, stay as they are. */
#include "io/lwip/loss_conn.h"
#include "io/lwip/pcb/private.h"

#include "io/rx_budget.h"

void edge_conn_window_begin(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	if (c->el->io->flags & IO_P2P || !(pcb->flags & TF_WND_SCALE) || pcb->rcv_wnd != TCP_WND)
		return;
	rx_window_init(&c->window, RX_WINDOW_FIRST);
	pcb->rcv_wnd = pcb->rcv_ann_wnd = RX_WINDOW_FIRST;
	/* The SYN said 64 KiB, whatever lwIP believes (RFC 7323 §2.2). */
	pcb->rcv_ann_right_edge = pcb->rcv_nxt + RX_WINDOW_FIRST;
}

void edge_conn_window_end(struct llp_conn *c)
{
	if (c->window.size)
		rx_budget_promise(-(ptrdiff_t)(c->window.size - RX_WINDOW_FIRST));
	c->window.size = 0;
}

uint32_t edge_conn_window_kept_back(struct llp_conn *c)
{
	uint32_t n = c->window.size ? TCP_WND - c->window.size : 0;

	edge_conn_window_end(c);
	return n;
}

/* No connection gets more than its share of what is not promised yet. */
static uint32_t most(const struct llp_conn *c)
{
	size_t n = c->window.size + rx_budget_unpromised() / 8;

	return (uint32_t)LWIP_MIN(n, TCP_WND);
}

uint32_t edge_conn_window_more(struct llp_conn *c, size_t n)
{
	const struct edge_conn_loss *k = c->loss;
	uint32_t more;

	if (!rx_window_taken(&c->window, (uint32_t)n))
		return 0;
	more = rx_window_grow(&c->window, k ? rtt_min(&k->loss.rtt) : UINT64_MAX, most(c),
			      edge.cfg.now_us(edge.cfg.arg));
	if (more)
		rx_budget_promise((ptrdiff_t)more);
	return more;
}
