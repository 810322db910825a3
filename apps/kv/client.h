/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection to one server. Up to `window` operations are under way at once, each in a slot of
 * its own; the end of each is told by a call of done(), in which the slot may be used again. Device
 * and CQ are the caller's, and may be shared by connections: he polls, and hands completions on.
 */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include "kv.h"
#include "wire.h"

struct kv_key {
	uint8_t octets[KV_KEY_MAX];
	uint8_t length;
};

/* One operation. */
struct kv_slot {
	enum { SLOT_IDLE, SLOT_BUCKET, SLOT_RECORD, SLOT_CALL } state;
	enum kv_op op;
	struct kv_key key;
	uint64_t tag;
	uint32_t bucket, home;
	struct kv_entry entry; /* whose record is being read */
	unsigned repeats;
	uint64_t began;
	bool by_reads, staged;
	bool by_memory;	      /* the record that an entry of an earlier GET names is being READ */
	uint32_t call_length; /* behind the head */
};

struct kv_client_config {
	const struct options *common;
	struct server_name server;
	struct device *device;
	struct comp *comp; /* of KV_CLIENT_CQE entries for each slot */
	unsigned window;
	bool coordinator;
	enum kv_way way;
	bool with_imm, stage_all;
	uint32_t cache; /* entries of the index to keep, 0: none; not where keys move */
	bool believe;	/* leave the checks out: for tests, to see that they are needed */
	uint32_t value_max;
	/* status: 0 (GET: with the value), or as in wire.h, negative. Not 0: the client ends
	 * with it. */
	int (*done)(void *arg, unsigned slot, int status, struct kv_slot *s, const uint8_t *value,
		    uint32_t n);
	void *arg;
};

struct kv_client {
	struct kv_client_config config;
	struct conn conn;
	struct rpc rpc;
	struct region reads;  /* of each slot: a bucket, then a record */
	struct region stages; /* of each slot: a call that no message holds */
	struct kv_offer offer;
	struct kv_slot *slot;
	struct kv_entry *known;	   /* config.cache of them, or NULL */
	uint64_t outdated;	   /* records that such an entry named, and that were replaced */
	uint64_t torn;		   /* reads whose check failed, and that were repeated */
	uint64_t by_reads, by_rpc; /* GETs */
	double cost[2]; /* of a GET by READs and by a call, ns: a moving mean, for the hybrid */
	uint64_t random;
};

#define KV_CLIENT_CQE 6u /* completions that a slot can have at once, and some */

int kv_client_open(struct kv_client *c, const struct kv_client_config *config);
void kv_client_close(struct kv_client *c);

/* Each begins an operation in an idle slot. 0 or a negative errno. */
int kv_get(struct kv_client *c, unsigned slot, const struct kv_key *key);
/* Parts of it: READs the index alone, done() has the entry as the value of a KV_LOCATE; READs the
 * record that an entry names, and begins anew if it is not that one any more. */
int kv_find(struct kv_client *c, unsigned slot, const struct kv_key *key);
int kv_get_entry(struct kv_client *c, unsigned slot, const struct kv_key *key,
		 const struct kv_entry *e);
/* Any other call. First the room for the n octets of its value, then: go. */
uint8_t *kv_room(struct kv_client *c, unsigned slot, enum kv_op op, const struct kv_key *key,
		 uint32_t n);
int kv_go(struct kv_client *c, unsigned slot);

/* A completion of this connection's. 0; -ECONNRESET: it is lost; another negative errno. */
int kv_client_take(struct kv_client *c, const struct ibv_wc *wc);

#endif
