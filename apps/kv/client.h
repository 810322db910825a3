/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of one server. Up to `window` operations are under way at once, each in a slot of its
 * own; the end of each is told by a call of done(), in which the slot may be used again.
 */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include "kv.h"
#include "wire.h"

struct kv_client;

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
	uint32_t call_length; /* behind the head */
};

struct kv_client_config {
	const struct options *common;
	enum kv_way way;
	bool with_imm, stage_all;
	bool believe; /* leave the checks out: for tests, to see that they are needed */
	uint32_t value_max;
	/* status: 0 (GET: with the value), -ENOENT, -ENOMEM, -EINVAL. Not 0: the client ends with
	 * it. */
	int (*done)(void *arg, unsigned slot, int status, struct kv_slot *s, const uint8_t *value,
		    uint32_t n);
	void *arg;
};

struct kv_client {
	struct kv_client_config config;
	struct device device;
	struct comp comp;
	struct conn conn;
	struct rpc rpc;
	struct region reads;  /* of each slot: a bucket, then a record */
	struct region stages; /* of each slot: a call that no message holds */
	struct kv_offer offer;
	struct kv_slot *slot;
	uint64_t torn;		   /* reads whose check failed, and that were repeated */
	uint64_t by_reads, by_rpc; /* GETs */
	double cost[2]; /* of a GET by READs and by a call, ns: a moving mean, for the hybrid */
	uint64_t random;
};

int kv_client_open(struct kv_client *c, const struct kv_client_config *config);
void kv_client_close(struct kv_client *c);

/* Each begins an operation in an idle slot. 0 or a negative errno. */
int kv_get(struct kv_client *c, unsigned slot, const struct kv_key *key);
int kv_delete(struct kv_client *c, unsigned slot, const struct kv_key *key);
/* Where the n octets of the value belong, and then: go. */
uint8_t *kv_put_room(struct kv_client *c, unsigned slot, const struct kv_key *key, uint32_t n);
int kv_put(struct kv_client *c, unsigned slot);

/* Takes completions and calls done(), after waiting for at most so many ms. -ETIMEDOUT: none came.
 */
int kv_client_poll(struct kv_client *c, int milliseconds);

#endif
