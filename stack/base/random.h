/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers that nobody can guess (RFC 4086), for STags (RFC 5040 §8.1.1), initial sequence
 * numbers (RFC 6528), ports (RFC 6056) and QP numbers. The octets come from a source of the
 * caller's in batches, since a system call for each number would cost too much. Not thread-safe.
 */
#ifndef UWARP_BASE_RANDOM_H
#define UWARP_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define UW_RANDOM_BATCH 64u

struct uw_random {
	/* Fill n octets at p: the kernel's generator, or a test's that repeats itself. */
	void (*fill)(void *arg, void *p, size_t n);
	void *arg;
	uint32_t v[UW_RANDOM_BATCH];
	unsigned left; /* numbers of v that are not used yet */
};

uint32_t uw_random_u32(struct uw_random *r);
/* Forget the batch: after fork, or parent and child would draw the same numbers. */
void uw_random_reset(struct uw_random *r);

#endif
