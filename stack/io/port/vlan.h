/* SPDX-License-Identifier: BSD-3-Clause */
/* A VLAN tag (IEEE 802.1Q) that the card inserts into every sent frame and strips from received
 * ones. */
#ifndef UWARP_IO_PORT_VLAN_H
#define UWARP_IO_PORT_VLAN_H

#include <rte_ethdev.h>

/* Does the driver insert and strip tags? virtio and af_packet insert by moving the frame, which TCP
 * may have to send again as it was: so not these. */
bool vlan_offered(const struct rte_eth_dev_info *info);

/* Ask the card to tag the frame in m. */
static inline void vlan_tag(struct rte_mbuf *m, uint16_t vlan)
{
	m->ol_flags |= RTE_MBUF_F_TX_VLAN;
	m->vlan_tci = vlan;
}

/* Keep, of n received frames, those of this VLAN, in order; free the others and count them in
 * *drops. Returns how many are left. */
unsigned vlan_keep(uint16_t vlan, struct rte_mbuf **m, unsigned n, uint64_t *drops);

#endif
