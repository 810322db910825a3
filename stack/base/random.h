/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers that others must not be able to guess: STags (RFC 5040 §8.1.1), initial sequence
 * numbers (RFC 6528), ports (RFC 6056), QP numbers.
 *
 * The octets come from the caller's generator, a batch at a time, so that most numbers cost no
 * system call. Each octet is used once and then erased. One thread at a time may use a struct
 * uw_random.
 */
#ifndef UWARP_BASE_RANDOM_H
#define UWARP_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* getrandom(2) returns up to 256 octets in one call without being interrupted. */
#define UW_RANDOM_BATCH 256u

/* Fill n (<= UW_RANDOM_BATCH) octets at p. The generator must be cryptographic, such as
 * getrandom(2); a test may use a predictable one. The function cannot fail. */
typedef void uw_random_fill(void *arg, void *p, size_t n);

struct uw_random {
	uw_random_fill *fill;
	void *arg;     /* argument of fill */
	uint32_t left; /* octets not used yet, at the end of the batch */
	uint8_t batch[UW_RANDOM_BATCH];
};

void uw_random_init(struct uw_random *r, uw_random_fill *fill, void *arg);

uint32_t uw_random_u32(struct uw_random *r);

/* Erase the unused octets. A child must call this after fork() before its first number, since the
 * parent will use the same octets. */
void uw_random_forget(struct uw_random *r);

#endif
