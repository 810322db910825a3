/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"

int page_cache_open(struct page_cache *c, uint32_t size, uint64_t places)
{
	*c = (struct page_cache){ .size = size };
	if (!places)
		return 0;
	c->ways = places < CACHE_WAYS ? (uint32_t)places : CACHE_WAYS;
	c->sets = (uint32_t)page_places(places / c->ways);
	places = (uint64_t)c->sets * c->ways;
	c->number = calloc(places, sizeof(*c->number));
	c->pages = aligned_alloc(64, places * size);
	return c->number && c->pages ? 0 : -ENOMEM;
}

void page_cache_close(struct page_cache *c)
{
	free(c->number);
	free(c->pages);
}

/* The first place of its set. */
static uint64_t set_of(const struct page_cache *c, uint64_t number)
{
	return (number & (c->sets - 1)) * c->ways;
}

/* Its place, or UINT64_MAX. */
static uint64_t place_of(const struct page_cache *c, uint64_t number)
{
	uint64_t first = c->sets ? set_of(c, number) : 0;

	for (uint64_t i = first; i < first + c->ways; i++)
		if (c->number[i] == number + 1)
			return i;
	return UINT64_MAX;
}

const struct page *page_cache_find(const struct page_cache *c, uint64_t number)
{
	uint64_t place = place_of(c, number);

	return place == UINT64_MAX ? NULL : (const struct page *)(c->pages + place * c->size);
}

/* The place for a page in its set: the one that it has already, else a free one, else one whose
 * page has to go. Each set throws its pages out in turn. */
static uint64_t room_for(struct page_cache *c, uint64_t number)
{
	uint64_t first = set_of(c, number), place = place_of(c, number);

	for (uint64_t i = first; place == UINT64_MAX && i < first + c->ways; i++)
		if (!c->number[i])
			place = i;
	return place == UINT64_MAX ? first + c->kept++ % c->ways : place;
}

void page_cache_keep(struct page_cache *c, uint64_t number, const struct page *p)
{
	uint64_t place;

	if (!c->sets)
		return;
	place = room_for(c, number);
	c->number[place] = number + 1;
	memcpy(c->pages + place * c->size, p, c->size);
}

void page_cache_drop(struct page_cache *c, uint64_t number)
{
	uint64_t place = place_of(c, number);

	if (place != UINT64_MAX)
		c->number[place] = 0;
}
