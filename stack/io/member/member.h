/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups that a link is a member of, told to routers and to the switches that listen:
 * IGMP version 2 (RFC 2236) and MLD version 1 (RFC 2710). Queriers of later versions understand
 * both (RFC 3376 §7.3.1, RFC 3810 §8.3.1). Frames are made and read here, Ethernet header first; no
 * function here does I/O or reads a clock (doc/adr/0039).
 */
#ifndef UWARP_IO_MEMBER_H
#define UWARP_IO_MEMBER_H

#include <stddef.h>

#include "base/ip.h"
#include "io/io.h"

#define MEMBER_FRAME	 86u	   /* octets of the longest frame made here */
#define MEMBER_GROUPS	 256u	   /* of a link */
#define MEMBER_REPORT_US 10000000u /* RFC 2236 §8.10, RFC 2710 §7.10: Unsolicited Report Interval \
				    */

struct member {
	struct uw_ip group;
	uint64_t due_us; /* of its next report; 0: none is due */
	bool again;	 /* one more report without a query is to come */
};

struct members {
	struct member v[MEMBER_GROUPS];
	unsigned n;
	uint32_t (*random)(void *arg);
	void *arg;
};

/* Become a member: a report is due at once, and another one later, since one may be lost. False:
 * there is no room. Nobody is told of the group of all hosts. */
bool member_join(struct members *m, const struct uw_ip *group, uint64_t now_us);
/* False: was none. */
bool member_leave(struct members *m, const struct uw_ip *group);
/* A received frame, n octets of its first buffer. True: it is a message of IGMP or MLD. */
bool member_read(struct members *m, const uint8_t *frame, size_t n, uint64_t now_us);
/* When the next report is due; UINT64_MAX: none. */
uint64_t member_next_us(const struct members *m);
/* The group of a report that is due, which counts as sent; false: none. */
bool member_due(struct members *m, uint64_t now_us, struct uw_ip *group);

/* Write to `out` (MEMBER_FRAME octets) that the link is a member, or is none any more. Returns its
 * octets. */
size_t member_frame(const struct io_link *l, const struct uw_ip *group, bool leaves, uint8_t *out);

#endif
