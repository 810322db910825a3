/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks, before DPDK's EAL starts, that the kernel gives it what it needs. Without that the EAL
 * would print its usage, or end the process. */
#ifndef UWARP_DPDK_NEEDS_H
#define UWARP_DPDK_NEEDS_H

#include "base/status.h"

/* UW_E_NO_LINK, with a line on stderr: something is missing. */
uw_status eal_needs_check(void) UW_CHECK;

#endif
