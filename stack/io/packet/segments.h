/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP segments as the kernel takes them: one by one with a checksum to be computed, or many of one
 * flow behind one header, which the kernel or its device cuts apart again (TSO). An FPDU stays one
 * segment (RFC 5044 §5), so only those are merged that come out of the cut octet for octet,
 * checksums apart (doc/adr/0023).
 */
#ifndef UWARP_IO_PACKET_SEGMENTS_H
#define UWARP_IO_PACKET_SEGMENTS_H

#include <linux/virtio_net.h>

#include "io/io.h"

#define SEGMENTS_MAX	 64u		   /* in one merged frame */
#define SEGMENTS_HEADERS (14u + 40u + 60u) /* Ethernet, IPv6, TCP with all options */

/* A frame that is a TCP segment, without IP options or extension headers. */
struct segment {
	const uint8_t *frame; /* the Ethernet header */
	unsigned ip, headers; /* octets of the IP header, and of all headers */
	uint32_t payload;     /* octets, in all buffers */
	bool ip6;
};

/* False: it is none, or its headers are not all in the first buffer. */
bool segment_read(const struct io_frame *f, struct segment *out);

/* How many of the n frames at v can go as one; 1: the first goes alone. Only frames whose checksum
 * the kernel is to compute (IO_FRAME_SUM) are merged: another's may be wrong on purpose
 * (io/impair). */
unsigned segments_run(struct io_frame *const *v, unsigned n);

/* The headers of a run of n frames, n >= 2, into `out`, of SEGMENTS_HEADERS octets, and what the
 * kernel is to do with it. Returns the octets of the headers. The frames' own are not touched: TCP
 * sends them again. */
unsigned segments_head(struct io_frame *const *v, unsigned n, uint8_t *out,
		       struct virtio_net_hdr *vnet);

/* The kernel is to compute the checksum of this frame; other than TCP it is left alone. Writes to
 * the checksum field. */
void segment_ask_sum(struct io_frame *f, struct virtio_net_hdr *vnet);

#endif
