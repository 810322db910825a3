/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "leaf_map.h"

int leaf_map_open(struct leaf_map *m, uint32_t size, uint64_t places)
{
	*m = (struct leaf_map){ .pieces = page_pieces(size) };
	/* a page of one piece is READ whole anyway */
	if (!places || m->pieces == 1)
		return 0;
	m->places = places;
	m->number = calloc(places, sizeof(*m->number));
	m->first = malloc(places * m->pieces * sizeof(*m->first));
	return m->number && m->first ? 0 : -ENOMEM;
}

void leaf_map_close(struct leaf_map *m)
{
	free(m->number);
	free(m->first);
	memset(m, 0, sizeof(*m));
}

static bool has(const struct leaf_map *m, uint64_t number)
{
	return m->places && m->number[number % m->places] == number + 1;
}

uint32_t leaf_map_find(const struct leaf_map *m, uint64_t number, uint64_t key)
{
	const uint64_t *first;
	uint32_t i = 0;

	if (!has(m, number))
		return WHOLE_PAGE;
	first = m->first + number % m->places * m->pieces;
	while (i + 1 < m->pieces && first[i + 1] <= key)
		i++;
	return i;
}

void leaf_map_keep(struct leaf_map *m, uint64_t number, const struct page *leaf)
{
	uint64_t place, *first;

	if (!m->places)
		return;
	place = number % m->places;
	first = m->first + place * m->pieces;
	m->number[place] = number + 1;
	for (unsigned i = 0; i < m->pieces; i++) {
		unsigned item = i ? (unsigned)(PAGE_FIRST + (i - 1) * PAGE_OTHER) : 0;

		first[i] = item < leaf->count ? page_item(leaf, item)->key : UINT64_MAX;
	}
}

void leaf_map_drop(struct leaf_map *m, uint64_t number)
{
	if (has(m, number))
		m->number[number % m->places] = 0;
}
