/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint does when a time has come. Only those that wait for one are looked at. */
#include "engine/engine.h"
#include "engine/say.h"

#define NUDGES	 5u
#define NUDGE_US 10000u /* the first; each of the others waits four times as long */
#define HINT_US	 2000000u
#define SOON	 1u /* at the next round of timers */

/* ---- when -------------------------------------------------------------------------------- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a; /* 0: never */
}

static uint64_t stream_due(const struct uw_ep *ep)
{
	uint64_t at = UINT64_MAX;

	if (ep->unheard)
		at = ep->spoke ? SOON : sooner(at, ep->nudge_us);
	return sooner(at, ep->gate_us);
}

static uint64_t due_of(const struct uw_ep *ep)
{
	uint64_t at = UINT64_MAX;

	if (ep->rc && ep->state == EP_ENDED)
		return SOON;
	if (ep->again && ep->state == EP_CONNECTING)
		at = SOON;
	if (ep->state == EP_STREAMING && ep->qp)
		at = stream_due(ep);
	if (ep->state == EP_STARTING && ep->cm)
		at = sooner(at, ep->cm->deadline_us);
	return sooner(sooner(at, ep->rnr_until_us), ep->deadline_us);
}

/* A time that is no longer waited for stays set: when it comes, nothing is found to be due. */
void engine_ep_arm(struct uw_ep *ep)
{
	struct uw_engine *e = ep->e;
	uint64_t at = due_of(ep);

	if (at == UINT64_MAX)
		return;
	if (at <= e->timers_us)
		at = e->timers_us + 1; /* not in the same round once more */
	if (!ep->timer.set || at < ep->timer.at_us)
		deadline_set(&e->deadlines, &ep->timer, at);
}

uint64_t engine_gate_period_us(const struct uw_ep *ep)
{
	return ep->e->cfg.speak_first_ms ? ep->e->cfg.speak_first_ms * 1000ull : HINT_US;
}

/* ---- what -------------------------------------------------------------------------------- */

/* A responder may look at its stream for the first time only some moments after its Reply, and then
 * again only when more comes (Linux's siw does): the first FPDUs lie there, acknowledged and
 * unread. So while we are silent and it is, too, give it something to look at; a few times at most.
 */
static void nudge(struct uw_ep *ep, uint64_t now)
{
	if (ep->spoke) {
		ep->spoke = false;
		ep->nudge_us = now + ((uint64_t)NUDGE_US << 2 * ep->nudges);
		return;
	}
	if (!ep->nudge_us || now < ep->nudge_us)
		return;
	ep->nudge_us = 0;
	if (ep->nudges++ < NUDGES && qp_tx_empty_write(&ep->qp->qp))
		engine_pump(ep->qp);
}

/* A responder is silent until the first FPDU came (RFC 5044 §7.1.2). If its program speaks first
 * and the initiator knows no peer-to-peer (RFC 6581 §9.2) or does not ask for it (Linux's siw),
 * both wait for ever. So the administrator may allow it to speak; if he did not, tell him once. */
static void look_at_gate(struct uw_ep *ep, uint64_t now)
{
	struct uw_qp *qp = ep->qp;

	ep->gate_us = 0;
	if (!qp->qp.gated)
		return;
	if (!sq_ready(&qp->qp.sq)) {
		ep->gate_us = now + engine_gate_period_us(ep);
		return;
	}
	if (!ep->e->cfg.speak_first_ms) {
		engine_say_both_wait(ep);
		return;
	}
	qp_open_gate(&qp->qp);
	engine_pump(qp);
}

static void stream_timer(struct uw_ep *ep, uint64_t now)
{
	if (ep->unheard)
		nudge(ep, now);
	if (ep->gate_us && now >= ep->gate_us)
		look_at_gate(ep, now);
}

static void connect_again(struct uw_ep *ep)
{
	uw_status st;

	ep->again = false;
	st = engine_ep_call(ep);
	if (st)
		engine_ep_unreachable(ep, st);
}

/* False: it is no more. */
static bool ep_timer(struct uw_ep *ep, uint64_t now)
{
	if (ep->rc && ep->state == EP_ENDED) {
		engine_ep_free(ep); /* nobody else will */
		return false;
	}
	if (ep->again && ep->state == EP_CONNECTING)
		connect_again(ep);
	if (ep->state == EP_STREAMING && ep->qp)
		stream_timer(ep, now);
	if (ep->state == EP_STARTING && ep->cm && cm_timer(ep->cm, now) == CM_FAILED) {
		engine_ep_unreachable(ep, ep->cm->why);
		return false; /* or it has nothing more to wait for */
	}
	engine_rnr_timer(ep, now);
	return true;
}

static void deadline_timer(struct uw_ep *ep, uint64_t now)
{
	if (!ep->deadline_us || now < ep->deadline_us)
		return;
	ep->deadline_us = 0;
	if (ep->state == EP_CONNECTING)
		engine_ep_unreachable(ep, UW_E_TIMEOUT);
	else if (ep->state == EP_CLOSING && ep->qp)
		engine_qp_down(ep->qp, UW_OK);
}

void engine_ep_timers(struct uw_engine *e, uint64_t now_us)
{
	struct deadline *d;

	e->timers_us = now_us;
	while ((d = deadline_take(&e->deadlines, now_us))) {
		struct uw_ep *ep = (struct uw_ep *)((uint8_t *)d - offsetof(struct uw_ep, timer));

		if (!ep_timer(ep, now_us))
			continue;
		deadline_timer(ep, now_us);
		engine_ep_arm(ep);
	}
	engine_rc_timers(e, now_us);
}
