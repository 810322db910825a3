/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets that TCP delivered in frames and that its user has not used up: an FPDU that is not
 * complete yet, or all of it while the user pauses. They stay in their frames while these are few;
 * else they are copied together and the frames are given back. Under the stack lock. */
#ifndef UWARP_IO_RX_QUEUE_H
#define UWARP_IO_RX_QUEUE_H

#include "base/span.h"
#include "io/io.h"

/* Frames of one rope; more than a 64 KiB FPDU at MTU 1500 has. */
#define RX_QUEUE_SPANS 64u

struct rx_queue {
	struct io_frame *first, **last;
	unsigned count;
	size_t bytes; /* in the frames */
	/* Octets copy_off to copy_len of a copy, in front of the frames. */
	uint8_t *copy;
	size_t copy_off, copy_len, copy_cap;
};

void rx_queue_init(struct rx_queue *q);
/* Everything goes. */
void rx_queue_drop(struct rx_queue *q);
/* One buffer of a frame, its own from now on. */
void rx_queue_add(struct rx_queue *q, struct io_frame *f);
static inline size_t rx_queue_octets(const struct rx_queue *q)
{
	return q->bytes + q->copy_len - q->copy_off;
}
/* Too many frames for the use they are? A peer that cuts an FPDU into crumbs would pin one for
 * each; and while the user pauses they are everybody's, so no more than a few stay. */
bool rx_queue_too_long(const struct rx_queue *q, bool paused);
/* Copy them together. False: more than any FPDU and `more` need is held, or no memory. */
bool rx_queue_copy_out(struct rx_queue *q, size_t more);
/* What to offer: v has room for RX_QUEUE_SPANS + 2. Not all of it when there are more frames. */
struct uw_rope rx_queue_rope(const struct rx_queue *q, struct uw_span *v);
/* The first n octets are used up. */
void rx_queue_consume(struct rx_queue *q, size_t n);

#endif
