/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection's initial sequence number, RFC 6528 §3: a clock of 4 us plus a keyed hash of
 * both addresses and ports. The clock keeps the numbers of a new connection apart from those of an
 * older one with the same addresses. The key keeps others from predicting the number.
 */
#ifndef UWARP_IO_ISN_H
#define UWARP_IO_ISN_H

#include "base/ip.h"
#include "io/siphash.h"

/* ports: local and remote, in host or network order, but always in the same. */
static inline uint32_t tcp_isn(const struct siphash_key *key, const struct uw_ip *local,
			       const struct uw_ip *remote, const uint16_t ports[2], uint64_t now_us)
{
	const uint64_t words[] = { uw_ip_half(local, 0), uw_ip_half(local, 1),
				   uw_ip_half(remote, 0), uw_ip_half(remote, 1),
				   (uint64_t)ports[0] << 16 | ports[1] };

	return (uint32_t)(now_us / 4 + siphash(key, words, sizeof(words) / sizeof(words[0])));
}

#endif
