/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-kv: a key-value store whose clients may READ it. Options, and what the files share. */
#ifndef KV_H
#define KV_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "workload.h"

/* How a client GETs. */
enum kv_way { KV_READS, KV_RPC, KV_HYBRID };

struct kv_options {
	struct options common;
	/* server */
	uint64_t memory, buckets, value_max, staging;
	bool is_soc;	 /* owns what it is given, and nothing else */
	uint64_t hot;	 /* a host's: as many popular keys as this go to the SoC by themselves */
	const char *soc; /* its address, for a host and for clients; or NULL */
	const char *soc_port;
	/* 1 to 5: the SoC is a front of the host, and GETs go these ways in turn; 0: it is not */
	unsigned alternative[2];
	/* client */
	enum kv_way way;
	bool with_imm;	/* staged calls are told of by WRITE with immediate, not by SEND */
	bool stage_all; /* every PUT is staged */
	uint64_t cache; /* entries of the index that a thread keeps */
	uint64_t keys, key_length;
	uint64_t value_low, value_high;
	const struct mix *mix;
	const char *dist; /* NULL: the mix's */
	bool load;
	struct oracle_options oracle;
	unsigned writer, writers; /* this process, of so many */
	bool check;
	bool may_lose;	   /* answers that a key was lost with its node are right */
	uint64_t from, to; /* keys that are moved or looked for */
	bool toward_soc;
};

int kv_serve(const struct kv_options *o);
int kv_front(const struct kv_options *o);
int kv_bench(const struct kv_options *o);
int kv_move(const struct kv_options *o);
int kv_where(const struct kv_options *o);

#endif
