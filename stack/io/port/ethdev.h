/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds, configures and removes a port, for any driver. Called in the interrupt thread (eal_run). */
#ifndef UWARP_IO_PORT_ETHDEV_H
#define UWARP_IO_PORT_ETHDEV_H

#include <rte_ethdev.h>

#include "io/dpdk/frame.h"
#include "io/rx_budget.h"

struct ethdev_plug {
	const char *bus, *name, *args;
	uint16_t port; /* set by ethdev_plug: the port number */
};

/* Add the device to its bus; 0 or -errno. */
int ethdev_plug(struct ethdev_plug *p);
int ethdev_unplug(uint16_t port);

/* What a queue's pool must have beside the buffers of its driver: all that connections may keep,
 * and what comes in the meantime. With none free a driver receives nothing more. */
enum { ETHDEV_SPARE = RX_PINNED_MAX + FRAME_BURST };

struct ethdev_setup {
	struct rte_mempool *const *rx; /* for each queue, the pool of its receive buffers */
	unsigned queues;	       /* number of RX queues, and of TX queues */
	unsigned mtu;		       /* 0: keep the MTU of the driver */
	bool tso;		       /* use TSO if the port supports TSO */
	bool vlan;		       /* insert and strip VLAN tags; the port supports both */
	bool csum; /* use TCP checksum offload if the port supports checksum offload */
};

/* The hashes over TCP connections that the driver offers for RSS; 0: none. */
uint64_t ethdev_rss(const struct rte_eth_dev_info *info);

/* The largest IP MTU that the driver takes. */
unsigned ethdev_mtu_max(const struct rte_eth_dev_info *info);

/* Configure and start the port. With several queues, RSS spreads connections over the queues if the
 * driver supports RSS. Each pool has more than ETHDEV_SPARE free buffers then. 0 or -errno. */
int ethdev_start(uint16_t port, const struct ethdev_setup *s);

enum { ETHDEV_NAME_LEN = 64 };

#endif
