/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of a stack, and how long it may rest. */
#include "sched/run.h"

const struct thread_model *sched_thread_model(enum uw_threads t)
{
	static const struct thread_model models[] = {
		[UW_THREADS_ADAPTIVE] = { .posts_inline = true, .polls_drive = true },
		[UW_THREADS_C1] = { 0 },
		[UW_THREADS_C2] = { .posts_inline = true, .polls_drive = true, .app_alone = true },
		[UW_THREADS_C3] = { .posts_inline = true },
	};

	return &models[t];
}

void sched_run_timers(struct sched *s)
{
	uint64_t now = sched_now_us(s);

	if (now < s->next_timer_us)
		return;
	s->next_timer_us = now + TIMER_US;
	s->ops->timers(s->stack, now);
}

unsigned sched_run(struct sched *s)
{
	sched_run_timers(s);
	return s->ops->run(s->stack, false);
}

bool sched_app_comes_back(const struct sched *s)
{
	return atomic_load_explicit(&s->app_drives, memory_order_relaxed) ||
	       atomic_load_explicit(&s->waiter, memory_order_relaxed) == SCHED_AWAY;
}

bool sched_pending(struct sched *s)
{
	return !sched_ring_empty(s) || s->ops->pending(s->stack, true);
}

uint64_t sched_idle_us(struct sched *s, uint64_t now_us)
{
	uint64_t at = s->ops->next_timer_us(s->stack, now_us);

	if (at <= now_us)
		return 1;
	return at - now_us < MAX_SLEEP_US ? at - now_us : MAX_SLEEP_US;
}
