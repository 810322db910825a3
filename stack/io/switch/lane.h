/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lane between a client and the uwarpd: two regions of shared memory, one for each direction,
 * each written by one side and read-only for the other.
 *
 *   page 0   line 0: how many octets of records the writer of this region has written ("head")
 *            line 1: how many octets the writer of this region has read of the other one ("tail")
 *   then     LANE_OCTETS octets of records, used in a circle
 *   record   a head of LANE_HEAD octets, the frame, and up to 63 octets so that the next record
 *            begins on a cache line. A record with the length LANE_SKIP fills up the end.
 *
 * A region is untrusted input: head, tail and the length of a record are the only values of the
 * other side that are used, each is read once and checked. Records instead of slots, since frames
 * have 60 to 65535 octets.
 *
 * Memory order: the store of head (release) pairs with the reader's load (acquire), the store of
 * tail with the writer's.
 */
#ifndef UWARP_IO_SWITCH_LANE_H
#define UWARP_IO_SWITCH_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
	LANE_LINE = 64,
	LANE_PAGE = 4096,
	LANE_OCTETS = 2 << 20, /* a power of two */
	LANE_REGION = LANE_PAGE + LANE_OCTETS,
	LANE_HEAD = 16,
	LANE_FRAME_MIN = 14,
	LANE_FRAME_MAX = 65535,
};

/* What goes with a frame. */
struct lane_meta {
	uint16_t gso_size; /* a merged frame: octets of payload in a segment; else 0 */
	/* To the uwarpd: the TCP checksum field holds the pseudo-header's sum, and the rest is to
	 * be added. From it: the checksum was verified, or nothing could damage the frame. */
	bool sum;
};

enum lane_result {
	LANE_OK,
	LANE_NONE, /* the reader finds no frame, the writer no room */
	LANE_FAULT /* the other side wrote an invalid value */
};

struct lane_writer {
	uint8_t *records;
	_Atomic uint32_t *head;	      /* in our region */
	const _Atomic uint32_t *tail; /* in the other side's region */
	uint32_t next;		      /* octets written */
	uint32_t seen;		      /* the last tail that was read */
};

struct lane_reader {
	const uint8_t *records;
	const _Atomic uint32_t *head; /* in the other side's region */
	_Atomic uint32_t *tail;	      /* in our region */
	uint32_t next;		      /* octets read */
	uint32_t known;		      /* the last head that was read */
	uint32_t here;		      /* octets of the record that lane_look found */
};

/* Both ends of a lane, as one side has them. */
struct lane {
	uint8_t *ours;	       /* the region that we write; NULL: none */
	const uint8_t *theirs; /* the region that the other side writes; NULL: none */
	struct lane_writer out;
	struct lane_reader in;
};

/* Make our region; *fd is for the other side, and the caller closes it. NO_LINK: see errno. */
UW_CHECK uw_status lane_make(struct lane *l, int *fd);
/* Map the other side's region and be ready. Closes fd, which may be -1. INVAL: it is none. */
UW_CHECK uw_status lane_attach(struct lane *l, int fd);
void lane_free(struct lane *l);

/* Room for a frame of len octets, in one piece; *at is where it goes. Nothing is visible to the
 * other side before lane_put of the same len. */
enum lane_result lane_room(struct lane_writer *w, uint32_t len, uint8_t **at);
void lane_put(struct lane_writer *w, uint32_t len, const struct lane_meta *meta);

/* The next frame. Its octets stay writable for the other side: copy what is examined. */
enum lane_result lane_look(struct lane_reader *r, const uint8_t **at, uint32_t *len,
			   struct lane_meta *meta);
/* Go on behind the frame that lane_look found. lane_tell gives the room back to the writer. */
void lane_step(struct lane_reader *r);
void lane_tell(const struct lane_reader *r);

/* Is there anything to read? May be true by mistake. */
static inline bool lane_has(const struct lane_reader *r)
{
	return atomic_load_explicit(r->head, memory_order_acquire) != r->next;
}

#endif
