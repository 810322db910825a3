/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle. Each key has one writer, who numbers its writes from 1; what write n of key k was, a
 * delete or a value of which length and which octets, follows from k and n alone. The journal has
 * two numbers for each key: the last write that was tried and the last that was acknowledged. So
 * anybody who reads a key knows what may be there: a write that is not older than what had been
 * acknowledged before he asked, and not younger than what had been tried when he was answered.
 *
 * In a file it survives the process, and other processes of the machine share it.
 */
#ifndef KV_JOURNAL_H
#define KV_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kv.h"

struct journal_line {
	_Atomic uint32_t tried, acked;
};

struct journal {
	struct journal_line *line;
	uint64_t keys;
	size_t size;
	uint32_t low, high; /* lengths of values */
	unsigned deletes;
};

/* path NULL: in memory. 0 or a negative errno. */
int journal_open(struct journal *j, const struct kv_options *o, uint64_t keys);
void journal_close(struct journal *j);

bool journal_deletes(const struct journal *j, uint64_t key, uint32_t n);
uint32_t journal_length(const struct journal *j, uint64_t key, uint32_t n);
void journal_fill(uint8_t *p, uint32_t length, uint64_t key, uint32_t n);
/* May this have been read, the value NULL if nothing was there? oldest: what had been acknowledged
 * before. Says what is wrong. */
bool journal_allows(const struct journal *j, uint64_t key, uint32_t oldest, const uint8_t *value,
		    uint32_t length);

#endif
