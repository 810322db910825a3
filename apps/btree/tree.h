/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A B+-tree of 8-octet keys and values in an array of pages, that may be READ at any moment.
 * Thread-safe: one writer at a time, or any number of readers. No verbs in here.
 */
#ifndef BTREE_TREE_H
#define BTREE_TREE_H

#include <pthread.h>

#include "page.h"

struct tree {
	uint8_t *base;
	uint32_t page; /* octets */
	uint64_t pages;
	pthread_rwlock_t lock;	   /* guards what follows */
	uint64_t used;		   /* pages that were ever in use */
	uint64_t free, free_count; /* pages to be used again: the first one, linked by `right` */
	uint64_t keys;
	uint64_t splits, merges;
};

/* memory: zeroed, pages * page octets. */
void tree_open(struct tree *t, void *memory, uint64_t pages, uint32_t page);
void tree_close(struct tree *t);
/* 0; -ENOENT. */
int tree_get(struct tree *t, uint64_t key, uint64_t *value);
/* 0; -ENOMEM, and nothing has changed. */
int tree_put(struct tree *t, uint64_t key, uint64_t value);
/* 0; -ENOENT. */
int tree_delete(struct tree *t, uint64_t key);
/* Up to `most` items with keys from `from` to `to`, both included, in order. Returns how many. */
unsigned tree_scan(struct tree *t, uint64_t from, uint64_t to, struct page_item *out,
		   unsigned most);
unsigned tree_levels(struct tree *t);

#endif
