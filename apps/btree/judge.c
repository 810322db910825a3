/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle: what may be read of a key follows from the journal (lib/journal.h). */
#include "bench.h"
#include "log.h"
#include "values.h"

bool is_delete(const struct btree_options *o, uint64_t number, uint32_t n)
{
	return o->oracle.deletes && n &&
	       mix64(number * 0x9e3779b97f4a7c15u + n) % o->oracle.deletes == 0;
}

/* Before any write a key is there if the server made it. */
static bool absent(const struct bench *b, uint64_t number, uint32_t n)
{
	return n ? is_delete(b->options, number, n) : number >= b->keys.n;
}

bool judge(const struct bench *b, uint64_t number, uint32_t oldest, const uint64_t *value)
{
	uint32_t newest = b->line[number].tried, n;

	if (!value) {
		for (n = oldest; n <= newest; n++)
			if (absent(b, number, n))
				return true;
		log_line("key %lu is lost: writes %u to %u are no deletes", number, oldest, newest);
		return false;
	}
	n = value_write(*value);
	if (*value != value_of(number, n)) {
		log_line("key %lu has a value that was never written: %016lx", number, *value);
		return false;
	}
	if (n < oldest || n > newest || absent(b, number, n)) {
		log_line("key %lu: write %u was read where %u to %u are possible", number, n,
			 oldest, newest);
		return false;
	}
	return true;
}

bool judge_scan(const struct bench *b, const struct bench_slot *s, const struct page_item *items,
		unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 0; i < s->keys; i++) {
		uint64_t key = btree_key(s->number + i);
		bool there = at < n && items[at].key == key;

		if (!judge(b, s->number + i, s->oldest[i], there ? &items[at].value : NULL))
			return false;
		at += there;
	}
	if (at == n)
		return true;
	log_line("a scan from key %lu found keys that do not belong there, or in another order",
		 s->number);
	return false;
}
