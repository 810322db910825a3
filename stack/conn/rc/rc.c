/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP whose peer was named: its states and its times. */
#include "conn/rc/rc.h"

#include <stdlib.h>

#include "conn/endpoint.h"
#include "io/addr.h"

/* A request to a peer that has left fails after about the time that InfiniBand's retries take. A
 * program whose peer goes as soon as it has what it wanted is done by then (ibv_srq_pingpong). */
#define RETRIES_US 500000u
/* Between RTR and RTS, where the program sets its retry counts. One that only receives may stay in
 * RTR. */
#define READY_US 20000u

#define TO(s) (1u << RC_##s)

static const unsigned next_states[RC_STATES] = {
	[RC_WAITING] = TO(RESOLVING) | TO(CALLING) | TO(UP) | TO(LOST),
	[RC_RESOLVING] = TO(WAITING) | TO(CALLING) | TO(UP) | TO(LOST),
	[RC_CALLING] = TO(WAITING) | TO(UP) | TO(LOST),
	[RC_UP] = TO(WAITING) | TO(LOST),
	[RC_LOST] = TO(LOST),
};

bool rc_may_enter(enum rc_state from, enum rc_state to)
{
	return next_states[from] & 1u << to;
}

void rc_enter(struct rc *rc, enum rc_state to)
{
	if (rc->state != to && !rc_may_enter(rc->state, to))
		rc_stack(rc)->sched.stats.conn_bad_state++;
	rc->state = to;
}

static void add_to_list(struct rc *rc)
{
	struct rc_stack *l = &rc_stack(rc)->rc;

	rc->next = l->list;
	rc->link = &l->list;
	if (rc->next)
		rc->next->link = &rc->next;
	l->list = rc;
}

void rc_take_off_list(struct rc *rc)
{
	if (!rc->link)
		return;
	*rc->link = rc->next;
	if (rc->next)
		rc->next->link = rc->link;
	rc->link = NULL;
}

/* ---- giving up ---------------------------------------------------------------------------- */

/* The QP has no stream and will get none: requests that are posted fail. */
static void give_up(struct conn_qp *q)
{
	rc_take_off_list(q->rc);
	rc_enter(q->rc, RC_LOST);
	qp_give_up(&q->qp, UW_E_LLP_CLOSED);
}

void rc_give_up_and_tell(struct conn_qp *q)
{
	bool posted = !sq_empty(&q->qp.sq);

	give_up(q);
	/* With nothing posted there is no completion to tell it by. */
	if (!posted && q->qp.event)
		q->qp.event(q->qp.event_ctx, UW_EVENT_QP_FATAL);
}

static void waited_long_enough(struct rc *rc)
{
	rc_drop_call(rc);
	if (rc->state != RC_LOST)
		rc_log_no_peer(rc);
	give_up(rc->q);
}

static void posted(struct conn_qp *q)
{
	struct stack *s = conn_qp_stack(q);
	struct rc *rc = q->rc;
	uint64_t wait = (uint64_t)s->domain->cfg->rc_wait_ms * 1000;

	if (sq_empty(&q->qp.sq) || q->qp.state == UW_QPS_ERR || rc->deadline_us)
		return;
	rc->deadline_us = stack_now_us(s) + (rc->state == RC_LOST ? RETRIES_US : wait);
	rc_due_at(s, rc->deadline_us);
}

/* A caller that ended before it said anything may have begun anew: it never learned that it was
 * accepted. Any other end is the peer's leave, and as with InfiniBand nobody hears of that until
 * there is something to send. */
static void lost(struct conn_qp *q)
{
	struct rc *rc = q->rc;

	add_to_list(rc);
	if (q->qp.peer_silent) {
		rc_enter(rc, RC_WAITING);
	} else {
		rc_enter(rc, RC_LOST);
		rc->deadline_us = 0;
	}
	posted(q);
}

/* ---- what the program says ------------------------------------------------------------------ */

void rc_ready(struct conn_qp *q)
{
	struct rc *rc = q->rc;

	if (!rc || rc->ready)
		return;
	rc->ready = true;
	rc_judge_calls(rc_stack(rc), q->qp.num);
	if (rc->state == RC_WAITING && rc_connects(&rc->self, &rc->peer))
		rc_try(rc);
}

static uint64_t rnr_until(const struct conn_qp *q, uint64_t now_us)
{
	uint64_t wait = rc_rnr_wait_us(q->path.min_rnr_timer, q->rc->peer_rnr_retry);

	return wait == UINT64_MAX ? wait : now_us + wait;
}

/* InfiniBand's affiliated event: a program in RTR may go to RTS on it. */
static void heard(struct conn_qp *q)
{
	if (!q->rc || q->rc->heard)
		return;
	q->rc->heard = true;
	if (q->qp.event)
		q->qp.event(q->qp.event_ctx, UW_EVENT_COMM_EST);
}

static const struct conn_peer_ops peer_ops = { posted, lost, heard, rnr_until };

void rc_forget(struct conn_qp *q)
{
	struct stack *s = conn_qp_stack(q);
	struct rc *rc = q->rc;

	rc_self_forget(q);
	if (!rc)
		return;
	rc_drop_call(rc);
	rc_take_off_list(rc);
	rc_unclaim(rc);
	q->rc = NULL;
	q->peer_ops = NULL;
	q->qp.rnr_wait = s->domain->cfg->rnr_ms != 0;
	free(rc);
	rc_judge_calls(s, q->qp.num);
}

/* Both ends' addresses, and the link between them. */
static uw_status read_ends(struct stack *s, const struct uw_peer *p, struct rc *rc)
{
	struct uw_ip from = { { 0 } };
	uint16_t unused;
	uw_status st = ep_read_addr(p->addr, &rc->peer.addr, &unused);

	if (!st && p->from)
		st = ep_read_addr(p->from, &from, &unused);
	if (st)
		return st;
	if (!ep_find_link(s, &from, &rc->l))
		return UW_E_ADDR;
	if (ep_means_all(&rc->peer.addr) && !io_source_for(rc->l, &rc->peer.addr, &rc->peer.addr))
		return UW_E_UNREACHABLE;
	st = ep_local_for(rc->l, &from, &rc->peer.addr, &rc->self.addr);
	if (!st && s->llp->has_way && !s->llp->has_way(rc->l, &rc->peer.addr))
		st = UW_E_NO_ROUTE;
	return st;
}

static uw_status fill_in(struct conn_qp *q, const struct uw_peer *p, struct rc *rc)
{
	struct stack *s = conn_qp_stack(q);
	uw_status st = read_ends(s, p, rc);

	if (st)
		return st;
	rc->self.qpn = q->qp.num;
	rc->peer.qpn = p->qpn;
	rc->q = q;
	rc->ird = p->ird;
	rc->tos = p->tos;
	rc->serial = ++s->rc.last_serial;
	rc->since_us = rc->next_us = stack_now_us(s);
	return rc_listen(s, rc->l);
}

static bool names_itself(const struct rc *rc)
{
	return uw_ip_eq(&rc->peer.addr, &rc->self.addr) && rc->peer.qpn == rc->self.qpn;
}

static uw_status make(struct conn_qp *q, const struct uw_peer *p, struct rc **out)
{
	struct rc *rc = calloc(1, sizeof(*rc));
	uw_status st;

	if (!rc)
		return UW_E_NOMEM;
	st = fill_in(q, p, rc);
	if (!st && rc->l->ops->resolve)
		st = rc_resolver_start(conn_qp_stack(q));
	if (st) {
		free(rc);
		return st;
	}
	*out = rc;
	return UW_OK;
}

uw_status rc_name_peer(struct conn_qp *q, const struct uw_peer *p)
{
	struct stack *s = conn_qp_stack(q)->domain->first;
	struct rc *rc;
	uw_status st;

	if (q->qp.state != UW_QPS_INIT || q->conn || q->claimed_by || q->peer_ops)
		return UW_E_STATE;
	conn_qp_move(q, s); /* RC_PORT is the first stack's */
	st = make(q, p, &rc);
	if (st)
		return st;
	if (names_itself(rc)) {
		free(rc);
		return rc_self_start(q, p->ird);
	}
	q->qp.cm_less = q->qp.rnr_wait = true;
	st = qp_modify(&q->qp, UW_QPS_RTR);
	if (st) {
		free(rc);
		return st;
	}
	q->rc = rc;
	rc_claim(rc);
	q->peer_ops = &peer_ops;
	add_to_list(rc);
	rc->ready_us = stack_now_us(s) + READY_US;
	rc_due_at(s, rc->ready_us);
	return UW_OK;
}

/* ---- time --------------------------------------------------------------------------------- */

static void rc_timer(struct rc *rc, uint64_t now)
{
	struct stack *s = rc_stack(rc);

	if (rc->deadline_us && now >= rc->deadline_us) {
		waited_long_enough(rc);
		return;
	}
	if (!rc->ready) {
		if (now >= rc->ready_us)
			rc_ready(rc->q);
		else
			rc_due_at(s, rc->ready_us);
	} else if (rc->state == RC_WAITING && rc_connects(&rc->self, &rc->peer)) {
		if (now >= rc->next_us)
			rc_try(rc);
		else
			rc_due_at(s, rc->next_us);
	}
	if (rc->deadline_us)
		rc_due_at(s, rc->deadline_us);
}

/* Timers run no more often than every 10 ms: nothing is due before. */
uint64_t rc_next_timer_us(const struct stack *s, uint64_t now_us)
{
	uint64_t soon = now_us + 10000;

	return s->rc.due_us < soon ? soon : s->rc.due_us;
}

void rc_timers(struct stack *s, uint64_t now)
{
	struct rc *next;

	if (now < s->rc.due_us)
		return;
	s->rc.due_us = UINT64_MAX;
	for (struct rc *rc = s->rc.list; rc; rc = next) {
		next = rc->next;
		rc_timer(rc, now);
	}
	rc_calls_timer(s, now);
}
