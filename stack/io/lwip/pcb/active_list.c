/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lwIP's list of active connections, tcp_active_pcbs (doc/adr/0012). lwIP walks it for each
 * segment, in each timer tick, and when it binds, connects or closes, however many connections are
 * on it.
 *
 * - A connection is moved to the front of the list before lwIP gets a segment of it.
 * - Each connection remembers which one is in front of it, so that it can be taken out without a
 * walk. The memory is a hint. A wrong hint is found out, and repaired by a walk.
 * - A connection with nothing under way is taken off the list. The next segment that comes or goes
 *   puts it back. The only thing that lwIP would have done for it meanwhile is to probe a silent
 *   peer, so connections that want keepalives are queued here by the time of their last segment.
 * - From UW_PREFETCH_FROM connections on, a connection leaves the list soon after its turn instead
 *   of in the next tick, when its memory would be in no near cache any more. A delayed ACK goes out
 *   before that.
 */
#include "io/lwip/conn.h"
#include "io/lwip/loss.h"
#include "io/lwip/pcb/private.h"

#define RECENT 64u

/* Idle connections that want keepalives, the longest silent first. */
static struct llp_conn *keepalive_first, *keepalive_last;
/* With many connections, a ring of those that a segment came for last. */
static struct llp_conn *recent[RECENT];
static unsigned recent_first, recent_n;
static bool rx_seen; /* a segment came in this round */

/* ---- the list ----------------------------------------------------------------------------- */

void edge_conn_flow_before(const struct tcp_pcb *pcb, struct llp_conn *before)
{
	struct llp_conn *c = edge_conn_of(pcb);

	if (c)
		c->before = before;
}

/* What is in front of it in the list: by the hint, which is true if it points to a living pcb that
 * has ours behind it; else by walking, which repairs the hints on the way. NULL: not in the list.
 */
static struct tcp_pcb *predecessor(struct llp_conn *c)
{
	struct tcp_pcb *pcb = tcp_active_pcbs;

	if (c->before && c->before->pcb && c->before->pcb->next == c->pcb)
		return c->before->pcb;
	for (; pcb; pcb = pcb->next) {
		edge_conn_flow_before(pcb->next, edge_conn_of(pcb));
		if (pcb->next == c->pcb)
			return pcb;
	}
	return NULL;
}

void edge_conn_flow_front(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb, *before;

	edge_conn_activate(c);
	/* In TIME_WAIT it is on another list. */
	if (pcb == tcp_active_pcbs || pcb->state == TIME_WAIT || pcb->state == CLOSED)
		return;
	before = predecessor(c);
	if (!before)
		return;
	before->next = pcb->next;
	edge_conn_flow_before(pcb->next, edge_conn_of(before));
	pcb->next = tcp_active_pcbs;
	edge_conn_flow_before(pcb->next, c);
	tcp_active_pcbs = pcb;
	c->before = NULL;
}

static void unlist(struct llp_conn *c)
{
	struct tcp_pcb *before = c->pcb == tcp_active_pcbs ? NULL : predecessor(c);

	if (before)
		before->next = c->pcb->next;
	else
		tcp_active_pcbs = c->pcb->next;
	edge_conn_flow_before(c->pcb->next, edge_conn_of(before));
}

/* ---- connections with nothing under way ---------------------------------------------------- */

static bool wants_keepalive(const struct llp_conn *c)
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
	       !(wants_keepalive(c) && tcp_ticks - pcb->tmr > keep_ticks(c));
}

static void deactivate(struct llp_conn *c)
{
	c->active = false;
	c->before = NULL;
	c->pcb->next = NULL;
	if (!wants_keepalive(c))
		return;
	c->in_keepalive = true;
	c->silent_us = edge.cfg.now_us(edge.cfg.arg);
	c->keepalive_next = NULL;
	c->keepalive_prev = keepalive_last;
	if (keepalive_last)
		keepalive_last->keepalive_next = c;
	else
		keepalive_first = c;
	keepalive_last = c;
}

static void forget_keepalive(struct llp_conn *c)
{
	if (!c->in_keepalive)
		return;
	c->in_keepalive = false;
	if (c->keepalive_prev)
		c->keepalive_prev->keepalive_next = c->keepalive_next;
	else
		keepalive_first = c->keepalive_next;
	if (c->keepalive_next)
		c->keepalive_next->keepalive_prev = c->keepalive_prev;
	else
		keepalive_last = c->keepalive_prev;
	c->keepalive_next = c->keepalive_prev = NULL;
}

static void forget_recent(struct llp_conn *c)
{
	for (unsigned i = 0; c->is_recent && i < RECENT; i++) {
		if (recent[i] == c)
			recent[i] = NULL;
	}
	c->is_recent = false;
}

void edge_conn_active_list_forget(struct llp_conn *c)
{
	forget_keepalive(c);
	forget_recent(c);
}

void edge_conn_activate(struct llp_conn *c)
{
	if (c->active || !c->pcb)
		return;
	forget_keepalive(c);
	edge_conn_flow_before(tcp_active_pcbs, c);
	c->before = NULL;
	c->active = true;
	TCP_REG_ACTIVE(c->pcb);
}

static void deactivate_quiet(void)
{
	struct tcp_pcb *pcb = tcp_active_pcbs, *before = NULL, *next;

	for (; pcb; pcb = next) {
		struct llp_conn *c = edge_conn_of(pcb);

		next = pcb->next;
		if (c && pcb->keep_cnt_sent > 1) /* it was asked and has not answered */
			edge_ask_again(c);
		if (!c || !quiet(c)) {
			before = pcb;
			continue;
		}
		if (before)
			before->next = next;
		else
			tcp_active_pcbs = next;
		edge_conn_flow_before(next, edge_conn_of(before));
		deactivate(c);
	}
}

/* ---- many connections -------------------------------------------------------------------- */

#define RECENT_KEPT 16u /* so many that came later: an answer has had its time to bring the ACK */

static void settle_oldest(void)
{
	struct llp_conn *c = recent[recent_first % RECENT];

	recent_first++;
	recent_n--;
	if (!c)
		return;
	c->is_recent = false;
	if (c->end != EDGE_CONN_ON || !c->active)
		return;
	if (c->pcb->flags & TF_ACK_DELAY)
		edge_conn_ack_fast(c);
	if (!quiet(c))
		return;
	unlist(c);
	deactivate(c);
}

void edge_conn_rx_seen(struct llp_conn *c)
{
	rx_seen = true;
	if (c->is_recent)
		return;
	if (recent_n == RECENT)
		settle_oldest();
	c->is_recent = true;
	recent[(recent_first + recent_n++) % RECENT] = c;
}

void edge_active_list_round(void)
{
	bool busy = rx_seen;

	rx_seen = false;
	if (!busy && recent_n > RECENT_KEPT)
		settle_oldest();
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
	edge_conn_loss_rest(c);
	edge_conn_activate(c);
}

void edge_active_list_timer(void)
{
	uint64_t now = edge.cfg.now_us(edge.cfg.arg);
	static u32_t swept;

	while (keepalive_first && now - keepalive_first->silent_us >= limit_us())
		ask(keepalive_first);
	if (tcp_ticks == swept)
		return;
	swept = tcp_ticks;
	deactivate_quiet();
}

uint64_t edge_active_list_next_us(void)
{
	uint64_t now = edge.cfg.now_us(edge.cfg.arg), due;

	if (!keepalive_first)
		return UINT64_MAX;
	due = keepalive_first->silent_us + limit_us();
	return due > now ? due - now : 1;
}

/* ---- what lwIP need not search ------------------------------------------------------------ */

/* It looks into them for room as well when there is none. */
static bool has_room(void)
{
	return edge.flows < MEMP_NUM_TCP_PCB - 1;
}

struct edge_lists edge_lists_hide(void)
{
	struct edge_lists l = { .active = tcp_active_pcbs, .ended = tcp_tw_pcbs };

	if (!has_room())
		return (struct edge_lists){ 0 };
	tcp_active_pcbs = tcp_tw_pcbs = NULL;
	return l;
}

struct edge_lists edge_lists_leave(struct tcp_pcb *waiting)
{
	struct edge_lists l = { tcp_active_pcbs, tcp_tw_pcbs, waiting, NULL };

	tcp_active_pcbs = NULL;
	tcp_tw_pcbs = waiting;
	if (waiting) {
		l.behind = waiting->next;
		waiting->next = NULL;
	}
	return l;
}

/* Behind what came in between. */
void edge_lists_show(const struct edge_lists *l)
{
	struct tcp_pcb **p = &tcp_active_pcbs;

	for (; l->active && *p; p = &(*p)->next)
		continue;
	if (l->active)
		*p = l->active;
	if (l->left)
		l->left->next = l->behind;
	if (l->ended)
		tcp_tw_pcbs = l->ended;
}

/* ---- room for one more --------------------------------------------------------------------- */

#define ENDED_AT_ONCE 64u

/* Whoever begins to wait comes first in the list. */
static void end_those_that_wait_longest(void)
{
	struct tcp_pcb **at = &tcp_tw_pcbs, *longest, *others;
	unsigned n = 0;

	for (const struct tcp_pcb *pcb = tcp_tw_pcbs; pcb; pcb = pcb->next)
		n++;
	for (; n > ENDED_AT_ONCE; n--)
		at = &(*at)->next;
	longest = *at;
	*at = NULL;
	others = tcp_tw_pcbs;
	tcp_tw_pcbs = longest;
	while (tcp_tw_pcbs)
		edge_pcb_drop_time_wait(tcp_tw_pcbs);
	tcp_tw_pcbs = others;
}

bool edge_lists_room(void)
{
	if (edge.flows < MEMP_NUM_TCP_PCB)
		return true;
	if (tcp_tw_pcbs)
		end_those_that_wait_longest();
	return edge.flows < MEMP_NUM_TCP_PCB;
}
