/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame that is a TCP segment, and which segments a cut makes of a long one. Links that can have
 * segments cut for them merge those that would be cut out of the result again just as they are
 * (RFC 5044 §5 has an FPDU stay one segment): the packet link by the kernel, packet/segments.h; a
 * port by its card, port/tso.h.
 */
#ifndef UWARP_IO_SEGMENT_H
#define UWARP_IO_SEGMENT_H

#include "io/io.h"

/* Ethernet, IPv6, TCP with all options */
#define SEGMENT_HEADERS (14u + 40u + 60u)

/* Without IP options or extension headers. */
struct segment {
	const uint8_t *frame; /* the Ethernet header */
	unsigned ip, headers; /* octets of the IP header, and of all headers */
	uint32_t payload;     /* octets, in all buffers */
	bool ip6;
};

/* False: f is no such segment, or its headers are not all in the first buffer. */
bool segment_read(const struct io_frame *f, struct segment *out);

/* Has it payload, and is it nothing but octets in order: no SYN, FIN, RST, URG, ECE or CWR? */
bool segment_is_plain(const struct segment *s);
bool segment_pushes(const struct segment *s);

/* Are b's headers those that the cut gives the segment number i of a run that begins with a?
 * Checksums are computed anew; PSH is left to the last. */
bool segment_follows(const struct segment *a, const struct segment *b, unsigned i);

/* Write the length of an IP packet with so much payload to the headers at h, which are as s's. */
void segment_put_length(const struct segment *s, uint8_t *h, uint32_t payload);

#endif
