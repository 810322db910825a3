/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/order.h"

static bool is_ordered(const struct conn *c)
{
	return c->role == CONN_INITIATOR && !c->cm_less && c->stack->domain->first->sched.next;
}

static bool same_listener(const struct conn *a, const struct conn *b)
{
	return a->rport == b->rport && uw_ip_eq(&a->remote, &b->remote);
}

/* ---- the list, under order_lock ----------------------------------------------------------- */

/* The first of those to c's listener, c among them or not. */
static struct conn *first_like(const struct conn *c)
{
	struct conn *at = c->stack->domain->order_first;

	while (at && !same_listener(at, c))
		at = at->order_next;
	return at;
}

static void append(struct conn_domain *d, struct conn *c)
{
	c->order_next = NULL;
	c->order_link = d->order_first ? d->order_last : &d->order_first;
	*c->order_link = c;
	d->order_last = &c->order_next;
}

/* Returns the stack of the one whose turn it is now; NULL: nobody waits for this. */
static struct stack *leave(struct conn_domain *d, struct conn *c)
{
	const struct conn *next;

	if (!c->order_link)
		return NULL;
	*c->order_link = c->order_next;
	if (c->order_next)
		c->order_next->order_link = c->order_link;
	else
		d->order_last = c->order_link;
	c->order_link = NULL;
	c->waits_for = NULL;
	next = first_like(c);
	return next && next->waits_for ? next->stack : NULL;
}

/* Not under order_lock. To the stack, which looks who it is: that one may be gone by then. */
static void tell(struct stack *s)
{
	if (s)
		sched_kick_later(sched_push(&s->turns));
}

/* ---- turns -------------------------------------------------------------------------------- */

void order_begin(struct conn *c)
{
	struct conn_domain *d = c->stack->domain;

	if (!is_ordered(c))
		return;
	spin_lock(&d->order_lock);
	if (!c->order_link)
		append(d, c);
	spin_unlock(&d->order_lock);
}

static void wait_until_overdue(struct conn *c)
{
	c->deadline_us = stack_now_us(c->stack) + ORDER_LIMIT_US;
}

bool order_may_ask(struct conn *c)
{
	struct conn_domain *d = c->stack->domain;
	struct conn *first;

	if (!is_ordered(c))
		return true;
	spin_lock(&d->order_lock);
	first = first_like(c);
	c->waits_for = c->order_link && first != c ? first : NULL;
	spin_unlock(&d->order_lock);
	if (!c->waits_for)
		return true;
	wait_until_overdue(c);
	return false;
}

bool order_overdue(struct conn *c)
{
	struct conn_domain *d = c->stack->domain;
	struct stack *next = NULL;
	bool may;

	spin_lock(&d->order_lock);
	if (first_like(c) != c && first_like(c) == c->waits_for)
		next = leave(d, first_like(c));
	c->waits_for = first_like(c);
	may = c->waits_for == c;
	if (may)
		c->waits_for = NULL;
	spin_unlock(&d->order_lock);
	tell(next);
	if (!may)
		wait_until_overdue(c);
	return may;
}

void order_done(struct conn *c)
{
	struct conn_domain *d = c->stack->domain;
	struct stack *next;

	if (!is_ordered(c))
		return;
	spin_lock(&d->order_lock);
	next = leave(d, c);
	spin_unlock(&d->order_lock);
	tell(next);
}

struct conn *order_take_turn(struct stack *s)
{
	struct conn_domain *d = s->domain;
	struct conn *c;

	spin_lock(&d->order_lock);
	for (c = d->order_first; c; c = c->order_next) {
		if (c->stack == s && c->waits_for && first_like(c) == c)
			break;
	}
	if (c)
		c->waits_for = NULL;
	spin_unlock(&d->order_lock);
	return c;
}
