/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's way to the node that owns a key: the host alone, or the host and a SoC. An operation
 * goes to where its key was last seen; a node that does not own it says so, and the other one is
 * asked. What is on its way is asked for again.
 */
#ifndef KV_ROUTE_H
#define KV_ROUTE_H

#include "client.h"
#include "hot.h"

#define ROUTE_SEEN 16384u

enum { NODE_HOST, NODE_SOC, NODES };

struct route_slot {
	struct kv_key key;
	enum kv_op op;
	uint32_t length; /* of a PUT's value */
	uint8_t node;
	unsigned asked; /* times */
};

struct route_ops {
	/* A PUT's value, each time it is sent. */
	void (*fill)(void *arg, unsigned slot, uint8_t *p, uint32_t n);
	/* status as in wire.h, negative; -EHOSTDOWN: the node is gone. Not 0 ends the client. */
	int (*done)(void *arg, unsigned slot, int status, enum kv_op op, const uint8_t *value,
		    uint32_t n);
};

struct route {
	const struct kv_options *options;
	const struct route_ops *ops;
	void *arg;
	struct device device;
	struct comp comp;
	struct kv_client node[NODES];
	unsigned nodes;
	bool down[NODES];
	struct route_slot *slot;
	uint64_t *seen;	       /* tags that were at the SoC */
	struct sketch *sketch; /* NULL: nobody wants to know */
	uint64_t begun, at_soc, again;
	bool telling; /* the last slot is under way with what the sketch counted */
};

int route_open(struct route *r, const struct kv_options *o, const struct route_ops *ops, void *arg);
void route_close(struct route *r);
/* GET, PUT of a value of so many octets, DELETE, or a KV_MOVE_...; in an idle slot. */
int route_begin(struct route *r, unsigned slot, enum kv_op op, const struct kv_key *key,
		uint32_t length);
/* The same at this node and no other. */
int route_at(struct route *r, unsigned slot, unsigned node, enum kv_op op,
	     const struct kv_key *key);
/* Takes completions and calls done(), after waiting for at most so many ms. -ETIMEDOUT: none came.
 */
int route_poll(struct route *r, int milliseconds);

#endif
