/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets that TCP delivered in frames and that its user has not used up: an FPDU that is not
 * complete yet, or all of it while the user pauses. They stay in their frames while these are few;
 * else they are copied together and the frames are given back. Under the stack lock. */
#ifndef UWARP_IO_HELD_H
#define UWARP_IO_HELD_H

#include "base/span.h"
#include "io/io.h"

/* Frames of one rope; more than a 64 KiB FPDU at MTU 1500 has. */
#define HELD_SPANS 64u

struct io_held {
	struct io_frame *first, **last;
	unsigned count;
	size_t bytes; /* in the frames */
	/* Octets flat_off to flat_len of a copy, in front of the frames. */
	uint8_t *flat;
	size_t flat_off, flat_len, flat_cap;
};

void held_init(struct io_held *h);
/* Everything goes. */
void held_drop(struct io_held *h);
/* One buffer of a frame, its own from now on. */
void held_add(struct io_held *h, struct io_frame *f);
static inline size_t held_octets(const struct io_held *h)
{
	return h->bytes + h->flat_len - h->flat_off;
}
/* Too many frames for the use they are? A peer that cuts an FPDU into crumbs would pin one for
 * each; and while the user pauses they are everybody's, so no more than a few stay. */
bool held_too_many(const struct io_held *h, bool paused);
/* Copy them together. False: more than any FPDU and `more` need is held, or no memory. */
bool held_flatten(struct io_held *h, size_t more);
/* What to offer: v has room for HELD_SPANS + 2. Not all of it when there are more frames. */
struct uw_rope held_rope(const struct io_held *h, struct uw_span *v);
/* The first n octets are used up. */
void held_consume(struct io_held *h, size_t n);

#endif
