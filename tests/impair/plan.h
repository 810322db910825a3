/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What both ends know without asking: the operations that an end starts, in order, and the octets
 * of each. All of it is a function of the seed, of the end (0 or 1) and of the operation's number.
 */
#ifndef UWARP_TESTS_IMPAIR_PLAN_H
#define UWARP_TESTS_IMPAIR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZE_MAX_OCTETS (1u << 20)
/* Octets behind each buffer that nobody may write. */
#define GUARD 64u

enum kind { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, FETCH_ADD, CMP_SWP, KINDS };

struct operation {
	enum kind kind;
	uint32_t size; /* of the payload; 8 for atomics */
	unsigned cell; /* which of CELLS pairs of kind and size */
	bool inlined;  /* if it fits */
	uint64_t key;  /* of its octets: pattern() */
};

struct operation plan(uint64_t seed, unsigned end, uint64_t number);
/* Does the target's receive queue hear of it? */
bool plan_receives(enum kind k);
/* How many pairs of kind and size there are: each comes once in so many operations. */
unsigned plan_cells(void);
const char *kind_name(enum kind k);

uint64_t mix(uint64_t x);
void pattern_fill(uint64_t key, uint8_t *p, size_t n);
/* The first octet that is not the pattern's, or n. */
size_t pattern_check(uint64_t key, const uint8_t *p, size_t n);
void guard_fill(uint8_t *p);
bool guard_intact(const uint8_t *p);

#endif
