/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The IPv6 addresses that a link has without being told (doc/adr/0013-ipv6.md). All are made from
 * four octets that no other process on the link has: its IPv4 address, or the end of its first IPv6
 * one. Processes of a machine (IO_P2P) keep to that with every address, so that an address alone
 * tells the process and its MAC.
 */
#ifndef UWARP_IO_ADDR_H
#define UWARP_IO_ADDR_H

#include "io/io.h"

#define IO_IP6_MIN_MTU 1280u /* RFC 8200 §5 */

/* fe80::7577:a.b.c.d. Not made from the MAC: that one belongs to the kernel of the interface. */
struct uw_net io_link_local_of(uint32_t host_be);
/* fd75:7761:7270::a.b.c.d, a unique local address (RFC 4193) for processes of a machine. */
struct uw_net io_local_of(uint32_t host_be);

/* Can the process whose IPv4 address is host_be have it, on an IO_P2P link? */
static inline bool io_ends_in(const struct uw_net *n, uint32_t host_be)
{
	return uw_ip_v4_be(&n->ip) == host_be;
}

/* Give the link its IPv6 addresses: link-local, then `more` (n of them), then with IO_P2P the
 * unique local one. Its IPv4 address, flags and MTU are set; below IO_IP6_MIN_MTU it gets none. */
void io_set_ip6(struct io_link *l, const struct uw_net *more, unsigned n);

/* Is it one of the link's, of either version? */
bool io_has(const struct io_link *l, const struct uw_ip *a);
/* The link's own address to speak to `to` from, of the same version; false: it has none. */
bool io_source_for(const struct io_link *l, const struct uw_ip *to, struct uw_ip *out);

#endif
