/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The octets that TCP has delivered and its user has not used up: an FPDU that is not complete yet,
 * or everything while the user pauses. Octets stay in the frames in which they came, or are copied
 * into one piece of memory, and the frames go back to their link. The copy is in front of the
 * frames. Everything here runs under the stack lock.
 */
#ifndef UWARP_IO_RX_QUEUE_H
#define UWARP_IO_RX_QUEUE_H

#include "base/span.h"
#include "io/io.h"

/* Most frames in one rope; a 64 KiB FPDU at MTU 1500 has fewer. */
#define RX_QUEUE_SPANS 64u

struct rx_queue {
	struct io_frame *first, **last; /* list of buffers, the oldest first */
	unsigned count;			/* frames */
	size_t bytes;			/* octets in the frames */
	uint8_t *copy; /* copied octets: from copy_off to copy_len, before those in frames */
	size_t copy_off, copy_len, copy_cap;
};

void rx_queue_init(struct rx_queue *q);
/* Give back all frames and memory. */
void rx_queue_drop(struct rx_queue *q);
/* Append one buffer of a frame, which the queue owns from now on. */
void rx_queue_add(struct rx_queue *q, struct io_frame *f);
static inline size_t rx_queue_octets(const struct rx_queue *q)
{
	return q->bytes + q->copy_len - q->copy_off;
}
/* Should the frames be copied out? A peer that sends an FPDU in very small segments would pin a
 * receive buffer with each segment; and while the user pauses, other connections need the buffers.
 */
bool rx_queue_too_long(const struct rx_queue *q, bool paused);
/* Copy the octets of all frames and give the frames back. False: no memory, or the queue has more
 * octets than an FPDU and `more`; nothing changes. */
bool rx_queue_copy_out(struct rx_queue *q, size_t more);
/* The octets of the queue, from the front on, as a rope over v, which has RX_QUEUE_SPANS + 2
 * entries. If the queue has more frames than that, the rope ends before the end of the queue. */
struct uw_rope rx_queue_rope(const struct rx_queue *q, struct uw_span *v);
/* The first n octets are used up. */
void rx_queue_consume(struct rx_queue *q, size_t n);

#endif
