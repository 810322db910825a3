/* SPDX-License-Identifier: BSD-3-Clause */
/* The value that write n of a key left, n = 0 being the server's own when it made the tree. */
#ifndef BTREE_VALUES_H
#define BTREE_VALUES_H

#include "clock.h"

#define VALUE_BITS 40u

static inline uint64_t value_of(uint64_t number, uint32_t n)
{
	return (uint64_t)n << VALUE_BITS | mix64(number * 0x10000001b3u + n) >> (64 - VALUE_BITS);
}

static inline uint32_t value_write(uint64_t value)
{
	return (uint32_t)(value >> VALUE_BITS);
}

#endif
