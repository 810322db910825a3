/* SPDX-License-Identifier: BSD-3-Clause */
/* The client program's state; for bench.c and run.c. */
#ifndef KV_BENCH_H
#define KV_BENCH_H

#include "client.h"
#include "journal.h"
#include "team.h"

struct bench_slot {
	uint64_t number; /* of the key */
	uint64_t began;
	uint32_t oldest, write; /* of a GET, of a write: see journal.h */
	bool then_write;	/* a GET whose key is written next */
	bool was_there;		/* before a delete */
};

struct bench {
	const struct kv_options *options;
	enum { PHASE_LOAD, PHASE_RUN, PHASE_CHECK } phase;
	struct keys keys;
	uint64_t all;		/* keys there can ever be: inserts come on top */
	struct journal journal; /* without --verify its line is NULL */
	bool *busy;		/* a write of this key is under way; its writer's alone */
	struct hist *reads, *writes;
	uint64_t hits, misses, wrong, no_memory, torn, by_reads, by_rpc;
};

struct bench_worker {
	struct member *member;
	struct bench *bench;
	const struct kv_options *options;
	struct kv_client client;
	struct bench_slot *slot;
	struct hist *reads, *writes;
	unsigned writer, writers;
	uint64_t top; /* keys below it have been inserted, as far as this writer knows */
	uint64_t begun, walked;
	unsigned under_way;
	uint64_t hits, misses, wrong, no_memory;
};

int bench_open(struct member *m);
int bench_run(struct member *m);
void bench_close(struct member *m);

#endif
