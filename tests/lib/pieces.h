/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets cut into pieces, as TCP may hand them over. The pieces lie apart in memory, so whoever
 * reads on behind one of them reads something else. */
#ifndef UWARP_TESTS_PIECES_H
#define UWARP_TESTS_PIECES_H

#include "base/span.h"
#include "uwtest.h"

struct pieces {
	struct uw_span *v;
	uint8_t *mem;
	struct uw_rope rope; /* all of them */
};

/* Pieces of `step` octets each (the last may be shorter). */
struct pieces pieces_every(const void *p, size_t n, size_t step);
/* Pieces of 0 to `most` octets, at random. */
struct pieces pieces_random(const void *p, size_t n, size_t most, struct prng *r);
void pieces_free(struct pieces *x);

#endif
