/* SPDX-License-Identifier: BSD-3-Clause */
/* What the peer hears of the octets that came: ACKs at the end of a burst, and the window. */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

/* ---- ACKs -------------------------------------------------------------------------------- */

void edge_conn_forget_ack(struct llp_conn *c)
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

/* A program that answers what it gets sends the ACK with it (RFC 9293 §3.8.6.3), which by itself
 * would be a frame of its own for each message. One that looks whether there is more before it
 * answers makes an empty round or two. If no answer came with the ACK, it is a stream, or the
 * program computes, and the next ones do not wait. */
#define LEFT_ROUNDS 3u
#define ALONE_NEXT  64u

static bool is_due(const struct llp_conn *c)
{
	return c->pcb->flags & TF_ACK_DELAY; /* else what was sent has it */
}

static void send_ack(struct llp_conn *c)
{
	if (c->ack_left)
		c->acks_alone = ALONE_NEXT;
	if (edge_conn_ack_fast(c))
		return;
	tcp_ack_now(c->pcb);
	tcp_output(c->pcb);
}

/* Between processes an ACK costs little, and frees the sender's buffers. */
static bool may_be_left(struct llp_conn *c)
{
	if (c->el->io->flags & IO_P2P || c->lossy || c->pcb->state != ESTABLISHED)
		return false;
	if (!c->acks_alone)
		return c->ack_left < LEFT_ROUNDS;
	c->acks_alone--;
	return false;
}

void edge_acks(enum llp_acks which)
{
	struct llp_conn **p = &edge.acks, *c;

	while ((c = *p)) {
		if (is_due(c) && which == LLP_ACKS_URGENT && may_be_left(c)) {
			c->ack_left++;
			p = &c->next_ack;
			continue;
		}
		*p = c->next_ack;
		c->ack_due = false;
		if (is_due(c))
			send_ack(c);
		c->acks_postponed = 0;
		c->ack_left = 0;
	}
	edge_active_list_round();
}

bool edge_acks_left(void)
{
	for (const struct llp_conn *c = edge.acks; c; c = c->next_ack) {
		if (is_due(c))
			return true;
	}
	return false;
}

/* ---- the window -------------------------------------------------------------------------- */

void edge_conn_recved(struct llp_conn *c, size_t n)
{
	n += edge_conn_window_more(c, n);
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
void edge_conn_window_pay(struct llp_conn *c)
{
	size_t held = rx_queue_octets(&c->rx_queue);
	size_t still = !c->paused ? 0 : held < c->window_debt ? held : c->window_debt;
	tcpwnd_size_t before = c->pcb->rcv_ann_wnd;

	edge_conn_recved(c, c->window_debt - still);
	c->window_debt = still;
	if (c->rx_shut && edge_conn_rx_room(c))
		edge_conn_rx_open(c);
	/* lwIP speaks up for a quarter of the window only; a peer that was stopped waits for less.
	 */
	if (before < update_threshold(c) && c->pcb->rcv_ann_wnd > before) {
		tcp_ack_now(c->pcb);
		tcp_output(c->pcb);
	}
}

void edge_conn_window_open_all(struct llp_conn *c)
{
	edge_conn_recved(c, c->window_debt + edge_conn_window_kept_back(c));
	c->window_debt = 0;
}
