/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder share: the clock, and one line of JSON for each thing measured.
 */
#ifndef UWARP_TESTS_PERF_H
#define UWARP_TESTS_PERF_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PERF_SAMPLES = 1 << 20, PERF_BUFFERS_MAX = 64 };

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How many buffers messages go out of, and come into, in turn. */
static inline unsigned perf_buffers(const char *arg)
{
	int n = atoi(arg);

	return n < 1 ? 1 : n > PERF_BUFFERS_MAX ? PERF_BUFFERS_MAX : (unsigned)n;
}

/* Round-trip times in us. */
struct perf_times {
	float v[PERF_SAMPLES];
	unsigned n;
};

static inline int perf_compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static inline double perf_at(const struct perf_times *t, double percent)
{
	return t->n ? (double)t->v[(unsigned)((t->n - 1) * percent / 100)] : 0;
}

/* The members of a JSON object that say how long round trips took: the median, the mean, and the
 * distribution as [percent, us] pairs. Sorts t. */
static inline void perf_print_times(struct perf_times *t)
{
	static const double percents[] = { 0,  1,  5,  10, 20, 30, 40,	 50,   70,    80,
					   85, 90, 95, 97, 98, 99, 99.5, 99.9, 99.99, 100 };
	double sum = 0;

	qsort(t->v, t->n, sizeof(t->v[0]), perf_compare);
	for (unsigned i = 0; i < t->n; i++)
		sum += (double)t->v[i];
	printf("\"n\": %u, \"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f, \"mean\": %.3f, \"cdf\": "
	       "[",
	       t->n, perf_at(t, 50), perf_at(t, 99), perf_at(t, 99.9), t->n ? sum / t->n : 0);
	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		printf("%s[%g, %.3f]", i ? ", " : "", percents[i], perf_at(t, percents[i]));
	printf("]");
}

#endif
