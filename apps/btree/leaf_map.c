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
	m->places = page_places(places);
	places = m->places;
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

static uint64_t place_of(const struct leaf_map *m, uint64_t number)
{
	return number & (m->places - 1);
}

static bool has(const struct leaf_map *m, uint64_t number)
{
	return m->places && m->number[place_of(m, number)] == number + 1;
}

uint32_t leaf_map_find(const struct leaf_map *m, uint64_t number, uint64_t key)
{
	const uint64_t *first;
	uint32_t low = 0, n = m->pieces;

	if (!has(m, number))
		return WHOLE_PAGE;
	first = m->first + place_of(m, number) * m->pieces;
	/* as in page_find() */
	while (n > 1) {
		uint32_t half = n / 2;

		low += first[low + half] <= key ? half : 0;
		n -= half;
	}
	return low;
}

void leaf_map_keep(struct leaf_map *m, uint64_t number, const struct page *leaf)
{
	uint64_t place, *first;

	if (!m->places)
		return;
	place = place_of(m, number);
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
		m->number[place_of(m, number)] = 0;
}
