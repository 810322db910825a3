/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "balance.h"

#define EACH  64u  /* look-ups for each step */
#define SHARE 32.0 /* of the keys that a step moves at most */

void balance_open(struct balance *b, uint64_t keys, uint64_t split)
{
	memset(b, 0, sizeof(*b));
	b->keys = keys;
	b->split = split;
}

/* From -1, the first takes all the time, to 1. A server that was not asked is a fast one. */
static double slower(const struct balance *b)
{
	double mean[2];

	for (unsigned i = 0; i < 2; i++)
		mean[i] = b->count[i] ? (double)b->ns[i] / b->count[i] : 0;
	return mean[0] + mean[1] > 0 ? (mean[1] - mean[0]) / (mean[0] + mean[1]) : 0;
}

/* Each keeps some keys, or it would never be asked again. */
void balance_note(struct balance *b, unsigned server, uint64_t ns)
{
	double least = (double)b->keys / SHARE, split = (double)b->split;

	b->ns[server] += ns;
	b->count[server]++;
	if (b->count[0] + b->count[1] < EACH)
		return;
	split += slower(b) * least;
	if (split < least)
		split = least;
	if (split > (double)b->keys - least)
		split = (double)b->keys - least;
	balance_open(b, b->keys, (uint64_t)split);
}
