/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM-less RC: QPs whose peer the program names itself (doc/adr/0006-cm-less-rc.md). One side calls,
 * again and again until somebody answers; the other takes the call that it waits for. cm/rc.c says
 * which and what.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/finder.h"
#include "engine/say.h"
#include "io/addr.h"

#define TRY_US		10000u /* between two tries in the first second; a tenth of the time after it */
#define TRY_MAX_US	500000u /* ... and at most this */
#define PARK_US		60000000u
#define PARK_BRIEFLY_US 1000000u
#define PARKED_MAX	16384u
#define LISTEN_MAX	255
/* A request to a peer that has left fails after about the time that InfiniBand's retries take. A
 * program whose peer goes as soon as it has what it wanted is done by then (ibv_srq_pingpong). */
#define RETRIES_US 500000u
/* Between RTR and RTS, where the program says how patient its Sends are. One that only receives may
 * stay in RTR. */
#define READY_US 20000u

static void due_at(struct uw_engine *e, uint64_t us)
{
	if (us < e->rc_due_us)
		e->rc_due_us = us;
}

static void list(struct uw_rc *rc)
{
	struct uw_engine *e = engine_of(rc->qp);

	rc->next = e->rcs;
	rc->link = &e->rcs;
	if (rc->next)
		rc->next->link = &rc->next;
	e->rcs = rc;
}

static void unlist(struct uw_rc *rc)
{
	if (!rc->link)
		return;
	*rc->link = rc->next;
	if (rc->next)
		rc->next->link = rc->link;
	rc->link = NULL;
}

/* ---- giving up ---------------------------------------------------------------------------- */

/* A QP without a stream and without hope of one. With nothing posted there is no completion to tell
 * it by. */
static void give_up(struct uw_qp *qp, bool event)
{
	bool posted = !sq_empty(&qp->qp.sq);

	unlist(qp->rc);
	qp->rc->state = RC_LOST;
	qp_give_up(&qp->qp, UW_E_LLP_CLOSED);
	if (event && !posted && qp->qp.event)
		qp->qp.event(qp->qp.event_ctx, UW_EVENT_QP_FATAL);
}

static void drop_call(struct uw_rc *rc)
{
	struct uw_ep *call = rc->call;

	rc->call = NULL;
	if (!call)
		return;
	call->owned = false;
	call->qp = NULL;
	engine_ep_free(call);
}

static void waited_long_enough(struct uw_rc *rc)
{
	drop_call(rc);
	if (rc->state != RC_LOST)
		engine_say_no_peer(rc);
	give_up(rc->qp, false);
}

void engine_rc_posted(struct uw_qp *qp)
{
	struct uw_rc *rc = qp->rc;
	uint64_t wait = (uint64_t)engine_of(qp)->cfg.rc_wait_ms * 1000;

	if (sq_empty(&qp->qp.sq) || qp->qp.state == UW_QPS_ERR)
		return;
	if (rc->deadline_us)
		return;
	rc->deadline_us = engine_now_us(engine_of(qp)) + (rc->state == RC_LOST ? RETRIES_US : wait);
	due_at(engine_of(qp), rc->deadline_us);
}

/* ---- calling ------------------------------------------------------------------------------ */

static void try_later(struct uw_rc *rc, uw_status why)
{
	uint64_t now = engine_now_us(engine_of(rc->qp)), wait = (now - rc->since_us) / 10;

	rc->call = NULL; /* it has ended, and goes with the next timer */
	rc->last = why;
	rc->state = RC_WAITING;
	if (now - rc->since_us < 100 * TRY_US || wait < TRY_US)
		wait = TRY_US;
	rc->next_us = now + (wait < TRY_MAX_US ? wait : TRY_MAX_US);
	due_at(engine_of(rc->qp), rc->next_us);
}

static void refused(struct uw_rc *rc, const struct uw_cm_event *ev)
{
	struct uw_span pd = { ev->param.private_data, ev->param.private_data_len };
	struct rc_hello h;

	if (!rc_hello_decode(pd, &h) || h.refusal == RC_NOT_READY) {
		try_later(rc, UW_E_REJECTED);
		return;
	}
	rc->call = NULL;
	engine_say_refused(rc, h.refusal);
	give_up(rc->qp, true);
}

/* What the Reply says. */
static void heed(struct uw_rc *rc, const struct uw_cm_event *ev)
{
	struct uw_span pd = { ev->param.private_data, ev->param.private_data_len };
	struct rc_hello h;

	rc->peer_rnr_retry = rc_hello_decode(pd, &h) ? h.rnr_retry : RC_RNR_FOR_EVER;
}

static void on_event(void *ctx, const struct uw_cm_event *ev)
{
	struct uw_rc *rc = ((struct uw_qp *)ctx)->rc;

	if (!rc)
		return;
	switch (ev->type) {
	case UW_CM_ESTABLISHED:
		heed(rc, ev);
		rc->call = NULL;
		rc->state = RC_UP;
		unlist(rc);
		break;
	case UW_CM_REJECTED:
		refused(rc, ev);
		break;
	case UW_CM_REFUSED:
		try_later(rc, UW_E_REFUSED);
		break;
	case UW_CM_UNREACHABLE:
		try_later(rc, UW_E_UNREACHABLE);
		break;
	case UW_CM_CONNECT_ERROR:
		try_later(rc, UW_E_MPA_FRAME);
		break;
	default: /* the end of a stream: engine_rc_lost, or the QP is in error */
		break;
	}
}

/* The way to the peer is known. */
static uw_status call(struct uw_rc *rc)
{
	struct rc_hello hello = { .from = rc->self.qpn,
				  .to = rc->peer.qpn,
				  .rnr_retry = rc->qp->path.rnr_retry };
	struct uw_ep *ep = engine_ep_new(engine_of(rc->qp));
	uw_status st = UW_E_ADDR_IN_USE;

	if (!ep)
		return UW_E_NOMEM;
	ep->rc = ep->owned = true;
	ep->fn = on_event;
	ep->ctx = rc->qp;
	ep->l = rc->l;
	ep->local = rc->self.addr;
	ep->remote = ep->asked = rc->peer.addr;
	ep->rport = htons(RC_PORT);
	engine_ep_set_tos(ep, rc->tos);
	rc_hello_encode(&hello, ep->pd);
	ep->want = (struct cm_param){ .pd = { ep->pd, sizeof(struct rc_wire) },
				      .ird = rc->ird,
				      .ord = (uint16_t)ep->e->cfg.ord };
	if (engine_ep_any_port(ep))
		st = engine_ep_connect(ep, 0);
	if (st) {
		engine_ep_free(ep);
		return st;
	}
	engine_ep_claim(ep, rc->qp);
	rc->call = ep;
	rc->state = RC_CALLING;
	return UW_OK;
}

static void try(struct uw_rc *rc)
{
	uw_status st;

	if (rc->l->ops->resolve) {
		rc->state = RC_FINDING;
		engine_finder_kick(engine_of(rc->qp));
		return;
	}
	st = call(rc);
	if (st)
		try_later(rc, st);
}

void engine_rc_found(struct uw_rc *rc, uw_status st)
{
	if (rc->state != RC_FINDING)
		return;
	if (!st)
		st = call(rc);
	if (st)
		try_later(rc, st);
}

/* ---- being called ------------------------------------------------------------------------- */

void engine_rc_unpark(struct uw_ep *ep)
{
	struct uw_ep **p = &ep->e->parked;

	if (!ep->parked_until_us)
		return;
	while (*p != ep)
		p = &(*p)->next_parked;
	*p = ep->next_parked;
	ep->parked_until_us = 0;
	ep->e->n_parked--;
}

static void refuse(struct uw_ep *ep, enum rc_refusal why)
{
	struct rc_hello h = { .from = ep->hello.to, .to = ep->hello.from, .refusal = why };
	uint8_t pd[sizeof(struct rc_wire)];
	struct uw_cm_param p = { .private_data = pd, .private_data_len = sizeof(pd) };

	engine_rc_unpark(ep);
	rc_hello_encode(&h, pd);
	if (engine_ep_reject(ep, &p))
		engine_ep_drop(ep); /* the caller has gone already */
}

static void park(struct uw_ep *ep, uint64_t us)
{
	struct uw_engine *e = ep->e;

	if (ep->parked_until_us)
		return;
	if (e->n_parked == PARKED_MAX) {
		refuse(ep, RC_NOT_READY);
		return;
	}
	ep->parked_until_us = engine_now_us(e) + us;
	ep->next_parked = e->parked;
	e->parked = ep;
	e->n_parked++;
	due_at(e, ep->parked_until_us);
}

static void take(struct uw_ep *ep, struct uw_qp *qp)
{
	struct rc_hello h = { .from = ep->hello.to,
			      .to = ep->hello.from,
			      .rnr_retry = qp->path.rnr_retry };
	uint8_t pd[sizeof(struct rc_wire)];
	struct uw_cm_param p = { .private_data = pd,
				 .private_data_len = sizeof(pd),
				 .ird = qp->rc->ird,
				 .ord = (uint16_t)ep->e->cfg.ord };

	engine_rc_unpark(ep);
	rc_hello_encode(&h, pd);
	qp->rc->peer_rnr_retry = ep->hello.rnr_retry;
	if (qp->rc->tos)
		engine_ep_set_tos(ep, qp->rc->tos);
	if (engine_ep_accept(ep, qp->qp.num, &p)) {
		engine_ep_drop(ep); /* the caller has gone: it will call again */
		return;
	}
	unlist(qp->rc);
	qp->rc->state = RC_UP;
}

static enum rc_phase phase_of(const struct uw_qp *qp)
{
	if (!qp)
		return RC_NO_QP;
	if (!qp->rc || !qp->rc->ready)
		return RC_NAMES_NOBODY;
	return qp->rc->state == RC_UP || qp->rc->state == RC_LOST ? RC_HAS_HAD_ONE : RC_AWAITS;
}

static void judge(struct uw_ep *ep)
{
	struct uw_qp *qp = idmap_get(&ep->e->lead->qps, ep->hello.to);
	struct rc_end caller = { ep->remote, ep->hello.from }, self = { ep->local, ep->hello.to };
	enum rc_refusal why;

	switch (rc_judge(phase_of(qp), &self, qp && qp->rc ? &qp->rc->peer : NULL, &caller, &why)) {
	case RC_TAKE:
		take(ep, qp);
		break;
	case RC_PARK:
		park(ep, PARK_US);
		break;
	case RC_PARK_BRIEFLY:
		park(ep, PARK_BRIEFLY_US);
		break;
	case RC_REFUSE:
		refuse(ep, why);
		break;
	}
}

static void on_request(void *ctx, const struct uw_cm_event *ev)
{
	struct uw_span pd = { ev->param.private_data, ev->param.private_data_len };
	struct uw_ep *ep = ev->ep;

	(void)ctx;
	if (rc_hello_decode(pd, &ep->hello) && !ep->hello.refusal)
		judge(ep);
	else
		refuse(ep, RC_NO_SUCH_QP);
}

/* What the QP of that number is has changed. */
static void judge_parked(struct uw_engine *e, uint32_t qpn)
{
	struct uw_ep *next;

	for (struct uw_ep *ep = e->parked; ep; ep = next) {
		next = ep->next_parked;
		if (ep->hello.to == qpn)
			judge(ep);
	}
}

static struct uw_ep *listener_of(const struct uw_engine *e, const struct io_link *l)
{
	for (struct uw_ep *ep = e->eps; ep; ep = ep->next) {
		if (ep->rc && ep->ls && ep->l == l)
			return ep;
	}
	return NULL;
}

/* One for each link, from the first QP on. */
static uw_status listen_on(struct uw_engine *e, struct io_link *l)
{
	const struct llp_place at = { .port = htons(RC_PORT), .own = true };
	struct uw_ep *ep;
	uw_status st;

	if (listener_of(e, l))
		return UW_OK;
	ep = engine_ep_new(e);
	if (!ep)
		return UW_E_NOMEM;
	ep->rc = ep->owned = true;
	ep->fn = on_request;
	ep->l = l;
	ep->lport = at.port;
	st = llp_listen(e->llp, l, &at, LISTEN_MAX, ep, &ep->ls);
	if (st)
		engine_ep_free(ep);
	else
		ep->state = EP_LISTENING;
	return st;
}

/* ---- the peer is named -------------------------------------------------------------------- */

static uw_status make(struct uw_qp *qp, const struct uw_peer *p, struct uw_rc *rc)
{
	struct uw_engine *e = engine_of(qp);
	struct uw_ip from = { { 0 } };
	uw_status st;

	if (!engine_place_of(p->addr, &rc->peer.addr) ||
	    (p->from && !engine_place_of(p->from, &from)))
		return UW_E_AFAMILY;
	if (!engine_is_ours(e, &from, &rc->l))
		return UW_E_ADDR;
	if ((uw_ip_is_any(&rc->peer.addr) || uw_ip_is_loopback(&rc->peer.addr)) &&
	    !io_source_for(rc->l, &rc->peer.addr, &rc->peer.addr))
		return UW_E_UNREACHABLE;
	st = engine_local_for(rc->l, &from, &rc->peer.addr, &rc->self.addr);
	if (st)
		return st;
	rc->self.qpn = qp->qp.num;
	rc->peer.qpn = p->qpn;
	if (uw_ip_eq(&rc->peer.addr, &rc->self.addr) && rc->peer.qpn == rc->self.qpn)
		return UW_E_INVAL;
	rc->qp = qp;
	rc->ird = p->ird;
	rc->tos = p->tos;
	rc->serial = ++e->rc_serial;
	rc->since_us = rc->next_us = engine_now_us(e);
	return listen_on(e, rc->l);
}

static uw_status name_peer(struct uw_qp *qp, const struct uw_peer *p)
{
	struct uw_rc *rc;
	uw_status st;

	if (qp->qp.state != UW_QPS_INIT || qp->ep || qp->rc)
		return UW_E_STATE;
	rc = calloc(1, sizeof(*rc));
	if (!rc)
		return UW_E_NOMEM;
	engine_qp_move(qp, qp->pd->e); /* RC_PORT is the lead's */
	st = make(qp, p, rc);
	if (!st && rc->l->ops->resolve)
		st = engine_finder_start(engine_of(qp));
	if (!st) {
		qp->qp.cm_less = qp->qp.rnr_wait = true;
		st = qp_modify(&qp->qp, UW_QPS_RTR);
	}
	if (st) {
		free(rc);
		return st;
	}
	qp->rc = rc;
	list(rc);
	rc->ready_us = engine_now_us(engine_of(qp)) + READY_US;
	due_at(engine_of(qp), rc->ready_us);
	return UW_OK;
}

void engine_rc_ready(struct uw_qp *qp)
{
	struct uw_rc *rc = qp->rc;

	if (!rc || rc->ready)
		return;
	rc->ready = true;
	judge_parked(engine_of(qp), qp->qp.num);
	if (rc->state == RC_WAITING && rc_connects(&rc->self, &rc->peer))
		try(rc);
}

uint64_t engine_rc_rnr_limit(const struct uw_qp *qp, uint64_t now_us)
{
	uint64_t wait = rc_rnr_wait_us(qp->path.min_rnr_timer, qp->rc->peer_rnr_retry);

	return wait == UINT64_MAX ? wait : now_us + wait;
}

int uw_qp_name_peer(struct uw_qp *qp, const struct uw_peer *p)
{
	struct uw_engine *e = qp->pd->e;
	int err = uw_engine_start(e);
	uw_status st;

	if (err)
		return err;
	engine_lock_all(e);
	st = name_peer(qp, p);
	engine_unlock_all(e);
	engine_wake(e); /* it may have to be ready before anything else happens */
	return engine_errno(st);
}

void engine_rc_forget(struct uw_qp *qp)
{
	struct uw_rc *rc = qp->rc;

	if (!rc)
		return;
	drop_call(rc);
	unlist(rc);
	qp->rc = NULL;
	qp->qp.rnr_wait = engine_of(qp)->cfg.rnr_ms != 0;
	free(rc);
	judge_parked(engine_of(qp), qp->qp.num);
}

/* InfiniBand's affiliated event: a program in RTR may go to RTS on it. */
void engine_rc_heard(struct uw_qp *qp)
{
	if (!qp->rc || qp->rc->heard)
		return;
	qp->rc->heard = true;
	if (qp->qp.event)
		qp->qp.event(qp->qp.event_ctx, UW_EVENT_COMM_EST);
}

/* A caller that ended before it said anything may have begun anew: it never learned that it was
 * taken. Any other end is the peer's leave, and as with InfiniBand nobody hears of that until there
 * is something to send. */
void engine_rc_lost(struct uw_qp *qp)
{
	struct uw_rc *rc = qp->rc;

	list(rc);
	if (qp->qp.peer_silent) {
		rc->state = RC_WAITING;
	} else {
		rc->state = RC_LOST;
		rc->deadline_us = 0;
	}
	engine_rc_posted(qp);
}

/* ---- time --------------------------------------------------------------------------------- */

static void rc_timer(struct uw_rc *rc, uint64_t now)
{
	struct uw_engine *e = engine_of(rc->qp);

	if (rc->deadline_us && now >= rc->deadline_us) {
		waited_long_enough(rc);
		return;
	}
	if (!rc->ready) {
		if (now >= rc->ready_us)
			engine_rc_ready(rc->qp);
		else
			due_at(e, rc->ready_us);
	} else if (rc->state == RC_WAITING && rc_connects(&rc->self, &rc->peer)) {
		if (now >= rc->next_us)
			try(rc);
		else
			due_at(e, rc->next_us);
	}
	if (rc->deadline_us)
		due_at(e, rc->deadline_us);
}

static void parked_timer(struct uw_ep *ep, uint64_t now)
{
	struct uw_qp *qp = idmap_get(&ep->e->lead->qps, ep->hello.to);

	if (now < ep->parked_until_us)
		due_at(ep->e, ep->parked_until_us);
	else
		refuse(ep, qp && qp->rc ? RC_OTHER_PEER : RC_NOT_READY);
}

void engine_rc_timers(struct uw_engine *e, uint64_t now)
{
	struct uw_rc *rc, *next;
	struct uw_ep *ep, *next_ep;

	if (now < e->rc_due_us)
		return;
	e->rc_due_us = UINT64_MAX;
	for (rc = e->rcs; rc; rc = next) {
		next = rc->next;
		rc_timer(rc, now);
	}
	for (ep = e->parked; ep; ep = next_ep) {
		next_ep = ep->next_parked;
		parked_timer(ep, now);
	}
}
