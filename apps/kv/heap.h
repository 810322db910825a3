/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for records in memory of a fixed size. Slabs of 1 MiB and a bit are cut into pieces of one
 * size each, 64 octets and up in steps of a quarter; a slab keeps its size for ever. Thread-safe.
 */
#ifndef KV_HEAP_H
#define KV_HEAP_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_CLASSES 56u /* the last is 4 MiB */
#define HEAP_NONE    UINT64_MAX

struct heap {
	uint8_t *base;
	size_t size;
	pthread_mutex_t lock;	     /* guards what follows */
	size_t cut;		     /* octets that are in slabs */
	uint64_t free[HEAP_CLASSES]; /* the first free piece; its first word is the next one */
	uint64_t used;		     /* octets of pieces given out */
};

void heap_open(struct heap *h, uint8_t *base, size_t size);
void heap_close(struct heap *h);
/* Offset of at least n octets, or HEAP_NONE. */
uint64_t heap_get(struct heap *h, uint32_t n);
/* n: what heap_get() was asked for. */
void heap_put(struct heap *h, uint64_t at, uint32_t n);

#endif
