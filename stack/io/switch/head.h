/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things are in a frame of Ethernet (RFC 894) with IPv4 (RFC 791). This header is internal.
 */
#ifndef UWARP_IO_SWITCH_HEAD_H
#define UWARP_IO_SWITCH_HEAD_H

#include "io/switch/classify.h"

enum {
	MAC_TO = 0,
	MAC_FROM = 6,
	TYPE = 12,
	ETHER = 14,
	IP_TOTAL = ETHER + 2,
	IP_FRAGMENT = ETHER + 6,
	IP_PROTOCOL = ETHER + 9,
	IP_FROM = ETHER + 12,
	IP_TO = ETHER + 16,
	IP4_LEN = 20,
};

static inline struct switch_result switch_drop(enum switch_reason why)
{
	return (struct switch_result){ .verdict = SWITCH_DROP, .why = why };
}

#endif
