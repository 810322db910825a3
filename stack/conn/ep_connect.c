/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: connecting, answering, disconnecting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn/api.h"
#include "conn/dgram/sidr.h"
#include "conn/end_event.h"

/* Nobody had the address when it was resolved. Somebody may have it now. No lock held. */
static uw_status resolve_again(struct uw_ep *ep)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	uint64_t until = stack_now_us(ep->stack) + CONN_PATIENCE_US;
	unsigned limit_ms = ep->stack->domain->cfg->connect_ms;
	struct uw_ip addr;
	uw_status st;

	for (;;) {
		if (!ep_hold_links(ep))
			return UW_E_UNREACHABLE;
		addr = ep->asked;
		st = ep_find_way(ep->l, &addr, ep->rport, limit_ms);
		stack_let_links_go(ep->stack);
		if (st != UW_E_REFUSED || stack_now_us(ep->stack) >= until)
			break;
		nanosleep(&pause, NULL);
	}
	if (!st)
		ep->remote = addr;
	return st;
}

static uw_status check_param(const struct uw_cm_param *p, size_t limit)
{
	return p->private_data_len > limit ? UW_E_INVAL : UW_OK;
}

static struct cm_param param_of(const struct uw_cm_param *p)
{
	return (struct cm_param){ .pd = { p->private_data, p->private_data_len },
				  .ird = p->ird,
				  .ord = p->ord };
}

static struct conn_request *request_of(const struct uw_cm_param *p)
{
	struct conn_request *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	r->want = param_of(p);
	r->want.pd.p = r->pd;
	if (p->private_data_len)
		memcpy(r->pd, p->private_data, p->private_data_len);
	return r;
}

/* A connection for ep, which is not its yet. */
static struct conn *conn_for(struct uw_ep *ep, const struct uw_cm_param *p)
{
	struct conn *c = conn_create(ep->stack, CONN_INITIATOR);

	if (!c)
		return NULL;
	c->request = request_of(p);
	if (!c->request) {
		conn_free(c);
		return NULL;
	}
	c->rnr_for_ever = p->rnr_for_ever;
	c->l = ep->l;
	c->local = ep->local;
	c->remote = ep->remote;
	c->lport = ep->lport;
	c->rport = ep->rport;
	c->tos = ep->tos;
	return c;
}

static void give_conn(struct uw_ep *ep, struct conn *c)
{
	c->user = &ep_conn_user;
	c->ctx = ep;
	ep->conn = c;
	ep->state = EP_HAS_CONN;
}

static uw_status connect_locked(struct uw_ep *ep, struct conn_qp *q, const struct uw_cm_param *p)
{
	const struct conn_domain *d = ep->stack->domain;
	uw_status st = conn_check_qp(q);
	struct conn *c;

	if (!st && ((ep->state != EP_RESOLVED && ep->state != EP_NO_PEER_YET) || q->peer_ops))
		st = UW_E_STATE;
	if (!st) /* RFC 6581 §9: the enhanced frame's word takes 4 of the 512 octets */
		st = check_param(p, d->policies.cm.rev >= 2 ? UW_PRIVATE_DATA_MAX - 4
							    : UW_PRIVATE_DATA_MAX);
	if (st)
		return st;
	c = conn_for(ep, p);
	if (!c)
		return UW_E_NOMEM;
	conn_qp_move(q, ep->stack);
	st = conn_connect(c, q, CONN_PATIENCE_US);
	if (st) {
		conn_free(c);
		return st;
	}
	give_conn(ep, c);
	return UW_OK;
}

/* The outcome is an event, as with any other connect that fails. */
static uw_status fail_unresolved(struct uw_ep *ep, const struct uw_cm_param *p, uw_status why)
{
	struct conn *c = conn_for(ep, p);

	if (!c)
		return UW_E_NOMEM;
	give_conn(ep, c);
	conn_startup_failed(c, why);
	return UW_OK;
}

/* NULL: there is no such QP, or its packets are RoCEv2's. */
static struct conn_qp *find_qp(const struct uw_ep *ep, uint32_t qpn)
{
	const struct conn_hooks *h = &ep->stack->domain->hooks;
	struct conn_qp *q = h->find_qp(h->find_qp_arg, qpn);

	return q && !q->dgram ? q : NULL;
}

int uw_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	uw_status way = ep->state == EP_NO_PEER_YET ? resolve_again(ep) : UW_OK, st = UW_E_NOENT;
	struct stack *s = conn_api_lock(ep);
	struct conn_qp *q = find_qp(ep, qpn);

	if (ep->datagrams)
		st = sidr_connect(ep, p, way);
	else if (q && way)
		st = fail_unresolved(ep, p, way);
	else if (q)
		st = connect_locked(ep, q, p);
	stack_flush(ep->stack);
	conn_api_unlock(s);
	return conn_errno(st);
}

static uw_status has_request(const struct uw_ep *ep)
{
	return ep->state == EP_HAS_CONN && ep->conn->role == CONN_RESPONDER ? UW_OK : UW_E_STATE;
}

static uw_status accept_locked(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	const struct cm_param param = param_of(p);
	struct conn_qp *q = find_qp(ep, qpn);
	uw_status st = has_request(ep);

	if (!st && q && q->peer_ops) /* CM-less RC has it */
		st = UW_E_STATE;
	if (!st)
		st = check_param(p, UW_PRIVATE_DATA_MAX);
	if (!st && !q)
		st = UW_E_NOENT;
	if (st)
		return st;
	ep->conn->rnr_for_ever = p->rnr_for_ever;
	return conn_accept(ep->conn, q, &param);
}

int uw_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	struct stack *s = conn_api_lock(ep);
	uw_status st = ep->datagrams ? sidr_accept(ep, qpn, p) : accept_locked(ep, qpn, p);

	stack_flush(ep->stack);
	conn_api_unlock(s);
	return conn_errno(st);
}

static uw_status reject_locked(struct uw_ep *ep, const struct uw_cm_param *p)
{
	const struct cm_param param = param_of(p);
	uw_status st = has_request(ep);

	if (!st)
		st = check_param(p, UW_PRIVATE_DATA_MAX);
	return st ? st : conn_reject(ep->conn, &param);
}

int uw_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	struct stack *s = conn_api_lock(ep);
	uw_status st = ep->datagrams ? sidr_reject(ep, p) : reject_locked(ep, p);

	stack_flush(ep->stack);
	conn_api_unlock(s);
	return conn_errno(st);
}

static int disconnect_locked(struct uw_ep *ep)
{
	struct conn *c = ep->conn;

	if (c)
		end_event_now(c);
	if (!c || c->state == CONN_ENDED)
		return -ENOTCONN;
	if (c->state == CONN_CLOSING)
		return 0;
	if (c->state != CONN_STREAMING || !c->qp)
		return -ENOTCONN;
	return conn_errno(conn_disconnect(c));
}

int uw_ep_disconnect(struct uw_ep *ep)
{
	struct stack *s = conn_api_lock(ep);
	int err = disconnect_locked(ep);

	stack_flush(ep->stack);
	conn_api_unlock(s);
	return err;
}
