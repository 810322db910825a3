/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection does when a time has come. Only those that wait for one are looked at. */
#include "conn/end_event.h"
#include "conn/order.h"

#define NUDGES	 5u
#define NUDGE_US 10000u /* to the first; each of the others waits four times as long */

/* A responder may look at its stream for the first time only some moments after its Reply, and then
 * again only when more comes (Linux's siw does): the first FPDUs lie there, acknowledged and
 * unread. So an initiator that is silent, and whose peer is, sends something to look at: a few
 * times. */
static void nudge(struct conn *c, uint64_t now)
{
	if (c->silence == PEER_SILENT_WE_SENT) {
		c->silence = PEER_SILENT;
		c->nudge_us = now + ((uint64_t)NUDGE_US << 2 * c->nudges);
		return;
	}
	if (!c->nudge_us || now < c->nudge_us)
		return;
	c->nudge_us = 0;
	if (c->nudges++ < NUDGES && qp_tx_empty_write(&c->qp->qp))
		conn_qp_transmit(c->qp);
}

/* A responder is silent until the first FPDU came (RFC 5044 §7.1.2). If its program speaks first
 * and the initiator knows no peer-to-peer (RFC 6581 §9.2) or does not ask for it (Linux's siw),
 * both wait for ever. So the administrator may allow it to speak; if he did not, tell him once. */
static void look_at_gate(struct conn *c, uint64_t now)
{
	struct conn_qp *q = c->qp;

	c->gate_us = 0;
	if (!q->qp.gated)
		return;
	if (!sq_ready(&q->qp.sq)) {
		c->gate_us = now + conn_gate_period_us(c);
		return;
	}
	if (!conn_cfg(c)->speak_first_ms) {
		conn_log_both_wait(c);
		return;
	}
	qp_open_gate(&q->qp);
	conn_qp_transmit(q);
}

static void streaming_timer(struct conn *c, uint64_t now)
{
	if (c->silence != PEER_HEARD)
		nudge(c, now);
	if (c->gate_us && now >= c->gate_us && c->qp)
		look_at_gate(c, now);
}

static void connect_again(struct conn *c)
{
	uw_status st = conn_call(c);

	if (st)
		conn_startup_failed(c, st);
}

static void give_up(struct conn *c, uint64_t now)
{
	if (!c->deadline_us || now < c->deadline_us)
		return;
	c->deadline_us = 0;
	if (c->waits_for) {
		if (order_overdue(c))
			conn_ask(c);
	} else if (c->state == CONN_CONNECTING || c->state == CONN_RETRY)
		conn_startup_failed(c, UW_E_TIMEOUT);
	else if (c->state == CONN_STREAMING && c->qp)
		conn_disconnect_timer(c);
	else if (c->state == CONN_CLOSING && c->qp)
		conn_qp_down(c->qp, UW_OK);
	else if (c->state == CONN_ENDED)
		end_event_now(c);
}

/* False: the connection is no more. */
static bool conn_timer(struct conn *c, uint64_t now)
{
	if (c->state == CONN_STARTING && cm_timer(c->cm, now) == CM_FAILED) {
		bool stays = c->role == CONN_INITIATOR;

		conn_startup_failed(c, c->cm->why);
		return stays;
	}
	if (c->cm_less && c->state == CONN_ENDED) {
		conn_free(c); /* nobody else will */
		return false;
	}
	if (c->state == CONN_RETRY)
		connect_again(c);
	if (c->state == CONN_STREAMING)
		streaming_timer(c, now);
	conn_qp_rnr_timer(c, now);
	give_up(c, now);
	return true;
}

void conn_timers(struct stack *s, uint64_t now_us)
{
	struct deadline *d;

	s->timers_us = now_us;
	while ((d = deadline_take(&s->timers, now_us))) {
		struct conn *c = (struct conn *)((uint8_t *)d - offsetof(struct conn, timer));

		if (conn_timer(c, now_us))
			conn_arm(c);
	}
}
