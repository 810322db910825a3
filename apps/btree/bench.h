/* SPDX-License-Identifier: BSD-3-Clause */
/* The client program's state; for bench.c and run.c. */
#ifndef BTREE_BENCH_H
#define BTREE_BENCH_H

#include "balance.h"
#include "client.h"
#include "journal.h"
#include "team.h"

struct bench_slot {
	uint64_t number, began;
	uint32_t write, *oldest; /* what had been acknowledged of each key that is read, when it was
				    asked for */
	unsigned keys, link;
	enum mail_type type;
};

struct bench {
	const struct btree_options *options;
	struct keys keys;
	uint64_t all; /* numbers that keys can have: twice those that the server made */
	struct journal_line *line;
	bool *busy;
	struct hist *reads, *writes;
	uint64_t hits, misses, no_memory, wrong, torn, restarts, pages, pieces;
	uint64_t split; /* the mean of the threads' */
};

struct bench_worker {
	struct member *member;
	struct bench *bench;
	const struct btree_options *options;
	struct btree_client client;
	struct bench_slot *slot;
	struct balance balance;
	struct hist *reads, *writes;
	unsigned writer;
	uint64_t begun, top;
	unsigned under_way;
	uint64_t hits, misses, no_memory, wrong;
};

int bench_open(struct member *m);
int bench_run(struct member *m);
void bench_close(struct member *m);

/* May this have been found, or (value NULL) not been found? Says what is wrong. */
bool judge(const struct bench *b, uint64_t number, uint32_t oldest, const uint64_t *value);
/* The same of all keys of a scan. */
bool judge_scan(const struct bench *b, const struct bench_slot *s, const struct page_item *items,
		unsigned n);
bool is_delete(const struct btree_options *o, uint64_t number, uint32_t n);

#endif
