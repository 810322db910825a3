/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/listener.h"

#include "conn/conn.h"

/* The link of `to` that stands where `l` stands in `from`. */
static struct io_link *same_link(const struct stack *to, const struct stack *from,
				 const struct io_link *l)
{
	for (unsigned i = 0; i < to->n_links; i++) {
		if (from->links[i] == l)
			return to->links[i];
	}
	return to->links[0];
}

static uw_status add_part(struct listener *ls, struct stack *s, struct io_link *l,
			  const struct llp_place *at, int backlog)
{
	struct listener_part *part = &ls->part[ls->n_parts];
	uw_status st;

	*part = (struct listener_part){ .listener = ls, .stack = s, .l = l };
	st = s->llp->listen(l, at, backlog, part, &part->llp);
	if (!st)
		ls->n_parts++;
	return st;
}

uw_status listener_start(struct listener *ls, struct stack *home, struct io_link *link,
			 const struct llp_place *at, int backlog, enum listener_stacks stacks)
{
	uw_status st = UW_OK;

	ls->n_parts = 0;
	if (stack_is_without_links(home))
		return UW_E_STATE;
	for (struct stack *s = home->domain->first; s && !st; s = stack_next(s)) {
		if (s == home || stacks == LISTENER_ON_ALL)
			st = add_part(ls, s, same_link(s, home, link), at, backlog);
	}
	if (st) {
		listener_stop(ls);
		return st;
	}
	ls->next = home->domain->listeners;
	home->domain->listeners = ls;
	return UW_OK;
}

static void drop_connections(const struct listener_part *part)
{
	struct conn *next;

	for (struct conn *c = part->stack->conns; c; c = next) {
		next = c->next;
		if (c->listener != part->listener)
			continue;
		c->listener = NULL;
		if (c->state == CONN_STARTING)
			conn_free(c);
	}
}

static void stop_part(struct listener_part *part)
{
	if (part->llp)
		part->stack->llp->unlisten(part->llp);
	part->llp = NULL;
}

void listener_stop(struct listener *ls)
{
	struct listener **p = NULL;

	for (unsigned i = 0; i < ls->n_parts; i++) {
		drop_connections(&ls->part[i]);
		stop_part(&ls->part[i]);
		p = &ls->part[i].stack->domain->listeners;
	}
	while (p && *p && *p != ls)
		p = &(*p)->next;
	if (p && *p)
		*p = ls->next;
	ls->n_parts = 0;
}

void listeners_stop(struct stack *s)
{
	for (struct listener *ls = s->domain->listeners; ls; ls = ls->next) {
		for (unsigned i = 0; i < ls->n_parts; i++) {
			if (ls->part[i].stack == s)
				stop_part(&ls->part[i]);
		}
	}
}
