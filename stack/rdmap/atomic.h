/* SPDX-License-Identifier: BSD-3-Clause */
/* The two atomic operations on memory: RFC 7306 §5.1. */
#ifndef UWARP_RDMAP_ATOMIC_H
#define UWARP_RDMAP_ATOMIC_H

#include "wire/rdmap_wire.h"

/* Execute a on the aligned 64-bit word at p, in host byte order. Uses atomic instructions of the
 * CPU, so a is atomic against other streams, other processes and the program. *original = the value
 * before. False: the program has unmapped the memory, or it may not be written (base/guard.h). */
bool rdmap_atomic_execute(const struct rdmap_atomic *a, void *p, uint64_t *original);

/* The sum for FetchAdd. A set bit in mask is the top bit of a field, and carries stop there; mask
 * 0: one field of 64 bits. */
uint64_t rdmap_masked_add(uint64_t x, uint64_t y, uint64_t mask);

#endif
