/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(): the connections, the links and the memory that links share stay the parent's. The child
 * has copies of all objects, which must not reach any of that: its QPs are in error, so what it
 * posts on them is flushed, and what it destroys is gone for it alone.
 *
 * A signal handler may fork as well, on top of a thread that runs the stack. The parent goes on
 * where it was. The child finds the stack as it lay at that moment, and has to end or exec in the
 * handler, as POSIX has it for the child of a program with threads.
 */
#include "conn/endpoint.h"
#include "engine/stat/stat.h"
#include "base/slab.h"

/* ---- a transport without links or connections ------------------------------------------------ */

static bool nothing_queued(void)
{
	return false;
}

static void nothing(void)
{
}

static void no_acks(enum llp_acks which)
{
	(void)which;
}

static unsigned none(void)
{
	return 0;
}

static uint64_t never(void)
{
	return UINT64_MAX;
}

static const struct llp_ops no_llp = {
	.flush_links = nothing_queued,
	.acks = no_acks,
	.timers = nothing,
	.poll = none,
	.lingering = none,
	.next_timer_us = never,
};

/* ---- the child ----------------------------------------------------------------------------- */

static void orphan_conn(struct conn *c)
{
	c->llp = NULL;
	c->qp = c->claimed = NULL;
	c->user = NULL;
	c->in_tx_list = c->in_acked_list = false;
	c->rnr = RNR_NO;
	c->rnr_until_us = c->deadline_us = 0;
	c->order_link = NULL;
	c->waits_for = NULL; /* its turn, which would come as others are destroyed */
	c->state = CONN_ENDED;
}

static void orphan_stack(struct uw_engine *e, struct stack *s)
{
	s->n_links = 0;
	s->tx_first = s->tx_last = s->acked_list = NULL;
	s->walks = NULL; /* of threads that are not here */
	s->turns.queued = false;
	s->llp = &no_llp;
	s->rc = (struct rc_stack){ .due_us = UINT64_MAX };
	uw_random_forget(&s->random);
	e->pcap[s->sched.index] = NULL;
	for (struct conn *c = s->conns; c; c = c->next)
		orphan_conn(c);
}

static void orphan_ep(struct uw_ep *ep)
{
	ep->fn = NULL;
	ep->owned = false;
	ep->claimed = 0;
	for (unsigned i = 0; ep->listener && i < ep->listener->n_parts; i++)
		ep->listener->part[i].llp = NULL;
}

static void orphan(struct uw_engine *e)
{
	for (unsigned i = 0; i < e->n_stacks; i++)
		orphan_stack(e, e->stack[i]);
	e->conn.order_first = NULL;
	atomic_store(&e->conn.in_links, 0);
	spin_reset(&e->conn.said.lock);
	for (struct uw_ep *ep = e->conn.eps; ep; ep = ep->next)
		orphan_ep(ep);
	stat_forget(e);
	verbs_after_fork(&e->verbs);
	e->routes = NULL; /* its thread is the parent's */
	e->conn.persister = NULL;
	held_drop(&e->held); /* the parent's, until it ends */
	sched_after_fork(&e->stack[0]->sched, &engine_sched_ops_dead);
}

void uw_engine_fork(struct uw_engine *e, enum uw_fork when)
{
	switch (when) {
	case UW_FORK_PREPARE: /* nothing is half done in the copy */
		e->fork_locked =
			!slab_is_locked_here() && sched_lock_all_to_fork(&e->stack[0]->sched);
		slab_before_fork();
		break;
	case UW_FORK_PARENT:
		slab_after_fork(false);
		if (e->fork_locked)
			sched_unlock_all(&e->stack[0]->sched);
		break;
	case UW_FORK_CHILD:
		slab_after_fork(true);
		orphan(e);
		break;
	}
}
