/* SPDX-License-Identifier: BSD-3-Clause */
/* The side that connects: try after try, until the peer's program has named us. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "conn/rc/rc.h"

#define TRY_US	   10000u  /* between two tries in the first second; a tenth of the time after it */
#define TRY_MAX_US 500000u /* ... and at most this */

void rc_drop_call(struct rc *rc)
{
	struct conn *call = rc->call;

	rc->call = NULL;
	if (call)
		conn_free(call);
}

static void try_later(struct rc *rc, uw_status why)
{
	struct stack *s = rc_stack(rc);
	uint64_t now = stack_now_us(s), wait = (now - rc->since_us) / 10;

	rc->call = NULL; /* it has ended, and is freed by its timer */
	rc->last = why;
	rc_enter(rc, RC_WAITING);
	if (now - rc->since_us < 100 * TRY_US || wait < TRY_US)
		wait = TRY_US;
	rc->next_us = now + (wait < TRY_MAX_US ? wait : TRY_MAX_US);
	rc_due_at(s, rc->next_us);
}

static void try_elsewhere(struct rc *rc, uw_status why)
{
	try_later(rc, why);
	rc_ask(rc);
}

static void rejected(struct rc *rc, const struct uw_cm_event *ev)
{
	struct uw_span pd = { ev->param.private_data, ev->param.private_data_len };
	struct rc_hello h;

	if (!rc_hello_decode(pd, &h) || h.refusal == RC_NOT_READY) {
		try_later(rc, UW_E_REJECTED);
		return;
	}
	/* Who told us its port and has the QP no more is as good as no QP. */
	if (h.refusal == RC_ELSEWHERE && !rc->peer_port) {
		try_elsewhere(rc, UW_E_REJECTED);
		return;
	}
	rc->call = NULL;
	rc_log_refused(rc, h.refusal);
	rc_give_up_and_tell(rc->q);
}

static void established(struct rc *rc, const struct uw_cm_event *ev)
{
	struct uw_span pd = { ev->param.private_data, ev->param.private_data_len };
	struct rc_hello h;

	rc->peer_rnr_retry = rc_hello_decode(pd, &h) ? h.rnr_retry : RC_RNR_FOR_EVER;
	rc->call = NULL;
	rc_enter(rc, RC_UP);
	rc_take_off_list(rc);
}

static void on_event(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev)
{
	struct rc *rc = ((struct conn_qp *)c->ctx)->rc;

	if (!rc)
		return;
	switch (type) {
	case UW_CM_ESTABLISHED:
		established(rc, ev);
		break;
	case UW_CM_REJECTED:
		rejected(rc, ev);
		break;
	case UW_CM_REFUSED:
		try_elsewhere(rc, UW_E_REFUSED);
		break;
	case UW_CM_UNREACHABLE:
		try_later(rc, UW_E_UNREACHABLE);
		break;
	case UW_CM_CONNECT_ERROR:
		try_later(rc, UW_E_MPA_FRAME);
		break;
	default: /* the end of a stream, which conn_peer_ops.lost is told, or the QP is in error */
		break;
	}
}

/* The stack has ended while we call. */
static void on_dropped(struct conn *c)
{
	struct conn_qp *q = c->qp ? c->qp : c->claimed;

	if (q && q->rc && q->rc->call == c)
		q->rc->call = NULL;
}

/* At a shared address anybody may have the port. Who has the QP says its number, and ours. */
static bool meant(const struct conn *c)
{
	const struct rc *rc = ((struct conn_qp *)c->ctx)->rc;
	struct rc_hello h;

	return rc && rc_hello_decode(c->cm->peer.pd, &h) && !h.refusal && h.from == rc->peer.qpn &&
	       h.to == rc->self.qpn;
}

static const struct conn_user rc_user = { .event = on_event,
					  .dropped = on_dropped,
					  .meant = meant };

/* What the Request says. */
static struct conn_request *make_request(const struct rc *rc)
{
	struct rc_hello hello = { .from = rc->self.qpn,
				  .to = rc->peer.qpn,
				  .rnr_retry = rc->q->path.rnr_retry };
	struct conn_request *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	rc_hello_encode(&hello, r->pd);
	r->want = (struct cm_param){ .pd = { r->pd, sizeof(struct rc_wire) },
				     .ird = rc->ird,
				     .ord = (uint16_t)rc_stack(rc)->domain->cfg->ord };
	return r;
}

static uw_status fill_conn(struct rc *rc, struct conn *c)
{
	uw_status st;

	c->cm_less = true;
	c->l = rc->l;
	c->local = rc->self.addr;
	c->remote = rc->peer.addr;
	c->rport = htons(rc->peer_port ? rc->peer_port : RC_PORT);
	c->tos = rc->tos & 0xfc; /* RFC 3168 §5: the other two bits are ECN's */
	st = ports_borrow(c->stack->domain, uw_ip_is_v4(&c->local) ? IO_V4 : IO_V6,
			  &c->borrowed_port);
	if (st)
		return st;
	c->lport = htons((uint16_t)c->borrowed_port);
	c->request = make_request(rc);
	return c->request ? UW_OK : UW_E_NOMEM;
}

/* The way to the peer is known. */
static uw_status call(struct rc *rc)
{
	struct conn *c = conn_create(rc_stack(rc), CONN_INITIATOR);
	uw_status st;

	if (!c)
		return UW_E_NOMEM;
	st = fill_conn(rc, c);
	if (!st)
		st = conn_connect(c, rc->q, 0);
	if (st) {
		conn_free(c);
		return st;
	}
	c->user = &rc_user;
	c->ctx = rc->q;
	rc->call = c;
	rc_enter(rc, RC_CALLING);
	return UW_OK;
}

void rc_try(struct rc *rc)
{
	uw_status st;

	if (stack_is_without_links(rc_stack(rc)))
		return;
	if (rc->l->ops->resolve) {
		rc_enter(rc, RC_RESOLVING);
		rc_resolver_kick(rc_stack(rc));
		return;
	}
	st = call(rc);
	if (st)
		try_later(rc, st);
}

void rc_resolved(struct rc *rc, uw_status st)
{
	if (rc->state != RC_RESOLVING)
		return;
	if (!st)
		st = call(rc);
	if (st)
		try_later(rc, st);
}
