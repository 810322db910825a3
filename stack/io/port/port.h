/* SPDX-License-Identifier: BSD-3-Clause */
/* One Ethernet port as one link, or one for each of its queues: a kernel interface, a PCI device or
 * whatever DPDK can name. */
#ifndef UWARP_IO_PORT_PORT_H
#define UWARP_IO_PORT_PORT_H

#include "io/dpdk/dpdk.h"

enum port_kind { PORT_AF_PACKET, PORT_AF_XDP, PORT_PCI, PORT_DEVARGS };

/* device: the interface, the PCI address or the devargs. envs and out have an entry for each queue.
 */
UW_CHECK uw_status port_open(enum port_kind kind, const char *device, const struct dpdk_config *cfg,
			     const struct io_env *envs, struct io_link **out);

#endif
