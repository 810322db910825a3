/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/end_event.h"

#include <stdlib.h>

/* The completions of a CQ before a place. */
struct mark {
	const struct cq *cq;
	uint32_t end;
};

struct end_event {
	struct conn *c;
	const struct conn_qp *q; /* was c's, and is compared only */
	struct mark sent, received;
	struct end_event *next; /* stack.end_events */
};

static struct mark mark_of(const struct cq *cq)
{
	return (struct mark){ cq, atomic_load_explicit(&cq->tail, memory_order_relaxed) };
}

static bool is_read(const struct mark *m)
{
	uint32_t head = atomic_load_explicit(&m->cq->head, memory_order_acquire);

	return (int32_t)(head - m->end) >= 0;
}

static bool all_read(const struct end_event *e)
{
	return is_read(&e->sent) && is_read(&e->received);
}

static bool program_asked(const struct conn *c, uw_status why)
{
	return c->state != CONN_STREAMING || c->qp->qp.state == UW_QPS_SQD || why == UW_E_FLUSHED;
}

struct end_event *end_event_new(struct conn *c, uw_status why)
{
	struct qp *qp = &c->qp->qp;
	struct end_event e = { .c = c, .q = c->qp }, *p;

	if (c->cm_less || program_asked(c, why) || c->stack->n_end_events >= END_EVENTS_MAX)
		return NULL;
	qp_complete_acked(qp);
	e.sent = mark_of(qp->scq);
	e.received = mark_of(qp->rcq);
	if (all_read(&e))
		return NULL;
	p = malloc(sizeof(*p));
	if (p)
		*p = e;
	return p;
}

void end_event_tell(struct conn *c, struct end_event *e)
{
	if (!e) {
		conn_event(c, UW_CM_DISCONNECTED, UW_OK);
		return;
	}
	e->next = c->stack->end_events;
	c->stack->end_events = e;
	c->stack->n_end_events++;
	c->stack->sched.stats.cm_end_waited++;
	c->deadline_us = stack_now_us(c->stack) + END_EVENT_US;
	conn_arm(c);
}

static void take(struct stack *s, struct end_event **at)
{
	struct end_event *e = *at;

	*at = e->next;
	s->n_end_events--;
	e->c->deadline_us = 0;
	free(e);
}

static void tell(struct stack *s, struct end_event **at)
{
	struct conn *c = (*at)->c;

	take(s, at);
	conn_event(c, UW_CM_DISCONNECTED, UW_OK);
}

static bool is_meant(const struct end_event *e, const struct conn *c, const struct conn_qp *q)
{
	if (c)
		return e->c == c;
	return q ? e->q == q : all_read(e);
}

/* The event of c, one that waits for q, or with neither one whose program has read everything. */
static struct end_event **find(struct stack *s, const struct conn *c, const struct conn_qp *q)
{
	struct end_event **at = &s->end_events;

	while (*at && !is_meant(*at, c, q))
		at = &(*at)->next;
	return *at ? at : NULL;
}

void end_events_look(struct stack *s)
{
	struct end_event **at;

	while ((at = find(s, NULL, NULL)))
		tell(s, at);
}

void end_event_now(struct conn *c)
{
	struct end_event **at = find(c->stack, c, NULL);

	if (at)
		tell(c->stack, at);
}

void end_event_drop(const struct conn *c)
{
	struct end_event **at = find(c->stack, c, NULL);

	if (at)
		take(c->stack, at);
}

void end_event_forget_qp(const struct conn_qp *q)
{
	struct end_event **at;

	for (struct stack *s = conn_qp_stack(q)->domain->first; s; s = stack_next(s)) {
		while ((at = find(s, NULL, q)))
			tell(s, at);
	}
}
