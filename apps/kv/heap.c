/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "heap.h"

#define SLAB	 (1u << 20)
#define SMALLEST 64u

/* 64, 128, 192, 256, then four sizes up to each next power of two. */
static unsigned class_of(uint32_t n, uint32_t *size)
{
	uint32_t s = SMALLEST, step = SMALLEST;
	unsigned c = 0;

	for (; s < n; c++) {
		if (s >= 4 * SMALLEST && !(s & (s - 1)))
			step = s / 4;
		s += step;
	}
	*size = s;
	return c;
}

void heap_open(struct heap *h, uint8_t *base, size_t size)
{
	memset(h, 0, sizeof(*h));
	h->base = base;
	h->size = size;
	pthread_mutex_init(&h->lock, NULL);
	for (unsigned i = 0; i < HEAP_CLASSES; i++)
		h->free[i] = HEAP_NONE;
}

void heap_close(struct heap *h)
{
	pthread_mutex_destroy(&h->lock);
}

static void push(struct heap *h, unsigned c, uint64_t at)
{
	memcpy(h->base + at, &h->free[c], sizeof(uint64_t));
	h->free[c] = at;
}

/* Another slab for this size. */
static void grow(struct heap *h, unsigned c, uint32_t size)
{
	size_t slab = size > SLAB ? size : SLAB - SLAB % size;

	if (h->size - h->cut < slab)
		return;
	for (size_t at = h->cut + slab; at > h->cut; at -= size)
		push(h, c, at - size);
	h->cut += slab;
}

uint64_t heap_get(struct heap *h, uint32_t n)
{
	uint32_t size;
	unsigned c = class_of(n, &size);
	uint64_t at;

	if (c >= HEAP_CLASSES)
		return HEAP_NONE;
	pthread_mutex_lock(&h->lock);
	if (h->free[c] == HEAP_NONE)
		grow(h, c, size);
	at = h->free[c];
	if (at != HEAP_NONE) {
		memcpy(&h->free[c], h->base + at, sizeof(uint64_t));
		h->used += size;
	}
	pthread_mutex_unlock(&h->lock);
	return at;
}

void heap_put(struct heap *h, uint64_t at, uint32_t n)
{
	uint32_t size;
	unsigned c = class_of(n, &size);

	pthread_mutex_lock(&h->lock);
	push(h, c, at);
	h->used -= size;
	pthread_mutex_unlock(&h->lock);
}
