/* SPDX-License-Identifier: BSD-3-Clause */
/* The network interface that the device belongs to, as far as programs ask for one. */
#ifndef UWARP_SYSFS_NETDEV_H
#define UWARP_SYSFS_NETDEV_H

#include <net/if.h>

struct netdev {
	unsigned index; /* 0: none */
	char name[IF_NAMESIZE];
};

/*
 * The interface that the link names (--link af_packet:IF, af_xdp:IF). Else the loopback interface:
 * addresses over memif come from 127.0.0.0/8, and a port that DPDK owns has no interface of the
 * kernel's.
 */
void netdev_find(struct netdev *dev);

#endif
