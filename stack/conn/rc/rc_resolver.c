/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that finds the way to peers of CM-less RC: that may block, and so is not done under the
 * stack lock. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "conn/endpoint.h"
#include "conn/rc/rc.h"

/* A process that is there answers within milliseconds; others must not wait for one that hangs. */
#define RESOLVE_MS 1000u

struct rc_resolver {
	struct stack *s;
	pthread_t thread;
	pthread_mutex_t lock; /* protects kicked and stop; taken inside the stack lock, or alone */
	pthread_cond_t kick;
	bool kicked, stop;
};

/* A copy of what is to be resolved: the QP may be gone before that is done. */
struct question {
	uint32_t qpn;
	struct uw_ip addr;
	uint64_t serial;
	struct io_link *l;
};

/* The one that has waited longest: those whose peers hang come back soon, and would keep the others
 * waiting for ever. The list has the newest in front. */
static const struct rc *first_to_ask(const struct stack *s)
{
	const struct rc *first = NULL;

	for (const struct rc *rc = s->rc.list; rc; rc = rc->next) {
		if (rc->state == RC_RESOLVING && (!first || rc->next_us <= first->next_us))
			first = rc;
	}
	return first;
}

static bool next_question(struct stack *s, struct question *out)
{
	const struct rc *rc;

	sched_lock(&s->sched);
	rc = first_to_ask(s);
	if (rc)
		*out = (struct question){ rc->self.qpn, rc->peer.addr, rc->serial, rc->l };
	sched_unlock(&s->sched);
	return rc != NULL;
}

static void answer(struct stack *s, const struct question *w, uw_status st)
{
	struct conn_qp *q;

	sched_lock(&s->sched);
	q = s->domain->hooks.find_qp(s->domain->hooks.find_qp_arg, w->qpn);
	if (q && q->rc && q->rc->serial == w->serial)
		rc_resolved(q->rc, st);
	stack_flush(s);
	sched_unlock(&s->sched);
}

/* more: there may be some already. False: the end, whatever is left to ask. */
static bool wait_for_work(struct rc_resolver *r, bool more)
{
	bool stop;

	pthread_mutex_lock(&r->lock);
	while (!r->kicked && !r->stop && !more)
		pthread_cond_wait(&r->kick, &r->lock);
	r->kicked = false;
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return !stop;
}

static void *resolver_main(void *arg)
{
	struct rc_resolver *r = arg;
	struct question w;
	bool more = false;

	pthread_setname_np(pthread_self(), "uwarp-resolve");
	while (wait_for_work(r, more)) {
		more = next_question(r->s, &w);
		if (more)
			answer(r->s, &w, ep_find_way(w.l, &w.addr, htons(RC_PORT), RESOLVE_MS));
	}
	return NULL;
}

uw_status rc_resolver_start(struct stack *s)
{
	struct rc_resolver *r;

	if (s->rc.resolver)
		return UW_OK;
	r = calloc(1, sizeof(*r));
	if (!r)
		return UW_E_NOMEM;
	r->s = s;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->kick, NULL);
	if (sched_spawn(&r->thread, resolver_main, r)) {
		free(r);
		return UW_E_NOMEM;
	}
	s->rc.resolver = r;
	return UW_OK;
}

void rc_resolver_kick(struct stack *s)
{
	struct rc_resolver *r = s->rc.resolver;

	pthread_mutex_lock(&r->lock);
	r->kicked = true;
	pthread_cond_signal(&r->kick);
	pthread_mutex_unlock(&r->lock);
}

void rc_resolver_stop(struct stack *s)
{
	struct rc_resolver *r = s->rc.resolver;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->kick);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
}

void rc_resolver_free(struct stack *s)
{
	struct rc_resolver *r = s->rc.resolver;

	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->kick);
	free(r);
	s->rc.resolver = NULL;
}
