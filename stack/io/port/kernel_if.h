/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about one of its interfaces. */
#ifndef UWARP_IO_PORT_KERNEL_IF_H
#define UWARP_IO_PORT_KERNEL_IF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct kernel_if {
	unsigned mtu;
	unsigned queues; /* of both directions together, for XDP */
	bool up;
	uint32_t addr, mask; /* network order; 0: it has none */
};

/* Says what is wrong if there is no such interface. */
UW_CHECK uw_status kernel_if_read(const char *name, struct kernel_if *out);

#endif
