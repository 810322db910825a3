/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "offloads.h"

struct offload {
	const char *name;
	bool used;
};

/* The names of those that are in use, or of the others. */
static void list(char *out, size_t size, const struct offload *v, unsigned n, bool used)
{
	size_t len = strlen(out);
	const char *sep = used ? "; in use: " : "; not in use: ";

	for (unsigned i = 0; i < n; i++) {
		if (v[i].used != used || len >= size)
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s%s", sep, v[i].name);
		sep = ", ";
	}
}

void offloads_text(char *out, size_t size, const struct rte_eth_dev_info *info,
		   const struct offloads_used *u)
{
	const struct offload v[] = { { "rx-checksum", u->rx_csum },
				     { "tx-checksum", u->tx_csum },
				     { "tso", u->tso },
				     { "segments", u->segments },
				     { "rss", u->rss },
				     { "vlan", u->vlan } };

	snprintf(out, size, "%s, MTU %u, %u of %u queues",
		 info->driver_name ? info->driver_name : "unknown driver", u->mtu, u->queues,
		 (unsigned)RTE_MIN(info->max_rx_queues, info->max_tx_queues));
	list(out, size, v, RTE_DIM(v), true);
	list(out, size, v, RTE_DIM(v), false);
}
