/* SPDX-License-Identifier: BSD-3-Clause */
/* The monotonic clock. */
#ifndef UWARP_PRELOAD_CLOCK_H
#define UWARP_PRELOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t preload_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

#endif
