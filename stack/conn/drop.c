/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection that nobody wants any more. */
#include "conn/end_event.h"
#include "conn/walk.h"
#include "base/slab.h"

void conn_drop(struct conn *c)
{
	struct conn_qp *q = c->qp;

	if (c->user && c->user->dropped)
		c->user->dropped(c);
	c->user = NULL;
	end_event_drop(c);
	if (q)
		conn_qp_down(q, UW_E_FLUSHED);
	else
		conn_end(c);
	conn_forget_startup(c);
}

void conn_free(struct conn *c)
{
	conn_drop(c);
	conn_leave_lists(c);
	silent_leave(c);
	deadline_clear(&c->stack->timers, &c->timer);
	if (c->borrowed_port)
		ports_give_back(c->stack->domain, c->borrowed_port,
				uw_ip_is_v4(&c->local) ? IO_V4 : IO_V6);
	for (struct conn_walk *w = c->stack->walks; w; w = w->next) {
		if (w->at == c)
			w->at = c->next;
	}
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	slab_free(c, sizeof(*c));
}
