/* SPDX-License-Identifier: BSD-3-Clause */
/* What every unit test includes: cmocka with the headers it wants, and our own asserts. */
#ifndef UWARP_TESTS_UWTEST_H
#define UWARP_TESTS_UWTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Like assert_int_equal, but a failure names both statuses. */
#define assert_status(got, want) uwtest_status((got), (want), #got, __FILE__, __LINE__)

static inline void uwtest_status(uw_status got, uw_status want, const char *what, const char *file,
				 int line)
{
	if (got == want)
		return;
	print_error("%s is %d (%s), not %d (%s)\n", what, (int)got, uw_status_name(got), (int)want,
		    uw_status_name(want));
	_fail(file, line);
}

/* Run the tests of this file; the exit code is how many failed. */
#define UWTEST_MAIN(tests)                                                                         \
	int main(void)                                                                             \
	{                                                                                          \
		return cmocka_run_group_tests(tests, NULL, NULL);                                  \
	}

/* A seeded generator (xorshift64*), so that every run tries the same cases. */
struct prng {
	uint64_t s;
};

static inline uint64_t prng_next(struct prng *r)
{
	r->s ^= r->s >> 12;
	r->s ^= r->s << 25;
	r->s ^= r->s >> 27;
	return r->s * 0x2545f4914f6cdd1dull;
}

/* 0 .. n-1 */
static inline uint32_t prng_below(struct prng *r, uint32_t n)
{
	return (uint32_t)((prng_next(r) >> 33) % n);
}

static inline void prng_fill(struct prng *r, void *p, size_t n)
{
	uint8_t *b = p;

	while (n--)
		*b++ = (uint8_t)(prng_next(r) >> 56);
}

#endif
