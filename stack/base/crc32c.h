/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32c (Castagnoli, reflected, RFC 3385 / RFC 5044 §4.4). The state starts as all ones and is
 * inverted at the end. MPA sends the CRC least significant octet first.
 */
#ifndef UWARP_BASE_CRC32C_H
#define UWARP_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define UW_CRC32C_START 0xffffffffu

/* Continue the state over n octets. */
uint32_t uw_crc32c_add(uint32_t state, const void *p, size_t n);

/* The finished CRC of a state. */
static inline uint32_t uw_crc32c_end(uint32_t state)
{
	return ~state;
}

#endif
