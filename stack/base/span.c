/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/span.h"

#include "base/crc32c.h"

void uw_rope_gather(struct uw_rope r, void *dst, size_t n)
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
