/* SPDX-License-Identifier: BSD-3-Clause */
/* An Internet address of either version. An IPv4 address has the form ::ffff:a.b.c.d (RFC 4291
 * §2.5.5.2), so that one type serves to keep, compare and look up both. */
#ifndef UWARP_BASE_IP_H
#define UWARP_BASE_IP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/be.h"

struct uw_ip {
	_Alignas(8) uint8_t b[16];
};
static_assert(sizeof(struct uw_ip) == 16, "octets as they go over the wire");

/* An address and its prefix length, counted over all 128 bits: 96 + n for an IPv4 prefix of n bits.
 */
struct uw_net {
	struct uw_ip ip;
	uint8_t bits;
};

#define UW_IP_V4_BITS 96u /* length of the prefix ::ffff:0:0/96 */

/* The first (0) or second (1) eight octets of an address as a word in memory order, to compare or
 * to hash. */
static inline uint64_t uw_ip_half(const struct uw_ip *a, unsigned i)
{
	uint64_t w;

	memcpy(&w, a->b + 8 * i, sizeof(w));
	return w;
}

static inline bool uw_ip_eq(const struct uw_ip *a, const struct uw_ip *b)
{
	return uw_ip_half(a, 1) == uw_ip_half(b, 1) && uw_ip_half(a, 0) == uw_ip_half(b, 0);
}

/* Convert from and to the 32 bits of IPv4 in network order. For an IPv6 address uw_ip_v4_be returns
 * the last four octets, which on a link between processes identify the process (io/addr.h). */
static inline struct uw_ip uw_ip_v4(uint32_t be)
{
	struct uw_ip a = { .b = { [10] = 0xff, [11] = 0xff } };

	memcpy(a.b + 12, &be, sizeof(be));
	return a;
}
static inline uint32_t uw_ip_v4_be(const struct uw_ip *a)
{
	uint32_t be;

	memcpy(&be, a->b + 12, sizeof(be));
	return be;
}

static inline bool uw_ip_is_v4(const struct uw_ip *a)
{
	return !uw_ip_half(a, 0) && uw_be32(a->b + 8) == 0xffff;
}

/* Whose address is it? That of IPv4 itself, or the network of IPv6: a host has as many addresses
 * there as it likes. */
static inline uint64_t uw_ip_host(const struct uw_ip *a)
{
	return uw_ip_half(a, uw_ip_is_v4(a));
}

/* Is a :: or 0.0.0.0 (any address)? */
static inline bool uw_ip_is_any(const struct uw_ip *a)
{
	return !uw_ip_half(a, 0) && !uw_ip_v4_be(a) &&
	       (!uw_be32(a->b + 8) || uw_be32(a->b + 8) == 0xffff);
}

/* Is a ::1 or 127.0.0.1 (this host)? Other addresses of 127.0.0.0/8 are ordinary ones here. */
static inline bool uw_ip_is_loopback(const struct uw_ip *a)
{
	uint64_t low = uw_be64(a->b + 8);

	return !uw_ip_half(a, 0) && (low == 1 || low == 0xffff7f000001u);
}

/* Is a in fe80::/10? */
static inline bool uw_ip_is_link_local(const struct uw_ip *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/* Is a in 224.0.0.0/4 or ff00::/8? */
static inline bool uw_ip_is_multicast(const struct uw_ip *a)
{
	return uw_ip_is_v4(a) ? a->b[12] >> 4 == 0xe : a->b[0] == 0xff;
}

/* A hash whose upper bits are well spread. */
static inline uint64_t uw_ip_hash(const struct uw_ip *a)
{
	return (uw_ip_half(a, 0) * 0xff51afd7ed558ccdu ^ uw_ip_half(a, 1)) * 0x9e3779b97f4a7c15u;
}

/* Is a an address of the network n (and of the same version of IP)? */
static inline bool uw_net_has(const struct uw_net *n, const struct uw_ip *a)
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;

	return uw_ip_is_v4(&n->ip) == uw_ip_is_v4(a) && !memcmp(n->ip.b, a->b, whole) &&
	       (!rest || !((n->ip.b[whole] ^ a->b[whole]) >> (8 - rest)));
}

#endif
