/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "workload.h"

#define THETA 0.99

static const struct mix mixes[] = {
	{ 'A', .read = 50, .update = 50, .dist = DIST_ZIPF },
	{ 'B', .read = 95, .update = 5, .dist = DIST_ZIPF },
	{ 'C', .read = 100, .dist = DIST_ZIPF },
	{ 'D', .read = 95, .insert = 5, .dist = DIST_LATEST },
	{ 'F', .read = 50, .modify = 50, .dist = DIST_ZIPF },
};

int keys_parse(struct keys *k, const char *text)
{
	char *end;

	k->theta = THETA;
	if (!strcmp(text, "uniform")) {
		k->dist = DIST_UNIFORM;
	} else if (!strcmp(text, "latest")) {
		k->dist = DIST_LATEST;
	} else if (!strcmp(text, "zipf")) {
		k->dist = DIST_ZIPF;
	} else if (!strncmp(text, "zipf:", 5)) {
		k->dist = DIST_ZIPF;
		k->theta = strtod(text + 5, &end);
		return *end || !(k->theta > 0 && k->theta < 1) ? -EINVAL : 0;
	} else {
		return -EINVAL;
	}
	return 0;
}

/* Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994. */
void keys_open(struct keys *k, uint64_t n)
{
	k->n = n;
	if (k->dist == DIST_UNIFORM)
		return;
	k->zeta = 0;
	for (uint64_t i = 1; i <= n; i++)
		k->zeta += 1 / pow((double)i, k->theta);
	k->two = 1 + pow(0.5, k->theta);
	k->alpha = 1 / (1 - k->theta);
	k->eta = (1 - pow(2 / (double)n, 1 - k->theta)) / (1 - k->two / k->zeta);
}

/* 0 is the most popular one. */
static uint64_t rank(const struct keys *k, uint64_t *random)
{
	double u = random_unit(random), uz = u * k->zeta;
	uint64_t r;

	if (uz < 1)
		return 0;
	if (uz < k->two)
		return k->n > 1;
	r = (uint64_t)((double)k->n * pow(k->eta * u - k->eta + 1, k->alpha));
	return r < k->n ? r : k->n - 1;
}

uint64_t keys_next(const struct keys *k, uint64_t top, uint64_t *random)
{
	if (k->dist == DIST_UNIFORM)
		return random64(random) % top;
	if (k->dist == DIST_LATEST)
		return top - 1 - rank(k, random) % top;
	return mix64(rank(k, random)) % k->n;
}

const struct mix *mix_find(char letter)
{
	for (unsigned i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++)
		if (mixes[i].letter == letter)
			return &mixes[i];
	return NULL;
}

enum op mix_next(const struct mix *m, uint64_t *random)
{
	unsigned dice = (unsigned)(random64(random) % 100);

	if (dice < m->read)
		return OP_READ;
	if (dice < m->read + m->update)
		return OP_UPDATE;
	return dice < m->read + m->update + m->insert ? OP_INSERT : OP_MODIFY;
}
