/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's keys and values, in memory laid out as wire.h says, so that clients may READ it at
 * any moment. Thread-safe: a lock for each shard. No verbs in here.
 */
#ifndef KV_STORE_H
#define KV_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap.h"
#include "wire.h"

#define STORE_SHARDS 64u

struct store {
	struct kv_bucket *bucket;
	uint32_t buckets, shard; /* both powers of two */
	bool owner;		 /* of keys that it knows nothing of */
	struct heap heap;
	struct {
		pthread_mutex_t
			lock;	  /* guards this shard's buckets, as far as writing goes, and: */
		uint32_t version; /* the last one given */
		uint64_t keys;
	} part[STORE_SHARDS];
};

struct span {
	const void *p;
	uint32_t n;
};

/* Octets of memory that so many buckets take. */
static inline size_t store_index_size(uint32_t buckets)
{
	return (size_t)buckets * sizeof(struct kv_bucket);
}

/* memory: zeroed; the index, and the rest is heap. buckets: a power of two, 64 at least. */
void store_open(struct store *s, void *memory, size_t size, uint32_t buckets);
void store_close(struct store *s);

/* All: -EXDEV if another node owns the key, -EBUSY if it is about to move, and: */
/* 0; -ENOMEM: neither memory nor index had room, and what was there before still is; -EINVAL. */
int store_put(struct store *s, struct span key, struct span value);
/* 0 or -ENOENT. */
int store_delete(struct store *s, struct span key);
/* Copies the value to `out`, which has room for out->n octets, and tells its length. -ENOENT;
 * -ENODATA: lost; -EMSGSIZE: it is longer; then *e says where the record is now. */
int store_get(struct store *s, struct span key, struct span *out, struct kv_entry *e);

/* ---- for keys that move; value.p NULL: a key without one --------------------------------- */

/* An entry of this kind, whatever was there. 0, -ENOMEM, -EINVAL. */
int store_set(struct store *s, struct span key, struct span value, enum kv_kind kind);
/* From one kind to another; what has no value becomes ABSENT instead of HERE. -EXDEV: it is of a
 * third kind. */
int store_change(struct store *s, struct span key, enum kv_kind from, enum kv_kind to);
/* Whatever kind it is of: the value, or n = 0 and p = NULL if there is none. As store_get(). */
int store_peek(struct store *s, struct span key, struct span *out, struct kv_entry *e);
void store_forget(struct store *s, struct span key);
/* The other node is gone: what was about to move is ours, what it owned is lost. Returns how much.
 */
uint64_t store_settle(struct store *s);

/* Keys that have a value here. */
uint64_t store_keys(struct store *s);

#endif
