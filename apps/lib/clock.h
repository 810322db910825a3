/* SPDX-License-Identifier: BSD-3-Clause */
/* Time and random numbers, small enough to stay in a header. */
#ifndef APPS_CLOCK_H
#define APPS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that never goes back. */
static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU nanoseconds of the whole process. */
static inline uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* SplitMix64: scrambles a number; as a generator its state is a counter. */
static inline uint64_t mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t random64(uint64_t *state)
{
	return mix64(*state += 0x9e3779b97f4a7c15u);
}

/* In [0, 1). */
static inline double random_unit(uint64_t *state)
{
	return (double)(random64(state) >> 11) * 0x1p-53;
}

#endif
