/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of copied frames, sorted by the time at which they are due, and among equal times by the
 * order in which they were added. The number and size of the frames are fixed, so nothing is
 * allocated after impair_line_open.
 */
#ifndef UWARP_IO_IMPAIR_LINE_H
#define UWARP_IO_IMPAIR_LINE_H

#include <stdint.h>

#include "base/status.h"

struct impair_line;

struct impair_held {
	uint64_t due_ns;
	uint64_t order; /* counts up with each added frame */
	uint32_t len;
	uint8_t *octets;
};

/* A queue for up to `frames` frames of `room` octets each. */
uw_status impair_line_open(unsigned frames, uint32_t room, struct impair_line **out) UW_CHECK;
void impair_line_close(struct impair_line *q);
/* Add a frame of len octets; returns where to store the octets. NULL: no room. */
uint8_t *impair_line_add(struct impair_line *q, uint64_t due_ns, uint32_t len);
/* The frame that is due first; NULL: none. Valid until removed. */
const struct impair_held *impair_line_first(const struct impair_line *q);
void impair_line_remove_first(struct impair_line *q);
unsigned impair_line_count(const struct impair_line *q);

#endif
