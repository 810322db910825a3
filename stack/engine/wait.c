/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that wait in poll() or the like. With several stacks the RX threads serve
 * them. */
#include "engine/engine.h"

static struct sched *sched_of(struct uw_engine *e)
{
	return &e->stack[0]->sched;
}

bool uw_wait_elsewhere(struct uw_engine *e)
{
	return sched_app_can_wait(sched_of(e)) && sched_app_waits_elsewhere(sched_of(e));
}

bool uw_wait_look(struct uw_engine *e, struct uw_wait *w, uint64_t limit_us)
{
	if (!sched_app_can_wait(sched_of(e)))
		return false;
	sched_app_look(sched_of(e), w, limit_us);
	return true;
}

enum uw_wait_how uw_wait_begin(struct uw_engine *e, struct uw_wait *w)
{
	return sched_app_wait_begin(sched_of(e), w);
}

void uw_wait_end(struct uw_engine *e)
{
	sched_app_wait_end(sched_of(e));
}

void uw_wait_done(struct uw_engine *e, const struct uw_wait *w)
{
	sched_app_wait_done(sched_of(e), w);
}

void uw_wait_yield(struct uw_engine *e)
{
	if (!sched_is_one_of_several(sched_of(e)))
		sched_app_poll(sched_of(e), SCHED_POLL_AGAIN);
}

void uw_wait_plainly(struct uw_engine *e, bool on)
{
	sched_app_waits_plainly(sched_of(e), on);
}
