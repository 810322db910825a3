/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-rate: how many operations a second, in the style of rdma_bench: by operation, size,
 * post-list length, inlining, signalling interval, QPs, threads and operations under way.
 *
 * Each connection has memory of its own at the server: a word that counts (atomics, and messages
 * that the server received and found right), and room for one transfer for each operation that can
 * be under way. After a run the client looks whether everything is where it belongs.
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "options.h"

enum rate_op { RATE_WRITE, RATE_READ, RATE_SEND, RATE_FAA, RATE_CAS };

#define RATE_SERVICE  ((struct service){ "uwarp-rate", 0x65746172u })
#define RATE_WORD     8u    /* octets of an atomic */
#define RATE_DATA     4096u /* octets before the data; the counter is the first word */
#define RATE_LIST_MAX 64u
#define RATE_POINTS   16u
#define RATE_SLOTS    4096u /* as many as a client can have */

/* From the client. */
struct rate_wish {
	uint32_t magic;
	uint32_t verify; /* the server is to look at what it receives */
	uint64_t seed;	 /* of what it sends; ~seed: of what it reads */
	uint32_t size;	 /* of each transfer */
	uint32_t slots;
};

/* From the server. */
struct rate_offer {
	uint32_t magic, rkey;
	uint64_t base;
	uint32_t message; /* the longest that it receives */
	uint32_t unused;
};

struct rate_options {
	struct options common;
	enum rate_op op;
	uint64_t size[RATE_POINTS], list[RATE_POINTS];
	unsigned sizes, lists;
	uint64_t qps, signal, inline_data, message, memory;
	bool inlined, verify, fault;
};

/* One point of what is measured. */
struct rate_point {
	uint32_t size, list, signal, inline_data;
};

/* The octets that a slot holds, if they come from this seed; what is sent has its operation's
 * number in it, so that each time they are others. */
static inline uint64_t rate_word(uint64_t seed, uint32_t slot, uint32_t word)
{
	return mix64(seed + ((uint64_t)slot << 32) + word);
}

static inline void rate_fill(uint8_t *p, uint32_t size, uint64_t seed, uint32_t slot)
{
	for (uint32_t i = 0; i < size; i += 8) {
		uint64_t w = rate_word(seed, slot, i / 8);

		memcpy(p + i, &w, size - i < 8 ? size - i : 8);
	}
}

static inline void rate_stamp(uint8_t *p, uint32_t size, uint64_t first, uint64_t number)
{
	uint64_t w = first ^ number;

	memcpy(p, &w, size < 8 ? size : 8);
}

static inline bool rate_right(const uint8_t *p, uint32_t size, uint64_t seed, uint32_t slot,
			      uint64_t number)
{
	for (uint32_t i = 0; i < size; i += 8) {
		uint64_t w = rate_word(seed, slot, i / 8) ^ (i ? 0 : number);

		if (memcmp(p + i, &w, size - i < 8 ? size - i : 8))
			return false;
	}
	return true;
}

extern const char *const rate_names[];

int rate_serve(const struct rate_options *o);
int rate_run(const struct rate_options *o, const struct rate_point *p);

#endif
