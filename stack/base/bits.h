/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UWARP_BASE_BITS_H
#define UWARP_BASE_BITS_H

#include <stdint.h>

/* The smallest power of two that is not below n (n <= 2^31). */
static inline uint32_t uw_pow2_above(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

#endif
