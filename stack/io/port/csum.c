/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "csum.h"

enum { IP6_LEN = 40, TCP_LEN = 20 };

static bool driver_is(const struct rte_eth_dev_info *info, const char *name)
{
	return info->driver_name && !strncmp(info->driver_name, name, strlen(name));
}

uint64_t csum_rx_offloads(const struct rte_eth_dev_info *info)
{
	return driver_is(info, "net_virtio") ? 0
					     : info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
}

uint64_t csum_tx_offloads(const struct rte_eth_dev_info *info)
{
	return info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
}

static void ask(struct rte_mbuf *m, unsigned l3, uint64_t ip)
{
	const uint64_t ours = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_L4_MASK;
	struct rte_tcp_hdr *tcp =
		rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, FRAME_ETHER + l3);
	void *head = rte_pktmbuf_mtod_offset(m, void *, FRAME_ETHER);

	m->ol_flags = (m->ol_flags & ~ours) | ip | RTE_MBUF_F_TX_TCP_CKSUM;
	m->l2_len = FRAME_ETHER;
	m->l3_len = l3;
	m->l4_len = (unsigned)(tcp->data_off >> 4) * 4;
	tcp->cksum = ip & RTE_MBUF_F_TX_IPV4 ? rte_ipv4_phdr_cksum(head, m->ol_flags)
					     : rte_ipv6_phdr_cksum(head, m->ol_flags);
}

void csum_ask(struct rte_mbuf *m)
{
	const uint8_t *h = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned l3;

	if (m->data_len < FRAME_ETHER + (int)sizeof(struct rte_ipv4_hdr) + TCP_LEN)
		return;
	l3 = (h[FRAME_ETHER] & 15u) * 4;
	if (h[12] == 0x08 && !h[13] && h[FRAME_ETHER + 9] == IPPROTO_TCP && l3 >= 20 &&
	    m->data_len >= FRAME_ETHER + l3 + TCP_LEN)
		ask(m, l3, RTE_MBUF_F_TX_IPV4);
	else if (h[12] == 0x86 && h[13] == 0xdd && h[FRAME_ETHER + 6] == IPPROTO_TCP &&
		 m->data_len >= FRAME_ETHER + IP6_LEN + TCP_LEN)
		ask(m, IP6_LEN, RTE_MBUF_F_TX_IPV6);
}
