/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of which nothing is under way. lwIP's timers, its search for who a SYN is for and its
 * bind and connect walk its list of active pcbs, however many of them are idle. So an idle one is
 * taken off that list, and put back by the first segment that comes or goes (doc/adr/0012). All
 * that lwIP would have done for it meanwhile is to ask after a silent peer: those that want it wait
 * here in the order in which they fell silent, so that only the first has to be looked at.
 *
 * With many connections, each of which has its turn now and then, lwIP's timers would come to every
 * one of them when its memory is in no near cache any more. So it is left off the list soon after
 * its turn, and an acknowledgement that it owes goes out before that.
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

static void sleep_now(struct llp_conn *c)
{
	c->listed = false;
	c->before = NULL;
	c->pcb->next = NULL;
	if (!is_watched(c))
		return;
	c->watched = true;
	c->idle_us = edge.cfg.now_us(edge.cfg.arg);
	c->idle_next = NULL;
	c->idle_prev = edge.idle_last;
	if (edge.idle_last)
		edge.idle_last->idle_next = c;
	else
		edge.idle = c;
	edge.idle_last = c;
}

static void forget_watched(struct llp_conn *c)
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

static void forget_late(struct llp_conn *c)
{
	for (unsigned i = 0; c->late && i < EDGE_LATE; i++) {
		if (edge.late[i] == c)
			edge.late[i] = NULL;
	}
	c->late = false;
}

void conn_forget_idle(struct llp_conn *c)
{
	forget_watched(c);
	forget_late(c);
}

void conn_wake(struct llp_conn *c)
{
	if (c->listed || !c->pcb)
		return;
	forget_watched(c);
	conn_flow_before(tcp_active_pcbs, c);
	c->before = NULL;
	c->listed = true;
	TCP_REG_ACTIVE(c->pcb);
}

static void put_to_sleep(void)
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
		sleep_now(c);
	}
}

/* ---- many connections -------------------------------------------------------------------- */

#define LATE_KEPT 16u /* so many that came later: an answer has had its time to bring the ACK */

static void finish_first(void)
{
	struct llp_conn *c = edge.late[edge.late_first % EDGE_LATE];

	edge.late_first++;
	edge.late_n--;
	if (!c)
		return;
	c->late = false;
	if (c->end != CONN_ON || !c->listed)
		return;
	if (c->pcb->flags & TF_ACK_DELAY)
		conn_ack_direct(c);
	if (!quiet(c))
		return;
	conn_flow_unlist(c);
	sleep_now(c);
}

void conn_came(struct llp_conn *c)
{
	edge.came = true;
	if (c->late)
		return;
	if (edge.late_n == EDGE_LATE)
		finish_first();
	c->late = true;
	edge.late[(edge.late_first + edge.late_n++) % EDGE_LATE] = c;
}

void edge_idle_round(void)
{
	bool busy = edge.came;

	edge.came = false;
	if (!busy && edge.late_n > LATE_KEPT)
		finish_first();
}

/* ---- lwIP's ticks ------------------------------------------------------------------------ */

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
	put_to_sleep();
}

uint64_t edge_idle_next_us(void)
{
	uint64_t now = edge.cfg.now_us(edge.cfg.arg), due;

	if (!edge.idle)
		return UINT64_MAX;
	due = edge.idle->idle_us + limit_us();
	return due > now ? due - now : 1;
}
