/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/icrc.h"

#include <endian.h>
#include <string.h>

#include "base/crc32.h"
#include "roce/headers.h"

#define LINK_HEADER 8u /* InfiniBand's LRH, which is not there, counts as ones */
#define IP_MAX	    60u
#define UDP	    8u
#define BTH_RESV8A  4u

/* In the IP header. */
static void mask_ip(uint8_t *ip)
{
	if (ip[0] >> 4 == 4) {
		ip[1] = 0xff;		  /* TOS */
		ip[8] = 0xff;		  /* TTL */
		memset(ip + 10, 0xff, 2); /* checksum */
		return;
	}
	ip[0] |= 0x0f; /* traffic class, flow label */
	memset(ip + 1, 0xff, 3);
	ip[7] = 0xff; /* hop limit */
}

uint32_t roce_icrc(struct uw_rope packet, unsigned ip_len)
{
	uint8_t head[LINK_HEADER + IP_MAX + UDP + ROCE_BTH];
	unsigned n = ip_len + UDP + ROCE_BTH;
	uint8_t *ip = head + LINK_HEADER, *udp = ip + ip_len;
	uint32_t crc;

	memset(head, 0xff, LINK_HEADER);
	uw_rope_copy(packet, ip, n);
	mask_ip(ip);
	memset(udp + 6, 0xff, 2); /* checksum */
	udp[UDP + BTH_RESV8A] = 0xff;
	crc = uw_crc32_add(0, head, LINK_HEADER + n);
	for (struct uw_rope rest = uw_rope_sub(packet, n, packet.len - n); rest.len;) {
		struct uw_span s = uw_rope_head(rest);

		crc = uw_crc32_add(crc, s.p, s.n);
		rest = uw_rope_sub(rest, s.n, rest.len - s.n);
	}
	return crc;
}

void roce_icrc_put(uint8_t *p, uint32_t icrc)
{
	icrc = htole32(icrc);
	memcpy(p, &icrc, sizeof(icrc));
}

uint32_t roce_icrc_get(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}
