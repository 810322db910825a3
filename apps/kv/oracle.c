/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "clock.h"
#include "oracle.h"
#include "log.h"

/* How a value begins; pseudo-random words follow. */
struct stamp {
	uint64_t key;
	uint32_t n, length;
};

int oracle_open(struct oracle *j, const struct kv_options *o, uint64_t keys)
{
	*j = (struct oracle){ .keys = keys,
			      .low = (uint32_t)o->value_low,
			      .high = (uint32_t)o->value_high,
			      .deletes = o->oracle.deletes };
	return journal_map(&j->line, o->oracle.journal, keys);
}

void oracle_close(struct oracle *j)
{
	journal_unmap(j->line, j->keys);
}

/* ---- what write n of a key is ------------------------------------------------------------ */

static uint64_t dice(uint64_t key, uint32_t n)
{
	return mix64(key * 0x10000001b3u + n);
}

bool oracle_deletes(const struct oracle *j, uint64_t key, uint32_t n)
{
	return j->deletes && n > 1 && dice(key, n) % j->deletes == 0;
}

uint32_t oracle_length(const struct oracle *j, uint64_t key, uint32_t n)
{
	return j->low + (uint32_t)((dice(key, n) >> 32) % (j->high - j->low + 1));
}

static uint64_t word(uint64_t key, uint32_t n, uint32_t i)
{
	return (dice(key, n) + i) * 0x9e3779b97f4a7c15u;
}

void oracle_fill(uint8_t *p, uint32_t length, uint64_t key, uint32_t n)
{
	struct stamp s = { key, n, length };

	memcpy(p, &s, sizeof(s));
	for (uint32_t i = sizeof(s); i < length; i += 8) {
		uint64_t w = word(key, n, i);

		memcpy(p + i, &w, length - i < 8 ? length - i : 8);
	}
}

static bool octets_right(const uint8_t *p, uint32_t length, uint64_t key, uint32_t n)
{
	for (uint32_t i = sizeof(struct stamp); i < length; i += 8) {
		uint64_t w = word(key, n, i);

		if (memcmp(p + i, &w, length - i < 8 ? length - i : 8))
			return false;
	}
	return true;
}

/* ---- judgement --------------------------------------------------------------------------- */

static bool may_be_absent(const struct oracle *j, uint64_t key, uint32_t oldest, uint32_t newest)
{
	if (!oldest)
		return true;
	for (uint32_t n = oldest; n <= newest; n++)
		if (oracle_deletes(j, key, n))
			return true;
	log_line("key %lu is lost: writes %u to %u are no deletes", key, oldest, newest);
	return false;
}

bool oracle_allows(const struct oracle *j, uint64_t key, uint32_t oldest, const uint8_t *value,
		   uint32_t length)
{
	uint32_t newest = j->line[key].tried;
	struct stamp s;

	if (!value)
		return may_be_absent(j, key, oldest, newest);
	if (length < sizeof(s)) {
		log_line("key %lu: a value of %u octets was never written", key, length);
		return false;
	}
	memcpy(&s, value, sizeof(s));
	if (s.key != key || s.length != length || !octets_right(value, length, key, s.n)) {
		log_line("key %lu: the value is torn, or another key's", key);
		return false;
	}
	if (s.n < oldest || s.n > newest || oracle_deletes(j, key, s.n) ||
	    length != oracle_length(j, key, s.n)) {
		log_line("key %lu: write %u was read where %u to %u are possible", key, s.n, oldest,
			 newest);
		return false;
	}
	return true;
}
