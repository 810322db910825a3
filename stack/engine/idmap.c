/* SPDX-License-Identifier: BSD-3-Clause */
/* Small numbers for objects (QP numbers): handed out in turn, so that one is not reused soon. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

#define FIRST	16u /* QP numbers 0 and 1 mean something to InfiniBand programs */
#define LARGEST (1u << 20)

static int grow(struct idmap *m)
{
	uint32_t n = m->n ? m->n * 2 : 256;
	void **v;

	if (n > LARGEST)
		return -ENOMEM;
	v = realloc(m->v, n * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + m->n, 0, (n - m->n) * sizeof(*v));
	m->v = v;
	m->next = m->n ? m->n : FIRST;
	m->n = n;
	return 0;
}

int idmap_add(struct idmap *m, void *what, uint32_t *id)
{
	/* Half empty at least: the search below is short. */
	if (m->used + FIRST >= m->n / 2) {
		int err = grow(m);

		if (err)
			return err;
	}
	while (m->v[m->next])
		m->next = m->next + 1 == m->n ? FIRST : m->next + 1;
	*id = m->next;
	m->v[*id] = what;
	m->used++;
	m->next = *id + 1 == m->n ? FIRST : *id + 1;
	return 0;
}

void idmap_remove(struct idmap *m, uint32_t id)
{
	m->v[id] = NULL;
	m->used--;
}
