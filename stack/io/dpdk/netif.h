/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about one of its interfaces. */
#ifndef UWARP_IO_DPDK_NETIF_H
#define UWARP_IO_DPDK_NETIF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct netif {
	unsigned mtu;
	bool up;
	uint32_t addr, mask; /* network order; 0: it has none */
};

/* Says what is wrong if there is no such interface. */
UW_CHECK uw_status netif_read(const char *name, struct netif *out);

#endif
