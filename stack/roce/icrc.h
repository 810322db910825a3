/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of a RoCEv2 packet: IBA volume 1, §7.8.1 and annex A17.3.3. It covers the IP
 * header to the end of the pad octets. What changes on the way counts as ones: TOS or traffic
 * class and flow label, TTL or hop limit, both checksums, and BTH octet 4.
 */
#ifndef UWARP_ROCE_ICRC_H
#define UWARP_ROCE_ICRC_H

#include "base/span.h"

/* The ICRC of a packet from its IP header on, without the ICRC's own four octets. ip_len: octets of
 * the IP header, at most 60. The packet has ip_len + 20 octets at least (UDP and BTH). */
uint32_t roce_icrc(struct uw_rope packet, unsigned ip_len);

/* The ICRC goes least significant octet first. */
void roce_icrc_put(uint8_t *p, uint32_t icrc);
uint32_t roce_icrc_get(const uint8_t *p);

#endif
