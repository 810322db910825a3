/* SPDX-License-Identifier: BSD-3-Clause */
/* Several stacks in one process: made, locked together, and what moves between them. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "engine/engine.h"
#include "engine/say.h"
#include "engine/transport.h"
#include "io/steer.h"

/* ---- life -------------------------------------------------------------------------------- */

static struct uw_engine *copy_of(const struct uw_engine *lead, unsigned index)
{
	struct uw_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->index = index;
	e->cfg = lead->cfg;
	e->model = lead->model;
	e->policy = lead->policy;
	e->rc_policy = lead->rc_policy;
	e->rc_due_us = UINT64_MAX;
	e->now_us = lead->now_us;
	e->now_arg = lead->now_arg;
	e->manual = lead->manual;
	e->rng = lead->rng + 2 * index; /* odd, so not 0 */
	e->doorbell = &e->own_doorbell;
	return e;
}

int engine_add_stacks(struct uw_engine *lead)
{
	const struct transport *t = transport_find(lead->cfg.transport);
	struct uw_engine *last = lead;

	if (lead->cfg.stacks > 1 && !t->instance) {
		engine_say("UWARP_STACKS=%u: the transport %s has one stack only", lead->cfg.stacks,
			   t->name);
		return -EINVAL;
	}
	if (lead->cfg.stacks > 1 && lead->model->caller_alone) {
		engine_say("UWARP_STACKS=%u: each stack has a thread of its own, so "
			   "UWARP_THREADS=c2 cannot be",
			   lead->cfg.stacks);
		return -EINVAL;
	}
	/* A program that polls cannot know which stack has something for it: their threads do. */
	if (lead->cfg.stacks > 1 && lead->model->polls_drive)
		lead->model = engine_thread_model(UW_THREADS_C3);
	if (lead->cfg.stacks > 1) {
		lead->steer = steer_ports_new();
		if (!lead->steer)
			return -ENOMEM;
		engine_steer_lead(lead, RC_PORT);
	}
	for (unsigned i = 1; i < lead->cfg.stacks; i++) {
		struct uw_engine *e = copy_of(lead, i);

		if (!e)
			return -ENOMEM;
		e->lead = lead;
		e->llp = t->instance(i);
		last->next = e;
		last = e;
	}
	return 0;
}

void engine_free_stacks(struct uw_engine *lead)
{
	struct uw_engine *e;

	free(lead->steer);
	while ((e = lead->next)) {
		lead->next = e->next;
		free(e);
	}
}

/* ---- locks ------------------------------------------------------------------------------- */

void engine_lock_others(struct uw_engine *lead)
{
	for (struct uw_engine *e = lead->next; e; e = e->next)
		engine_lock(e);
}

void engine_unlock_others(struct uw_engine *lead)
{
	for (struct uw_engine *e = lead->next; e; e = e->next) {
		llp_flush_links(e->llp);
		engine_unlock(e);
	}
}

void engine_lock_all(struct uw_engine *e)
{
	engine_lock(e->lead);
	engine_lock_others(e->lead);
}

void engine_unlock_all(struct uw_engine *e)
{
	engine_unlock_others(e->lead);
	if (e->lead->next)
		llp_flush_links(e->lead->llp);
	engine_unlock(e->lead);
}

/* ---- order ------------------------------------------------------------------------------- */

#define LOOKS	      100u
#define ROUNDS	      64u
#define LOOK_MAX_US   50000u /* a thread that has the lock and not the core is back by then */
#define REQUEST_LOOKS 200u

static void pause_us(unsigned us)
{
	const struct timespec t = { .tv_nsec = (long)us * 1000 };

	nanosleep(&t, NULL);
}

/* Whoever has its lock is looking, and is done soon. It may wait for us in here: then whose SYN
 * came first goes first. turn 0: nobody is waited for. */
static void look(struct uw_engine *e, uint64_t turn)
{
	uint64_t until = engine_now_us(e) + LOOK_MAX_US;

	for (unsigned i = 0; !engine_trylock(e); i++) {
		uint64_t its = atomic_load(&e->shows);

		if ((its && its > turn) || engine_now_us(e) > until)
			return;
		if (i < LOOKS)
			sched_yield();
		else
			pause_us(50);
	}
	/* A round takes one burst. */
	for (unsigned i = 0; i < ROUNDS && engine_run(e); i++)
		;
	engine_unlock(e);
}

void engine_look_elsewhere(const struct uw_ep *ep)
{
	static __thread bool in_here;
	struct uw_engine *e = ep->e;

	if (!engine_is_one_of_several(e) || in_here) /* what another found comes first */
		return;
	in_here = true;
	atomic_store(&e->shows, ep->serial);
	for (struct uw_engine *s = e->lead; s; s = s->next) {
		if (s != e)
			look(s, ep->serial);
	}
	in_here = false;
}

void engine_looked_elsewhere(const struct uw_ep *ep)
{
	atomic_store(&ep->e->shows, 0);
}

static bool connecting(struct uw_ep *ep)
{
	bool yes;

	engine_lock(ep->e);
	yes = ep->state == EP_CONNECTING && !ep->again;
	engine_unlock(ep->e);
	return yes;
}

void engine_await_request(struct uw_ep *ep)
{
	if (!engine_is_one_of_several(ep->e) || ep->e->manual)
		return;
	for (unsigned i = 0; i < REQUEST_LOOKS && connecting(ep); i++) {
		for (struct uw_engine *e = ep->e->lead; e; e = e->next)
			look(e, 0);
		if (connecting(ep))
			pause_us(50);
	}
}

/* ---- what moves -------------------------------------------------------------------------- */

struct uw_engine *engine_next_home(struct uw_engine *e)
{
	struct uw_engine *home = e->lead;

	if (!home->next)
		return home;
	for (unsigned i = e->lead->next_home++ % e->lead->cfg.stacks; i; i--)
		home = home->next;
	return home;
}

void engine_qp_move(struct uw_qp *qp, struct uw_engine *to)
{
	if (engine_of(qp) == to)
		return;
	qp_move(&qp->qp, &to->stats);
	/* release: pairs with the acquire in engine_ring */
	atomic_store_explicit(&qp->ring.home, to, memory_order_release);
}
