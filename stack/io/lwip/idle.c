/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of which nothing is under way. lwIP's timers, its search for who a SYN is for and its
 * bind and connect walk its list of active pcbs, however many of them are idle. So an idle one is
 * taken off that list, and put back by the first segment that comes or goes (doc/adr/0012). All
 * that lwIP would have done for it meanwhile is to ask after a silent peer: those that want it wait
 * here in the order in which they fell silent, so that only the first has to be looked at.
 */
#include "io/lwip/conn.h"

#include "lwip/priv/tcp_priv.h"

static bool is_watched(const struct llp_conn *c)
{
	return ip_get_option(c->pcb, SOF_KEEPALIVE);
}

static u32_t keep_ticks(const struct llp_conn *c)
{
	return c->pcb->keep_idle / TCP_SLOW_INTERVAL;
}

/* Has lwIP nothing to send again, to acknowledge, to hand over or to ask? */
static bool quiet(const struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;
	const tcpflags_t busy =
		TF_ACK_DELAY | TF_ACK_NOW | TF_CLOSEPEND | TF_RXCLOSED | TF_FIN | TF_RTO;

	return pcb->state == ESTABLISHED && !(pcb->flags & busy) && !pcb->unsent && !pcb->unacked &&
	       !pcb->ooseq && !pcb->refused_data && !pcb->persist_backoff && !pcb->keep_cnt_sent &&
	       !c->building && !c->ack_due &&
	       !(is_watched(c) && tcp_ticks - pcb->tmr > keep_ticks(c));
}

static void sleep_now(struct llp_conn *c, uint64_t now_us)
{
	c->listed = false;
	c->before = NULL;
	c->pcb->next = NULL;
	if (!is_watched(c))
		return;
	c->watched = true;
	c->idle_us = now_us;
	c->idle_next = NULL;
	c->idle_prev = edge.idle_last;
	if (edge.idle_last)
		edge.idle_last->idle_next = c;
	else
		edge.idle = c;
	edge.idle_last = c;
}

void conn_forget_idle(struct llp_conn *c)
{
	if (!c->watched)
		return;
	c->watched = false;
	if (c->idle_prev)
		c->idle_prev->idle_next = c->idle_next;
	else
		edge.idle = c->idle_next;
	if (c->idle_next)
		c->idle_next->idle_prev = c->idle_prev;
	else
		edge.idle_last = c->idle_prev;
	c->idle_next = c->idle_prev = NULL;
}

void conn_wake(struct llp_conn *c)
{
	if (c->listed || !c->pcb)
		return;
	conn_forget_idle(c);
	conn_flow_before(tcp_active_pcbs, c);
	c->before = NULL;
	c->listed = true;
	TCP_REG_ACTIVE(c->pcb);
}

static void put_to_sleep(uint64_t now_us)
{
	struct tcp_pcb *pcb = tcp_active_pcbs, *before = NULL, *next;

	for (; pcb; pcb = next) {
		struct llp_conn *c = conn_of(pcb);

		next = pcb->next;
		if (!c || !quiet(c)) {
			before = pcb;
			continue;
		}
		if (before)
			before->next = next;
		else
			tcp_active_pcbs = next;
		conn_flow_before(next, conn_of(before));
		sleep_now(c, now_us);
	}
}

static uint64_t limit_us(void)
{
	return edge.cfg.keepalive_ms * 1000ull;
}

/* lwIP asks, as often as it has to; a peer that answers is left alone again. lwIP counts silence in
 * ticks of its own, which stand still while it has nothing to do. */
static void ask(struct llp_conn *c)
{
	c->pcb->tmr = tcp_ticks - keep_ticks(c) - 1;
	conn_wake(c);
}

void edge_idle_timer(void)
{
	uint64_t now = edge.cfg.now_us(edge.cfg.arg);
	static u32_t swept;

	while (edge.idle && now - edge.idle->idle_us >= limit_us())
		ask(edge.idle);
	if (tcp_ticks == swept)
		return;
	swept = tcp_ticks;
	put_to_sleep(now);
}

uint64_t edge_idle_next_us(void)
{
	uint64_t now = edge.cfg.now_us(edge.cfg.arg), due;

	if (!edge.idle)
		return UINT64_MAX;
	due = edge.idle->idle_us + limit_us();
	return due > now ? due - now : 1;
}
