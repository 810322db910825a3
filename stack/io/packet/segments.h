/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP segments in the form that the kernel takes: one by one with the checksum left to the kernel,
 * or many of one flow behind one header, which the kernel or its device cuts apart again (TSO). An
 * FPDU stays one segment (RFC 5044 §5), so segments are merged only if the cut yields the same
 * octets again (io/segment.h), except for the checksums (doc/adr/0023).
 */
#ifndef UWARP_IO_PACKET_SEGMENTS_H
#define UWARP_IO_PACKET_SEGMENTS_H

#include <linux/virtio_net.h>

#include "base/span.h"
#include "io/segment.h"

#define SEGMENTS_MAX 64u /* most segments in one merged frame */

/* How many of the n frames at v, from the first on, can be merged; 1: none with the first. Only
 * frames with IO_FRAME_SUM are merged: the checksum of another frame may be wrong on purpose
 * (io/impair). */
unsigned segments_run(struct io_frame *const *v, unsigned n);

/* Write the headers of a merged frame of n >= 2 frames to `out` (SEGMENT_HEADERS octets) and the
 * instructions to the kernel to *vnet. Returns the length of the headers. The frames keep their
 * headers unchanged, since TCP may send them again. */
unsigned segments_head(struct io_frame *const *v, unsigned n, uint8_t *out,
		       struct virtio_net_hdr *vnet);

/* Let the kernel compute the TCP checksum of f: sets *vnet and the checksum field. A frame without
 * TCP is not changed. */
void segment_ask_sum(struct io_frame *f, struct virtio_net_hdr *vnet);

/* The same, and have the kernel cut it into segments of f->cut octets. */
void segment_ask_cut(struct io_frame *f, struct virtio_net_hdr *vnet);
/* How many segments a frame of the link's own is to be cut into; 1: it is one. */
unsigned segment_pieces(const struct io_frame *f);
/* Write the headers of n pieces of such a frame, from number i on, to `out` (SEGMENT_HEADERS
 * octets) and the instructions to the kernel to *vnet. Returns their length; *payload is the
 * pieces' octets. There may be fewer than n. */
unsigned segment_part(const struct io_frame *f, unsigned i, unsigned n, uint8_t *out,
		      struct virtio_net_hdr *vnet, struct uw_span *payload);

#endif
