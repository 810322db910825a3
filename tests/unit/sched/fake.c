/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake.h"

static unsigned run(void *stack, bool comes_back)
{
	struct fake *f = stack;

	f->comes_back = comes_back;
	f->runs++;
	f->lock_was_taken = atomic_load(&f->s.lock) != SCHED_FREE;
	return atomic_exchange(&f->frames, 0);
}

static void flush(void *stack)
{
	((struct fake *)stack)->flushes++;
}

static void timers(void *stack, uint64_t now_us)
{
	(void)now_us;
	((struct fake *)stack)->timers++;
}

static bool pending(void *stack, bool links)
{
	struct fake *f = stack;

	(void)links;
	return atomic_load(&f->frames) > 0;
}

static uint64_t next_timer_us(void *stack, uint64_t now_us)
{
	(void)now_us;
	return ((struct fake *)stack)->timer_at_us;
}

static uint64_t now_us(void *arg)
{
	struct fake *f = arg;

	return atomic_fetch_add(f->now_us, f->step_us) + f->step_us;
}

void fakes_open(struct fakes *w, unsigned n, enum uw_threads model)
{
	memset(w, 0, sizeof(*w));
	w->now_us = 1000000;
	for (unsigned i = 0; i < n; i++) {
		struct fake *f = &w->f[i];

		f->ops = (struct sched_ops){ .run = run,
					     .flush = flush,
					     .timers = timers,
					     .pending = pending,
					     .next_timer_us = next_timer_us };
		f->now_us = &w->now_us;
		f->timer_at_us = UINT64_MAX;
		f->s.ops = &f->ops;
		f->s.stack = f;
		f->s.model = sched_thread_model(model);
		f->s.index = i;
		f->s.first = &w->f[0].s;
		f->s.next = i + 1 < n ? &w->f[i + 1].s : NULL;
		f->s.now_us = now_us;
		f->s.now_arg = f;
		sched_init(&f->s);
	}
}

bool fake_lock_is_free(struct sched *s)
{
	return atomic_load(&s->lock) == SCHED_FREE;
}

void fake_in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
}
