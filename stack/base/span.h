/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Octets owned by others. A span is one piece. A rope is several pieces in order, such as an FPDU
 * that straddles TCP segments.
 */
#ifndef UWARP_BASE_SPAN_H
#define UWARP_BASE_SPAN_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct uw_span {
	const uint8_t *p;
	size_t n;
};

/* A rope is passed by value, in two registers. Through a pointer, each function would wait for the
 * stores of its caller. */
struct uw_rope {
	const struct uw_span *v; /* the pieces; the rope begins `skip` octets into v[0] */
	uint32_t skip;
	uint32_t len; /* length of the rope: octets from v[0].p + skip on */
};

static_assert(sizeof(struct uw_rope) <= 16, "two registers");

static inline struct uw_rope uw_rope_of(const struct uw_span *one)
{
	return (struct uw_rope){ .v = one, .skip = 0, .len = (uint32_t)one->n };
}

/* The part of r that starts at off and is n octets long (off + n <= r->len). */
static inline struct uw_rope uw_rope_sub(struct uw_rope r, size_t off, size_t n)
{
	off += r.skip;
	while (n && off >= r.v->n) {
		off -= r.v->n;
		r.v++;
	}
	r.skip = (uint32_t)off;
	r.len = (uint32_t)n;
	return r;
}

/* The first piece as a span, cut to the rope's length: all of it when the rope is contiguous. */
static inline struct uw_span uw_rope_head(struct uw_rope r)
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

/* The slow path of uw_rope_copy, for ropes of several pieces. */
void uw_rope_gather(struct uw_rope r, void *dst, size_t n);

/* Copy the first n (<= r.len) octets to dst. Usually the octets are in one piece, and if the
 * compiler knows a small n, the copy is a move or two. */
static inline void uw_rope_copy(struct uw_rope r, void *dst, size_t n)
{
	if (n && n <= r.v->n - r.skip)
		memcpy(dst, r.v->p + r.skip, n);
	else
		uw_rope_gather(r, dst, n);
}

/* The first n (<= r.len, not 0) octets in one piece: where they are, or copied to buf. To decode
 * from buf what nearly always is in one piece would wait for the stores of the copy, since the
 * fields are loaded in other pieces than they were stored in. */
static inline const uint8_t *uw_rope_flat(struct uw_rope r, void *buf, size_t n)
{
	if (n <= r.v->n - r.skip)
		return r.v->p + r.skip;
	uw_rope_gather(r, buf, n);
	return buf;
}

/* CRC32c state continued over the whole rope; see crc32c.h. */
uint32_t uw_rope_crc32c(uint32_t crc, struct uw_rope r);

#endif
