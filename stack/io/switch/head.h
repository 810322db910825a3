/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things are in a frame of Ethernet (RFC 894, RFC 2464) with IPv4 (RFC 791) or IPv6 (RFC
 * 8200), and the IP header as the switch reads it. This header is internal. */
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
	IP6_PAYLOAD = ETHER + 4,
	IP6_NEXT = ETHER + 6,
	IP6_HOPS = ETHER + 7,
	IP6_FROM = ETHER + 8,
	IP6_TO = ETHER + 24,
	IP6_LEN = 40,
};
enum { TYPE_IP4 = 0x0800, TYPE_ARP = 0x0806, TYPE_IP6 = 0x86dd };
enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_ICMP6 = 58 };

/* The IP header of a frame. */
struct switch_ip {
	bool six;
	uint8_t protocol;
	uint32_t at;	/* where the header ends */
	uint32_t total; /* where the packet ends; behind it is padding */
	bool from_us, to_us;
	bool to_no_host; /* multicast, loopback, no address: no client sends there */
};

/* A whole packet of a protocol that the switch knows, from its IP header alone: no fragment, and no
 * extension header of IPv6, behind which anything could hide. */
enum switch_reason switch_read_ip(const struct switch_table *t, const struct switch_frame *f,
				  struct switch_ip *out);

/* The client that holds the TCP port (network order, unaligned). */
static inline uint16_t switch_port_holder(const struct switch_table *t, bool six,
					  const uint8_t *port)
{
	return (six ? t->holder6 : t->holder)[(uint16_t)(port[0] << 8 | port[1])];
}

static inline bool switch_to_group(const struct switch_frame *f)
{
	return f->head[MAC_TO] & 1;
}

static inline struct switch_result switch_drop(enum switch_reason why)
{
	return (struct switch_result){ .verdict = SWITCH_DROP, .why = why };
}

#endif
