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
	s->owner = true;
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
	return (struct kv_record *)(s->heap.base + kv_at(e));
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

/* r NULL: a free one. */
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

static void set_kind(struct kv_entry *e, enum kv_kind kind)
{
	struct kv_entry n = *e;

	n.at = kv_at(e) | (uint64_t)kind << 56;
	n.check = kv_entry_check(&n);
	*e = n;
}

static bool has_value(enum kv_kind kind)
{
	return kind == KV_HERE || kind == KV_FROZEN;
}

/* ---- operations -------------------------------------------------------------------------- */

static unsigned part_of(const struct store *s, uint64_t tag)
{
	return ((uint32_t)tag & (s->buckets - 1)) / s->shard;
}

/* A record of its own in the heap, complete. HEAP_NONE: no memory. */
static uint64_t make_record(struct store *s, struct span key, struct span value, uint32_t version)
{
	uint64_t at = heap_get(&s->heap, kv_record_size(key.n, value.n));
	struct kv_record *r;

	if (at == HEAP_NONE)
		return at;
	r = (struct kv_record *)(s->heap.base + at);
	*r = (struct kv_record){ .version = version,
				 .key_length = key.n,
				 .value_length = value.n,
				 .no_value = !value.p };
	memcpy(r + 1, key.p, key.n);
	if (value.p)
		memcpy((uint8_t *)(r + 1) + key.n, value.p, value.n);
	r->check = kv_record_check(r);
	return at;
}

/* May the key be written, its entry being e (or NULL)? */
static int may_write(const struct store *s, const struct kv_entry *e)
{
	if (!e)
		return s->owner ? 0 : -EXDEV;
	switch (kv_kind(e)) {
	case KV_MOVED:
		return -EXDEV;
	case KV_FROZEN:
	case KV_PENDING:
		return -EBUSY;
	default:
		return 0;
	}
}

/* Replaces what the entry had by the record. The shard is locked. */
static int replace(struct store *s, uint64_t tag, struct span key, uint64_t at, enum kv_kind kind)
{
	struct kv_entry *e = find(s, tag, key), old = { 0 };
	unsigned part = part_of(s, tag);
	int err = kind == KV_HERE ? may_write(s, e) : 0;

	if (err)
		return err;
	if (e)
		old = *e;
	else
		e = make_room(s, tag);
	if (!e)
		return -ENOMEM;
	set_entry(e, tag, at | (uint64_t)kind << 56, (struct kv_record *)(s->heap.base + at));
	s->part[part].keys += has_value(kind);
	s->part[part].keys -= old.tag && has_value(kv_kind(&old));
	if (old.tag)
		heap_put(&s->heap, kv_at(&old), old.length);
	return 0;
}

int store_set(struct store *s, struct span key, struct span value, enum kv_kind kind)
{
	uint64_t tag = kv_tag(key.p, key.n), at;
	unsigned part = part_of(s, tag);
	int err;

	if (key.n < KV_KEY_MIN || key.n > KV_KEY_MAX || value.n > KV_VALUE_MAX)
		return -EINVAL;
	at = make_record(s, key, value,
			 __atomic_add_fetch(&s->part[part].version, 1, __ATOMIC_RELAXED));
	if (at == HEAP_NONE)
		return -ENOMEM;
	pthread_mutex_lock(&s->part[part].lock);
	err = replace(s, tag, key, at, kind);
	pthread_mutex_unlock(&s->part[part].lock);
	if (err)
		heap_put(&s->heap, at, kv_record_size(key.n, value.n));
	return err;
}

int store_put(struct store *s, struct span key, struct span value)
{
	return store_set(s, key, value, KV_HERE);
}

/* The shard is locked. */
static void remove_entry(struct store *s, struct kv_entry *e, unsigned part)
{
	struct kv_entry old = *e;

	set_entry(e, 0, 0, NULL);
	s->part[part].keys -= has_value(kv_kind(&old));
	heap_put(&s->heap, kv_at(&old), old.length);
}

/* Who owns the key although he knows nothing of it need not remember it. */
static int delete_owned(struct store *s, uint64_t tag, struct span key)
{
	unsigned part = part_of(s, tag);
	struct kv_entry *e = find(s, tag, key);
	int err = may_write(s, e);

	if (err)
		return err;
	if (!e || kv_kind(e) == KV_ABSENT)
		return -ENOENT;
	if (s->owner) {
		remove_entry(s, e, part);
		return 0;
	}
	s->part[part].keys -= has_value(kv_kind(e));
	record(s, e)->no_value = 1;
	set_kind(e, KV_ABSENT);
	return 0;
}

int store_delete(struct store *s, struct span key)
{
	uint64_t tag = kv_tag(key.p, key.n);
	unsigned part = part_of(s, tag);
	int err;

	pthread_mutex_lock(&s->part[part].lock);
	err = delete_owned(s, tag, key);
	pthread_mutex_unlock(&s->part[part].lock);
	return err;
}

static int why_none(const struct store *s, const struct kv_entry *e)
{
	if (!e)
		return s->owner ? -ENOENT : -EXDEV;
	switch (kv_kind(e)) {
	case KV_MOVED:
		return -EXDEV;
	case KV_PENDING:
		return -EBUSY;
	case KV_LOST:
		return -ENODATA;
	default:
		return -ENOENT;
	}
}

static int copy_out(struct store *s, const struct kv_entry *e, struct span *out)
{
	const struct kv_record *r = record(s, e);
	uint32_t room = out->n;

	out->n = r->value_length;
	if (r->no_value)
		*out = (struct span){ NULL, 0 };
	else if (out->n > room)
		return -EMSGSIZE;
	else
		memcpy((void *)out->p, (const uint8_t *)(r + 1) + r->key_length, out->n);
	return 0;
}

static int look(struct store *s, struct span key, struct span *out, struct kv_entry *found,
		bool any_kind)
{
	uint64_t tag = kv_tag(key.p, key.n);
	unsigned part = part_of(s, tag);
	struct kv_entry *e;
	int err;

	pthread_mutex_lock(&s->part[part].lock);
	e = find(s, tag, key);
	if (e && (any_kind || has_value(kv_kind(e)))) {
		*found = *e;
		err = copy_out(s, e, out);
	} else {
		err = why_none(s, e);
	}
	pthread_mutex_unlock(&s->part[part].lock);
	return err;
}

int store_get(struct store *s, struct span key, struct span *out, struct kv_entry *e)
{
	return look(s, key, out, e, false);
}

/* ---- keys that move ---------------------------------------------------------------------- */

int store_peek(struct store *s, struct span key, struct span *out, struct kv_entry *e)
{
	return look(s, key, out, e, true);
}

static void change(struct store *s, struct kv_entry *e, enum kv_kind to, unsigned part)
{
	if (to == KV_HERE && record(s, e)->no_value)
		to = KV_ABSENT;
	s->part[part].keys += has_value(to);
	s->part[part].keys -= has_value(kv_kind(e));
	set_kind(e, to);
}

int store_change(struct store *s, struct span key, enum kv_kind from, enum kv_kind to)
{
	uint64_t tag = kv_tag(key.p, key.n);
	unsigned part = part_of(s, tag);
	struct kv_entry *e;
	bool right;

	pthread_mutex_lock(&s->part[part].lock);
	e = find(s, tag, key);
	right = e && kv_kind(e) == from;
	if (right)
		change(s, e, to, part);
	pthread_mutex_unlock(&s->part[part].lock);
	return right ? 0 : -EXDEV;
}

void store_forget(struct store *s, struct span key)
{
	uint64_t tag = kv_tag(key.p, key.n);
	unsigned part = part_of(s, tag);
	struct kv_entry *e;

	pthread_mutex_lock(&s->part[part].lock);
	e = find(s, tag, key);
	if (e)
		remove_entry(s, e, part);
	pthread_mutex_unlock(&s->part[part].lock);
}

uint64_t store_settle(struct store *s)
{
	uint64_t lost = 0;

	for (uint32_t b = 0; b < s->buckets; b++) {
		unsigned part = b / s->shard;

		pthread_mutex_lock(&s->part[part].lock);
		for (unsigned i = 0; i < KV_ENTRIES; i++) {
			struct kv_entry *e = &s->bucket[b].entry[i];
			enum kv_kind kind = kv_kind(e);

			if (!e->tag)
				continue;
			lost += kind == KV_MOVED;
			if (kind == KV_MOVED)
				set_kind(e, KV_LOST);
			else if (kind == KV_FROZEN || kind == KV_PENDING)
				change(s, e, KV_HERE, part);
		}
		pthread_mutex_unlock(&s->part[part].lock);
	}
	return lost;
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
