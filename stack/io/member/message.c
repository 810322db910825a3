/* SPDX-License-Identifier: BSD-3-Clause */
/* Layout of the messages. */
#include "io/member/message.h"

#include <string.h>

#include "base/sum.h"
#include "io/member/member.h"

enum { ETH = 14, IP4 = 20, ALERT4 = 4, IP6 = 40, ALERT6 = 8, IGMP = 8, MLD = 24 };
enum { PROTOCOL_IGMP = 2, PROTOCOL_ICMP6 = 58, HOP_BY_HOP = 0 };
/* RFC 2236 §2.1; RFC 2710 §3.1 */
enum { IGMP_QUERY = 0x11, IGMP_REPORT1 = 0x12, IGMP_REPORT = 0x16, IGMP_LEAVE = 0x17 };
enum { MLD_QUERY = 130, MLD_REPORT = 131, MLD_DONE = 132 };

static const uint8_t routers4[4] = { 224, 0, 0, 2 };
static const uint8_t routers6[16] = { 0xff, 2, [15] = 2 };

/* ---- out --------------------------------------------------------------------------------- */

/* RFC 2236 §2, §9: to the group itself, or to all routers; TTL 1, with the router alert. */
static size_t igmp(const struct io_link *l, const struct uw_ip *group, bool leaves, uint8_t *out)
{
	const uint8_t *to = leaves ? routers4 : group->b + 12;
	const uint8_t mac[6] = { 1, 0, 0x5e, to[1] & 0x7f, to[2], to[3] };
	uint8_t *ip = out + ETH, *m = ip + IP4 + ALERT4;

	memcpy(out, mac, 6);
	uw_put16(out + 12, 0x0800);
	ip[0] = 0x46;
	ip[1] = 0xc0; /* internetwork control, as RFC 3376 §4 has it */
	uw_put16(ip + 2, IP4 + ALERT4 + IGMP);
	uw_put16(ip + 6, 0x4000);
	ip[8] = 1;
	ip[9] = PROTOCOL_IGMP;
	memcpy(ip + 12, &l->addr, 4);
	memcpy(ip + 16, to, 4);
	uw_put32(ip + 20, 0x94040000); /* RFC 2113 */
	uw_put16(ip + 10, (uint16_t)~uw_sum_fold(uw_sum_add(0, ip, IP4 + ALERT4)));
	m[0] = leaves ? IGMP_LEAVE : IGMP_REPORT;
	memcpy(m + 4, group->b + 12, 4);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(0, m, IGMP)));
	return ETH + IP4 + ALERT4 + IGMP;
}

/* RFC 2710 §3: from the link-local address, hop limit 1, with the router alert (RFC 2711). */
static size_t mld(const struct io_link *l, const struct uw_ip *group, bool leaves, uint8_t *out)
{
	const uint8_t *to = leaves ? routers6 : group->b;
	const uint8_t mac[6] = { 0x33, 0x33, to[12], to[13], to[14], to[15] };
	static const uint8_t alert[ALERT6] = { PROTOCOL_ICMP6, 0, 5, 2, 0, 0, 1, 0 };
	uint8_t *ip = out + ETH, *m = ip + IP6 + ALERT6;
	uint32_t sum;

	memcpy(out, mac, 6);
	uw_put16(out + 12, 0x86dd);
	ip[0] = 0x60;
	uw_put16(ip + 4, ALERT6 + MLD);
	ip[6] = HOP_BY_HOP;
	ip[7] = 1;
	memcpy(ip + 8, l->ip6[0].ip.b, 16);
	memcpy(ip + 24, to, 16);
	memcpy(ip + IP6, alert, ALERT6);
	m[0] = leaves ? MLD_DONE : MLD_REPORT;
	memcpy(m + 8, group->b, 16);
	sum = uw_sum_add(MLD + PROTOCOL_ICMP6, ip + 8, 32);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(sum, m, MLD)));
	return ETH + IP6 + ALERT6 + MLD;
}

size_t member_frame(const struct io_link *l, const struct uw_ip *group, bool leaves, uint8_t *out)
{
	memset(out, 0, MEMBER_FRAME);
	memcpy(out + 6, l->mac, 6);
	return uw_ip_is_v4(group) ? igmp(l, group, leaves, out) : mld(l, group, leaves, out);
}

/* ---- in ---------------------------------------------------------------------------------- */

/* RFC 2236 §2.2, §4: tenths of a second; version 1 has a zero there and means ten seconds. */
static enum member_kind read_igmp(const uint8_t *m, unsigned n, struct member_message *out)
{
	uint32_t group;

	if (n < IGMP || uw_sum_fold(uw_sum_add(0, m, n)) != 0xffff)
		return MEMBER_OTHER;
	memcpy(&group, m + 4, 4);
	out->v4 = true;
	out->general = !group;
	out->group = uw_ip_v4(group);
	out->limit_us = (m[1] ? m[1] : 100u) * UINT64_C(100000);
	if (m[0] == IGMP_QUERY)
		return MEMBER_QUERY;
	return m[0] == IGMP_REPORT || m[0] == IGMP_REPORT1 ? MEMBER_REPORT : MEMBER_OTHER;
}

static enum member_kind read_ip4(const uint8_t *ip, size_t n, struct member_message *out)
{
	unsigned header = (ip[0] & 15u) * 4, total = uw_be16(ip + 2);

	if (ip[0] >> 4 != 4 || ip[9] != PROTOCOL_IGMP)
		return MEMBER_NONE;
	if (header < IP4 || total < header || total > n || uw_be16(ip + 6) & 0x3fff)
		return MEMBER_OTHER;
	return read_igmp(ip + header, total - header, out);
}

static bool is_link_local(const uint8_t *addr)
{
	return addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}

/* RFC 2710 §3.3: milliseconds. */
static enum member_kind read_mld(const uint8_t *ip, unsigned n, struct member_message *out)
{
	const uint8_t *m = ip + IP6 + ALERT6;
	static const uint8_t none[16];
	uint32_t sum = uw_sum_add(n + PROTOCOL_ICMP6, ip + 8, 32);

	/* RFC 2710 §3: from a neighbour */
	if (n < MLD || ip[7] != 1 || !is_link_local(ip + 8) ||
	    uw_sum_fold(uw_sum_add(sum, m, n)) != 0xffff)
		return MEMBER_OTHER;
	out->v4 = false;
	out->general = !memcmp(m + 8, none, 16);
	memcpy(out->group.b, m + 8, 16);
	out->limit_us = uw_be16(m + 4) * UINT64_C(1000);
	if (m[0] == MLD_QUERY)
		return MEMBER_QUERY;
	return m[0] == MLD_REPORT ? MEMBER_REPORT : MEMBER_OTHER;
}

static enum member_kind read_ip6(const uint8_t *ip, size_t n, struct member_message *out)
{
	unsigned len = uw_be16(ip + 4);
	const uint8_t *hop = ip + IP6, *m = hop + ALERT6;

	/* one hop-by-hop header of 8 octets: the router alert's */
	if (n < IP6 + ALERT6 + 1 || ip[6] != HOP_BY_HOP || hop[0] != PROTOCOL_ICMP6 || hop[1] ||
	    m[0] < MLD_QUERY || m[0] > MLD_DONE)
		return MEMBER_NONE;
	if (len < ALERT6 || len > n - IP6)
		return MEMBER_OTHER;
	return read_mld(ip, len - ALERT6, out);
}

enum member_kind member_message_read(const uint8_t *frame, size_t n, struct member_message *out)
{
	uint16_t type = n < ETH + IP4 ? 0 : uw_be16(frame + 12);

	if (type == 0x0800)
		return read_ip4(frame + ETH, n - ETH, out);
	return type == 0x86dd ? read_ip6(frame + ETH, n - ETH, out) : MEMBER_NONE;
}
