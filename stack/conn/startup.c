/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's start-up: TCP, the MPA frames (RFC 5044 §7.1, RFC 6581), and the QP's stream. */
#include <stdlib.h>
#include <string.h>

#include "conn/conn.h"
#include "conn/listener.h"
#include "conn/order.h"
#include "conn/prefetch.h"

/* ---- failing ------------------------------------------------------------------------------ */

static enum uw_cm_event_type failure_event(uw_status why)
{
	switch (why) {
	case UW_E_REFUSED:
		return UW_CM_REFUSED;
	case UW_E_UNREACHABLE:
	case UW_E_NO_ROUTE:
	case UW_E_TIMEOUT:
		return UW_CM_UNREACHABLE;
	case UW_E_REJECTED:
		return UW_CM_REJECTED;
	default:
		return UW_CM_CONNECT_ERROR;
	}
}

/* Before the connection is ended: TCP knows whether our start-up frame was acknowledged, if the
 * transport tells (llp_ops.in_flight). */
static void log_failed(const struct conn *c, uw_status why)
{
	const struct llp_ops *llp = c->stack->llp;

	if (why == UW_E_MPA_TIMEOUT && c->llp && llp->in_flight)
		conn_log_unanswered(c, !llp->in_flight(c->llp));
	else if (why != UW_E_REJECTED)
		conn_log_failed(c->stack, &c->remote, c->rport, why);
}

void conn_startup_failed(struct conn *c, uw_status why)
{
	struct llp_conn *llp = c->llp;
	bool had_request = c->state == CONN_REQUESTED;

	c->stack->sched.stats.cm_failed++;
	if (c->role == CONN_INITIATOR && !c->cm_less)
		log_failed(c, why);
	/* RFC 5044 §8: an invalid start-up frame closes TCP at once; a rejection is no error. */
	if (llp && why != UW_E_REJECTED) {
		c->llp = NULL;
		c->stack->llp->abort(llp);
	}
	conn_end(c);
	if (c->role == CONN_RESPONDER) {
		/* After the Request the program has it, and finds out when it answers. */
		if (!had_request)
			conn_free(c);
		return;
	}
	conn_event(c, failure_event(why), why);
}

/* ---- the stream begins -------------------------------------------------------------------- */

/* A program that takes the device for InfiniBand expects a request to be done when the peer has it,
 * and so does a program without rdma_cm, whose peer is uwarp (doc/adr/0014). */
static bool is_infiniband(const struct conn *c)
{
	return c->cm_less || conn_cfg(c)->roce;
}

/* One block for both read queues (RFC 6581 §9.1: as many Reads as both sides agreed on). */
static uw_status make_read_queues(const struct mpa_agreed *a, struct rdmap_queues *q, void **block)
{
	size_t irq = a->ird * sizeof(struct rdmap_irq_entry);
	size_t orq = a->ord * sizeof(struct rdmap_orq_entry);

	*block = calloc(1, irq + orq + 1);
	if (!*block)
		return UW_E_NOMEM;
	q->orq = *block;
	q->irq = (struct rdmap_irq_entry *)((uint8_t *)*block + orq);
	q->ird = a->ird;
	q->ord = a->ord;
	return UW_OK;
}

static uw_status start_qp(struct conn *c, struct conn_qp *q)
{
	const struct mpa_agreed *a = &c->cm->agreed;
	struct qp_stream s = { .agreed = a, .initiator = c->role == CONN_INITIATOR };
	void *block = NULL;
	uw_status st = make_read_queues(a, &s.queues, &block);

	if (!st && a->rx_markers && !q->scratch)
		q->scratch = malloc(MPA_FPDU_MAX);
	if (!st && a->rx_markers && !q->scratch)
		st = UW_E_NOMEM;
	s.scratch = q->scratch;
	s.queues.first_sink = stack_random(c->stack);
	s.confirmed = is_infiniband(c) && c->stack->llp->in_flight;
	if (!st)
		st = qp_start(&q->qp, &s);
	if (st) {
		free(block);
		return st;
	}
	free(q->stream);
	q->stream = block;
	return UW_OK;
}

static uw_status start_stream(struct conn *c, struct conn_qp *q)
{
	uw_status st = start_qp(c, q);

	if (st)
		return st;
	if (is_infiniband(c) && c->stack->llp->ack_promptly)
		c->stack->llp->ack_promptly(c->llp);
	q->conn = c;
	c->qp = q;
	prefetch_start(q);
	conn_enter(c, CONN_STREAMING);
	c->deadline_us = 0;
	if (c->role == CONN_RESPONDER && !c->cm->agreed.p2p)
		c->gate_us = stack_now_us(c->stack) + conn_gate_period_us(c);
	conn_arm(c);
	c->stack->sched.stats.cm_established++;
	return UW_OK;
}

/* ---- connecting --------------------------------------------------------------------------- */

uw_status conn_check_qp(const struct conn_qp *q)
{
	return q->conn || q->claimed_by || q->qp.state == UW_QPS_ERR ? UW_E_STATE : UW_OK;
}

uw_status conn_call(struct conn *c)
{
	const struct llp_addrs a = { .local = c->local,
				     .remote = c->remote,
				     .lport = c->lport,
				     .rport = c->rport,
				     .tos = c->tos };
	const struct conn_hooks *h = &c->stack->domain->hooks;
	uw_status st;

	if (stack_is_without_links(c->stack))
		return UW_E_UNREACHABLE;
	if (h->steer)
		h->steer(h->steer_arg, !uw_ip_is_v4(&c->local), c->lport,
			 (int)c->stack->sched.index);
	st = c->stack->llp->connect(c->l, &a, c, &c->llp);
	if (!st)
		conn_enter(c, CONN_CONNECTING);
	return st;
}

uw_status conn_connect(struct conn *c, struct conn_qp *q, uint64_t patience_us)
{
	uint64_t now = stack_now_us(c->stack);
	uw_status st;

	c->cm = calloc(1, sizeof(*c->cm));
	if (!c->cm)
		return UW_E_NOMEM;
	st = conn_call(c);
	if (st)
		return st;
	order_begin(c);
	c->claimed = q;
	q->claimed_by = c;
	c->deadline_us = now + conn_cfg(c)->connect_ms * 1000ull;
	c->retry_until_us = now + patience_us;
	conn_arm(c);
	return UW_OK;
}

/* The peer's program answers, which on a busy machine takes it longer than TCP took to connect. One
 * without rdma_cm answers once it has named us, and may take its time. */
static uint64_t reply_limit_us(const struct conn *c)
{
	uint64_t ms = c->cm_less ? conn_cfg(c)->rc_wait_ms
				 : (uint64_t)CONN_REPLY_TIMES * conn_cfg(c)->connect_ms;

	return ms * 1000;
}

void conn_ask(struct conn *c)
{
	uint8_t frame[MPA_START_MAX];
	size_t n;
	uw_status st = cm_open(c->cm, conn_policy(c), &c->request->want, frame, &n);

	if (!st)
		st = conn_send_frame(c, frame, n);
	if (st) {
		conn_startup_failed(c, st);
		return;
	}
	free(c->request);
	c->request = NULL;
	conn_enter(c, CONN_STARTING);
	c->deadline_us = 0;
	c->lport = c->stack->llp->addrs(c->llp).lport;
	cm_set_deadline(c->cm, stack_now_us(c->stack) + reply_limit_us(c));
	conn_arm(c);
}

void conn_connected(void *ctx)
{
	struct conn *c = ctx;

	if (order_may_ask(c))
		conn_ask(c);
	else
		conn_arm(c);
}

void conn_turns(struct ring_entry *r)
{
	struct stack *s = (struct stack *)(void *)((uint8_t *)r - offsetof(struct stack, turns));
	struct conn *c;

	while ((c = order_take_turn(s)))
		conn_ask(c);
}

static struct conn_qp *unclaim(struct conn *c)
{
	struct conn_qp *q = c->claimed;

	c->claimed = NULL;
	if (q)
		q->claimed_by = NULL;
	return q;
}

static bool is_meant(const struct conn *c)
{
	return !c->user || !c->user->meant || c->user->meant(c);
}

/* The Reply accepts. */
static void accepted(struct conn *c)
{
	struct conn_qp *q = unclaim(c);
	uw_status st = q ? UW_OK : UW_E_NOENT;

	if (!st)
		st = is_meant(c) ? start_stream(c, q) : UW_E_REFUSED;
	if (st) {
		conn_startup_failed(c, st);
		return;
	}
	conn_log_worked(c);
	conn_event(c, UW_CM_ESTABLISHED, UW_OK);
	/* Over IO_P2P every peer is like us, and needs no reminder (timers.c). */
	if (!c->cm_less && !(c->l->flags & IO_P2P))
		c->silence = PEER_SILENT;
	conn_qp_transmit(q);
}

/* RFC 6581 §9: the peer learns by a Terminate in the stream why it cannot be. */
static void terminate(struct conn *c, uw_status why)
{
	struct conn_qp *q = unclaim(c);

	c->cm->agreed.p2p = false;
	if (q && !start_stream(c, q)) {
		qp_fail(&q->qp, why);
		conn_send_stream(c);
		q->conn = NULL;
		q->llp_prefetch_list = NULL;
		c->qp = NULL;
	}
	conn_log_failed(c->stack, &c->remote, c->rport, why);
	conn_end(c);
	conn_event(c, UW_CM_CONNECT_ERROR, why);
}

/* ---- answering ---------------------------------------------------------------------------- */

static bool make_room(struct stack *s, const struct uw_ip *host)
{
	struct conn *oldest;
	bool room = silent_has_room(s, host, &oldest);

	if (oldest)
		conn_startup_failed(oldest, UW_E_TIMEOUT);
	return room;
}

void *conn_accepted(void *listener_ctx, struct llp_conn *llp)
{
	struct listener_part *part = listener_ctx;
	struct llp_addrs a = part->stack->llp->addrs(llp);
	bool other_host = !(part->l->flags & IO_P2P);
	struct conn *c;

	if (other_host && !make_room(part->stack, &a.remote))
		return NULL;
	c = conn_create(part->stack, CONN_RESPONDER);
	if (!c)
		return NULL;
	c->cm = malloc(sizeof(*c->cm));
	if (!c->cm) {
		conn_free(c);
		return NULL;
	}
	c->llp = llp;
	c->l = part->l;
	c->cm_less = part->listener->cm_less;
	c->tos = part->listener->tos;
	c->listener = part->listener;
	c->local = a.local;
	c->remote = a.remote;
	c->lport = a.lport;
	c->rport = a.rport;
	conn_enter(c, CONN_STARTING);
	if (other_host)
		silent_add(c);
	cm_wait(c->cm, conn_policy(c));
	cm_set_deadline(c->cm, stack_now_us(c->stack) + conn_cfg(c)->connect_ms * 1000ull);
	conn_arm(c);
	return c;
}

/* The Request is here: the listener's user decides, and owns the connection from now on. */
static void requested(struct conn *c)
{
	struct uw_cm_event ev = {
		.type = UW_CM_CONNECT_REQUEST,
		.param = { .private_data = c->cm->peer.pd.p,
			   .private_data_len = (uint16_t)c->cm->peer.pd.n,
			   .ird = c->cm->peer.ird,
			   .ord = c->cm->peer.ord },
		.stack = (struct uw_stack *)c->stack,
	};

	c->stack->sched.stats.cm_requests++;
	conn_enter(c, CONN_REQUESTED);
	if (!c->cm->peer.enhanced)
		ev.param.ird = ev.param.ord = (uint16_t)conn_cfg(c)->ird;
	c->listener->requested(c->listener, c, &ev);
}

static uw_status answerable(const struct conn *c)
{
	if (c->state == CONN_ENDED)
		return UW_E_LLP_CLOSED;
	return c->state == CONN_REQUESTED && c->llp ? UW_OK : UW_E_STATE;
}

uw_status conn_accept(struct conn *c, struct conn_qp *q, const struct cm_param *p)
{
	uint8_t frame[MPA_START_MAX];
	size_t n;
	uw_status st = answerable(c);

	if (!st)
		st = conn_check_qp(q);
	if (st)
		return st;
	conn_qp_move(q, c->stack);
	st = cm_accept(c->cm, p, frame, &n);
	if (!st)
		st = conn_send_frame(c, frame, n);
	if (!st)
		st = start_stream(c, q);
	if (!st)
		conn_event(c, UW_CM_ESTABLISHED, UW_OK);
	return st;
}

uw_status conn_reject(struct conn *c, const struct cm_param *p)
{
	uint8_t frame[MPA_START_MAX];
	size_t n;
	uw_status st = answerable(c);

	if (!st)
		st = cm_reject(c->cm, p, frame, &n);
	stack_flush(c->stack); /* makes room: what is not sent now will not be */
	if (!st)
		st = conn_send_frame(c, frame, n);
	if (!st)
		conn_end(c);
	return st;
}

size_t conn_startup_rx(struct conn *c, struct uw_rope in)
{
	size_t used;

	switch (cm_rx(c->cm, in, &used)) {
	case CM_NOTHING:
		break;
	case CM_REQUESTED:
		requested(c);
		break;
	case CM_ACCEPTED:
		accepted(c);
		break;
	case CM_TERMINATE:
		terminate(c, c->cm->why);
		break;
	case CM_REJECTED:
	case CM_FAILED:
		conn_startup_failed(c, c->cm->why);
		return in.len;
	}
	return used;
}
