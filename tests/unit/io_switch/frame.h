/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with one address, and frames for its tests. */
#ifndef UWARP_TESTS_IO_SWITCH_FRAME_H
#define UWARP_TESTS_IO_SWITCH_FRAME_H

#include <arpa/inet.h>

#include "base/be.h"
#include "io/switch/classify.h"
#include "uwtest.h"

enum { ALICE = 1, BOB = 2, ALICES = 4000, BOBS = 5000, NOBODYS = 6000, OUTSIDE = 7000, MTU = 1500 };

#define OURS   0x0a000001u /* 10.0.0.1 */
#define THEIRS 0x0a000002u

static const uint8_t our_mac[6] = { 2, 0, 0, 0, 0, 1 }, their_mac[6] = { 2, 0, 0, 0, 0, 2 };

struct octets {
	uint8_t h[2048];
	uint32_t len;
	uint16_t gso_size;
};

static struct switch_table table;

static inline int table_up(void **state)
{
	(void)state;
	table = (struct switch_table){ .addr = htonl(OURS), .mtu = MTU, .merges = true };
	memcpy(table.mac, our_mac, 6);
	table.holder[ALICES] = ALICE;
	table.holder[BOBS] = BOB;
	return 0;
}

/* A TCP segment with a header of 20 octets and so much payload. */
static inline struct octets segment(bool out, uint16_t sport, uint16_t dport, uint32_t payload)
{
	struct octets f = { .len = 54 + payload };

	memcpy(f.h, out ? their_mac : our_mac, 6);
	memcpy(f.h + 6, out ? our_mac : their_mac, 6);
	uw_put16(f.h + 12, 0x0800);
	f.h[14] = 0x45;
	uw_put16(f.h + 16, (uint16_t)(40 + payload));
	f.h[23] = 6;
	uw_put32(f.h + 26, out ? OURS : THEIRS);
	uw_put32(f.h + 30, out ? THEIRS : OURS);
	uw_put16(f.h + 34, sport);
	uw_put16(f.h + 36, dport);
	f.h[46] = 0x50;
	f.h[47] = 0x10;
	return f;
}

static inline struct octets arp(bool out, uint16_t op)
{
	struct octets f = { .len = 60 };
	static const uint8_t kind[] = { 0, 1, 8, 0, 6, 4 };

	memset(f.h, 0xff, 6);
	memcpy(f.h + 6, out ? our_mac : their_mac, 6);
	uw_put16(f.h + 12, 0x0806);
	memcpy(f.h + 14, kind, 6);
	uw_put16(f.h + 20, op);
	memcpy(f.h + 22, out ? our_mac : their_mac, 6);
	uw_put32(f.h + 28, out ? OURS : THEIRS);
	uw_put32(f.h + 38, out ? THEIRS : OURS);
	return f;
}

static inline struct switch_frame frame_of(const struct octets *o)
{
	return (struct switch_frame){ .head = o->h,
				      .head_len =
					      o->len < SWITCH_HEAD_MAX ? o->len : SWITCH_HEAD_MAX,
				      .len = o->len,
				      .gso_size = o->gso_size };
}

static inline struct switch_result from(uint16_t client, const struct octets *o)
{
	struct switch_frame f = frame_of(o);

	return switch_out(&table, client, &f);
}

static inline struct switch_result came(const struct octets *o)
{
	struct switch_frame f = frame_of(o);

	return switch_in(&table, &f);
}

#define assert_drop(result, reason)                                                                \
	do {                                                                                       \
		struct switch_result r_ = (result);                                                \
		assert_int_equal(r_.verdict, SWITCH_DROP);                                         \
		assert_string_equal(switch_why(r_.why), #reason);                                  \
	} while (0)

#endif
