/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/sgl.h"

#include <string.h>

#include "base/guard.h"
#include "base/prefetch.h"

/* Where the octet at `off` of the list lies and how many follow it in the same SGE, at most *n. */
static uw_status locate(const struct mem_table *t, const struct mem_sgl *sgl, uint64_t off,
			unsigned need, struct uw_span *out)
{
	const struct uw_sge *e = sgl->v;
	struct mem_access a = { .pd = sgl->pd, .need = need };
	uint8_t *va = NULL;
	enum mem_verdict v;

	while (off >= e->length) {
		off -= e->length;
		e++;
	}
	a.stag = e->lkey;
	a.to = e->addr + off;
	a.len = e->length - off < out->n ? e->length - off : out->n;
	v = mem_check(t, &a, &va);
	if (v)
		return mem_verdict_status(v, MEM_FOR_LOCAL);
	*out = (struct uw_span){ va, (size_t)a.len };
	return UW_OK;
}

/* A message longer than a segment goes on with what lies behind it, and the CRC of this one is
 * computed meanwhile (doc/adr/0057). Less than this is no full segment; what is longer than a jumbo
 * frame's does not stay in the nearest cache. A prefetch cannot fault. */
#define AHEAD_LEAST 1024u
#define AHEAD_MOST  9216u

static void prefetch_behind(const struct uw_span *s)
{
	if (s->n < AHEAD_LEAST || s->n > AHEAD_MOST)
		return;
	for (size_t at = 0; at < s->n; at += UW_LINE)
		__builtin_prefetch(s->p + s->n + at);
}

uw_status mem_gather(const struct mem_table *t, const struct mem_sgl *sgl, uint64_t off,
		     uint8_t *dst, size_t n)
{
	if (sgl->inl) {
		memcpy(dst, sgl->inl + off, n);
		return UW_OK;
	}
	while (n) {
		struct uw_span s = { NULL, n };
		uw_status st = locate(t, sgl, off, 0, &s);

		if (st)
			return st;
		if (!s.p)
			memset(dst, 0, s.n);
		else if (!uw_guarded_copy(dst, s.p, s.n))
			return UW_E_LKEY;
		if (s.p)
			prefetch_behind(&s);
		dst += s.n;
		off += s.n;
		n -= s.n;
	}
	return UW_OK;
}

uw_status mem_scatter(const struct mem_table *t, const struct mem_sgl *sgl, uint64_t off,
		      struct uw_rope src)
{
	while (src.len) {
		struct uw_span s = { NULL, src.len };
		uw_status st = locate(t, sgl, off, UW_ACCESS_LOCAL_WRITE, &s);

		if (st)
			return st;
		if (s.p && !uw_rope_place(src, (uint8_t *)(uintptr_t)s.p, s.n))
			return UW_E_LKEY;
		src = uw_rope_sub(src, s.n, src.len - s.n);
		off += s.n;
	}
	return UW_OK;
}
