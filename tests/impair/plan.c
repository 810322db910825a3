/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <string.h>

#define GUARD_OCTET 0xa5

/* Around the limits of segments, FPDUs and buffers; atomics have a size of their own. */
static const uint32_t sizes[] = { 1,	 2,	3,	63,	64,	65,
				  1408,	 1447,	1448,	1460,	4095,	4096,
				  8191,	 8900,	8948,	9000,	16384,	65535,
				  65536, 65537, 100000, 262144, 524289, SIZE_MAX_OCTETS };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

unsigned plan_cells(void)
{
	return (unsigned)(KINDS * SIZES);
}

/* The n-th of a permutation of all cells, another one each time round. */
static unsigned shuffled(uint64_t seed, uint64_t number)
{
	unsigned cells = plan_cells(), step, at = (unsigned)(number % cells);
	uint64_t r = mix(seed ^ mix(number / cells));

	/* any step without a common factor with 192 = 2^6 * 3 goes through all of them */
	step = (unsigned)(r % cells) | 1;
	while (step % 3 == 0)
		step += 2;
	return (unsigned)((r >> 32) + (uint64_t)at * step) % cells;
}

struct operation plan(uint64_t seed, unsigned end, uint64_t number)
{
	struct operation op = { .cell = shuffled(seed * 2 + end, number) };

	_Static_assert(KINDS * SIZES == 192, "see shuffled()");
	op.kind = (enum kind)(op.cell % KINDS);
	op.size = op.kind >= FETCH_ADD ? 8 : sizes[op.cell / KINDS];
	op.key = mix(mix(seed * 2 + end) ^ number);
	op.inlined = op.key >> 63;
	return op;
}

bool plan_receives(enum kind k)
{
	return k <= WRITE_IMM; /* a WRITE is told by a Send of no octets behind it */
}

const char *kind_name(enum kind k)
{
	static const char *const names[KINDS] = {
		"SEND",	     "SEND_WITH_IMM", "SEND_WITH_INV", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM",
		"RDMA_READ", "FETCH_AND_ADD", "CMP_AND_SWP"
	};

	return names[k];
}

/* Words of 8 octets, each a function of its place. */
static uint64_t word(uint64_t key, uint64_t i)
{
	uint64_t x = key + i * 0x9e3779b97f4a7c15u;

	return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
}

void pattern_fill(uint64_t key, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = word(key, i / 8);

		memcpy(p + i, &w, n - i < 8 ? n - i : 8);
	}
}

size_t pattern_check(uint64_t key, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		size_t part = n - i < 8 ? n - i : 8;
		uint64_t w = word(key, i / 8);

		if (!memcmp(p + i, &w, part))
			continue;
		for (size_t k = 0; k < part; k++) {
			if (p[i + k] != (uint8_t)(w >> 8 * k))
				return i + k;
		}
	}
	return n;
}

void guard_fill(uint8_t *p)
{
	memset(p, GUARD_OCTET, GUARD);
}

bool guard_intact(const uint8_t *p)
{
	for (unsigned i = 0; i < GUARD; i++) {
		if (p[i] != GUARD_OCTET)
			return false;
	}
	return true;
}
