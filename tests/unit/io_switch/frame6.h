/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch's addresses of IPv6, and frames of it. */
#ifndef UWARP_TESTS_IO_SWITCH_FRAME6_H
#define UWARP_TESTS_IO_SWITCH_FRAME6_H

#include "frame.h"

enum { NEXT_TCP = 6, NEXT_UDP = 17, NEXT_ICMP6 = 58, NEXT_FRAGMENT = 44 };
/* Where things are in a frame. */
enum { NEXT_AT = 20, HOPS_AT = 21, FROM_AT = 22, TO_AT = 38, L4_AT = 54, TARGET_AT = L4_AT + 8 };

static const uint8_t local6[16] = { 0xfe, 0x80, [15] = 1 }, our6[16] = { 0xfd, 0x77, [15] = 1 },
		     their6[16] = { 0xfd, 0x77, [13] = 0xaa, 0xbb, 0xcc };

/* Of both versions: port ALICES is Alice's with IPv4, and Bob's with IPv6, and the other way round.
 */
static inline int table6_up(void **state)
{
	table_up(state);
	memcpy(table.ip6[0].b, local6, 16);
	memcpy(table.ip6[1].b, our6, 16);
	table.n_ip6 = 2;
	table.holder[ALICES] = table.holder6[BOBS] = BOB;
	table.holder[BOBS] = table.holder6[ALICES] = ALICE;
	return 0;
}

static inline struct octets packet6(bool out, uint8_t next, uint32_t len)
{
	struct octets f = { .len = L4_AT + len };

	memcpy(f.h, out ? their_mac : our_mac, 6);
	memcpy(f.h + 6, out ? our_mac : their_mac, 6);
	uw_put16(f.h + 12, 0x86dd);
	f.h[14] = 0x60;
	uw_put16(f.h + 18, (uint16_t)len);
	f.h[NEXT_AT] = next;
	f.h[HOPS_AT] = 64;
	memcpy(f.h + FROM_AT, out ? our6 : their6, 16);
	memcpy(f.h + TO_AT, out ? their6 : our6, 16);
	return f;
}

/* A TCP segment with a header of 20 octets and so much payload. */
static inline struct octets segment6(bool out, uint16_t sport, uint16_t dport, uint32_t payload)
{
	struct octets f = packet6(out, NEXT_TCP, 20 + payload);

	uw_put16(f.h + L4_AT, sport);
	uw_put16(f.h + L4_AT + 2, dport);
	f.h[L4_AT + 12] = 0x50;
	f.h[L4_AT + 13] = 0x10;
	return f;
}

/* RFC 4861 §4.3: a solicitation with the sender's MAC, to the target's solicited-node address. */
static inline struct octets solicit(bool out)
{
	static const uint8_t group[13] = { 0xff, 2, [11] = 1, 0xff };
	const uint8_t *target = out ? their6 : our6;
	struct octets f = packet6(out, NEXT_ICMP6, 32);

	memcpy(f.h, "\x33\x33\xff", 3);
	memcpy(f.h + 3, target + 13, 3);
	memcpy(f.h + TO_AT, group, 13);
	memcpy(f.h + TO_AT + 13, target + 13, 3);
	f.h[HOPS_AT] = 255;
	f.h[L4_AT] = 135;
	memcpy(f.h + TARGET_AT, target, 16);
	f.h[TARGET_AT + 16] = f.h[TARGET_AT + 17] = 1;
	memcpy(f.h + TARGET_AT + 18, out ? our_mac : their_mac, 6);
	return f;
}

/* An error about a segment that we sent from this port. */
static inline struct octets error6(uint8_t type, uint16_t sport)
{
	struct octets f = packet6(false, NEXT_ICMP6, 8 + 40 + 20),
		      about = segment6(true, sport, OUTSIDE, 1000);

	f.h[L4_AT] = type;
	memcpy(f.h + TARGET_AT, about.h + 14, 40 + 20);
	return f;
}

#endif
