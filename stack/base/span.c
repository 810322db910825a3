/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/span.h"

#include <string.h>

#include "base/crc32c.h"

struct uw_rope uw_rope_sub(struct uw_rope r, size_t off, size_t n)
{
	r.skip += off;
	while (n && r.skip >= r.v->n) {
		r.skip -= r.v->n;
		r.v++;
	}
	r.len = n;
	return r;
}

struct uw_span uw_rope_head(struct uw_rope r)
{
	struct uw_span s = { NULL, 0 };

	if (!r.len)
		return s;
	s.p = r.v->p + r.skip;
	s.n = r.v->n - r.skip;
	if (s.n > r.len)
		s.n = r.len;
	return s;
}

void uw_rope_copy(struct uw_rope r, void *dst, size_t n)
{
	uint8_t *d = dst;

	while (n) {
		struct uw_span s = uw_rope_head(r);

		if (s.n > n)
			s.n = n;
		memcpy(d, s.p, s.n);
		d += s.n;
		n -= s.n;
		r = uw_rope_sub(r, s.n, r.len - s.n);
	}
}

uint32_t uw_rope_crc32c(uint32_t crc, struct uw_rope r)
{
	while (r.len) {
		struct uw_span s = uw_rope_head(r);

		crc = uw_crc32c_add(crc, s.p, s.n);
		r = uw_rope_sub(r, s.n, r.len - s.n);
	}
	return crc;
}
