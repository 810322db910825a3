/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"

int page_cache_open(struct page_cache *c, uint32_t size, uint64_t places)
{
	*c = (struct page_cache){ .size = size, .places = (uint32_t)places };
	if (!places)
		return 0;
	c->number = calloc(places, sizeof(*c->number));
	c->pages = aligned_alloc(64, places * size);
	return c->number && c->pages ? 0 : -ENOMEM;
}

void page_cache_close(struct page_cache *c)
{
	free(c->number);
	free(c->pages);
}

static const struct page *at(const struct page_cache *c, uint64_t place)
{
	return (const struct page *)(c->pages + place * c->size);
}

const struct page *page_cache_find(const struct page_cache *c, uint64_t number)
{
	return c->places && c->number[number % c->places] == number + 1 ? at(c, number % c->places)
									: NULL;
}

void page_cache_keep(struct page_cache *c, uint64_t number, const struct page *p)
{
	uint64_t place;

	if (!c->places)
		return;
	place = number % c->places;
	c->number[place] = number + 1;
	memcpy(c->pages + place * c->size, p, c->size);
}

void page_cache_drop(struct page_cache *c, uint64_t number)
{
	if (page_cache_find(c, number))
		c->number[number % c->places] = 0;
}
