/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle: a journal (lib/journal.h), and what write n of key k was, a delete or a value of
 * which length and which octets: that follows from k and n alone. Writes are numbered from 1.
 */
#ifndef KV_ORACLE_H
#define KV_ORACLE_H

#include <stdbool.h>
#include <stddef.h>

#include "journal.h"
#include "kv.h"

struct oracle {
	struct journal_line *line; /* NULL: there is none */
	uint64_t keys;
	uint32_t low, high; /* lengths of values */
	unsigned deletes;
};

/* 0 or a negative errno. */
int oracle_open(struct oracle *j, const struct kv_options *o, uint64_t keys);
void oracle_close(struct oracle *j);

bool oracle_deletes(const struct oracle *j, uint64_t key, uint32_t n);
uint32_t oracle_length(const struct oracle *j, uint64_t key, uint32_t n);
void oracle_fill(uint8_t *p, uint32_t length, uint64_t key, uint32_t n);
/* May this have been read, the value NULL if nothing was there? oldest: what had been acknowledged
 * before. Says what is wrong. */
bool oracle_allows(const struct oracle *j, uint64_t key, uint32_t oldest, const uint8_t *value,
		   uint32_t length);

#endif
