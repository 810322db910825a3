/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive ring of a packet socket (PACKET_RX_RING, TPACKET_V2, packet(7)): memory that the
 * kernel writes frames to, so that a look needs no system call. A frame longer than a slot is cut
 * in the slot, and lies whole in the socket's queue, in the order of the slots
 * (PACKET_COPY_THRESH). Under the stack lock.
 */
#ifndef UWARP_IO_PACKET_RX_RING_H
#define UWARP_IO_PACKET_RX_RING_H

#include <stdbool.h>
#include <stdint.h>

#define RX_RING_PER_BLOCK 14u /* slots */

struct rx_ring {
	uint8_t *slots; /* NULL: not open */
	unsigned n;	/* slots */
	unsigned head;	/* the one to look at */
};

/* A frame that came. */
struct rx_slot {
	const uint8_t *frame; /* a struct virtio_net_hdr lies right in front of it */
	uint32_t len;	      /* octets of the whole frame */
	bool queued;	      /* it lies in the socket's queue, and only its begin is here */
	bool lost;	      /* ... or it was too long, and the queue was full */
	bool gap;	      /* frames were lost before it: there was no slot */
};

/* blocks x RX_RING_PER_BLOCK slots for a socket with PACKET_VNET_HDR that is not bound yet. False:
 * no memory; errno. */
bool rx_ring_open(struct rx_ring *r, int fd, unsigned blocks);
void rx_ring_close(struct rx_ring *r);

/* Has a frame come that was not given back? */
bool rx_ring_any(const struct rx_ring *r);

/* The i-th frame that was not given back. False: it has not come, or i >= n. */
bool rx_ring_look(const struct rx_ring *r, unsigned i, struct rx_slot *out);

/* The next n slots (r->n at most) are the kernel's again. */
void rx_ring_give_back(struct rx_ring *r, unsigned n);

#endif
