/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's transmit bursts: frames become mbufs, and what the driver leaves frames again. */
#ifndef UWARP_IO_PORT_BURST_H
#define UWARP_IO_PORT_BURST_H

#include "io/dpdk/frame.h"
#include "tso.h"

struct sender {
	uint16_t port, queue;
	bool chains; /* the driver sends frames of several buffers */
	uint32_t frame_max;
	struct tso tso;
	struct rte_mempool *mp;
	struct io_stats *stats;
};

/* As tx of struct io_ops. A frame that is too long for the port is dropped once its turn comes. */
unsigned burst_send(struct sender *s, struct io_frame **v, unsigned n);

#endif
