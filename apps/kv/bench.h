/* SPDX-License-Identifier: BSD-3-Clause */
/* The client program's state; for bench.c and run.c. */
#ifndef KV_BENCH_H
#define KV_BENCH_H

#include "oracle.h"
#include "route.h"
#include "team.h"

struct bench_slot {
	uint64_t number; /* of the key */
	uint64_t began;
	uint32_t oldest, write; /* of a GET, of a write: see lib/journal.h */
	bool then_write;	/* a GET whose key is written next */
	bool was_there;		/* before a delete */
	bool only_read;		/* no write of this key is ours */
};

struct bench {
	const struct kv_options *options;
	enum { PHASE_LOAD, PHASE_RUN, PHASE_CHECK } phase;
	struct keys keys;
	uint64_t all;	       /* keys there can ever be: inserts come on top */
	struct oracle journal; /* without --verify its line is NULL */
	bool *busy;	       /* a write of this key is under way; its writer's alone */
	struct hist *reads, *writes;
	uint64_t hits, misses, wrong, no_memory, gone, torn, outdated, by_reads, by_rpc, at_soc,
		again;
};

struct bench_worker {
	struct member *member;
	struct bench *bench;
	const struct kv_options *options;
	struct route route;
	struct bench_slot *slot;
	struct hist *reads, *writes;
	unsigned writer, writers;
	uint64_t top; /* keys below it have been inserted, as far as this writer knows */
	uint64_t begun, walked;
	unsigned under_way;
	uint64_t hits, misses, wrong, no_memory, gone;
};

/* Key number so and so: its octets follow from the number. */
void bench_key(const struct kv_options *o, uint64_t number, struct kv_key *key);

int bench_open(struct member *m);
int bench_run(struct member *m);
void bench_close(struct member *m);

#endif
