/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-tcp-peer: what the other programs are compared with, over the kernel's TCP and with the
 * same workloads: a client of memcached and of Valkey (or Redis), and both ends of calls of 64
 * octets to a sequencer and to the tree of uwarp-btree.
 */
#ifndef TCP_PEER_H
#define TCP_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "workload.h"

struct peer_options {
	struct options common;
	const struct protocol *protocol;
	uint64_t keys;
	uint32_t value; /* octets */
	const struct mix *mix;
	const char *dist;
	bool load;
};

enum verdict { REPLY_GOOD, REPLY_MISS, REPLY_BAD }; /* a miss: there is no such key */

struct reply {
	enum verdict verdict;
	const uint8_t *value; /* NULL: it brings none */
	size_t length;
};

/* How a client talks: requests are written one behind the other, replies come in the same order. */
struct protocol {
	const char *name;
	bool brings; /* a read is answered with its value, or with a miss */
	/* A request into `out`, which has room for REQUEST_HEAD octets and the value. Returns its
	 * length. */
	size_t (*request)(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o);
	/* The length of the reply at `in` if it is there as a whole, 0 if more has to come; *r:
	 * what it says. */
	size_t (*reply)(const uint8_t *in, size_t n, struct reply *r);
};

#define REQUEST_HEAD 256u

/* The value of a key, up to PEER_VALUE_MAX octets that do not compress; it is a piece of one that
 * values_open() makes. */
#define PEER_VALUE_MAX (1u << 20)
int values_open(void);
const uint8_t *value_of(uint64_t key);

/* A list that ends with NULL. */
extern const struct protocol *const protocols[];

int peer_serve(const struct peer_options *o);
int peer_run(const struct peer_options *o);

/* A connected socket without Nagle's algorithm, or a negative errno; it is told. */
int peer_connect(const struct server_name *to);
int peer_listen(const struct options *o);

#endif
