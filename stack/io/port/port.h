/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a DPDK port (a kernel interface, a PCI device, or a virtual device), with a link for each
 * of its queues. */
#ifndef UWARP_IO_PORT_PORT_H
#define UWARP_IO_PORT_PORT_H

#include "io/dpdk/dpdk.h"

enum port_kind { PORT_AF_PACKET, PORT_AF_XDP, PORT_PCI, PORT_DEVARGS };

/* device: the name of the interface, the PCI address, or the devargs. See dpdk_links_open. */
UW_CHECK uw_status port_open(enum port_kind kind, const char *device, const struct dpdk_config *cfg,
			     const struct io_env *envs, struct io_link **out);

#endif
