/* SPDX-License-Identifier: BSD-3-Clause */
/* What the EAL wants of the kernel. Where it does not get it, it prints its usage, or ends the
 * process, so this is tried before it starts. */
#ifndef UWARP_DPDK_NEEDS_H
#define UWARP_DPDK_NEEDS_H

#include "base/status.h"

/* UW_E_NO_LINK, with a line on stderr: something is missing. */
uw_status eal_needs_check(void) UW_CHECK;

#endif
