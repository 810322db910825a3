/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends a burst of frames through a port: turns frames into mbufs, merges segments for a port with
 * TSO (tso.h), and turns what the driver does not take into frames again.
 */
#ifndef UWARP_IO_PORT_BURST_H
#define UWARP_IO_PORT_BURST_H

#include "io/dpdk/frame.h"
#include "tso.h"

struct sender {
	uint16_t port, queue;
	bool chains;   /* the driver takes frames of several buffers */
	uint16_t vlan; /* tag of all frames; 0: none */
	uint32_t frame_max;
	struct tso tso;
	struct rte_mempool *mp;
	struct io_stats *stats;
};

/* tx of struct io_ops. A frame longer than frame_max is dropped when it is the next to be sent.
 * Clears tso.on for good if the driver refuses every chain (tso.h). */
unsigned burst_send(struct sender *s, struct io_frame **v, unsigned n);

#endif
