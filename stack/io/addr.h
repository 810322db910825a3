/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv6 addresses that a link makes for itself (doc/adr/0013-ipv6.md). Each ends in four octets that
 * are unique on the link: the link's IPv4 address, or the last four octets of its first IPv6
 * address. On a link between processes (IO_P2P) all addresses of a process must end in its four
 * octets. Then any of its addresses tells which process it is, and its MAC.
 */
#ifndef UWARP_IO_ADDR_H
#define UWARP_IO_ADDR_H

#include "io/io.h"

#define IO_IP6_MIN_MTU 1280u /* RFC 8200 §5 */

/* fe80::7577:a.b.c.d. The address is not made from the MAC, since the kernel has the address made
 * from the MAC. */
struct uw_net io_link_local_of(uint32_t host_be);
/* fd75:7761:7270::a.b.c.d, a unique local address (RFC 4193) for links between processes. */
struct uw_net io_local_of(uint32_t host_be);

/* IO_P2P: may the process with the IPv4 address host_be have the address n? */
static inline bool io_ends_in(const struct uw_net *n, uint32_t host_be)
{
	return uw_ip_v4_be(&n->ip) == host_be;
}

/* Set the IPv6 addresses of a link: the link-local one, then `more` (n addresses), then with IO_P2P
 * the unique local one. The link's IPv4 address, flags and MTU must be set. A link with an MTU
 * below IO_IP6_MIN_MTU gets none. */
void io_set_ip6(struct io_link *l, const struct uw_net *more, unsigned n);

/* Set them to these alone, the link-local one first: the kernel's, which it shares. */
void io_share_ip6(struct io_link *l, const struct uw_net *all, unsigned n);

/* Is a an IPv4 or IPv6 address of the link? */
bool io_has(const struct io_link *l, const struct uw_ip *a);
/* Choose the address of the link to use as source for packets to `to`; both have the same IP
 * version. False: the link has no such address. */
bool io_source_for(const struct io_link *l, const struct uw_ip *to, struct uw_ip *out);

#endif
