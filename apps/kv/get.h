/* SPDX-License-Identifier: BSD-3-Clause */
/* GET by two READs, of an entry of the index and of the record; for client.c alone. */
#ifndef KV_GET_H
#define KV_GET_H

#include "client.h"

/* Octets of c->reads for each slot. */
static inline size_t get_room(const struct kv_client *c)
{
	return sizeof(struct kv_bucket) +
	       (kv_record_size(KV_KEY_MAX, c->config.value_max) + 63) / 64 * 64;
}

static inline struct kv_bucket *get_bucket_room(const struct kv_client *c, unsigned slot)
{
	return (struct kv_bucket *)(c->reads.base + slot * get_room(c));
}

static inline struct kv_record *get_record(const struct kv_client *c, unsigned slot)
{
	return (struct kv_record *)(get_bucket_room(c, slot) + 1);
}

int get_begin(struct kv_client *c, unsigned slot);
/* From the record on, if an earlier GET has found its entry. That may be out of date; then the
 * record does not pass its check (store.h), and the index is READ. */
int get_begin_known(struct kv_client *c, unsigned slot);
/* From the record on. */
int get_begin_at(struct kv_client *c, unsigned slot, const struct kv_entry *e);
/* What was asked for has come. -EINPROGRESS: another READ is under way; 0: the slot's record is
 * there (get_value() alone); -EAGAIN: better ask by a call; -ENOENT and the like are answers. */
int get_bucket(struct kv_client *c, unsigned slot);
int get_value(struct kv_client *c, unsigned slot);
/* Is the slot's record whole, of `length` octets, of this version, and the slot's key's? */
bool get_is_right(const struct kv_client *c, unsigned slot, uint32_t length, uint32_t version);

#endif
