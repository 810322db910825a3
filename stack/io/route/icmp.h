/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP and ICMPv6 messages that tell of a TCP segment of ours that did not arrive (RFC 792,
 * RFC 4443): read and judged here, acted upon in io/lwip. No function here does I/O.
 */
#ifndef UWARP_IO_ROUTE_ICMP_H
#define UWARP_IO_ROUTE_ICMP_H

#include <stddef.h>

#include "base/ip.h"

enum icmp_kind {
	ICMP_OTHER,   /* not an error, not about TCP, or too short: nothing else is valid */
	ICMP_BAD,     /* wrong checksum */
	ICMP_TOO_BIG, /* RFC 1191 §4, RFC 4443 §3.2 */
	/* RFC 1122 §4.2.3.9 */
	ICMP_SOFT,    /* net or host unreachable, source route failed */
	ICMP_HARD,    /* forbidden */
	ICMP_REFUSED, /* hard as well: protocol or port unreachable */
};

struct icmp_error {
	enum icmp_kind kind;
	struct uw_ip local, remote; /* of the segment, as we sent it */
	uint16_t lport, rport;	    /* network order */
	uint32_t seq;		    /* of the segment, host order */
	uint32_t mtu;		    /* ICMP_TOO_BIG: as told; 0: the router does not tell */
	uint32_t length;	    /* octets of the IP packet that did not arrive */
};

/* Read a frame, Ethernet header first. False: it is no ICMP error. */
bool icmp_read(const uint8_t *frame, size_t n, struct icmp_error *out);

#endif
