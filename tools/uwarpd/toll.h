/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it takes us to wake a client is the client's doing: as many as it likes may watch its end of
 * a socket, and the kernel visits all of them while we send (20,000 take 5 ms). Who has cost us
 * long is left alone for so many times as long, so that it has a small share of our time. Others
 * may have had the CPU meanwhile, so a second one is measured by the time of our thread.
 */
#ifndef UWARPD_TOLL_H
#define UWARPD_TOLL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"

enum { TOLL_LONG_US = 300, TOLL_SHARE = 64 };

struct toll {
	uint64_t until_us; /* nothing is sent to it before */
	bool suspect;	   /* the last time took long */
};

struct toll_time {
	uint64_t us, cpu_us; /* cpu_us: of a suspect */
};

static inline uint64_t toll_cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline bool toll_is_open(const struct toll *t, uint64_t now_us)
{
	return now_us >= t->until_us;
}

static inline struct toll_time toll_begin(const struct toll *t)
{
	return (struct toll_time){ uw_clock_us(), t->suspect ? toll_cpu_us() : 0 };
}

static inline void toll_end(struct toll *t, struct toll_time since)
{
	uint64_t now = uw_clock_us(), cpu_us;
	bool was_suspect = t->suspect;

	t->suspect = now - since.us >= TOLL_LONG_US;
	if (!t->suspect || !was_suspect)
		return;
	cpu_us = toll_cpu_us() - since.cpu_us;
	if (cpu_us >= TOLL_LONG_US)
		t->until_us = now + TOLL_SHARE * cpu_us;
}

#endif
