/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/idmap.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_MIN 256u
#define SLOTS_MAX (2 * IDMAP_MAX)
#define RESERVED  2u /* numbers 0 and 1 */

/* Two numbers that differ in their lower bits differ in one more of them, too: all fit. */
static int grow(struct idmap *m)
{
	uint32_t n = m->n ? m->n * 2 : SLOTS_MIN;
	struct idmap_slot *v;

	if (n > SLOTS_MAX)
		return -ENOMEM;
	v = calloc(n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->v[i].what)
			v[m->v[i].id & (n - 1)] = m->v[i];
	}
	free(m->v);
	m->v = v;
	m->n = n;
	return 0;
}

static uint32_t free_slot(const struct idmap *m, uint32_t from)
{
	uint32_t i = from & (m->n - 1);

	while (m->v[i].what)
		i = (i + 1) & (m->n - 1);
	return i;
}

int idmap_add(struct idmap *m, void *what, uint32_t random, uint32_t *id)
{
	uint32_t i, num;

	/* At most half full: the search for a free slot is short. */
	if (m->used >= m->n / 2) {
		int err = grow(m);

		if (err)
			return err;
	}
	random &= (1u << IDMAP_BITS) - 1;
	i = free_slot(m, random);
	num = (random & ~(m->n - 1)) | i;
	if (num < RESERVED)
		num |= 1u << (IDMAP_BITS - 1);
	m->v[i] = (struct idmap_slot){ what, num };
	m->used++;
	*id = num;
	return 0;
}

void idmap_remove(struct idmap *m, uint32_t id)
{
	m->v[id & (m->n - 1)].what = NULL;
	m->used--;
}

void idmap_free(struct idmap *m)
{
	free(m->v);
	*m = (struct idmap){ 0 };
}
