/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it takes us to wake a client is the client's doing: as many as it likes may watch its end of
 * a socket, and the kernel visits all of them while we send (19,000 take 5 ms). Who has cost us
 * long is left alone for so many times as long, so that it has a small share of our time; for
 * longer where others of its user are left alone, too (client.c), so that a user has one. Others
 * may have had the CPU meanwhile, so a second one is measured by the time of our thread.
 */
#ifndef UWARPD_WAKE_COST_H
#define UWARPD_WAKE_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

enum { WAKE_COST_LONG_US = 300, WAKE_COST_SHARE = 64 };

struct wake_cost {
	uint64_t until_us; /* nothing is sent to it before */
	bool suspect;	   /* the last time took long */
};

struct wake_cost_time {
	uint64_t us, cpu_us; /* cpu_us: of a suspect */
};

static inline uint64_t wake_cost_cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline bool wake_cost_is_over(const struct wake_cost *t, uint64_t now_us)
{
	return now_us >= t->until_us;
}

static inline struct wake_cost_time wake_cost_begin(const struct wake_cost *t)
{
	return (struct wake_cost_time){ uw_clock_us(), t->suspect ? wake_cost_cpu_us() : 0 };
}

/* For how many microseconds it is to be left alone, if it is the only one of its user; 0: it did
 * not cost long. The caller sets until_us. */
static inline uint64_t wake_cost_end(struct wake_cost *t, struct wake_cost_time since)
{
	bool was_suspect = t->suspect;
	uint64_t cpu_us;

	t->suspect = uw_clock_us() - since.us >= WAKE_COST_LONG_US;
	if (!t->suspect || !was_suspect)
		return 0;
	cpu_us = wake_cost_cpu_us() - since.cpu_us;
	return cpu_us >= WAKE_COST_LONG_US ? WAKE_COST_SHARE * cpu_us : 0;
}

#endif
