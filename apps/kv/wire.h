/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients and servers of uwarp-kv share: the layout of the memory that clients READ, and the
 * calls that they SEND. Both ends have the same byte order.
 *
 * Memory: an array of buckets, then the heap with the records. A key's tag is the XXH3 of its
 * octets, never 0. Its home bucket is tag & (buckets - 1); what finds no room there is in the next
 * bucket, and so on round the shard, an aligned group of `shard` buckets. A bucket that was ever
 * too full says so for ever (`spilled`); a search ends behind one that was not.
 *
 * Nothing here relies on the order in which a READ takes octets, or on a write being seen whole:
 * every entry and every record carries a check, and a reader whose check fails reads again. An
 * entry's version is its record's: a record that has been replaced and its memory used again is
 * not taken for the one looked for.
 */
#ifndef KV_WIRE_H
#define KV_WIRE_H

#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rpc.h"

#define KV_MAGIC     0x7672b001u
#define KV_ENTRIES   7u
#define KV_KEY_MIN   16u
#define KV_KEY_MAX   250u
#define KV_VALUE_MAX (1u << 20)
#define KV_MESSAGE   4096u
#define KV_ROUND     64u /* records begin at multiples of it */

struct kv_entry {
	uint64_t tag;	 /* 0: free */
	uint64_t at;	 /* of the record, from the heap's beginning */
	uint32_t length; /* of the whole record */
	uint32_t version;
	uint64_t check; /* XXH3 of what is before it */
};

struct kv_bucket {
	uint64_t spilled;
	uint64_t spilled_check; /* ~spilled */
	uint64_t unused[2];
	struct kv_entry entry[KV_ENTRIES];
};

/* The key's octets and the value's follow. */
struct kv_record {
	uint64_t check; /* XXH3 of what is behind it */
	uint32_t version;
	uint32_t key_length;
	uint32_t value_length;
	uint32_t unused;
};

_Static_assert(sizeof(struct kv_entry) == 32, "four entries are 128 octets");
_Static_assert(sizeof(struct kv_bucket) == 256, "a bucket is one READ of 256 octets");
_Static_assert(sizeof(struct kv_record) == 24, "the key begins at a multiple of 8");

static inline uint64_t kv_tag(const void *key, uint32_t length)
{
	uint64_t tag = XXH3_64bits(key, length);

	return tag ? tag : 1;
}

static inline uint64_t kv_entry_check(const struct kv_entry *e)
{
	return XXH3_64bits(e, offsetof(struct kv_entry, check));
}

static inline uint64_t kv_record_check(const struct kv_record *r)
{
	return XXH3_64bits((const uint8_t *)r + sizeof(r->check),
			   sizeof(*r) - sizeof(r->check) + r->key_length + r->value_length);
}

static inline uint32_t kv_record_size(uint32_t key_length, uint32_t value_length)
{
	return (uint32_t)sizeof(struct kv_record) + key_length + value_length;
}

/* The bucket after b in its shard. */
static inline uint32_t kv_next_bucket(uint32_t b, uint32_t shard)
{
	return (b & ~(shard - 1)) | ((b + 1) & (shard - 1));
}

/* ---- hellos ------------------------------------------------------------------------------ */

/* The client's: it stages up to `window` calls with values of up to `value_max` octets. */
struct kv_wish {
	uint32_t magic, window, value_max, unused;
};

struct kv_offer {
	uint32_t magic, rkey; /* of the memory */
	uint64_t base;	      /* its address; the heap is behind the buckets */
	uint32_t buckets, shard;
	uint64_t staging; /* address of `window` stages, for WRITE */
	uint32_t staging_rkey, unused;
};

/* ---- calls ------------------------------------------------------------------------------- */

enum kv_op {
	KV_GET = 1,
	KV_PUT,
	KV_DELETE,
	KV_STAGED, /* the call itself lies in the stage of the head's slot */
};

/* Every call's; the key's octets and the value's follow. */
struct kv_call {
	struct rpc_head head;
	uint32_t key_length, value_length;
	uint64_t room; /* GET: where a record that no message holds is WRITTEN to */
	uint32_t room_rkey, unused;
};

/* A reply to GET: the value follows, or the record is in the room. Others are a head alone. */
struct kv_reply {
	struct rpc_head head; /* status: 0, ENOENT, ENOMEM, EINVAL */
	uint32_t value_length;
	uint32_t in_room; /* octets of the record that was WRITTEN, or 0 */
};

/* Octets of a stage: a multiple of 8, as calls lie in it. */
static inline uint32_t kv_stage_size(uint32_t value_max)
{
	return ((uint32_t)sizeof(struct kv_call) + KV_KEY_MAX + value_max + 7) / 8 * 8;
}

#endif
