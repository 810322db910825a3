/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a kernel interface, read by ioctl. */
#ifndef UWARP_IO_PORT_KERNEL_IF_H
#define UWARP_IO_PORT_KERNEL_IF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct kernel_if {
	unsigned mtu;
	unsigned queues; /* combined channels (ethtool -l), at least 1 */
	bool up;
	uint32_t addr, mask; /* network order; 0: it has none */
};

/* Read the properties of an interface. Without such an interface, one line on stderr says so. */
UW_CHECK uw_status kernel_if_read(const char *name, struct kernel_if *out);

#endif
