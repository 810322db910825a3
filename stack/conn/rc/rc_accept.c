/* SPDX-License-Identifier: BSD-3-Clause */
/* The side that is called: which QP a Request is for, and what becomes of it (cm/rc.h). */
#include <arpa/inet.h>
#include <stdlib.h>

#include "conn/dgram/dgram.h"
#include "conn/listener.h"
#include "conn/rc/rc.h"

#define WAIT_US	      60000000u /* RC_PARK */
#define WAIT_BRIEF_US 1000000u	/* RC_PARK_BRIEFLY */
#define CALLS_MAX     16384u
#define BACKLOG	      255

static struct conn_qp *qp_of(const struct stack *s, uint32_t qpn)
{
	return s->domain->hooks.find_qp(s->domain->hooks.find_qp_arg, qpn);
}

/* ---- Requests that wait ------------------------------------------------------------------- */

static void forget(struct stack *s, struct rc_call *call)
{
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	s->rc.n_calls--;
	call->c->ctx = NULL;
	call->c->user = NULL;
	free(call);
}

/* The connection ended while its Request waited: nobody is to be told. */
static void on_event(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev)
{
	(void)c;
	(void)type;
	(void)ev;
}

static void on_dropped(struct conn *c)
{
	forget(c->stack, c->ctx);
}

static const struct conn_user call_user = { .event = on_event, .dropped = on_dropped };

static void refuse(struct conn *c, const struct rc_hello *hello, enum rc_refusal why)
{
	struct rc_hello h = { .from = hello->to, .to = hello->from, .refusal = why };
	uint8_t pd[sizeof(struct rc_wire)];
	struct cm_param p = { .pd = { pd, sizeof(pd) } };

	rc_hello_encode(&h, pd);
	if (conn_reject(c, &p))
		conn_drop(c); /* the caller has gone already */
}

static void wait(struct conn *c, const struct rc_hello *hello, uint64_t us)
{
	struct stack *s = c->stack;
	struct rc_call *call = s->rc.n_calls < CALLS_MAX ? malloc(sizeof(*call)) : NULL;

	if (!call) {
		refuse(c, hello, RC_NOT_READY);
		return;
	}
	*call = (struct rc_call){ .c = c,
				  .hello = *hello,
				  .until_us = stack_now_us(s) + us,
				  .next = s->rc.calls,
				  .link = &s->rc.calls };
	if (call->next)
		call->next->link = &call->next;
	s->rc.calls = call;
	s->rc.n_calls++;
	c->user = &call_user;
	c->ctx = call;
	rc_due_at(s, call->until_us);
}

/* ---- judging ------------------------------------------------------------------------------ */

static void take(struct conn *c, const struct rc_hello *hello, struct conn_qp *q)
{
	struct rc_hello h = { .from = hello->to,
			      .to = hello->from,
			      .rnr_retry = q->path.rnr_retry };
	uint8_t pd[sizeof(struct rc_wire)];
	struct cm_param p = { .pd = { pd, sizeof(pd) },
			      .ird = q->rc->ird,
			      .ord = (uint16_t)c->stack->domain->cfg->ord };

	rc_hello_encode(&h, pd);
	q->rc->peer_rnr_retry = hello->rnr_retry;
	if (q->rc->tos && c->llp) /* NULL: the caller has gone, and conn_accept says so */
		c->stack->llp->set_tos(c->llp, q->rc->tos & 0xfc);
	if (conn_accept(c, q, &p)) {
		conn_drop(c); /* the caller has gone: it will call again */
		return;
	}
	rc_take_off_list(q->rc);
	rc_enter(q->rc, RC_UP);
}

static enum rc_phase phase_of(const struct conn_qp *q)
{
	if (!q)
		return RC_NO_QP;
	if (!q->rc || !q->rc->ready)
		return RC_NAMES_NOBODY;
	return q->rc->state == RC_UP || q->rc->state == RC_LOST ? RC_HAS_HAD_ONE : RC_AWAITS;
}

static enum rc_verdict judge(const struct conn *c, const struct rc_hello *hello,
			     const struct conn_qp *q, enum rc_refusal *why)
{
	struct rc_end caller = { c->remote, hello->from }, self = { c->local, hello->to };

	enum rc_verdict v =
		rc_judge(phase_of(q), &self, q && q->rc ? &q->rc->peer : NULL, &caller, why);

	if (*why == RC_NO_SUCH_QP && io_shared_versions(c->l))
		*why = RC_ELSEWHERE;
	return v;
}

static void on_request(struct listener *ls, struct conn *c, struct uw_cm_event *ev)
{
	struct uw_span pd = { ev->param.private_data, ev->param.private_data_len };
	struct rc_hello hello = { 0 };
	enum rc_refusal why = RC_NO_SUCH_QP;
	struct conn_qp *q;

	(void)ls;
	if (!rc_hello_decode(pd, &hello) || hello.refusal) {
		refuse(c, &hello, why);
		return;
	}
	q = qp_of(c->stack, hello.to);
	switch (judge(c, &hello, q, &why)) {
	case RC_TAKE:
		take(c, &hello, q);
		break;
	case RC_PARK:
		wait(c, &hello, WAIT_US);
		break;
	case RC_PARK_BRIEFLY:
		wait(c, &hello, WAIT_BRIEF_US);
		break;
	case RC_REFUSE:
		refuse(c, &hello, why);
		break;
	}
}

/* One that waits: it goes on waiting unless the verdict is final. */
static void judge_again(struct stack *s, struct rc_call *call)
{
	struct rc_hello hello = call->hello;
	struct conn *c = call->c;
	struct conn_qp *q = qp_of(s, hello.to);
	enum rc_refusal why;
	enum rc_verdict v = judge(c, &hello, q, &why);

	if (v != RC_TAKE && v != RC_REFUSE)
		return;
	forget(s, call);
	if (v == RC_TAKE)
		take(c, &hello, q);
	else
		refuse(c, &hello, why);
}

void rc_judge_calls(struct stack *s, uint32_t qpn)
{
	struct rc_call *next;

	for (struct rc_call *call = s->rc.calls; call; call = next) {
		next = call->next;
		if (call->hello.to == qpn)
			judge_again(s, call);
	}
}

static void time_is_over(struct stack *s, struct rc_call *call)
{
	struct rc_hello hello = call->hello;
	struct conn_qp *q = qp_of(s, hello.to);
	struct conn *c = call->c;

	forget(s, call);
	refuse(c, &hello, q && q->rc ? RC_OTHER_PEER : RC_NOT_READY);
}

void rc_calls_timer(struct stack *s, uint64_t now)
{
	struct rc_call *next;

	for (struct rc_call *call = s->rc.calls; call; call = next) {
		next = call->next;
		if (now < call->until_us)
			rc_due_at(s, call->until_us);
		else
			time_is_over(s, call);
	}
}

/* ---- listening ---------------------------------------------------------------------------- */

/* Who asks for the port of a QP does it by QP 1. If that cannot be had, which a line on stderr
 * tells, the QPs are found at RC_PORT alone. */
static bool hear_questions(const struct stack *s)
{
	return s->llp->packet_begin && !dgram_claim(s, MAD_QPN);
}

static uw_status start(struct listener *ls, struct stack *s, struct io_link *l)
{
	unsigned versions = io_shared_versions(l);
	struct llp_place at = { .own = true };
	uw_status st = ports_borrow_rc(s->domain, versions, &ls->rc_port);

	if (st)
		return st;
	at.port = htons((uint16_t)ls->rc_port);
	st = listener_start(ls, s, l, &at, BACKLOG, LISTENER_AT_HOME);
	if (st)
		ports_give_back(s->domain, ls->rc_port, versions);
	else if (versions)
		ls->asked = hear_questions(s);
	return st;
}

uw_status rc_listen(struct stack *s, struct io_link *l)
{
	struct listener *ls;
	uw_status st;

	if (rc_port_of(s, l))
		return UW_OK;
	ls = calloc(1, sizeof(*ls));
	if (!ls)
		return UW_E_NOMEM;
	ls->requested = on_request;
	ls->cm_less = true;
	st = start(ls, s, l);
	if (st)
		free(ls);
	return st;
}

void rc_accept_stop(struct stack *s)
{
	struct listener *next;

	while (s->rc.calls)
		forget(s, s->rc.calls);
	for (struct listener *ls = s->domain->listeners; ls; ls = next) {
		next = ls->next;
		if (!ls->cm_less)
			continue;
		listener_stop(ls);
		free(ls);
	}
}
