/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "vlan.h"

enum { ID_MASK = 0xfff };

bool vlan_offered(const struct rte_eth_dev_info *info)
{
	return info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP &&
	       info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_VLAN_INSERT &&
	       !(info->driver_name && !strncmp(info->driver_name, "net_virtio", 10));
}

unsigned vlan_keep(uint16_t vlan, struct rte_mbuf **m, unsigned n, uint64_t *drops)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		if (m[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED &&
		    (m[i]->vlan_tci & ID_MASK) == vlan) {
			m[kept++] = m[i];
			continue;
		}
		rte_pktmbuf_free(m[i]);
		(*drops)++;
	}
	return kept;
}
