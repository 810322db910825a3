/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/answer.h"

#include <string.h>

#include "base/be.h"
#include "base/sum.h"
#include "io/switch/head.h"

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

static void put_ip(const struct switch_frame *f, uint8_t *ip)
{
	ip[0] = 0x45;
	uw_put16(ip + 2, IP4_LEN + TCP_LEN);
	ip[6] = 0x40; /* do not fragment */
	ip[8] = 64;
	ip[9] = 6;
	memcpy(ip + 12, f->head + IP_TO, 4);
	memcpy(ip + 16, f->head + IP_FROM, 4);
	uw_put16(ip + 10, (uint16_t)~uw_sum_fold(uw_sum_add(0, ip, IP4_LEN)));
}

/* RFC 9293 §3.10.7.1: a segment without ACK is answered with sequence number 0 and an ACK of all of
 * it, one with ACK with the sequence number that it expects. An RST gets no answer. */
static uint32_t answer_tcp(const struct switch_table *t, const struct switch_frame *f, uint8_t *out)
{
	const uint8_t *from_ip = f->head + ETHER;
	uint32_t ip_len = (uint32_t)(from_ip[0] & 15) * 4;
	const uint8_t *from = from_ip + ip_len;
	uint8_t *ip = out + ETHER, *tcp = ip + IP4_LEN;
	uint32_t len = uw_be16(from_ip + 2) - ip_len - (uint32_t)(from[12] >> 4) * 4;

	if (from[13] & RST)
		return 0;
	put_ether(t, f, out);
	put_ip(f, ip);
	memcpy(tcp, from + 2, 2);
	memcpy(tcp + 2, from, 2);
	tcp[12] = TCP_LEN / 4 << 4;
	if (from[13] & ACK) {
		memcpy(tcp + 4, from + 8, 4);
		tcp[13] = RST;
	} else {
		len += !!(from[13] & SYN) + !!(from[13] & FIN);
		uw_put32(tcp + 8, uw_be32(from + 4) + len);
		tcp[13] = RST | ACK;
	}
	uw_put16(tcp + 16, (uint16_t)~uw_sum_fold(
				   uw_sum_add(uw_sum_add(6 + TCP_LEN, ip + 12, 8), tcp, TCP_LEN)));
	return FRAME_MIN;
}

uint32_t switch_answer(const struct switch_table *t, const struct switch_frame *f, uint8_t *out)
{
	if (uw_be16(f->head + 12) == 0x0806)
		return answer_arp(t, f, out);
	return answer_tcp(t, f, out);
}
