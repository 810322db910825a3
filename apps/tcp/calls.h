/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of 64 octets, as those of uwarp-seq and uwarp-btree, over a byte stream. */
#ifndef TCP_CALLS_H
#define TCP_CALLS_H

#include <stdint.h>

enum { CALL_NEXT = 1, CALL_GET, CALL_PUT };

struct call {
	uint32_t type, status; /* status, in the reply: 0 or an errno */
	uint64_t key, value;
	uint64_t unused[5];
};

_Static_assert(sizeof(struct call) == 64, "a cache line");

static inline uint64_t call_key(uint64_t number)
{
	return (number + 1) * 8;
}

#endif
