/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints that listen: on the link of their stack, and through a twin on those of all others. */
#include <arpa/inet.h>

#include "engine/engine.h"
#include "engine/say.h"

static void drop_children(struct uw_ep *ls)
{
	struct uw_ep *next;

	for (struct uw_ep *ep = ls->e->eps; ep; ep = next) {
		next = ep->next;
		if (ep->listener != ls)
			continue;
		if (ep->state == EP_STARTING) {
			engine_ep_free(ep);
			continue;
		}
		ep->listener = NULL; /* handed to the program already */
	}
}

void engine_ep_unlisten(struct uw_ep *ep)
{
	struct uw_ep *twin, *next;

	for (twin = ep->twin; twin; twin = next) {
		next = twin->twin;
		drop_children(twin);
		engine_ep_free(twin);
	}
	ep->twin = NULL;
	if (!ep->ls)
		return;
	drop_children(ep);
	llp_unlisten(ep->e->llp, ep->ls);
	ep->ls = NULL;
}

/* What comes in on e's link is e's to take. */
static uw_status add_twin(struct uw_ep *ep, struct uw_engine *e, const struct llp_place *at,
			  int backlog)
{
	struct uw_ep *twin = engine_ep_new(e);

	if (!twin)
		return UW_E_NOMEM;
	twin->master = ep;
	twin->twin = ep->twin;
	ep->twin = twin;
	twin->l = e->links[0];
	for (unsigned i = 0; i < e->n_links; i++) {
		if (ep->l == ep->e->links[i])
			twin->l = e->links[i];
	}
	twin->fn = ep->fn;
	twin->local = ep->local;
	twin->lport = ep->lport;
	twin->tos = ep->tos;
	twin->state = EP_LISTENING;
	return llp_listen(e->llp, twin->l, at, backlog, twin, &twin->ls);
}

static uw_status add_twins(struct uw_ep *ep, const struct llp_place *at, int backlog)
{
	uw_status st = UW_OK;

	engine_steer_any(ep);
	for (struct uw_engine *e = ep->e->lead; e && !st; e = e->next) {
		if (e != ep->e)
			st = add_twin(ep, e, at, backlog);
	}
	if (st)
		engine_ep_unlisten(ep);
	return st;
}

static uw_status listen_locked(struct uw_ep *ep, int backlog)
{
	const struct uw_ip any = uw_ip_v4(INADDR_ANY);
	struct llp_place at;
	uw_status st = UW_OK;

	if (ep->state == EP_IDLE)
		st = engine_ep_bind(ep, &any, 0);
	if (!st && ep->state != EP_BOUND)
		st = UW_E_INVAL;
	/* Whoever listens shares with nobody. */
	if (!st && ep->joint && !engine_ep_is_alone(ep))
		st = UW_E_ADDR_IN_USE;
	at = (struct llp_place){
		.addr = ep->local, .port = ep->lport, .only6 = ep->only6, .tos = ep->tos
	};
	if (!st)
		st = llp_listen(ep->e->llp, ep->l, &at, backlog, ep, &ep->ls);
	if (!st)
		st = add_twins(ep, &at, backlog);
	if (!st)
		ep->state = EP_LISTENING;
	return st;
}

int uw_ep_listen(struct uw_ep *ep, int backlog)
{
	uw_status st;

	engine_lock_all(ep->e);
	st = listen_locked(ep, backlog);
	engine_unlock_all(ep->e);
	if (st)
		return engine_errno(st);
	/* Wildcard and loopback: whoever connects to 127.0.0.1 comes here. */
	if (ep->l->ops->claim_port && engine_means_all(&ep->local)) {
		st = ep->l->ops->claim_port(ep->l, ep->lport);
		ep->claimed = !st;
	}
	if (st) {
		engine_lock_all(ep->e);
		engine_ep_unlisten(ep);
		ep->state = EP_BOUND;
		engine_unlock_all(ep->e);
		engine_say(
			"cannot listen on port %u: another uwarp process does; choose another port",
			ntohs(ep->lport));
	}
	return engine_errno(st);
}
