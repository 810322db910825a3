/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <string.h>

uint32_t uw_random_u32(struct uw_random *r)
{
	uint32_t x;

	if (!r->left) {
		r->fill(r->arg, r->v, sizeof(r->v));
		r->left = UW_RANDOM_BATCH;
	}
	x = r->v[--r->left];
	r->v[r->left] = 0; /* what was handed out cannot be read here afterwards */
	return x;
}

void uw_random_reset(struct uw_random *r)
{
	memset(r->v, 0, sizeof(r->v));
	r->left = 0;
}
