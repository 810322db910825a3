/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <assert.h>
#include <string.h>

static_assert(UW_RANDOM_BATCH % sizeof(uint32_t) == 0, "a batch is a number of whole numbers");

void uw_random_init(struct uw_random *r, uw_random_fill *fill, void *arg)
{
	memset(r, 0, sizeof(*r));
	r->fill = fill;
	r->arg = arg;
}

uint32_t uw_random_u32(struct uw_random *r)
{
	uint8_t *p;
	uint32_t x;

	if (!r->left) {
		r->fill(r->arg, r->batch, sizeof(r->batch));
		r->left = sizeof(r->batch);
	}
	p = r->batch + sizeof(r->batch) - r->left;
	memcpy(&x, p, sizeof(x));
	/* Who reads this memory later learns no number of before. */
	memset(p, 0, sizeof(x));
	r->left -= sizeof(x);
	return x;
}

void uw_random_forget(struct uw_random *r)
{
	memset(r->batch, 0, sizeof(r->batch));
	r->left = 0;
}
