/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conduit between a client and the uwarpd: two regions of shared memory, one for each
 * direction, each written by one side and read-only for the other.
 *
 *   page 0   line 0: how many octets of records the writer of this region has written ("head")
 *            line 1: how many octets the writer of this region has read of the other one ("tail")
 *   then     CONDUIT_OCTETS octets of records, used in a circle
 *   record   a head of CONDUIT_HEAD octets, the frame, and up to 63 octets so that the next record
 *            begins on a cache line. A record with the length CONDUIT_SKIP fills up the end.
 *
 * A region is untrusted input: head, tail and the length of a record are the only values of the
 * other side that are used, each is read once and checked. Records instead of slots, since frames
 * have 60 to 65535 octets.
 *
 * Memory order: the store of head (release) pairs with the reader's load (acquire), the store of
 * tail with the writer's.
 */
#ifndef UWARP_IO_SWITCH_CONDUIT_H
#define UWARP_IO_SWITCH_CONDUIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
	CONDUIT_LINE = 64,
	CONDUIT_PAGE = 4096,
	CONDUIT_OCTETS = 2 << 20, /* a power of two */
	CONDUIT_REGION = CONDUIT_PAGE + CONDUIT_OCTETS,
	CONDUIT_HEAD = 16,
	CONDUIT_FRAME_MIN = 14,
	CONDUIT_FRAME_MAX = 65535,
};

/* What goes with a frame. */
struct conduit_meta {
	uint16_t gso_size; /* a merged frame: octets of payload in a segment; else 0 */
	/* To the uwarpd: the TCP checksum field holds the pseudo-header's sum, and the rest is to
	 * be added. From it: the checksum was verified, or nothing could damage the frame. */
	bool sum;
};

enum conduit_result {
	CONDUIT_OK,
	CONDUIT_NONE, /* the reader finds no frame, the writer no room */
	CONDUIT_FAULT /* the other side wrote an invalid value */
};

struct conduit_writer {
	uint8_t *records;
	_Atomic uint32_t *head;	      /* in our region */
	const _Atomic uint32_t *tail; /* in the other side's region */
	uint32_t next;		      /* octets written */
	uint32_t seen;		      /* the last tail that was read */
};

struct conduit_reader {
	const uint8_t *records;
	const _Atomic uint32_t *head; /* in the other side's region */
	_Atomic uint32_t *tail;	      /* in our region */
	uint32_t next;		      /* octets read */
	uint32_t known;		      /* the last head that was read */
	uint32_t here;		      /* octets of the record that conduit_look found */
};

/* Both ends of a conduit, as one side has them. */
struct conduit {
	uint8_t *ours;	       /* the region that we write; NULL: none */
	const uint8_t *theirs; /* the region that the other side writes; NULL: none */
	struct conduit_writer out;
	struct conduit_reader in;
};

/* Make our region; *fd is for the other side, and the caller closes it. NO_LINK: see errno. */
UW_CHECK uw_status conduit_make(struct conduit *l, int *fd);
/* Map the other side's region and be ready. Closes fd, which may be -1. INVAL: it is none. */
UW_CHECK uw_status conduit_attach(struct conduit *l, int fd);
void conduit_free(struct conduit *l);

/* Room for a frame of len octets, in one piece; *at is where it goes. Nothing is visible to the
 * other side before conduit_put of the same len. */
enum conduit_result conduit_room(struct conduit_writer *w, uint32_t len, uint8_t **at);
void conduit_put(struct conduit_writer *w, uint32_t len, const struct conduit_meta *meta);

/* The next frame. Its octets stay writable for the other side: copy what is examined. */
enum conduit_result conduit_look(struct conduit_reader *r, const uint8_t **at, uint32_t *len,
				 struct conduit_meta *meta);
/* Go on behind the frame that conduit_look found. conduit_tell gives the room back to the writer.
 */
void conduit_step(struct conduit_reader *r);
void conduit_tell(const struct conduit_reader *r);

/* Is there anything to read? May be true by mistake. */
static inline bool conduit_has(const struct conduit_reader *r)
{
	return atomic_load_explicit(r->head, memory_order_acquire) != r->next;
}

#endif
