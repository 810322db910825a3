/* SPDX-License-Identifier: BSD-3-Clause */
/* The network interface that programs see for the device. */
#ifndef UWARP_SYSFS_NETDEV_H
#define UWARP_SYSFS_NETDEV_H

#include <net/if.h>

struct netdev {
	unsigned index; /* 0: none */
	char name[IF_NAMESIZE];
};

/*
 * Find the interface named by the link (--link af_packet:IF, af_xdp:IF), or else the one that has
 * the process's own IPv4 address (--transport socket). Without either, use the loopback interface:
 * memif addresses are in 127.0.0.0/8, and a port owned by DPDK has no kernel interface.
 */
void netdev_find(struct netdev *dev);

#endif
