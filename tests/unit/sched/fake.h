/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks without a TCP: struct sched_ops that count their calls, and a clock that the test sets. */
#ifndef UWARP_TESTS_SCHED_FAKE_H
#define UWARP_TESTS_SCHED_FAKE_H

#include <time.h>

#include "sched/run.h"
#include "uwtest.h"

#define FAKES		 3u
#define TAKEN_BY_ANOTHER ((uint64_t)2) /* of a stack lock: no thread of ours has this name */

struct fake {
	struct sched s;
	struct sched_ops ops;
	_Atomic uint64_t *now_us; /* of struct fakes */
	uint64_t step_us;	  /* what the clock moves on by each time it is read */
	/* What ops are asked for, and what they find. Under the stack lock but for atomics. */
	unsigned runs, flushes, timers, asked;
	_Atomic unsigned frames; /* the next run() takes them in */
	_Atomic unsigned roused, slept;
	uint64_t timer_at_us;
	bool lock_was_taken; /* during the last run() */
	bool comes_back;     /* what the last run() was told */
};

struct fakes {
	struct fake f[FAKES];
	_Atomic uint64_t now_us;
};

/* n stacks of one process, all of one thread model; their RX threads are not started. */
void fakes_open(struct fakes *w, unsigned n, enum uw_threads model);
/* Nobody holds it. */
bool fake_lock_is_free(struct sched *s);
/* Run fn(arg) in another thread and wait for its end. */
void fake_in_thread(void *(*fn)(void *), void *arg);
/* The real clock. */
static inline uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

#endif
