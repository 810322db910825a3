/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory shared with one peer: a region of each side, with rings. */
#ifndef UWARP_IO_MEMIF_PAIR_H
#define UWARP_IO_MEMIF_PAIR_H

#include "io/dpdk/dpdk.h"
#include "lane.h"
#include "ring.h"

struct pair {
	struct ring_shape shape;
	struct ring_region ours; /* the region that we write */
	struct ring_view theirs; /* the region that the peer writes */
	struct ring_view lent;	 /* the peer's memory of frames to send */
	struct lane_sender sender[DPDK_QUEUES_MAX];
};

/* mtu: the smaller of both sides'. queues: the fewer of both sides'. senders: number of our stacks;
 * if larger than queues, stacks share a queue. NULL: no memory or no descriptor, see errno. */
struct pair *pair_new(unsigned mtu, unsigned queues, unsigned senders);
/* The peer's region has come: map fd, which may be -1. Closes fd. */
UW_CHECK uw_status pair_attach(struct pair *p, int fd);
/* The same for the memory of frames to send that the peer lends. */
UW_CHECK uw_status pair_borrow(struct pair *p, uint32_t size, int fd);
/* The peer has our region's descriptor: close our copy. */
void pair_sent(struct pair *p);
/* p may be NULL. No lane may use the rings any more. */
void pair_free(struct pair *p);

#endif
