/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "csum.h"
#include "ethdev.h"
#include "tso.h"

/* Descriptors of a queue: as many as we ask for, and as few as we go down to. */
enum { DESC_MAX = 1024, DESC_MIN = 64 };

int ethdev_plug(struct ethdev_plug *p)
{
	int rc = rte_eal_hotplug_add(p->bus, p->name, p->args);

	if (rc < 0)
		return rc;
	rc = rte_eth_dev_get_port_by_name(p->name, &p->port);
	if (rc < 0)
		rte_eal_hotplug_remove(p->bus, p->name);
	return rc;
}

int ethdev_unplug(uint16_t port)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc < 0)
		return rc;
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	return rte_dev_remove(info.device);
}

uint64_t ethdev_rss(const struct rte_eth_dev_info *info)
{
	return info->flow_type_rss_offloads &
	       (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP);
}

/* DPDK 24.11's net_tap says that it takes any frame, and has no limit of its own any more. Its
 * queue still stands at the first long one, as in 22.11, which named this limit. */
static bool says_too_much(const struct rte_eth_dev_info *info)
{
	return info->driver_name && !strcmp(info->driver_name, "net_tap");
}

unsigned ethdev_mtu_max(const struct rte_eth_dev_info *info)
{
	unsigned frame = info->max_rx_pktlen, head = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	unsigned mtu = info->max_mtu ? info->max_mtu : UINT16_MAX;

	if (says_too_much(info))
		frame = RTE_MIN(frame, (unsigned)RTE_ETHER_MAX_VLAN_FRAME_LEN);
	return frame > head ? RTE_MIN(mtu, frame - head) : mtu;
}

/* A connection's frames all come to one queue. */
static void spread(struct rte_eth_conf *conf, const struct rte_eth_dev_info *info)
{
	uint64_t hf = ethdev_rss(info);

	if (!hf)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = hf;
}

/* The TX queue first: DPDK 24.11's net_tap makes ready to cut segments only where the TX queue
 * comes first to the file descriptor that both share. To all other drivers the order is the same.
 */
static int setup_queue(uint16_t port, uint16_t q, const uint16_t desc[2], struct rte_mempool *rx)
{
	int rc = rte_eth_tx_queue_setup(port, q, desc[1], SOCKET_ID_ANY, NULL);

	return rc < 0 ? rc : rte_eth_rx_queue_setup(port, q, desc[0], SOCKET_ID_ANY, NULL, rx);
}

static int configure(uint16_t port, const struct ethdev_setup *s, uint16_t rx_desc)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;
	uint16_t desc[2] = { rx_desc, DESC_MAX }, n = (uint16_t)s->queues;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc < 0)
		return rc;
	conf.rxmode.mtu = s->mtu;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (s->tso)
		conf.txmode.offloads |= tso_offloads(&info);
	if (s->csum) {
		conf.rxmode.offloads |= csum_rx_offloads(&info);
		conf.txmode.offloads |= csum_tx_offloads(&info);
	}
	if (s->vlan) {
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	}
	if (n > 1)
		spread(&conf, &info);
	rc = rte_eth_dev_configure(port, n, n, &conf);
	if (rc < 0)
		return rc;
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &desc[0], &desc[1]);
	for (uint16_t q = 0; rc >= 0 && q < n; q++)
		rc = setup_queue(port, q, desc, s->rx[q]);
	return rc;
}

static bool pools_suffice(const struct ethdev_setup *s)
{
	for (unsigned q = 0; q < s->queues; q++) {
		if (rte_mempool_avail_count(s->rx[q]) <= ETHDEV_SPARE)
			return false;
	}
	return true;
}

/* How many buffers a driver takes for its descriptors only shows when it has started: vmxnet3, for
 * one, fills two rings. */
int ethdev_start(uint16_t port, const struct ethdev_setup *s)
{
	for (uint16_t desc = DESC_MAX; desc >= DESC_MIN; desc /= 2) {
		int rc = configure(port, s, desc);

		if (rc >= 0)
			rc = rte_eth_dev_start(port);
		if (rc < 0)
			return rc;
		if (pools_suffice(s))
			return 0;
		rte_eth_dev_stop(port);
	}
	return -ENOBUFS;
}
