/* SPDX-License-Identifier: BSD-3-Clause */
#include "hist.h"

static unsigned cell_of(uint64_t ns)
{
	unsigned top = 63u - (unsigned)__builtin_clzll(ns | 1);
	unsigned shift = top < HIST_SUB_BITS ? 0 : top - HIST_SUB_BITS + 1;

	if (shift >= HIST_POWERS)
		return HIST_CELLS - 1;
	return shift * HIST_HALF + (unsigned)(ns >> shift);
}

/* The largest value that counts in this cell. */
static uint64_t value_of(unsigned cell)
{
	unsigned shift = cell < 2 * HIST_HALF ? 0 : cell / HIST_HALF - 1;

	return ((uint64_t)(cell - shift * HIST_HALF + 1) << shift) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
	h->cell[cell_of(ns)]++;
	h->count++;
	h->sum += ns;
	if (ns > h->max)
		h->max = ns;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	for (unsigned i = 0; i < HIST_CELLS; i++)
		into->cell[i] += from->cell[i];
	into->count += from->count;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t hist_at(const struct hist *h, double percent)
{
	uint64_t wanted = (uint64_t)(percent / 100 * (double)h->count + 0.5), seen = 0;

	if (!h->count)
		return 0;
	for (unsigned i = 0; i < HIST_CELLS; i++) {
		seen += h->cell[i];
		if (seen && seen >= wanted)
			return value_of(i) < h->max ? value_of(i) : h->max;
	}
	return h->max;
}

double hist_mean(const struct hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
