/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 of IEEE 802.3, reflected, as zlib has it. RoCEv2's ICRC is one (InfiniBand volume 1,
 * §7.8.1). */
#ifndef UWARP_BASE_CRC32_H
#define UWARP_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of the octets that gave `crc` (0: none yet) and of n more. */
uint32_t uw_crc32_add(uint32_t crc, const void *p, size_t n);

#endif
