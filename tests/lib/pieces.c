/* SPDX-License-Identifier: BSD-3-Clause */
#include "pieces.h"

#define GAP 3 /* octets between two pieces */

static struct pieces cut(const uint8_t *p, size_t n, size_t step, struct prng *r)
{
	size_t most = r ? 2 * n + 16 : n / step + 1, k = 0, at = 0;
	struct pieces x = { .v = calloc(most + 1, sizeof(*x.v)), .mem = NULL };

	x.mem = malloc(n + GAP * (most + 1));
	assert_non_null(x.v);
	assert_non_null(x.mem);
	memset(x.mem, 0xee, n + GAP * (most + 1));
	x.rope = (struct uw_rope){ .v = x.v, .skip = 0, .len = n };
	while (n || !k) {
		size_t len = r && k < most - n ? prng_below(r, (uint32_t)step + 1) : step;

		if (len > n)
			len = n;
		memcpy(x.mem + at, p, len);
		x.v[k++] = (struct uw_span){ x.mem + at, len };
		at += len + GAP;
		p += len;
		n -= len;
	}
	return x;
}

struct pieces pieces_every(const void *p, size_t n, size_t step)
{
	return cut(p, n, step, NULL);
}

struct pieces pieces_random(const void *p, size_t n, size_t most, struct prng *r)
{
	return cut(p, n, most, r);
}

void pieces_free(struct pieces *x)
{
	free(x->v);
	free(x->mem);
}
