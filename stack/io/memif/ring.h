/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings that carry frames between two processes through shared memory. This file does not use DPDK.
 *
 * Each process makes one region for each peer (a sealed memfd). Only the maker writes to the
 * region; the peer maps the region read-only. A peer's region is untrusted input like a packet, so
 * every value in it is checked before use:
 *
 *   page 0   one cache line for each queue: how many frames the maker has taken out of the peer's
 *            ring of that queue ("taken")
 *   then     one ring for each queue, of ring_slots() slots of ring_stride() octets
 *   slot     its turn, the frame's length, and the frame itself, or its headers and where in the
 *            maker's memory of frames to send the rest lies (doc/adr/0043)
 *
 * A ring has one writer and one reader. Frame number n (from 0) lies in slot n % slots; the frame
 * is there once the slot's turn is n + 1. The writer may use a slot again when the reader's "taken"
 * has passed the slot. The place of a slot follows from its number alone, so turn, length,
 * rest and taken are the only values of a peer that are used. A wrong turn means that no frame is
 * there. A length that no frame can have, a rest outside of the memory that the peer lends, or a
 * taken beyond what was sent, is a fault of the peer.
 *
 * Memory order: the writer's store of turn (release) pairs with the reader's load (acquire); the
 * reader's store of taken (release) pairs with the writer's load (acquire).
 */
#ifndef UWARP_IO_MEMIF_RING_H
#define UWARP_IO_MEMIF_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "io/io.h"

enum {
	RING_LINE = 64,
	RING_PAGE = 4096,
	RING_QUEUES_MAX = RING_PAGE / RING_LINE,
	RING_FRAME_MIN = 14, /* an Ethernet header */
	RING_BEGIN = 48,     /* octets of a frame in the first cache line of its slot */
	RING_HEAD = 112,     /* octets of a lent frame that its slot has: two cache lines */
	RING_LEND_MIN = 2048 /* shorter frames are copied whole */
};

struct ring_slot {
	_Atomic uint32_t turn;
	_Atomic uint32_t len;
	/* 0: the slot has all of the frame; else 1 + where in the writer's memory of frames to send
	 * the octets from RING_HEAD on lie */
	_Atomic uint32_t rest;
	uint32_t unused; /* so that the frame begins on a multiple of 16 */
	uint8_t octets[];
};

/* The parameters that both sides of a pair must agree on; all sizes follow from them. */
struct ring_shape {
	uint32_t frame_max; /* octets of a frame, Ethernet header included */
	uint32_t queues;    /* 1..RING_QUEUES_MAX */
};

/* A region of ours, which the peer reads. */
struct ring_region {
	uint8_t *base; /* NULL: none */
	size_t size;
	int fd; /* descriptor to send to the peer; -1 after that */
};

/* Memory of the peer's, which we read. */
struct ring_view {
	const uint8_t *base; /* NULL: none */
	size_t size;
};

/* The writing end. Only the writer uses the fields. */
struct ring_writer {
	uint8_t *slots;
	uint32_t mask, stride;
	uint32_t next;			       /* number of the next frame to write */
	uint32_t seen;			       /* the last value read from *taken_by_peer */
	const _Atomic uint32_t *taken_by_peer; /* in the peer's region */
};

/* The reading end. */
struct ring_reader {
	const uint8_t *slots;
	uint32_t mask, stride, frame_max;
	uint32_t next;		 /* number of the next frame to read */
	_Atomic uint32_t *taken; /* in our region */
	struct ring_view lent;	 /* the peer's memory of frames to send */
};

enum ring_result {
	RING_OK,
	RING_NONE, /* the reader finds no frame, the writer no room */
	RING_FAULT /* the peer wrote an invalid value */
};

enum { RING_LENT_MAX = 128 << 20 }; /* most octets that a process lends */

uint32_t ring_slots(const struct ring_shape *s);

/* Make a region for one peer. NO_LINK: errno says why not. */
UW_CHECK uw_status ring_region_make(struct ring_region *r, const struct ring_shape *s);
void ring_region_free(struct ring_region *r);
/* Map the peer's region read-only. Closes fd, which may be -1. INVAL: fd is no memfd, is shorter
 * than agreed, or lacks the seal against shrinking. */
UW_CHECK uw_status ring_view_map(struct ring_view *v, const struct ring_shape *s, int fd);
/* The same for the memory of `size` octets that the peer lends; 0: it lends none. */
UW_CHECK uw_status ring_lent_map(struct ring_view *v, uint32_t size, int fd);
void ring_view_unmap(struct ring_view *v);

/* The two ends of one queue of a pair. */
struct ring_writer ring_writer_of(const struct ring_shape *s, const struct ring_region *ours,
				  const struct ring_view *theirs, unsigned queue);
struct ring_reader ring_reader_of(const struct ring_shape *s, const struct ring_region *ours,
				  const struct ring_view *theirs, unsigned queue);

/* See how many frames the peer has taken by now. */
static inline enum ring_result ring_see(struct ring_writer *w)
{
	w->seen = atomic_load_explicit(w->taken_by_peer, memory_order_acquire);
	return w->next - w->seen > w->mask + 1 ? RING_FAULT : RING_OK;
}

/* Is there a free slot? */
static inline enum ring_result ring_room(struct ring_writer *w)
{
	if (w->next - w->seen <= w->mask)
		return RING_OK;
	if (ring_see(w) != RING_OK)
		return RING_FAULT;
	return w->next - w->seen > w->mask ? RING_NONE : RING_OK;
}

static inline struct ring_slot *ring_next(const struct ring_writer *w)
{
	return (struct ring_slot *)(void *)(w->slots + (size_t)(w->next & w->mask) * w->stride);
}

static inline void ring_publish(struct ring_writer *w, struct ring_slot *s, uint32_t len,
				uint32_t rest)
{
	atomic_store_explicit(&s->len, len, memory_order_relaxed);
	atomic_store_explicit(&s->rest, rest, memory_order_relaxed);
	atomic_store_explicit(&s->turn, ++w->next, memory_order_release);
}

/* Copy a frame of len octets, at most the agreed maximum, into the ring; the peer sees the frame at
 * once. NONE: the ring is full. */
static inline enum ring_result ring_write(struct ring_writer *w, const struct io_frame *f,
					  uint32_t len)
{
	enum ring_result r = ring_room(w);

	if (r != RING_OK)
		return r;
	struct ring_slot *s = ring_next(w);
	/* The reader polls the first cache line of the slot, so the first line is written last, in
	 * one go. */
	const uint8_t *first = f->data;
	uint32_t begin = f->len < RING_BEGIN ? f->len : RING_BEGIN;
	uint8_t *to = s->octets + f->len;

	memcpy(s->octets + begin, first + begin, f->len - begin);
	while ((f = f->next)) {
		memcpy(to, f->data, f->len);
		to += f->len;
	}
	memcpy(s->octets, first, begin);
	ring_publish(w, s, len, 0);
	return RING_OK;
}

/* The same for a frame of one buffer of at least RING_LEND_MIN octets that lies `at` octets into
 * our memory of frames to send: only its head is copied. The octets behind the head may not change
 * before the peer has taken the frame. */
static inline enum ring_result ring_lend(struct ring_writer *w, const struct io_frame *f, size_t at)
{
	enum ring_result r = ring_room(w);

	if (r != RING_OK)
		return r;
	struct ring_slot *s = ring_next(w);
	memcpy(s->octets, f->data, RING_HEAD);
	ring_publish(w, s, f->len, (uint32_t)at + RING_HEAD + 1);
	return RING_OK;
}

/* Is a frame ready to be read? Returns its slot, or NULL. */
static inline const struct ring_slot *ring_look(const struct ring_reader *r)
{
	const struct ring_slot *s =
		(const struct ring_slot *)(const void *)(r->slots +
							 (size_t)(r->next & r->mask) * r->stride);

	return atomic_load_explicit(&s->turn, memory_order_acquire) == r->next + 1 ? s : NULL;
}

/* The length of the frame in s. The octets stay writable for the peer: copy them first, then
 * examine the copy. */
static inline enum ring_result ring_length(const struct ring_reader *r, const struct ring_slot *s,
					   uint32_t *len)
{
	*len = atomic_load_explicit(&s->len, memory_order_relaxed);
	return *len >= RING_FRAME_MIN && *len <= r->frame_max ? RING_OK : RING_FAULT;
}

/* Copy the frame in s, whose length is len, to `to`. FAULT: it lies outside of what the peer
 * lends. */
static inline enum ring_result ring_copy(const struct ring_reader *r, const struct ring_slot *s,
					 uint32_t len, uint8_t *to)
{
	uint32_t rest = atomic_load_explicit(&s->rest, memory_order_relaxed);
	uint32_t behind = len - RING_HEAD;

	if (!rest) {
		memcpy(to, s->octets, len);
		return RING_OK;
	}
	if (len <= RING_HEAD || r->lent.size < behind || rest - 1 > r->lent.size - behind)
		return RING_FAULT;
	memcpy(to, s->octets, RING_HEAD);
	memcpy(to + RING_HEAD, r->lent.base + (rest - 1), behind);
	return RING_OK;
}

/* The frame was copied. ring_tell reports this to the writer. */
static inline void ring_step(struct ring_reader *r)
{
	r->next++;
}

static inline void ring_tell(const struct ring_reader *r)
{
	atomic_store_explicit(r->taken, r->next, memory_order_release);
}

/* Doorbells: one page for the whole process with a word for each queue (io_link.doorbell), which
 * all peers map and write. NULL: see errno. */
_Atomic uint32_t *bell_make(int *fd);
/* Map the peer's page of doorbells. Closes fd, which may be -1. */
_Atomic uint32_t *bell_map(int fd);
void bell_unmap(_Atomic uint32_t *bell);

/* The doorbell of one queue, in a cache line of its own. */
static inline _Atomic uint32_t *bell_word(_Atomic uint32_t *bell, unsigned queue)
{
	return bell + queue * (RING_LINE / sizeof(*bell));
}

#endif
