/* SPDX-License-Identifier: BSD-3-Clause */
/* A wall clock that runs about ten times as fast, for perftest. It asks for the time of day for
 * nothing but the speed of the CPU's counter: 0.2 s of spinning at each end for each message size,
 * most of what a short run costs. It measures in a tenth of that now. Its figures are wrong by ten,
 * and no test judges them.
 *
 * On x86 the time is made of that very counter. Read from the kernel's clock a little before, the
 * two differ by as long as the program lost its CPU in between, and perftest gives up where they
 * often do ("Correlation coefficient r^2"). */
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#define FASTER 10
#define MHZ    2500 /* of the counter, about */

#ifdef __x86_64__
static long long now_us(void)
{
	return (long long)(__builtin_ia32_rdtsc() / (MHZ / FASTER));
}
#else
static long long now_us(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_MONOTONIC, &t)
		       ? 0
		       : (t.tv_sec * 1000000LL + t.tv_nsec / 1000) * FASTER;
}
#endif

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict tv,
							void *restrict zone)
{
	long long us = now_us();

	(void)zone;
	*tv = (struct timeval){ us / 1000000, us % 1000000 };
	return 0;
}
