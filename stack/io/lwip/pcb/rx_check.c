/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection against blind attacks in established connections (RFC 5961). An attacker who cannot
 * see a connection has to guess its sequence numbers. lwIP accepts more segments than it has to:
 * those without ACK, those whose acknowledgement number is far from anything that was sent, and the
 * ACK and the window of those that lie outside the receive window. They are dropped here, before
 * lwIP sees them, and answered with a challenge ACK: if it was the true peer after all, it sends
 * the right segment next.
 */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

/* RFC 5961 §7 wants a limit, and has this one for an example. A limit for each connection tells
 * nobody about another one. */
#define CHALLENGES   10u
#define CHALLENGE_US 5000000u

static void challenge(struct llp_conn *c)
{
	uint64_t now = edge.cfg.now_us(edge.cfg.arg);

	if (now - c->challenge_us >= CHALLENGE_US) {
		c->challenge_us = now;
		c->challenges = 0;
	}
	if (c->challenges == CHALLENGES)
		return;
	c->challenges++;
	tcp_send_empty_ack(c->pcb);
}

static bool in_window(const struct tcp_pcb *pcb, uint32_t seq)
{
	return TCP_SEQ_BETWEEN(seq, pcb->rcv_nxt, pcb->rcv_nxt + pcb->rcv_wnd);
}

/* Where a segment lies (RFC 9293 §3.10.7.4). The right edge is inside: a peer that has filled the
 * window sends its ACKs from there. So is the octet behind it, which lwIP counts as sent once it
 * has probed a closed window with it, and the one before the window, from which probes and
 * keepalives come (§3.8.4): they find a window open again, and show that the peer lives. */
enum place { IN_WINDOW, OLD, ELSEWHERE };

static enum place place_of(const struct tcp_pcb *pcb, const struct edge_segment *s)
{
	uint32_t n = s->len + (s->flags & TCP_FIN ? 1 : 0);

	if (TCP_SEQ_BETWEEN(s->seq, pcb->rcv_nxt - 1, pcb->rcv_nxt + pcb->rcv_wnd + 1))
		return IN_WINDOW;
	if (!TCP_SEQ_BETWEEN(s->seq, pcb->rcv_nxt - TCP_WND, pcb->rcv_nxt))
		return ELSEWHERE;
	return TCP_SEQ_GT(s->seq + n, pcb->rcv_nxt) ? IN_WINDOW : OLD;
}

/* RFC 5961 §5.2: not older than the largest window, not newer than what was sent. */
static bool ack_is_near(const struct tcp_pcb *pcb, uint32_t ack)
{
	return TCP_SEQ_BETWEEN(ack, pcb->lastack - pcb->snd_wnd_max, pcb->snd_nxt);
}

/* False: dropped. *answer: with a challenge ACK. */
static bool acceptable(const struct tcp_pcb *pcb, const struct edge_segment *s, bool *answer)
{
	if (s->flags & TCP_RST) { /* §3.2 */
		*answer = in_window(pcb, s->seq);
		return s->seq == pcb->rcv_nxt;
	}
	if (s->flags & TCP_SYN) /* §4.2 */
		return false;
	if (!(s->flags & TCP_ACK)) { /* RFC 9293 §3.10.7.4 */
		*answer = false;
		return false;
	}
	return place_of(pcb, s) != ELSEWHERE && ack_is_near(pcb, s->ack);
}

/* Nothing in it is new. Its sender has to hear each time of what it has repeated; of a late ACK, as
 * often as a challenge. */
static bool is_old(struct llp_conn *c, const struct edge_segment *s)
{
	if (place_of(c->pcb, s) != OLD)
		return false;
	if (s->len || s->flags & TCP_FIN)
		edge_conn_loss_ack_duplicate(c, s->seq, s->len);
	else
		challenge(c);
	return true;
}

static bool is_synchronized(const struct tcp_pcb *pcb)
{
	return pcb->state >= ESTABLISHED && pcb->state != TIME_WAIT;
}

/* ---- in SYN-SENT ------------------------------------------------------------------------- */

/* A peer that waits and takes no RST (RFC 1337), or somebody who guesses the ports, would use up
 * all of a connect's repeats: after the first few the timer alone repeats. */
#define PROMPT_SYNS 2u

/* RFC 9293 §3.10.7.3: the ACK is looked at first. Nothing else may be seen by lwIP and its hooks:
 * options count before they look at the ACK, so a forged SYN would decide on the window scale, on
 * SACK, timestamps and ECN for good. A SYN without ACK is refused, too, since lwIP opens no
 * connection from both sides at once. */
static bool answers_syn(const struct tcp_pcb *pcb, const struct edge_segment *s)
{
	return s->flags & TCP_ACK && s->ack == pcb->lastack + 1 && s->flags & (TCP_SYN | TCP_RST);
}

/* It acknowledges what was not sent: the peer may have an old connection. It hears an RST, and the
 * SYN once more, soon. */
static void answer_with_rst(struct tcp_pcb *pcb, const struct edge_segment *s)
{
	uint32_t n = s->len + (s->flags & TCP_SYN ? 1 : 0) + (s->flags & TCP_FIN ? 1 : 0);

	tcp_rst(pcb, s->ack, s->seq + n, &pcb->local_ip, &pcb->remote_ip, pcb->local_port,
		pcb->remote_port);
	if (pcb->nrtx >= PROMPT_SYNS)
		return;
	pcb->rtime = 0;
	tcp_rexmit_rto(pcb);
}

static void refuse_answer(struct tcp_pcb *pcb, const struct edge_segment *s)
{
	edge.cfg.stats->tcp_rx_blind++;
	if ((s->flags & (TCP_ACK | TCP_RST)) == TCP_ACK && s->ack != pcb->lastack + 1)
		answer_with_rst(pcb, s);
}

bool edge_conn_rx_check(struct llp_conn *c, const struct edge_segment *s)
{
	bool answer = true;

	if (c->pcb->state == SYN_SENT && !answers_syn(c->pcb, s)) {
		refuse_answer(c->pcb, s);
		return false;
	}
	if (is_synchronized(c->pcb) && !acceptable(c->pcb, s, &answer))
		edge.cfg.stats->tcp_rx_blind++;
	else if (edge_conn_stamp_check(c, s, &answer))
		return !is_synchronized(c->pcb) || !is_old(c, s);
	if (answer)
		challenge(c);
	return false;
}
