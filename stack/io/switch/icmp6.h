/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMPv6 in the switch. Neighbours (RFC 4861) are asked for by each client for itself, in the name
 * of the link; nobody but the kernel or the uwarpd answers for its addresses. Errors (RFC 4443) go
 * to the client whose segment they quote.
 */
#ifndef UWARP_IO_SWITCH_ICMP6_H
#define UWARP_IO_SWITCH_ICMP6_H

#include "io/switch/head.h"

enum { ICMP6_SOLICIT = 135, ICMP6_ADVERT = 136, ICMP6_ND_LEN = 24, ICMP6_TARGET = 8 };

/* The packet is ICMPv6's. As switch_out and switch_in. */
struct switch_result icmp6_out(const struct switch_table *t, const struct switch_frame *f,
			       const struct switch_ip *p);
struct switch_result icmp6_in(const struct switch_table *t, const struct switch_frame *f,
			      const struct switch_ip *p);

#endif
