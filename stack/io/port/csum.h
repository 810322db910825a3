/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP checksums by the network card. The card verifies received frames if the driver offers
 * RTE_ETH_RX_OFFLOAD_TCP_CKSUM, and computes the checksum of sent frames if the driver offers the
 * same for TX. Software always handles the checksum of the IPv4 header.
 */
#ifndef UWARP_IO_PORT_CSUM_H
#define UWARP_IO_PORT_CSUM_H

#include <rte_ethdev.h>

#include "io/dpdk/frame.h"

/* The checksum offloads to request, of those that the driver offers. No RX offload on a virtio
 * port: a peer on the same machine may then send no checksums at all. */
uint64_t csum_rx_offloads(const struct rte_eth_dev_info *info);
uint64_t csum_tx_offloads(const struct rte_eth_dev_info *info);

/* Did the card find the TCP checksum of a received frame right? */
static inline bool csum_is_good(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

/* Request the TCP checksum of the frame in m from the card (IO_FRAME_SUM). Writes the checksum of
 * the pseudo header where the card expects it. A frame without TCP is not changed. */
void csum_ask(struct rte_mbuf *m);

#endif
