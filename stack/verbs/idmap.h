/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for objects (QP numbers), which nobody can guess from another one: the lower bits say
 * where the object stands in the table, the upper ones are random. Not thread-safe.
 */
#ifndef UWARP_VERBS_IDMAP_H
#define UWARP_VERBS_IDMAP_H

#include <stdint.h>

#define IDMAP_BITS 24u /* InfiniBand's QP numbers have so many */

struct idmap_slot {
	void *what; /* NULL: free */
	uint32_t id;
};

/* All zero: empty. */
struct idmap {
	struct idmap_slot *v;
	uint32_t n; /* slots, a power of two; or 0 */
	uint32_t used;
};

/* Enter an object under a number made from `random`; 0 and 1, which mean something to InfiniBand
 * programs, are never given out. -ENOMEM: no memory, or too many. */
int idmap_add(struct idmap *m, void *what, uint32_t random, uint32_t *id);
void idmap_remove(struct idmap *m, uint32_t id);
void idmap_free(struct idmap *m);

/* NULL: there is none. */
static inline void *idmap_get(const struct idmap *m, uint32_t id)
{
	const struct idmap_slot *s = m->n ? &m->v[id & (m->n - 1)] : 0;

	return s && s->id == id ? s->what : 0;
}

#endif
