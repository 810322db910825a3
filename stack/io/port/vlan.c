/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "vlan.h"

enum { ID_MASK = 0xfff };

bool vlan_offered(const struct rte_eth_dev_info *info)
{
	static const char *const moves[] = { "net_virtio", "net_af_packet" };

	for (unsigned i = 0; info->driver_name && i < sizeof(moves) / sizeof(moves[0]); i++) {
		if (!strncmp(info->driver_name, moves[i], strlen(moves[i])))
			return false;
	}
	return info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP &&
	       info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
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
