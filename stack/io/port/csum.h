/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP checksums by the network card. The card verifies those that come in, if the driver offers
 * RTE_ETH_RX_OFFLOAD_TCP_CKSUM, and computes those that go out, if it offers the same for TX. The
 * checksum of the IPv4 header stays the sender's and the receiver's own.
 */
#ifndef UWARP_IO_PORT_CSUM_H
#define UWARP_IO_PORT_CSUM_H

#include <rte_ethdev.h>

#include "io/dpdk/frame.h"

/* What to ask for of what the driver offers. RX: none of a virtio port, whose peer on the same
 * machine may send no checksum at all then. */
uint64_t csum_rx_offloads(const struct rte_eth_dev_info *info);
uint64_t csum_tx_offloads(const struct rte_eth_dev_info *info);

/* Did the card find the TCP checksum of a received frame right? */
static inline bool csum_is_good(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

/* Have the card compute the TCP checksum of the frame in m (IO_FRAME_SUM). Writes the checksum of
 * the pseudo header where the card expects it. What is not TCP over IP is left alone. */
void csum_ask(struct rte_mbuf *m);

#endif
