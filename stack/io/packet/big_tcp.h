/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received frames longer than an IP packet can be: Linux merges TCP segments into such where an
 * interface's gso_max_size or gro_max_size is above 65536 (BIG TCP, ip-link(8)). IPv4's total
 * length is 0 in them, as is IPv6's payload length, which a jumbo payload option (RFC 2675) may
 * replace. Here each is cut into frames that are TCP segments again, as long as can be.
 */
#ifndef UWARP_IO_PACKET_BIG_TCP_H
#define UWARP_IO_PACKET_BIG_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Octets of the longest piece, Ethernet header included. */
#define BIG_TCP_PIECE 65535u

/* All zero at first. The memory stays its own until big_tcp_close. */
struct big_tcp {
	uint8_t *memory;  /* NULL: no such frame has come yet */
	uint8_t *frame;	  /* ... in it, what is being cut; NULL: nothing is */
	uint32_t tcp;	  /* where its TCP header begins, */
	uint32_t headers; /* and where that ends */
	uint32_t payload; /* octets behind it, */
	uint32_t done;	  /* of which so many are in pieces */
	uint32_t step;	  /* octets of a piece */
	bool ip6;
};

/* Where the next one belongs: *room octets, for a struct virtio_net_hdr and the frame. NULL: no
 * memory. What was there is gone. */
uint8_t *big_tcp_room(struct big_tcp *b, size_t *room);

/* n octets were read to there. False: they are not what the kernel has merged of TCP segments with
 * right checksums. */
bool big_tcp_begin(struct big_tcp *b, size_t n);

/* Has it more pieces? */
bool big_tcp_any(const struct big_tcp *b);

/* The rest of it is not wanted. */
void big_tcp_give_up(struct big_tcp *b);

/* Write the next piece to `to`, which has room for BIG_TCP_PIECE octets, and return its length. Its
 * TCP checksum is not computed. Call it if there is any. */
uint32_t big_tcp_next(struct big_tcp *b, uint8_t *to);

void big_tcp_close(struct big_tcp *b);

#endif
