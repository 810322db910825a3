/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of objects by number (QP numbers). Nobody can guess a number from another one: the lower
 * bits are the index in the table, the upper ones are random. Not thread-safe.
 */
#ifndef UWARP_VERBS_IDMAP_H
#define UWARP_VERBS_IDMAP_H

#include <stdint.h>

#define IDMAP_BITS 24u	      /* size of a QP number in InfiniBand */
#define IDMAP_MAX  (1u << 19) /* so many objects fit */

struct idmap_slot {
	void *what; /* NULL: free */
	uint32_t id;
};

/* All zero: empty. */
struct idmap {
	struct idmap_slot *v;
	uint32_t n; /* number of slots: a power of two, or 0 */
	uint32_t used;
};

/* Add an object; its number is made from `random`. 0 and 1 have a meaning to InfiniBand programs
 * and are never used. -ENOMEM: no memory, or there are
 * IDMAP_MAX. */
int idmap_add(struct idmap *m, void *what, uint32_t random, uint32_t *id);
void idmap_remove(struct idmap *m, uint32_t id);
void idmap_free(struct idmap *m);

/* The object with this number; NULL: none. */
static inline void *idmap_get(const struct idmap *m, uint32_t id)
{
	const struct idmap_slot *s = m->n ? &m->v[id & (m->n - 1)] : 0;

	return s && s->id == id ? s->what : 0;
}

#endif
