/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which keys are worth a place at the SoC. A client counts its own accesses in little memory
 * (struct sketch: a count-min sketch that says whether a key is worth one of a few lines) and
 * reports a line now and then. The host adds up what it hears (struct hot), lets it fade, and
 * plans moves: the most popular keys out, those that are no longer popular in. Not locked.
 */
#ifndef KV_HOT_H
#define KV_HOT_H

#include "client.h"

/* ---- a client's -------------------------------------------------------------------------- */

#define SKETCH_ROWS  4u
#define SKETCH_CELLS 2048u
#define SKETCH_LINES 512u

struct sketch {
	uint16_t cell[SKETCH_ROWS][SKETCH_CELLS];
	struct kv_hot line[SKETCH_LINES];
	unsigned told; /* lines, round and round */
	uint64_t seen;
};

void sketch_count(struct sketch *s, const struct kv_key *key);
/* The next lines that have counted anything, KV_HOT_MAX at most; they count from 0 again. */
unsigned sketch_tell(struct sketch *s, struct kv_hot *out);

/* ---- the host's -------------------------------------------------------------------------- */

#define HOT_LINES 8192u
#define HOT_PLAN  64u

struct hot_line {
	struct kv_key key; /* length 0: free */
	uint64_t tag;
	uint32_t score;
	bool at_soc;
};

struct hot {
	unsigned limit; /* keys at the SoC; 0: nothing is planned */
	struct hot_line *line, **by_score;
	struct {
		struct kv_key key;
		bool out;
	} plan[HOT_PLAN];
	unsigned planned;
};

int hot_open(struct hot *h, unsigned limit);
void hot_close(struct hot *h);
void hot_hear(struct hot *h, const struct kv_hot *count);
void hot_balance(struct hot *h);
/* The next planned move; false if there is none. */
bool hot_next(struct hot *h, struct kv_key *key, bool *out);
void hot_moved(struct hot *h, const struct kv_key *key, bool out);

#endif
