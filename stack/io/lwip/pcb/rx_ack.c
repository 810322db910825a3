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

/* What one ACK that waits is for, at most: two frames as long as a link makes them. */
#define WAITING_OCTETS 131072u
/* One that was sent so late was not worth the wait: the peer may have taken it for lost. */
#define LATE_US	     500u
#define PROMPT_AFTER 64u

/* The program may be about to answer, and its answer carries the ACK. It has time until the next
 * round, which comes when it waits or polls again, and before anybody sleeps (edge_pending). */
static bool may_wait(const struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;

	return !c->ack_waits && !c->ack_at_once && !(c->el->io->flags & IO_P2P) && !c->prompt &&
	       !c->lossy && c->ack_octets < WAITING_OCTETS && pcb->state == ESTABLISHED &&
	       !LWIP_TCP_SACK_VALID(pcb, 0);
}

/* No answer carried it. */
static void judge_wait(struct llp_conn *c)
{
	if (c->ack_waits && edge.cfg.now_us(edge.cfg.arg) - c->ack_us > LATE_US)
		c->ack_at_once = PROMPT_AFTER;
	else if (c->ack_at_once)
		c->ack_at_once--;
}

static void send_ack(struct llp_conn *c)
{
	if (conn_ack_fast(c))
		return;
	tcp_ack_now(c->pcb);
	tcp_output(c->pcb);
}

static void settle(struct llp_conn *c)
{
	c->ack_due = false;
	if (c->pcb->flags & TF_ACK_DELAY) { /* else what was sent has it */
		judge_wait(c);
		send_ack(c);
	}
	c->ack_waits = false;
}

void edge_acks(void)
{
	struct llp_conn **p = &edge.acks, *c;

	while ((c = *p)) {
		c->acks_postponed = 0;
		if (c->pcb->flags & TF_ACK_DELAY && may_wait(c)) {
			c->ack_waits = true;
			c->ack_us = edge.cfg.now_us(edge.cfg.arg);
			p = &c->next_ack;
		} else {
			*p = c->next_ack;
			settle(c);
		}
	}
	edge_active_list_round();
}

bool edge_pending(void)
{
	return edge.acks;
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
