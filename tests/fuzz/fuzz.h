/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every fuzz target shares. A target reads its input as a `feed`: a stream of small decisions
 * that never ends (zeros follow), so every input means something and a mutation of one octet
 * changes one decision. What must hold is CHECKed; a broken one ends the process and libFuzzer
 * keeps the input.
 */
#ifndef UWARP_FUZZ_H
#define UWARP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

_Noreturn void fuzz_broken(const char *what, const char *file, int line);
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fuzz_broken(#cond, __FILE__, __LINE__);                                    \
	} while (0)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- decisions --------------------------------------------------------------------------- */

struct feed {
	const uint8_t *p;
	size_t n;
};

uint8_t feed_u8(struct feed *f);
uint16_t feed_u16(struct feed *f);
uint32_t feed_u32(struct feed *f);
uint64_t feed_u64(struct feed *f);
/* 0 .. n-1, from one octet (n <= 256) or two (n <= 65536). */
uint32_t feed_below(struct feed *f, uint32_t n);
static inline bool feed_bool(struct feed *f)
{
	return feed_u8(f) & 1;
}
/* True for few inputs: once in `n` values of an octet. */
static inline bool feed_rarely(struct feed *f, unsigned n)
{
	return feed_u8(f) >= 256 - 256 / n;
}
/* 0 .. most (< 65536), small and round numbers and the limit itself among them often. */
uint32_t feed_length(struct feed *f, uint32_t most);
/* The next n octets, or as many as there are. */
struct uw_span feed_span(struct feed *f, size_t n);
/* Fill exactly n octets: the feed's, and when it is empty a pattern. */
void feed_fill(struct feed *f, void *p, size_t n);

/* ---- memory ------------------------------------------------------------------------------ */

/* malloc that never fails; n = 0 gives a place that may not be touched. */
void *fuzz_alloc(size_t n);
/* A copy in a block of its own of exactly n octets, so that reading beyond it is seen. */
void *fuzz_copy(const void *p, size_t n);

/* From now on any access to these octets ends the process (AddressSanitizer). */
void fuzz_forbid(const void *p, size_t n);
void fuzz_allow(const void *p, size_t n);

/* Octets cut into pieces of their own, as TCP may hand them over. */
#define CUT_MAX 12u
struct cut {
	struct uw_span v[CUT_MAX];
	unsigned n;
	struct uw_rope rope;
};
/* `how` decides where; a feed that has ended does not cut. */
void cut_make(struct cut *c, struct uw_span all, struct feed *how);
void cut_free(struct cut *c);

#endif
