/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>

_Noreturn void fuzz_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

/* ---- decisions --------------------------------------------------------------------------- */

uint8_t feed_u8(struct feed *f)
{
	if (!f->n)
		return 0;
	f->n--;
	return *f->p++;
}

uint16_t feed_u16(struct feed *f)
{
	uint16_t low = feed_u8(f);

	return (uint16_t)(low | feed_u8(f) << 8);
}

uint32_t feed_u32(struct feed *f)
{
	uint32_t low = feed_u16(f);

	return low | (uint32_t)feed_u16(f) << 16;
}

uint64_t feed_u64(struct feed *f)
{
	uint64_t low = feed_u32(f);

	return low | (uint64_t)feed_u32(f) << 32;
}

uint32_t feed_below(struct feed *f, uint32_t n)
{
	return (n <= 256 ? feed_u8(f) : feed_u16(f)) % n;
}

uint32_t feed_length(struct feed *f, uint32_t most)
{
	uint8_t kind = feed_u8(f);

	if (kind < 160)
		return kind % (most + 1);
	if (kind < 176) /* around the limit */
		return most > kind - 160u ? most - (kind - 160u) : 0;
	if (kind < 192) /* powers of two */
		return (1u << (kind - 176)) % (most + 1);
	return feed_u16(f) % (most + 1);
}

struct uw_span feed_span(struct feed *f, size_t n)
{
	struct uw_span s = { f->p, n < f->n ? n : f->n };

	f->p += s.n;
	f->n -= s.n;
	return s;
}

void feed_fill(struct feed *f, void *p, size_t n)
{
	struct uw_span s = feed_span(f, n);
	uint8_t *out = p;

	if (s.n)
		memcpy(out, s.p, s.n);
	for (size_t i = s.n; i < n; i++)
		out[i] = (uint8_t)(i * 7 + n);
}

/* ---- memory ------------------------------------------------------------------------------ */

void *fuzz_alloc(size_t n)
{
	void *p = malloc(n);

	if (!p)
		fuzz_broken("there is memory", __FILE__, __LINE__);
	return p;
}

void *fuzz_copy(const void *p, size_t n)
{
	void *copy = fuzz_alloc(n);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

void fuzz_forbid(const void *p, size_t n)
{
	ASAN_POISON_MEMORY_REGION(p, n);
}

void fuzz_allow(const void *p, size_t n)
{
	ASAN_UNPOISON_MEMORY_REGION(p, n);
}

void cut_make(struct cut *c, struct uw_span all, struct feed *how)
{
	size_t at = 0;

	memset(c, 0, sizeof(*c));
	while (at < all.n) {
		size_t left = all.n - at, n = left;

		if (how->n && c->n < CUT_MAX - 1)
			n = 1 + feed_length(how, left - 1 < 65535 ? (uint32_t)left - 1 : 65535);
		c->v[c->n++] = (struct uw_span){ fuzz_copy(all.p + at, n), n };
		at += n;
	}
	c->rope = (struct uw_rope){ .v = c->v, .len = all.n };
}

void cut_free(struct cut *c)
{
	for (unsigned i = 0; i < c->n; i++)
		free((void *)(uintptr_t)c->v[i].p);
}
