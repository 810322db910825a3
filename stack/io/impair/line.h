/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that wait for their time, as copies, in the order of when they are due; those of the same
 * time in the order in which they were added. A fixed number of fixed room: nothing is allocated
 * after it is open.
 */
#ifndef UWARP_IO_IMPAIR_LINE_H
#define UWARP_IO_IMPAIR_LINE_H

#include <stdint.h>

#include "base/status.h"

struct impair_line;

struct impair_held {
	uint64_t due_ns;
	uint64_t order; /* of adding */
	uint32_t len;
	uint8_t *octets;
};

/* Up to `frames` of `room` octets each. */
uw_status impair_line_open(unsigned frames, uint32_t room, struct impair_line **out) UW_CHECK;
void impair_line_close(struct impair_line *q);
/* Where to store the frame's len octets; NULL: no room. */
uint8_t *impair_line_add(struct impair_line *q, uint64_t due_ns, uint32_t len);
/* The one that is due first, NULL: none. Valid until it is removed. */
const struct impair_held *impair_line_first(const struct impair_line *q);
void impair_line_remove_first(struct impair_line *q);
unsigned impair_line_count(const struct impair_line *q);

#endif
