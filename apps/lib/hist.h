/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of times in nanoseconds, laid out as HdrHistogram's (whose C library Debian 12 does
 * not have): buckets of equal width below 2048, twice as wide at every further power of two, so
 * that any value is kept to 0.1 %. Recording is a shift and an increment; nothing is allocated.
 * Not locked: one for each thread, merged at the end.
 */
#ifndef APPS_HIST_H
#define APPS_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 11
#define HIST_HALF     (1u << (HIST_SUB_BITS - 1))
#define HIST_POWERS   27 /* up to 2^37 ns, 137 s; what is longer counts there */
#define HIST_CELLS    (HIST_HALF * (HIST_POWERS + 1))

struct hist {
	uint64_t count, sum, max;
	uint64_t cell[HIST_CELLS];
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *into, const struct hist *from);
/* The time below or at which `percent` of all lie; 0 if there are none. */
uint64_t hist_at(const struct hist *h, double percent);
double hist_mean(const struct hist *h);

#endif
