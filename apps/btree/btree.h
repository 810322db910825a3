/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-btree: an ordered index whose clients may READ its pages. Options. */
#ifndef BTREE_H
#define BTREE_H

#include "options.h"
#include "workload.h"

/* How a client looks a key up; whatever changes the tree goes by MAIL, or by SEND with BY_READS. */
enum btree_way { BY_READS, BY_MAIL, BY_SEND };

/* Where the keys are: at the server that the command names, at --soc's, or at both. */
enum btree_place { PLACE_BOTH, PLACE_HOST, PLACE_SOC };

struct btree_options {
	struct options common;
	/* server */
	uint64_t page, pages, first; /* pages 0: as many as the keys need */
	bool mail;
	/* both */
	uint64_t keys;
	/* client */
	enum btree_way way;
	const struct mix *mix;
	const char *dist;
	unsigned scans, scan; /* per cent of all operations; keys of each */
	uint64_t cache;	      /* inner pages that a client keeps */
	struct oracle_options oracle;
	const char *soc, *soc_port;
	uint64_t split; /* keys from this number on are the SoC's */
	bool split_given, place_given, balance;
	enum btree_place place;
};

/* Keys have numbers; they lie apart, so that there is something between them. */
static inline uint64_t btree_key(uint64_t number)
{
	return (number + 1) * 8;
}

int btree_serve(const struct btree_options *o);
int btree_bench(const struct btree_options *o);

#endif
