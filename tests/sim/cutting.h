/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that cuts long segments (struct io_frame, cut), above one that does not, and computes
 * checksums as a card does. What it sends is segments of the wire, and each must be whole FPDUs,
 * also when it is sent again (RFC 5044 §5). For FPDUs without markers.
 */
#ifndef UWARP_TESTS_SIM_CUTTING_H
#define UWARP_TESTS_SIM_CUTTING_H

#include "io/io.h"

struct cutting_stats {
	uint64_t longs, pieces; /* frames that were cut, and into how many */
	unsigned last[2];	/* the last one's pieces, and those of the one before it */
	uint64_t segments;	/* of FPDUs, pieces included */
	uint64_t broken;	/* of them those that are not whole FPDUs */
	uint64_t refused;	/* frames that the stack did not get */
	unsigned out;		/* frames of alloc_long in use */
};

/* At most `longs` frames of alloc_long at a time, and no others for the stack while `smalls` of the
 * loop link are in use (0: no limit). What the wire needs is beside that. */
struct io_link *cutting_open(struct io_link *under, const struct io_link *loop, unsigned longs,
			     unsigned smalls);
struct cutting_stats cutting_stats(const struct io_link *l);

#endif
