/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum's sum (RFC 1071), in parts. */
#ifndef UWARP_BASE_SUM_H
#define UWARP_BASE_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/be.h"

/* Add n octets at p to a sum. An odd one at the end is padded, so nothing can follow it. */
static inline uint32_t uw_sum_add(uint32_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; n -= 2, p += 2)
		sum += uw_be16(p);
	return n ? sum + ((uint32_t)p[0] << 8) : sum;
}

/* The sum in 16 bits, not inverted. */
static inline uint16_t uw_sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

#endif
