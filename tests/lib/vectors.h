/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the golden vectors of tests/vectors: text, one vector per line, words and at the end the
 * octets in hex; # begins a comment line. */
#ifndef UWARP_TESTS_VECTORS_H
#define UWARP_TESTS_VECTORS_H

#include "base/span.h"
#include "uwtest.h"

#define VECTOR_WORDS 6

struct vector {
	char word[VECTOR_WORDS][16]; /* those in front of the octets; "" where there is none */
	uint8_t *p;
	size_t n;
	unsigned line;
};

struct vectors {
	struct vector *v;
	size_t n;
};

/* All vectors of a file of tests/vectors. The test fails if it is not there or does not parse. */
struct vectors vectors_read(const char *name);
void vectors_free(struct vectors *x);

static inline bool vector_is(const struct vector *v, unsigned word, const char *what)
{
	return !strcmp(v->word[word], what);
}

static inline struct uw_span vector_span(const struct vector *v)
{
	return (struct uw_span){ v->p, v->n };
}

#endif
