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

/* Between processes an ACK costs little, and frees the sender's buffers. */
static bool is_ordinary(const struct llp_conn *c)
{
	return !(c->el->io->flags & IO_P2P) && !c->lossy && c->pcb->state == ESTABLISHED;
}

/* Where another thread answers, one that waits looks again and again, or sleeps, before the answer
 * comes. If that came soon after each of the last ACKs that went alone, the next ACK waits for it,
 * whoever looks or sleeps meanwhile; but not with much that the peer waits to hear of.
 * (doc/adr/0068)
 */
#define SOON_US		 300u
#define PATIENT_ANSWERS	 8u
#define PATIENT_SEGMENTS 4u
#define PATIENT_US	 1000u

static bool is_short(const struct llp_conn *c)
{
	return c->acks_postponed < PATIENT_SEGMENTS;
}

static bool is_answered_soon(const struct llp_conn *c)
{
	return c->answers >= PATIENT_ANSWERS && is_short(c) && is_ordinary(c);
}

/* How long may the ACK still wait? */
static uint64_t patience_us(const struct llp_conn *c, uint64_t now)
{
	uint64_t us = now - c->left_us;

	return c->ack_left && us < PATIENT_US && is_answered_soon(c) ? PATIENT_US - us : 0;
}

void edge_conn_answers(struct llp_conn *c)
{
	if (uw_lwip_now_us() - c->alone_us >= SOON_US)
		c->answers = 0;
	else if (c->answers < PATIENT_ANSWERS)
		c->answers++;
	c->alone_us = 0;
}

/* Now it goes alone. Does an answer come soon after it? */
static void note_alone(struct llp_conn *c)
{
	if (c->alone_us || (c->ack_left && is_answered_soon(c)))
		c->answers = 0;
	c->alone_us = is_short(c) && is_ordinary(c) ? uw_lwip_now_us() : 0;
}

static void send_ack(struct llp_conn *c)
{
	note_alone(c);
	if (c->ack_left)
		c->acks_alone = ALONE_NEXT;
	if (edge_conn_ack_fast(c))
		return;
	tcp_ack_now(c->pcb);
	tcp_output(c->pcb);
}

static bool may_be_left(struct llp_conn *c, uint64_t now)
{
	if (!is_ordinary(c))
		return false;
	if (is_answered_soon(c))
		return !c->ack_left || patience_us(c, now);
	if (!c->acks_alone)
		return c->ack_left < LEFT_ROUNDS;
	c->acks_alone--;
	return false;
}

static void leave(struct llp_conn *c, uint64_t now)
{
	if (!c->ack_left)
		c->left_us = now;
	if (c->ack_left < LEFT_ROUNDS)
		c->ack_left++;
}

void edge_acks(enum llp_acks which)
{
	uint64_t now = edge.acks ? uw_lwip_now_us() : 0;
	struct llp_conn **p = &edge.acks, *c;

	while ((c = *p)) {
		if (is_due(c) && which == LLP_ACKS_URGENT && may_be_left(c, now)) {
			leave(c, now);
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
	uint64_t now = edge.acks ? uw_lwip_now_us() : 0;

	for (const struct llp_conn *c = edge.acks; c; c = c->next_ack) {
		if (is_due(c) && !patience_us(c, now))
			return true;
	}
	return false;
}

uint64_t edge_acks_next_us(void)
{
	uint64_t first = UINT64_MAX, now = edge.acks ? uw_lwip_now_us() : 0;

	/* Of the others the next round decides. */
	for (const struct llp_conn *c = edge.acks; c; c = c->next_ack) {
		if (c->ack_left && is_due(c) && is_answered_soon(c))
			first = LWIP_MIN(first, patience_us(c, now));
	}
	return first;
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
