/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum, in a form that compilers vectorise (built at -O3). */
#include "arch/cc.h"

#include <string.h>

uint16_t uw_lwip_checksum(const void *data, int len)
{
	const uint8_t *p = data;
	uint64_t sum = 0;
	size_t n = (size_t)len;

	while (n >= 64) {
		uint64_t part = 0;

		for (unsigned i = 0; i < 16; i++) {
			uint32_t w;

			memcpy(&w, p + 4 * i, 4);
			part += w;
		}
		sum += part;
		p += 64;
		n -= 64;
	}
	for (; n >= 2; n -= 2, p += 2) {
		uint16_t w;

		memcpy(&w, p, 2);
		sum += w;
	}
	if (n)
		sum += *p; /* the odd octet counts as the low one of a word in memory order */
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}
