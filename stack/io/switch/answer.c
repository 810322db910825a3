/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/answer.h"

#include <string.h>

#include "base/be.h"
#include "base/sum.h"
#include "io/switch/icmp6.h"

enum { TCP_LEN = 20, FRAME_MIN = 60 };
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

static void put_ether(const struct switch_table *t, const struct switch_frame *f, uint8_t *out)
{
	memset(out, 0, SWITCH_ANSWER_MAX);
	memcpy(out, f->head + MAC_FROM, 6);
	memcpy(out + MAC_FROM, t->mac, 6);
	memcpy(out + TYPE, f->head + TYPE, 2);
}

/* RFC 826: the reply swaps both ends. */
static uint32_t answer_arp(const struct switch_table *t, const struct switch_frame *f, uint8_t *out)
{
	uint8_t *arp = out + ETHER;

	put_ether(t, f, out);
	memcpy(arp, f->head + ETHER, 6);
	uw_put16(arp + 6, 2);
	memcpy(arp + 8, t->mac, 6);
	memcpy(arp + 14, &t->addr, 4);
	memcpy(arp + 18, f->head + ETHER + 8, 10);
	return FRAME_MIN;
}

static void put_ip4(const struct switch_frame *f, uint8_t *ip)
{
	ip[0] = 0x45;
	uw_put16(ip + 2, IP4_LEN + TCP_LEN);
	ip[6] = 0x40; /* do not fragment */
	ip[8] = 64;
	ip[9] = PROTOCOL_TCP;
	memcpy(ip + 12, f->head + IP_TO, 4);
	memcpy(ip + 16, f->head + IP_FROM, 4);
	uw_put16(ip + 10, (uint16_t)~uw_sum_fold(uw_sum_add(0, ip, IP4_LEN)));
}

static void put_ip6(const uint8_t *from, const uint8_t *to, uint8_t protocol, uint8_t hops,
		    uint32_t payload, uint8_t *ip)
{
	ip[0] = 0x60;
	uw_put16(ip + 4, (uint16_t)payload);
	ip[6] = protocol;
	ip[7] = hops;
	memcpy(ip + 8, from, 16);
	memcpy(ip + 24, to, 16);
}

/* What is behind the IP header, with its pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1). */
static uint16_t sum_of(const uint8_t *ip, bool six, uint8_t protocol, uint32_t len)
{
	uint32_t at = six ? IP6_LEN : IP4_LEN, addrs = six ? 32 : 8;

	return (uint16_t)~uw_sum_fold(
		uw_sum_add(uw_sum_add(protocol + len, ip + at - addrs, addrs), ip + at, len));
}

/* RFC 4861 §7.2.4. Who has no address yet is told by all nodes' (§7.2.3, RFC 4862 §5.4.3). */
static uint32_t answer_solicit(const struct switch_table *t, const struct switch_frame *f,
			       uint8_t *out)
{
	static const uint8_t nobody[16], all_nodes[16] = { 0xff, 0x02, [15] = 1 },
					 all_macs[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	enum { OVERRIDE = 0x20, SOLICITED = 0x40, TARGET_MAC = 2, LEN = ICMP6_ND_LEN + 8 };
	const uint8_t *target = f->head + ETHER + IP6_LEN + ICMP6_TARGET, *to = f->head + IP6_FROM;
	bool known = memcmp(to, nobody, sizeof(nobody));
	uint8_t *ip = out + ETHER, *icmp = ip + IP6_LEN;

	put_ether(t, f, out);
	if (!known)
		memcpy(out, all_macs, sizeof(all_macs));
	put_ip6(target, known ? to : all_nodes, PROTOCOL_ICMP6, 255, LEN, ip);
	icmp[0] = ICMP6_ADVERT;
	icmp[4] = known ? SOLICITED | OVERRIDE : OVERRIDE;
	memcpy(icmp + ICMP6_TARGET, target, 16);
	icmp[ICMP6_ND_LEN] = TARGET_MAC;
	icmp[ICMP6_ND_LEN + 1] = 1;
	memcpy(icmp + ICMP6_ND_LEN + 2, t->mac, 6);
	uw_put16(icmp + 2, sum_of(ip, true, PROTOCOL_ICMP6, LEN));
	return ETHER + IP6_LEN + LEN;
}

/* RFC 9293 §3.10.7.1: a segment without ACK is answered with sequence number 0 and an ACK of all of
 * it, one with ACK with the sequence number that it expects. An RST gets no answer. */
static bool put_reset(const uint8_t *from, uint32_t payload, uint8_t *tcp)
{
	if (from[13] & RST)
		return false;
	memcpy(tcp, from + 2, 2);
	memcpy(tcp + 2, from, 2);
	tcp[12] = TCP_LEN / 4 << 4;
	if (from[13] & ACK) {
		memcpy(tcp + 4, from + 8, 4);
		tcp[13] = RST;
	} else {
		payload += !!(from[13] & SYN) + !!(from[13] & FIN);
		uw_put32(tcp + 8, uw_be32(from + 4) + payload);
		tcp[13] = RST | ACK;
	}
	return true;
}

static uint32_t answer_tcp(const struct switch_table *t, const struct switch_frame *f,
			   const struct switch_ip *p, uint8_t *out)
{
	const uint8_t *from = f->head + p->at;
	uint8_t *ip = out + ETHER, *tcp = ip + (p->six ? IP6_LEN : IP4_LEN);

	put_ether(t, f, out);
	if (!put_reset(from, p->total - p->at - (uint32_t)(from[12] >> 4) * 4, tcp))
		return 0;
	if (p->six)
		put_ip6(f->head + IP6_TO, f->head + IP6_FROM, PROTOCOL_TCP, 64, TCP_LEN, ip);
	else
		put_ip4(f, ip);
	uw_put16(tcp + 16, sum_of(ip, p->six, PROTOCOL_TCP, TCP_LEN));
	return p->six ? ETHER + IP6_LEN + TCP_LEN : FRAME_MIN;
}

uint32_t switch_answer(const struct switch_table *t, const struct switch_frame *f, uint8_t *out)
{
	struct switch_ip p;

	if (uw_be16(f->head + TYPE) == TYPE_ARP)
		return answer_arp(t, f, out);
	if (switch_read_ip(t, f, &p))
		return 0;
	return p.protocol == PROTOCOL_TCP ? answer_tcp(t, f, &p, out) : answer_solicit(t, f, out);
}
