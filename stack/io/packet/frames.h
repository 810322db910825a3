/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a packet link: small ones for a frame of the wire, and large ones for a frame that the
 * kernel has merged, or cuts. The memory is mapped once, and touched when a frame is first used.
 * Under the stack lock.
 */
#ifndef UWARP_IO_PACKET_FRAMES_H
#define UWARP_IO_PACKET_FRAMES_H

#include "io/io.h"

#define FRAMES_HEADROOM 128u
/* Octets of a large frame, Ethernet header included; the length in a pbuf has 16 bits (io/lwip). */
#define FRAMES_LARGE 65535u

struct packet_frame {
	struct io_frame f;
	unsigned refs;
	struct frame_class *class;
	struct packet_frame *next; /* in the free list */
	_Alignas(64) uint8_t octets[];
};

struct frame_class {
	uint8_t *memory;
	size_t stride; /* octets from one frame to the next */
	uint32_t room; /* octets of a frame's buffer */
	unsigned max, made;
	/* free list, the last freed frame first, since its memory is in the cache */
	struct packet_frame *spare;
};

struct frames {
	struct frame_class small, large;
	struct frame_class tx; /* as large, for segments to send that the kernel cuts */
};

/* small: octets of a small frame, Ethernet header included. False: no memory. */
bool frames_open(struct frames *fs, uint32_t small);
void frames_close(struct frames *fs);

/* Take a frame, with data = buf + FRAMES_HEADROOM, len 0 and one reference; NULL: all are in use.
 */
struct io_frame *frames_take(struct frame_class *c, struct io_link *l);
/* Take a frame of fs->tx. NULL: none is left, which is not counted in no_frame: the caller then
 * takes a small one. */
struct io_frame *frames_take_long(struct frames *fs, struct io_link *l);

/* free, ref and refs of struct io_ops. */
void frames_free(struct io_frame *f);
void frames_ref(struct io_frame *f);
unsigned frames_refs(const struct io_frame *f);

#endif
