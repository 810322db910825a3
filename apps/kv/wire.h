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
 * In a cluster each key has one node that owns it. The host owns whatever it has not given away,
 * and knows of what it has; the SoC owns what it was given. An entry's kind says which.
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

#define KV_SERVICE   ((struct service){ "uwarp-kv", 0x7672b002u })
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

/* What an entry says of its key. Where there is no value, the record has the key alone. */
enum kv_kind {
	KV_HERE,    /* the record holds the value */
	KV_FROZEN,  /* so it does, but nobody may write: the key is about to move */
	KV_PENDING, /* it is being given or taken: ask again */
	KV_MOVED,   /* the SoC owns it */
	KV_ABSENT,  /* it is owned here, and has no value */
	KV_LOST,    /* it was the SoC's, which is gone */
};

static inline enum kv_kind kv_kind(const struct kv_entry *e)
{
	return (enum kv_kind)(e->at >> 56);
}

static inline uint64_t kv_at(const struct kv_entry *e)
{
	return e->at & (UINT64_MAX >> 8);
}

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
	uint32_t no_value; /* 1: the key alone */
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
	uint32_t magic, window, value_max;
	uint32_t coordinator; /* 1: the host, which gives keys and takes them */
};

struct kv_offer {
	uint32_t magic, rkey; /* of the memory */
	uint64_t base;	      /* its address; the heap is behind the buckets */
	uint32_t buckets, shard;
	uint64_t staging; /* address of `window` stages, for WRITE */
	uint32_t staging_rkey;
	uint32_t owner; /* 1: a key that is not there has no value; 0: somebody else owns it */
};

/* ---- calls ------------------------------------------------------------------------------- */

enum kv_op {
	KV_GET = 1,
	KV_PUT,
	KV_DELETE,
	KV_STAGED,   /* the call itself lies in the stage of the head's slot */
	KV_LOCATE,   /* to a front: the entry, as it knows it */
	KV_GET_AFAR, /* to a front: GET with the index at the host */
	/* to the host: */
	KV_HOT,	     /* the value: an array of struct kv_hot */
	KV_MOVE_OUT, /* give this key to the SoC */
	KV_MOVE_IN,  /* take it back; either is only noted, EAGAIN: not now */
	/* from the host to the SoC: */
	KV_ADOPT, /* keep this value, as pending */
	KV_ADOPT_ABSENT,
	KV_COMMIT,  /* what was pending is yours */
	KV_RELEASE, /* freeze it and reply with its value */
	KV_DROP,    /* it is no longer yours */
	KV_KEEP,    /* it is yours again after all */
};

/* What a client has counted. */
struct kv_hot {
	uint32_t count;
	uint8_t length;
	uint8_t key[KV_KEY_MAX + 1];
};
#define KV_HOT_MAX 15u /* in one message */

/* Every call's; the key's octets and the value's follow. */
struct kv_call {
	struct rpc_head head;
	uint32_t key_length, value_length;
	uint64_t room; /* GET: where a record that no message holds is WRITTEN to */
	uint32_t room_rkey, unused;
};

/* A reply to GET: the value follows, or the record is in the room. Others are a head alone.
 * status: 0, ENOENT, ENOMEM, EINVAL; in a cluster also EXDEV: another node owns the key, EBUSY: ask
 * again, ENODATA: it was lost with its node. */
struct kv_reply {
	struct rpc_head head;
	uint32_t value_length;
	uint32_t in_room; /* octets of the record that was WRITTEN, or 0 */
	uint32_t version; /* and which one it was to be */
	uint32_t unused;
};

/* Octets of a stage: a multiple of 8, as calls lie in it. */
static inline uint32_t kv_stage_size(uint32_t value_max)
{
	return ((uint32_t)sizeof(struct kv_call) + KV_KEY_MAX + value_max + 7) / 8 * 8;
}

#endif
