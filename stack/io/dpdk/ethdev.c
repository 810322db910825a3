/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "ethdev.h"
#include "tso.h"

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

int ethdev_configure(uint16_t port, const struct frame_pools *p, unsigned mtu, bool tso)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_eth_dev_info info;
	uint16_t nrx = 1024, ntx = 1024;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc < 0)
		return rc;
	conf.rxmode.mtu = mtu;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (tso)
		conf.txmode.offloads |= tso_offloads(&info);
	rc = rte_eth_dev_configure(port, 1, 1, &conf);
	if (rc < 0)
		return rc;
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &nrx, &ntx);
	if (rc < 0)
		return rc;
	rc = rte_eth_rx_queue_setup(port, 0, nrx, SOCKET_ID_ANY, NULL, p->rx);
	if (rc < 0)
		return rc;
	return rte_eth_tx_queue_setup(port, 0, ntx, SOCKET_ID_ANY, NULL);
}
