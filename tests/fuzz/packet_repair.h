/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet of RoCEv2 that was damaged gets past the checks of sums: only its meaning is wrong. */
#ifndef UWARP_FUZZ_PACKET_REPAIR_H
#define UWARP_FUZZ_PACKET_REPAIR_H

#include "base/be.h"
#include "fuzz.h"
#include "roce/icrc.h"
#include "roce/packet.h"

#define PACKET_LEAST (40u + 8 + ROCE_BTH + ROCE_ICRC) /* n is above this */

static inline void packet_repair(uint8_t *p, size_t n)
{
	unsigned ip = p[0] >> 4 == 4 ? 20 : 40;
	struct uw_span s = { p, n - ROCE_ICRC };
	uint32_t sum = 0;

	if (ip == 20) {
		memset(p + 10, 0, 2);
		for (unsigned i = 0; i < 20; i += 2)
			sum += uw_be16(p + i);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		uw_put16(p + 10, (uint16_t)~sum);
	}
	roce_icrc_put(p + n - ROCE_ICRC, roce_icrc(uw_rope_of(&s), ip));
}

#endif
