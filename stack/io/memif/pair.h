/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process has in common with one peer: a region of each, and the rings in them. */
#ifndef UWARP_IO_MEMIF_PAIR_H
#define UWARP_IO_MEMIF_PAIR_H

#include "io/dpdk/dpdk.h"
#include "lane.h"
#include "ring.h"

struct pair {
	struct ring_shape shape;
	struct ring_region ours; /* what we send */
	struct ring_view theirs; /* what the peer sends */
	struct lane_sender sender[DPDK_QUEUES_MAX];
};

/* mtu: the smaller of both sides'; queues: the fewer of both sides'; senders: our stacks, which
 * share a queue if they are more. NULL: no memory or no descriptor, see errno. */
struct pair *pair_new(unsigned mtu, unsigned queues, unsigned senders);
/* The peer's region has come; takes fd, which may be -1. */
UW_CHECK uw_status pair_attach(struct pair *p, int fd);
/* The peer has our region's descriptor: close ours. */
void pair_sent(struct pair *p);
/* Also NULL. No lane leads there any more. */
void pair_free(struct pair *p);

#endif
