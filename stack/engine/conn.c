/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's way from TCP to a QP's stream and to its end. All under the stack lock. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "engine/say.h"
#include "engine/warm.h"

#define PUMP_SEGMENTS 16u    /* then others get a turn */
#define PUMP_OCTETS   16384u /* then the link gets them: the peer works while we go on */
#define PUMP_FIRST    4096u  /* ... and soon what is first, so that it begins */
#define STALLED_TURNS 16u
#define CLOSE_US      3000000u /* for the peer's FIN after ours */

/* ---- events ------------------------------------------------------------------------------ */

static void emit(const struct uw_ep *ep, const struct uw_cm_event *ev)
{
	if (ep->master)
		ep = ep->master;
	if (ep->owned && ep->fn)
		ep->fn(ep->ctx, ev);
}

void engine_ep_event(struct uw_ep *ep, enum uw_cm_event_type type, uw_status why)
{
	struct uw_cm_event ev = { .type = type, .error = -uw_status_errno(why), .stack = ep->e };

	if (ep->cm && (type == UW_CM_ESTABLISHED || type == UW_CM_REJECTED)) {
		ev.param.private_data = ep->cm->peer.pd.p;
		ev.param.private_data_len = (uint16_t)ep->cm->peer.pd.n;
		ev.param.ird = ep->cm->peer.ird;
		ev.param.ord = ep->cm->peer.ord;
	}
	emit(ep, &ev);
}

static void forget_cm(struct uw_ep *ep)
{
	free(ep->cm);
	ep->cm = NULL;
}

static void forget_unsent(struct uw_ep *ep)
{
	free(ep->unsent);
	ep->unsent = NULL;
	ep->unsent_len = 0;
}

static void end(struct uw_ep *ep)
{
	struct llp_conn *c = ep->c;

	ep->c = NULL;
	ep->state = EP_ENDED;
	ep->deadline_us = 0;
	engine_ep_arm(ep);
	forget_unsent(ep);
	if (c)
		llp_close(ep->e->llp, c);
}

/* Start-up failed. The initiator hears of it; a responder's program has not seen it yet, or finds
 * out when it answers. */
static void startup_failed(struct uw_ep *ep, uw_status why)
{
	bool initiator = !ep->passive;
	enum uw_cm_event_type type = UW_CM_CONNECT_ERROR;
	struct llp_conn *c = ep->c;
	/* A responder whose Request never came has no program yet. */
	bool nobodys = !initiator && ep->state == EP_STARTING;

	ep->e->stats.cm_failed++;
	if (why == UW_E_REFUSED)
		type = UW_CM_REFUSED;
	else if (why == UW_E_UNREACHABLE || why == UW_E_TIMEOUT)
		type = UW_CM_UNREACHABLE;
	else if (why == UW_E_REJECTED)
		type = UW_CM_REJECTED;
	ep->c = NULL;
	ep->state = EP_ENDED;
	ep->deadline_us = 0;
	engine_ep_arm(ep);
	forget_unsent(ep);
	/* RFC 5044 §8: an invalid start-up frame closes TCP at once; a rejection is no error. */
	if (c && why == UW_E_REJECTED)
		llp_close(ep->e->llp, c);
	else if (c)
		llp_abort(ep->e->llp, c);
	if (initiator) {
		if (why != UW_E_REJECTED && !ep->rc)
			engine_say_connect_failed(ep, why);
		engine_ep_event(ep, type, why);
	}
	forget_cm(ep);
	if (nobodys)
		engine_ep_free(ep);
}

void engine_ep_unreachable(struct uw_ep *ep, uw_status why)
{
	startup_failed(ep, why);
}

/* ---- the stream -------------------------------------------------------------------------- */

/* Who presents itself as InfiniBand is to behave so, and its peer, too: without rdma_cm that is
 * certain (doc/adr/0014). */
static bool is_infiniband(const struct uw_ep *ep)
{
	return ep->rc || ep->e->cfg.roce;
}

/* Do requests wait for the peer's TCP? */
static bool waits_for_ack(const struct uw_ep *ep)
{
	return is_infiniband(ep) && llp_knows_in_flight(ep->e->llp);
}

uw_status engine_ep_start_stream(struct uw_ep *ep, struct uw_qp *qp, bool initiator)
{
	const struct mpa_agreed *a = &ep->cm->agreed;
	uint16_t ird = a->ird ? a->ird : 1, ord = a->ord ? a->ord : 1;
	size_t irq = ird * sizeof(struct rdmap_irq_entry),
	       orq = ord * sizeof(struct rdmap_orq_entry);
	struct qp_stream s = { .agreed = a, .initiator = initiator };
	uint8_t *block = calloc(1, irq + orq);
	uw_status st;

	if (a->rx_markers && !qp->scratch)
		qp->scratch = malloc(MPA_FPDU_MAX);
	if (!block || (a->rx_markers && !qp->scratch)) {
		free(block);
		return UW_E_NOMEM;
	}
	s.scratch = qp->scratch;
	s.queues.orq = (struct rdmap_orq_entry *)block;
	s.queues.irq = (struct rdmap_irq_entry *)(block + orq);
	s.queues.ird = ird;
	s.queues.ord = ord;
	s.queues.first_sink = engine_random(ep->e);
	s.confirmed = waits_for_ack(ep);
	st = qp_start(&qp->qp, &s);
	if (st) {
		free(block);
		return st;
	}
	if (is_infiniband(ep))
		llp_ack_promptly(ep->e->llp, ep->c);
	free(qp->stream);
	qp->stream = block;
	qp->ep = ep;
	ep->qp = qp;
	engine_warm_start(qp);
	ep->state = EP_STREAMING;
	ep->deadline_us = 0;
	if (!initiator && !a->p2p)
		ep->gate_us = engine_now_us(ep->e) + engine_gate_period_us(ep);
	engine_ep_arm(ep);
	ep->e->stats.cm_established++;
	return UW_OK;
}

/* As much as there is room for. A peer may announce segments that are smaller than the frame. */
static size_t put_frame(struct uw_ep *ep, const uint8_t *frame, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t room, part;
		uint8_t *p = llp_tx_begin(ep->e->llp, ep->c, &room);

		if (!p)
			break;
		part = n - done < room ? n - done : room;
		memcpy(p, frame + done, part);
		llp_tx_commit(ep->e->llp, ep->c, part);
		done += part;
	}
	if (done)
		llp_tx_flush(ep->e->llp, ep->c);
	return done;
}

static void stall(struct uw_ep *ep);

/* What does not fit now goes out when it does: many connections that come up at once have more to
 * say than the link takes at a time. */
uw_status engine_send_frame(struct uw_ep *ep, const uint8_t *frame, size_t n)
{
	size_t done = put_frame(ep, frame, n);

	if (done == n)
		return UW_OK;
	ep->unsent = malloc(n - done);
	if (!ep->unsent)
		return UW_E_NOMEM;
	ep->unsent_len = (uint16_t)(n - done);
	memcpy(ep->unsent, frame + done, n - done);
	stall(ep);
	return UW_OK;
}

/* False: there is still some left, and nothing may overtake it. */
static bool send_unsent(struct uw_ep *ep)
{
	size_t done;

	if (!ep->unsent)
		return true;
	done = ep->c ? put_frame(ep, ep->unsent, ep->unsent_len) : ep->unsent_len;
	ep->unsent_len = (uint16_t)(ep->unsent_len - done);
	if (ep->unsent_len) {
		memmove(ep->unsent, ep->unsent + done, ep->unsent_len);
		stall(ep);
		return false;
	}
	forget_unsent(ep);
	return true;
}

/* Which asynchronous event the verbs have for it; 0: none, the completions tell. */
static unsigned fatal_event(uw_status why)
{
	switch (why) {
	case UW_OK:
	case UW_E_FLUSHED:
	case UW_E_LLP_CLOSED:
		return 0;
	case UW_E_DDP_STAG:
	case UW_E_DDP_BOUNDS:
	case UW_E_DDP_STREAM:
	case UW_E_RDMAP_STAG:
	case UW_E_RDMAP_BOUNDS:
	case UW_E_RDMAP_ACCESS:
	case UW_E_RDMAP_STREAM:
		return UW_EVENT_QP_ACCESS_ERR;
	default:
		return UW_EVENT_QP_FATAL;
	}
}

static void transmit(struct uw_qp *qp);

/* The QP and its connection go their ways. */
static void part(struct uw_qp *qp, struct uw_ep *ep)
{
	qp->ep = NULL;
	qp->at_llp = NULL;
	ep->qp = NULL;
	end(ep);
	ep->e->stats.cm_closed++;
}

void engine_qp_down(struct uw_qp *qp, uw_status why)
{
	struct uw_ep *ep = qp->ep;
	unsigned fatal = qp->qp.state == UW_QPS_ERR && !ep ? 0 : fatal_event(why);

	engine_rnr_forget(qp);
	qp_fail(&qp->qp, why);
	if (ep) {
		if (ep->c)
			transmit(qp); /* the Terminate */
		part(qp, ep);
		engine_ep_event(ep, UW_CM_DISCONNECTED, UW_OK);
	}
	/* It takes no more of its SRQ's receives. */
	if (qp->srq && ep && qp->qp.event)
		qp->qp.event(qp->qp.event_ctx, UW_EVENT_QP_LAST_WQE_REACHED);
	if (fatal && qp->qp.event)
		qp->qp.event(qp->qp.event_ctx, (enum uw_event)fatal);
}

/* With a peer that was named the QP outlives its stream. */
void engine_qp_lost(struct uw_qp *qp, uw_status why)
{
	if (!qp->rc || qp->qp.state == UW_QPS_ERR) {
		engine_qp_down(qp, why);
		return;
	}
	engine_rnr_forget(qp);
	qp_detach(&qp->qp);
	part(qp, qp->ep);
	engine_rc_lost(qp);
}

void engine_qp_refuse(struct uw_qp *qp, uw_status why)
{
	struct uw_ep *ep = qp->ep;

	engine_rnr_forget(qp);
	qp_refuse(&qp->qp, why);
	if (send_unsent(ep))
		transmit(qp); /* the Terminate */
	part(qp, ep);
	engine_rc_lost(qp);
}

void engine_ep_drop(struct uw_ep *ep)
{
	struct uw_qp *qp = ep->qp;

	ep->owned = false; /* no event any more */
	if (qp && qp->ep == ep)
		engine_qp_down(qp, UW_E_FLUSHED);
	else /* the QP that it was to have, while connecting, stays as it is */
		end(ep);
	ep->qp = NULL;
	forget_cm(ep);
}

/* ---- transmit ---------------------------------------------------------------------------- */

static void stall(struct uw_ep *ep)
{
	if (ep->stalled)
		return;
	ep->stalled = true;
	ep->next_stalled = ep->e->stalled_eps;
	ep->e->stalled_eps = ep;
}

/* Behind what is left of a start-up frame, which a small window may have cut in two. */
static void transmit(struct uw_qp *qp)
{
	struct uw_ep *ep = qp->ep;
	unsigned sent = 0;
	size_t held = PUMP_OCTETS - PUMP_FIRST;
	bool more;

	if (!send_unsent(ep))
		return;
	while ((more = qp_tx_prepare(&qp->qp)) && sent < PUMP_SEGMENTS) {
		size_t room, n;
		uint8_t *p = llp_tx_begin(ep->e->llp, ep->c, &room);

		if (!p)
			break;
		n = qp_tx(&qp->qp, p, room);
		llp_tx_commit(ep->e->llp, ep->c, n);
		if (!n)
			break;
		sent++;
		held += n;
		if (held >= PUMP_OCTETS) {
			llp_tx_flush(ep->e->llp, ep->c);
			llp_flush_links(ep->e->llp);
			engine_wake_peers(ep->e);
			held = 0;
		}
	}
	if (sent) {
		llp_tx_flush(ep->e->llp, ep->c);
		ep->spoke = true;
		if (ep->unheard)
			engine_ep_arm(ep);
	}
	if (more && qp_tx_prepare(&qp->qp)) /* no room, or others' turn */
		stall(ep);
}

static bool all_sent(const struct qp *qp)
{
	return sq_empty(&qp->sq) && rdmap_tx_idle(&qp->rd) && !rdmap_response_due(&qp->rd);
}

static void tell_drained(struct uw_qp *qp)
{
	if (qp_drained(&qp->qp) && qp->qp.event)
		qp->qp.event(qp->qp.event_ctx, UW_EVENT_SQ_DRAINED);
}

void engine_pump(struct uw_qp *qp)
{
	struct uw_ep *ep = qp->ep;

	if (!ep || !ep->c) {
		tell_drained(qp);
		if (qp->qp.state == UW_QPS_ERR)
			qp_flush(&qp->qp);
		else if (qp->rc)
			engine_rc_posted(qp);
		return;
	}
	if (!send_unsent(ep))
		return;
	engine_warm_send(qp);
	transmit(qp);
	engine_warm_next(qp);
	if (qp->qp.state == UW_QPS_ERR) {
		engine_qp_down(qp, qp->qp.cause);
		return;
	}
	tell_drained(qp);
	if (qp->qp.fin_wanted && !ep->shut && all_sent(&qp->qp)) {
		ep->shut = true;
		ep->state = EP_CLOSING;
		ep->deadline_us = engine_now_us(ep->e) + CLOSE_US;
		engine_ep_arm(ep);
		llp_shutdown(ep->e->llp, ep->c);
	}
}

/* While octets come in: once for all that the burst brings. */
static void pump_later(struct uw_qp *qp)
{
	if (qp_tx_prepare(&qp->qp) || qp->qp.state == UW_QPS_SQD || qp->qp.state == UW_QPS_ERR)
		stall(qp->ep);
}

void engine_pump_stalled(struct uw_engine *e)
{
	struct uw_ep *list = e->stalled_eps, *ep;
	unsigned turns = 0;

	e->stalled_eps = NULL;
	while ((ep = list)) {
		list = ep->next_stalled;
		ep->stalled = false;
		if (!send_unsent(ep) || !ep->qp || ep->qp->ep != ep)
			continue;
		/* The others end up in front: they are first in the next round. */
		if (turns++ < STALLED_TURNS)
			engine_pump(ep->qp);
		else
			stall(ep);
	}
}

/* ---- what TCP tells ---------------------------------------------------------------------- */

/* A peer of CM-less RC answers once its program has named us, and may take its time. */
static uint64_t reply_us(const struct uw_ep *ep)
{
	return (ep->rc ? ep->e->cfg.rc_wait_ms : ep->e->cfg.connect_ms) * 1000ull;
}

static void on_connected(void *ctx)
{
	struct uw_ep *ep = ctx;
	uint8_t frame[MPA_START_MAX];
	size_t n;
	uw_status st = cm_open(ep->cm, engine_policy(ep), &ep->want, frame, &n);

	if (!st)
		st = engine_send_frame(ep, frame, n);
	if (st) {
		startup_failed(ep, st);
		return;
	}
	ep->state = EP_STARTING;
	ep->lport = llp_addrs(ep->e->llp, ep->c).lport;
	cm_set_deadline(ep->cm, engine_now_us(ep->e) + reply_us(ep));
	engine_ep_arm(ep);
}

static void *on_accepted(void *listener_ctx, struct llp_conn *c)
{
	struct uw_ep *ls = listener_ctx, *ep = engine_ep_new(ls->e);
	struct llp_addrs a = llp_addrs(ls->e->llp, c);

	if (!ep)
		return NULL;
	ep->cm = malloc(sizeof(*ep->cm));
	if (!ep->cm) {
		engine_ep_free(ep);
		return NULL;
	}
	ep->c = c;
	ep->l = ls->l;
	ep->passive = true;
	ep->rc = ls->rc;
	ep->tos = ls->tos;
	ep->listener = ls;
	ep->fn = ls->fn;
	ep->local = a.local;
	ep->remote = ep->asked = a.remote;
	ep->lport = a.lport;
	ep->rport = a.rport;
	ep->serial = a.serial;
	ep->state = EP_STARTING;
	cm_wait(ep->cm, engine_policy(ls));
	cm_set_deadline(ep->cm, engine_now_us(ep->e) + ep->e->cfg.connect_ms * 1000ull);
	engine_ep_arm(ep);
	return ep;
}

/* The Request is here: the listener's program decides. The endpoint is its from now on. */
static void requested(struct uw_ep *ep)
{
	struct uw_ep *ls = ep->listener;
	struct uw_cm_event ev = {
		.type = UW_CM_CONNECT_REQUEST,
		.ep = ep,
		.param = { .private_data = ep->cm->peer.pd.p,
			   .private_data_len = (uint16_t)ep->cm->peer.pd.n,
			   .ird = ep->cm->peer.ird,
			   .ord = ep->cm->peer.ord },
		.stack = ep->e,
	};

	ep->e->stats.cm_requests++;
	ep->state = EP_REQUESTED;
	if (!ep->rc) /* else it does not become the program's */
		atomic_fetch_add_explicit(&ep->e->lead->objects, 1, memory_order_relaxed);
	if (!ep->cm->peer.enhanced)
		ev.param.ird = ev.param.ord = (uint16_t)ep->e->cfg.ird;
	engine_look_elsewhere(ep);
	emit(ls, &ev);
	engine_looked_elsewhere(ep);
}

void engine_ep_claim(struct uw_ep *ep, struct uw_qp *qp)
{
	ep->qp = qp; /* qp->ep only once the stream is agreed */
	qp->claims++;
}

static struct uw_qp *claimed(struct uw_ep *ep)
{
	struct uw_qp *qp = ep->qp;

	ep->qp = NULL;
	if (qp)
		qp->claims--;
	return qp;
}

static void accepted(struct uw_ep *ep)
{
	struct uw_qp *qp = claimed(ep);
	uw_status st;

	st = qp ? engine_ep_start_stream(ep, qp, true) : UW_E_NOENT;
	if (st) {
		startup_failed(ep, st);
		return;
	}
	engine_ep_event(ep, UW_CM_ESTABLISHED, UW_OK);
	forget_cm(ep);
	ep->unheard = !ep->rc && !(ep->l->flags & IO_P2P); /* there every peer is like us */
	engine_pump(qp);
}

/* RFC 6581 §9: the peer learns in the stream why it cannot be. */
static void refuse_in_stream(struct uw_ep *ep, uw_status why)
{
	struct uw_qp *qp = claimed(ep);

	ep->cm->agreed.p2p = false;
	if (qp && !engine_ep_start_stream(ep, qp, true)) {
		qp->ep = ep;
		qp_fail(&qp->qp, why);
		transmit(qp);
		qp->ep = NULL;
		qp->at_llp = NULL;
		ep->qp = NULL;
	}
	engine_say_connect_failed(ep, why);
	end(ep);
	engine_ep_event(ep, UW_CM_CONNECT_ERROR, why);
	forget_cm(ep);
}

static size_t startup_rx(struct uw_ep *ep, struct uw_rope in)
{
	size_t used;

	switch (cm_rx(ep->cm, in, &used)) {
	case CM_NOTHING:
		break;
	case CM_REQUESTED:
		requested(ep);
		break;
	case CM_ACCEPTED:
		accepted(ep);
		break;
	case CM_TERMINATE:
		refuse_in_stream(ep, ep->cm->why);
		break;
	case CM_REJECTED:
	case CM_FAILED:
		startup_failed(ep, ep->cm->why);
		return in.len;
	}
	return used;
}

/* As much as there are receives for. */
static uw_status stream_rx(struct uw_qp *qp, struct uw_rope in, size_t *used)
{
	uw_status st;
	size_t n;

	*used = 0;
	do {
		st = qp_rx(&qp->qp, in, &n);
		*used += n;
		in = uw_rope_sub(in, n, in.len - n);
	} while (!st && qp->qp.rnr && !engine_starve(qp));
	return st;
}

static size_t on_rx(void *ctx, struct uw_rope in)
{
	struct uw_ep *ep = ctx;
	struct uw_qp *qp = ep->qp;
	size_t used;
	uw_status st;

	if (ep->state == EP_STARTING || ep->state == EP_REQUESTED)
		return startup_rx(ep, in);
	if (!qp)
		return in.len;
	ep->unheard = false;
	engine_warm_recv(qp);
	if (qp->qp.state == UW_QPS_RTR)
		engine_rc_heard(qp);
	st = stream_rx(qp, in, &used);
	if (st) {
		engine_qp_down(qp, st);
		return used;
	}
	engine_warm_next(qp);
	pump_later(qp);
	return used;
}

static void settle_later(struct uw_ep *ep)
{
	if (ep->settles)
		return;
	ep->settles = true;
	ep->next_settling = ep->e->settling_eps;
	ep->e->settling_eps = ep;
}

void engine_settle(struct uw_engine *e)
{
	struct uw_ep *ep;

	while ((ep = e->settling_eps)) {
		e->settling_eps = ep->next_settling;
		ep->settles = false;
		if (ep->qp)
			qp_complete_acked(&ep->qp->qp);
	}
}

static void on_writable(void *ctx)
{
	struct uw_ep *ep = ctx;

	if (ep->unsent)
		stall(ep);
	if (!ep->qp || (ep->state != EP_STREAMING && ep->state != EP_CLOSING))
		return;
	if (qp_acked(&ep->qp->qp, llp_in_flight(ep->e->llp, ep->c)))
		settle_later(ep);
	pump_later(ep->qp);
}

static void ask_again(struct uw_ep *ep)
{
	ep->again = true;
	engine_ep_arm(ep);
}

/* RFC 5044 §7.2: the end of the TCP stream goes up, graceful (UW_OK, a FIN) or not. */
static void on_closed(void *ctx, uw_status why)
{
	struct uw_ep *ep = ctx;

	if (why)
		ep->c = NULL;
	switch (ep->state) {
	case EP_CONNECTING:
		if (why == UW_E_REFUSED && engine_now_us(ep->e) < ep->patient_until_us)
			ask_again(ep);
		else
			startup_failed(ep, why ? why : UW_E_LLP_CLOSED);
		break;
	case EP_STARTING:
	case EP_REQUESTED:
		startup_failed(ep, UW_E_LLP_CLOSED);
		break;
	case EP_STREAMING:
	case EP_CLOSING:
		if (!why && engine_rnr_fin(ep))
			break;
		if (ep->qp)
			engine_qp_lost(ep->qp, why ? UW_E_LLP_CLOSED : UW_OK);
		break;
	default:
		end(ep);
		break;
	}
}

const struct llp_user engine_llp_user = {
	.connected = on_connected,
	.accepted = on_accepted,
	.rx = on_rx,
	.writable = on_writable,
	.closed = on_closed,
};
