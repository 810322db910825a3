/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP segmentation offload. Consecutive segments of one connection in a burst are given to the port
 * as one long segment (a chain of mbufs), which the port cuts again. An FPDU must stay one segment
 * (RFC 5044 §5). So segments are merged only if the port will make exactly the same segments again
 * (io/segment.h), except for the checksums.
 */
#ifndef UWARP_IO_PORT_TSO_H
#define UWARP_IO_PORT_TSO_H

#include <rte_ethdev.h>

#include "io/dpdk/frame.h"

enum { TSO_REFUSED_MAX = 16 };

struct tso {
	bool on;
	bool ip6;		/* also for IPv6 */
	bool ip4_sum;		/* the port computes the checksum of the chain's IPv4 header */
	uint32_t frame_max;	/* octets of a frame after cutting, Ethernet header included */
	uint16_t seg_max;	/* most buffers of a chain */
	uint16_t frame_segs;	/* most buffers for one frame after cutting, header included */
	struct rte_mempool *mp; /* pool for the headers of merged segments */
	/* Chains in a row that the driver refused although it then took their frames singly. At
	 * TSO_REFUSED_MAX `on` is cleared: whatever it says, this port cuts nothing. */
	unsigned refused;
};

/* The TX offloads to request for TSO; 0: the port has no TSO. */
uint64_t tso_offloads(const struct rte_eth_dev_info *info);

/* Can frames of up to frame_max octets be merged on a port with this MTU? Sets all fields of t
 * except `on` and `mp`. NULL: yes; else the reason why not. */
const char *tso_read(struct tso *t, const struct rte_eth_dev_info *info, unsigned mtu,
		     uint32_t frame_max);

/* May the long segment reach the peer uncut? (The peer of a virtio port may be a process on this
 * machine.) */
bool tso_uncut(const struct rte_eth_dev_info *info);

/* How many of the n frames at v, from the first on, can be merged; 1: none with the first. */
unsigned tso_run(const struct tso *t, struct io_frame *const *v, unsigned n);

/* Merge n frames: a new header in a buffer of its own, followed by the payloads. The frames keep
 * their own headers unchanged, since TCP may send them again. Takes no reference. NULL: no buffer
 * for the header. */
struct rte_mbuf *tso_merge(const struct tso *t, struct io_frame *const *v, unsigned n);

/* The driver did not take the chain: free its header. The frames stay the caller's. */
void tso_undo(struct rte_mbuf *chain);

#endif
