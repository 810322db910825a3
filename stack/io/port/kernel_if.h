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
	bool promiscuous;    /* somebody set the flag, which stays until somebody clears it */
	uint32_t addr, mask; /* network order; 0: it has none */
};

/* Read the properties of an interface. Without such an interface, one line on stderr says so. */
UW_CHECK uw_status kernel_if_read(const char *name, struct kernel_if *out);

/* Let the interface of that number (if_nametoindex) receive all frames until the descriptor that is
 * returned is closed, for fds_close. The kernel counts who asks for this, and sees to the end of
 * those that are killed. -1: it refuses. */
int kernel_if_hear_all(unsigned index);

#endif
