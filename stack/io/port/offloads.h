/* SPDX-License-Identifier: BSD-3-Clause */
/* What a verbose process says of a port: its driver, and which of its offloads are in use. */
#ifndef UWARP_IO_PORT_OFFLOADS_H
#define UWARP_IO_PORT_OFFLOADS_H

#include <rte_ethdev.h>

struct offloads_used {
	bool rx_csum, tx_csum, tso, segments, rss, vlan;
	unsigned mtu, queues; /* of the port's queues, those in use */
};

/* "net_e1000_igb, MTU 1500, 2 of 8 queues; in use: rx-checksum, tso; not in use: tx-checksum". */
void offloads_text(char *out, size_t size, const struct rte_eth_dev_info *info,
		   const struct offloads_used *u);

#endif
