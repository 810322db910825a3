/* SPDX-License-Identifier: BSD-3-Clause */
/* The end: what was posted is sent, connections close, links go. */
#include <time.h>

#include "base/log.h"
#include "conn/rc/rc.h"
#include "engine/routes.h"
#include "engine/stat/stat.h"

#define DRAIN_US 2000000u
#define LOCK_US	 1000000u /* to wait for a stack lock when the process ends */
#define CALLS_US 1000000u /* to wait for calls of other threads into the links */

/* What was posted is sent, what was sent is acknowledged, every FIN too; all within the limit. */
static void drain(struct stack *s, uint64_t until)
{
	bool retired = false;

	for (;;) {
		unsigned closing;

		sched_lock(&s->sched);
		sched_run(&s->sched);
		if (!retired && stack_is_quiet(s)) {
			stack_retire(s);
			retired = true;
		}
		closing = s->llp->lingering();
		stack_flush(s);
		sched_unlock(&s->sched);
		if ((retired && !closing) || stack_now_us(s) > until)
			return;
		sched_yield();
	}
}

/* Whoever takes the lock after this finds a stack without links. The doorbell in memory that peers
 * share is not looked at any more once no thread reads the pointer to it, so that memory stays
 * mapped (io/io.h). */
static void remove_links(struct stack *s)
{
	for (unsigned i = 0; i < s->n_links; i++)
		s->llp->remove_link(s->links[i]);
	s->n_links = 0;
	atomic_store(&s->sched.doorbell, &s->sched.own_doorbell);
}

static void close_link(const struct uw_engine *e, struct io_link *l)
{
	if (e->cfg.verbose)
		engine_log_link(l);
	l->ops->close(l);
}

/* A thread of the program's may be in a call that blocks, an address that it looks for. False:
 * it still is, so the links stay as those of a process that is killed. */
static bool calls_ended(const struct uw_engine *e)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until = stack_now_us(e->stack[0]) + CALLS_US;

	/* acquire: pairs with stack_let_links_go() */
	while (atomic_load_explicit(&e->conn.in_links, memory_order_acquire)) {
		if (stack_now_us(e->stack[0]) > until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void engine_close_links(struct uw_engine *e)
{
	struct io_link *links[UW_STACKS_MAX][STACK_LINKS];
	unsigned n = e->stack[0]->n_links;

	/* What one stack has of another's link goes before any link does. */
	sched_lock_all(&e->stack[0]->sched);
	for (unsigned k = 0; k < e->n_stacks; k++) {
		for (unsigned i = 0; i < n; i++)
			links[k][i] = e->stack[k]->links[i];
		remove_links(e->stack[k]);
	}
	for (unsigned k = 0; k < e->n_stacks && e->steer; k++) {
		for (unsigned i = 0; i < n; i++)
			steer_stop(links[k][i]);
	}
	sched_unlock_all(&e->stack[0]->sched);
	if (!calls_ended(e))
		return;
	for (unsigned k = 0; k < e->n_stacks; k++) {
		for (unsigned i = 0; i < n; i++)
			close_link(e, links[k][i]);
	}
	held_drop(&e->held);
}

/* A program may leave from a signal handler, by exit() or longjmp(), that interrupted this very
 * thread with a lock taken: nobody gives it back. The peers see then that the process is gone, as
 * with one that was killed. */
static bool lock_is_lost(struct uw_engine *e)
{
	for (unsigned i = 0; i < e->n_stacks; i++) {
		if (!sched_lock_within(&e->stack[i]->sched, LOCK_US))
			return true;
		sched_unlock(&e->stack[i]->sched);
	}
	return false;
}

static void forget_calls(struct uw_engine *e)
{
	sched_lock_all(&e->stack[0]->sched);
	rc_accept_stop(e->stack[0]);
	sched_unlock_all(&e->stack[0]->sched);
}

static void stop(struct uw_engine *e)
{
	uint64_t until = stack_now_us(e->stack[0]) + DRAIN_US;

	rc_resolver_stop(e->stack[0]);
	engine_routes_stop(e);
	for (unsigned i = 0; i < e->n_stacks; i++)
		sched_thread_stop(&e->stack[i]->sched);
	for (unsigned i = 0; i < e->n_stacks; i++)
		drain(e->stack[i], until);
	forget_calls(e);
	stat_stop(e);
	engine_close_links(e);
	for (unsigned i = 0; i < e->n_stacks && e->cfg.verbose; i++)
		engine_log_counters(&e->stack[i]->sched.stats);
}

static void stop_manual(struct uw_engine *e)
{
	sched_lock_all(&e->stack[0]->sched);
	for (unsigned i = 0; i < e->n_stacks; i++)
		stack_retire(e->stack[i]);
	sched_unlock_all(&e->stack[0]->sched);
	forget_calls(e);
	engine_close_links(e);
}

static bool is_held(struct uw_engine *e)
{
	return atomic_load_explicit(&e->verbs.n_pds, memory_order_acquire) ||
	       atomic_load_explicit(&e->verbs.n_cqs, memory_order_acquire) ||
	       atomic_load_explicit(&e->conn.n_eps, memory_order_acquire);
}

/* False: it was left as it was, and threads may be in the midst of it. */
static bool end(struct uw_engine *e)
{
	bool stopped;

	if (uw_engine_started(e) && lock_is_lost(e)) {
		uw_log("the program ended in the middle of a call: its connections were not "
		       "closed");
		stat_abandon(e);
		return false;
	}
	if (uw_engine_started(e))
		stop(e);
	else if (e->manual)
		stop_manual(e);
	/* A disk may hang for good. */
	stopped = persister_stop(&e->conn, DRAIN_US);
	if (!stopped)
		uw_log("the program ended while a FLUSH waited for its disk");
	for (unsigned i = 0; i < e->n_stacks; i++) {
		if (e->pcap[i])
			io_pcap_close(e->pcap[i]);
	}
	return stopped;
}

/* Until the process has ended its other threads may go on, and later destructors as well: they find
 * nothing here, but they must find it. */
void uw_engine_end(struct uw_engine *e)
{
	end(e);
}

void uw_engine_close(struct uw_engine *e)
{
	if (end(e) && (e->manual || !is_held(e)))
		engine_free(e);
}
