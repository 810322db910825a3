/* SPDX-License-Identifier: BSD-3-Clause */
/* The monotonic clock. The protocol folders do not read it: time comes in as an argument. */
#ifndef UWARP_BASE_CLOCK_H
#define UWARP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t uw_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t uw_clock_us(void)
{
	return uw_clock_ns() / 1000;
}

static inline uint64_t uw_clock_ms(void)
{
	return uw_clock_ns() / 1000000;
}

#endif
