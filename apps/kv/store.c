/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "store.h"

void store_open(struct store *s, void *memory, size_t size, uint32_t buckets)
{
	size_t index = store_index_size(buckets);
	struct kv_entry none = { 0 };

	memset(s, 0, sizeof(*s));
	s->bucket = memory;
	s->buckets = buckets;
	s->shard = buckets / STORE_SHARDS;
	none.check = kv_entry_check(&none);
	for (uint32_t b = 0; b < buckets; b++) {
		s->bucket[b].spilled_check = ~s->bucket[b].spilled;
		for (unsigned i = 0; i < KV_ENTRIES; i++)
			s->bucket[b].entry[i] = none;
	}
	heap_open(&s->heap, (uint8_t *)memory + index, size - index);
	for (unsigned i = 0; i < STORE_SHARDS; i++)
		pthread_mutex_init(&s->part[i].lock, NULL);
}

void store_close(struct store *s)
{
	for (unsigned i = 0; i < STORE_SHARDS; i++)
		pthread_mutex_destroy(&s->part[i].lock);
	heap_close(&s->heap);
}

/* ---- the index; its shard is locked ------------------------------------------------------ */

static struct kv_record *record(const struct store *s, const struct kv_entry *e)
{
	return (struct kv_record *)(s->heap.base + e->at);
}

static bool is_key(const struct store *s, const struct kv_entry *e, uint64_t tag, struct span key)
{
	const struct kv_record *r = record(s, e);

	return e->tag == tag && r->key_length == key.n && !memcmp(r + 1, key.p, key.n);
}

/* The key's entry, or NULL. */
static struct kv_entry *find(struct store *s, uint64_t tag, struct span key)
{
	uint32_t home = (uint32_t)tag & (s->buckets - 1), b = home;

	do {
		struct kv_bucket *bucket = &s->bucket[b];

		for (unsigned i = 0; i < KV_ENTRIES; i++)
			if (is_key(s, &bucket->entry[i], tag, key))
				return &bucket->entry[i];
		if (!bucket->spilled)
			return NULL;
		b = kv_next_bucket(b, s->shard);
	} while (b != home);
	return NULL;
}

static struct kv_entry *free_in(struct kv_bucket *bucket)
{
	for (unsigned i = 0; i < KV_ENTRIES; i++)
		if (!bucket->entry[i].tag)
			return &bucket->entry[i];
	return NULL;
}

/* A free entry for the tag; the buckets before it are marked, or NULL and none is. */
static struct kv_entry *make_room(struct store *s, uint64_t tag)
{
	uint32_t home = (uint32_t)tag & (s->buckets - 1), b = home;
	struct kv_entry *e;

	while (!(e = free_in(&s->bucket[b]))) {
		b = kv_next_bucket(b, s->shard);
		if (b == home)
			return NULL;
	}
	for (; home != b; home = kv_next_bucket(home, s->shard)) {
		s->bucket[home].spilled = 1;
		s->bucket[home].spilled_check = ~1ull;
	}
	return e;
}

static void set_entry(struct kv_entry *e, uint64_t tag, uint64_t at, const struct kv_record *r)
{
	struct kv_entry n = { .tag = tag, .at = at };

	if (r) {
		n.length = kv_record_size(r->key_length, r->value_length);
		n.version = r->version;
	}
	n.check = kv_entry_check(&n);
	*e = n;
}

/* ---- operations -------------------------------------------------------------------------- */

static unsigned part_of(const struct store *s, uint64_t tag)
{
	return ((uint32_t)tag & (s->buckets - 1)) / s->shard;
}

static void fill(struct kv_record *r, struct span key, struct span value)
{
	r->key_length = key.n;
	r->value_length = value.n;
	r->unused = 0;
	memcpy(r + 1, key.p, key.n);
	memcpy((uint8_t *)(r + 1) + key.n, value.p, value.n);
}

int store_put(struct store *s, struct span key, struct span value)
{
	uint64_t tag = kv_tag(key.p, key.n), at;
	unsigned part = part_of(s, tag);
	struct kv_entry *e, old = { 0 };
	struct kv_record *r;

	if (key.n < KV_KEY_MIN || key.n > KV_KEY_MAX || value.n > KV_VALUE_MAX)
		return -EINVAL;
	at = heap_get(&s->heap, kv_record_size(key.n, value.n));
	if (at == HEAP_NONE)
		return -ENOMEM;
	r = (struct kv_record *)(s->heap.base + at);
	fill(r, key, value);
	/* the version is given, and the check made, before anybody is sent there */
	r->version = __atomic_add_fetch(&s->part[part].version, 1, __ATOMIC_RELAXED);
	r->check = kv_record_check(r);
	pthread_mutex_lock(&s->part[part].lock);
	e = find(s, tag, key);
	if (e)
		old = *e;
	else
		e = make_room(s, tag);
	if (e) {
		s->part[part].keys += !old.tag;
		set_entry(e, tag, at, r);
	}
	pthread_mutex_unlock(&s->part[part].lock);
	if (!e)
		heap_put(&s->heap, at, kv_record_size(key.n, value.n));
	else if (old.tag)
		heap_put(&s->heap, old.at, old.length);
	return e ? 0 : -ENOMEM;
}

int store_delete(struct store *s, struct span key)
{
	uint64_t tag = kv_tag(key.p, key.n);
	unsigned part = part_of(s, tag);
	struct kv_entry *e, old = { 0 };

	pthread_mutex_lock(&s->part[part].lock);
	e = find(s, tag, key);
	if (e) {
		old = *e;
		set_entry(e, 0, 0, NULL);
		s->part[part].keys--;
	}
	pthread_mutex_unlock(&s->part[part].lock);
	if (old.tag)
		heap_put(&s->heap, old.at, old.length);
	return e ? 0 : -ENOENT;
}

int store_get(struct store *s, struct span key, struct span *out, struct kv_entry *found)
{
	uint64_t tag = kv_tag(key.p, key.n);
	unsigned part = part_of(s, tag);
	const struct kv_record *r;
	struct kv_entry *e;
	int err = -ENOENT;

	pthread_mutex_lock(&s->part[part].lock);
	e = find(s, tag, key);
	if (e) {
		r = record(s, e);
		*found = *e;
		err = r->value_length > out->n ? -EMSGSIZE : 0;
		if (!err)
			memcpy((void *)out->p, (const uint8_t *)(r + 1) + key.n, r->value_length);
		out->n = r->value_length;
	}
	pthread_mutex_unlock(&s->part[part].lock);
	return err;
}

uint64_t store_keys(struct store *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < STORE_SHARDS; i++) {
		pthread_mutex_lock(&s->part[i].lock);
		sum += s->part[i].keys;
		pthread_mutex_unlock(&s->part[i].lock);
	}
	return sum;
}
