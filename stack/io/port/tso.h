/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP segmentation offload: segments of one flow that follow each other in a burst go to the port
 * as one chain, which it cuts again. An FPDU stays one segment (RFC 5044 §5), so only those are
 * merged that the port makes again octet for octet, checksums apart.
 */
#ifndef UWARP_IO_PORT_TSO_H
#define UWARP_IO_PORT_TSO_H

#include <rte_ethdev.h>

#include "io/dpdk/frame.h"

struct tso {
	bool on;
	bool ip6;	    /* IPv6, too */
	bool ip4_sum;	    /* the port computes the checksum of the chain's IPv4 header */
	uint32_t frame_max; /* octets of a frame that the port cuts off, Ethernet header included */
	uint16_t seg_max;   /* buffers of a chain */
	uint16_t frame_segs;	/* buffers that one such frame may come from, header included */
	struct rte_mempool *mp; /* headers come from here */
};

/* What a port is asked for so that it cuts; 0: it cannot. */
uint64_t tso_offloads(const struct rte_eth_dev_info *info);

/* What stands against merging frames of up to frame_max octets on a port with that MTU, NULL:
 * nothing. Fills in all of t but `on` and `mp`. */
const char *tso_read(struct tso *t, const struct rte_eth_dev_info *info, unsigned mtu,
		     uint32_t frame_max);

/* May go out uncut: a virtio port's peer can be a process, which gets the chain as it is. */
bool tso_uncut(const struct rte_eth_dev_info *info);

/* How many of the n frames at v can go as one; 1: the first goes alone. */
unsigned tso_run(const struct tso *t, struct io_frame *const *v, unsigned n);

/* That run as one chain behind a header of its own: TCP keeps the frames, and sends them again with
 * their own headers, which are not touched. Takes no reference. NULL: no buffer for the header. */
struct rte_mbuf *tso_merge(const struct tso *t, struct io_frame *const *v, unsigned n);

/* The chain was not sent: its header goes, its frames are the caller's as before. */
void tso_undo(struct rte_mbuf *chain);

#endif
