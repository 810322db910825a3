/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers for what a stranger must not guess: STags (RFC 5040 §8.1.1), initial sequence
 * numbers (RFC 6528), ports (RFC 6056), QP numbers.
 *
 * The octets come from a generator of the caller's, a batch at a time, so that most numbers cost no
 * system call. Each octet is given out once and erased then. One thread uses a record at a time.
 */
#ifndef UWARP_BASE_RANDOM_H
#define UWARP_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* getrandom(2) delivers as many in one call without being interrupted. */
#define UW_RANDOM_BATCH 256u

/* Fill all n (<= UW_RANDOM_BATCH) octets at p. The generator must be a cryptographic one, such as
 * getrandom(2), unless a test wants to know what comes. It cannot fail. */
typedef void uw_random_fill(void *arg, void *p, size_t n);

struct uw_random {
	uw_random_fill *fill;
	void *arg;     /* of fill */
	uint32_t left; /* octets of the batch that were not given out: its last ones */
	uint8_t batch[UW_RANDOM_BATCH];
};

void uw_random_init(struct uw_random *r, uw_random_fill *fill, void *arg);

uint32_t uw_random_u32(struct uw_random *r);

/* Erase what is left of the batch. A child after fork() has to, before the first number: its parent
 * gives out the same ones. */
void uw_random_forget(struct uw_random *r);

#endif
