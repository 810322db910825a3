/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "get.h"

/* Nobody writes a key that often in one GET: another key has the same tag, and the server tells. */
#define REPEATS_MAX 1000u

static int post_read(struct kv_client *c, unsigned slot, size_t into, uint64_t from, uint32_t n)
{
	struct ibv_sge sge = region_sge(&c->reads, slot * get_room(c) + into, n);
	struct ibv_send_wr *wr =
		conn_next(&c->conn, IBV_WR_RDMA_READ, slot, IBV_SEND_SIGNALED, sge);
	int err;

	wr->wr.rdma.remote_addr = from;
	wr->wr.rdma.rkey = c->offer.rkey;
	err = conn_add(&c->conn);
	return err ? err : -EINPROGRESS;
}

static int read_bucket(struct kv_client *c, unsigned slot)
{
	struct kv_slot *s = &c->slot[slot];

	s->state = SLOT_BUCKET;
	return post_read(c, slot, 0, c->offer.base + (uint64_t)s->bucket * sizeof(struct kv_bucket),
			 sizeof(struct kv_bucket));
}

/* ---- entries of earlier GETs ------------------------------------------------------------- */

/* Two keys of one place take turns. */
static struct kv_entry *place_of(const struct kv_client *c, uint64_t tag)
{
	return &c->known[tag % c->config.cache];
}

static void remember(struct kv_client *c, const struct kv_slot *s)
{
	if (c->known)
		*place_of(c, s->tag) = s->entry;
}

int get_begin_known(struct kv_client *c, unsigned slot)
{
	struct kv_slot *s = &c->slot[slot];
	struct kv_entry e;

	if (!c->known)
		return get_begin(c, slot);
	e = *place_of(c, kv_tag(s->key.octets, s->key.length));
	s->by_memory = true;
	return get_begin_at(c, slot, &e);
}

/* ---- steps ------------------------------------------------------------------------------- */

/* From the home bucket on. */
static int again(struct kv_client *c, unsigned slot)
{
	struct kv_slot *s = &c->slot[slot];

	c->outdated += s->by_memory;
	c->torn += !s->by_memory;
	s->by_memory = false;
	if (++s->repeats > REPEATS_MAX)
		return -EAGAIN;
	s->bucket = s->home;
	return read_bucket(c, slot);
}

int get_begin(struct kv_client *c, unsigned slot)
{
	struct kv_slot *s = &c->slot[slot];
	int err;

	s->by_memory = false;
	s->tag = kv_tag(s->key.octets, s->key.length);
	s->home = s->bucket = (uint32_t)s->tag & (c->offer.buckets - 1);
	err = read_bucket(c, slot);
	return err == -EINPROGRESS ? 0 : err;
}

static bool plausible(const struct kv_client *c, const struct kv_slot *s, const struct kv_entry *e)
{
	uint32_t least = kv_record_size(s->key.length, 0);

	return e->length >= least && e->length - least <= c->config.value_max;
}

static int read_record(struct kv_client *c, unsigned slot, const struct kv_entry *e)
{
	struct kv_slot *s = &c->slot[slot];
	uint64_t heap = c->offer.base + (uint64_t)c->offer.buckets * sizeof(struct kv_bucket);

	s->entry = *e;
	s->state = SLOT_RECORD;
	return post_read(c, slot, sizeof(struct kv_bucket), heap + kv_at(e), e->length);
}

/* Not in this bucket: is that certain, and does the search end here? */
static int look_further(struct kv_client *c, unsigned slot, const struct kv_bucket *b)
{
	struct kv_slot *s = &c->slot[slot];

	for (unsigned i = 0; i < KV_ENTRIES; i++)
		if (b->entry[i].check != kv_entry_check(&b->entry[i]) && !c->config.believe)
			return again(c, slot);
	if (b->spilled_check != ~b->spilled && !c->config.believe)
		return again(c, slot);
	s->bucket = kv_next_bucket(s->bucket, c->offer.shard);
	if (!b->spilled || s->bucket == s->home)
		return c->offer.owner ? -ENOENT : -EXDEV;
	return read_bucket(c, slot);
}

int get_begin_at(struct kv_client *c, unsigned slot, const struct kv_entry *e)
{
	struct kv_slot *s = &c->slot[slot];
	int err;

	s->tag = kv_tag(s->key.octets, s->key.length);
	s->home = s->bucket = (uint32_t)s->tag & (c->offer.buckets - 1);
	if (e->tag != s->tag || !plausible(c, s, e))
		return get_begin(c, slot);
	err = read_record(c, slot, e);
	return err == -EINPROGRESS ? 0 : err;
}

static int by_kind(struct kv_client *c, unsigned slot, const struct kv_entry *e)
{
	switch (kv_kind(e)) {
	case KV_HERE:
	case KV_FROZEN:
		c->slot[slot].entry = *e;
		return c->slot[slot].op == KV_LOCATE ? 0 : read_record(c, slot, e);
	case KV_MOVED:
		return -EXDEV;
	case KV_LOST:
		return -ENODATA;
	case KV_ABSENT:
		return -ENOENT;
	default:
		return -EBUSY;
	}
}

int get_bucket(struct kv_client *c, unsigned slot)
{
	const struct kv_bucket *b = get_bucket_room(c, slot);
	const struct kv_slot *s = &c->slot[slot];

	for (unsigned i = 0; i < KV_ENTRIES; i++) {
		const struct kv_entry *e = &b->entry[i];

		if (e->tag != s->tag)
			continue;
		if (e->check != kv_entry_check(e) && !c->config.believe)
			return again(c, slot);
		/* another key of the same tag, or a value for which there is no room: the server
		 * tells */
		if (!plausible(c, s, e))
			return c->config.believe ? again(c, slot) : -EAGAIN;
		return by_kind(c, slot, e);
	}
	return look_further(c, slot, b);
}

bool get_is_right(const struct kv_client *c, unsigned slot, uint32_t length, uint32_t version)
{
	const struct kv_record *r = get_record(c, slot);
	const struct kv_slot *s = &c->slot[slot];

	if (c->config.believe)
		return true;
	/* the lengths bound what the check covers: first those */
	return r->key_length == s->key.length && r->value_length <= c->config.value_max &&
	       kv_record_size(r->key_length, r->value_length) == length && r->version == version &&
	       r->check == kv_record_check(r) && !memcmp(r + 1, s->key.octets, s->key.length);
}

int get_value(struct kv_client *c, unsigned slot)
{
	const struct kv_slot *s = &c->slot[slot];

	if (!get_is_right(c, slot, s->entry.length, s->entry.version))
		return again(c, slot);
	remember(c, s);
	return 0;
}
