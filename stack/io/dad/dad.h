/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does another host have one of our addresses? IPv4: address conflict detection (RFC 5227). IPv6:
 * duplicate address detection (RFC 4862 §5.4). Frames are made and read here, Ethernet header
 * first; no function here does I/O, waits or reads a clock (search.h does).
 *
 * An address that is shared with the kernel (IO_SHARED, IO_SHARED6) is the kernel's to look after.
 */
#ifndef UWARP_IO_DAD_H
#define UWARP_IO_DAD_H

#include <stddef.h>

#include "io/io.h"

#define DAD_FRAME	86u	  /* octets of the longest frame made here */
#define DAD_PROBES	3u	  /* RFC 5227 §1.1: PROBE_NUM */
#define DAD_ANNOUNCED	2u	  /* ANNOUNCE_NUM */
#define DAD_ANNOUNCE_US 2000000u  /* ANNOUNCE_INTERVAL */
#define DAD_DEFEND_US	10000000u /* DEFEND_INTERVAL */

/* Has the link addresses that others may have, too? */
bool dad_is_due(const struct io_link *l);

/* Write to `out` (DAD_FRAME octets) what asks whether somebody has the i-th address of the link: an
 * ARP probe (RFC 5227 §2.1.1), or a neighbor solicitation from the unspecified address (RFC 4862
 * §5.4.2). The IPv4 address is number 0, IPv6 addresses follow. Returns its octets; 0: the link has
 * no i-th address to ask for, and none behind it. */
size_t dad_probe(const struct io_link *l, unsigned i, uint8_t *out);
/* What tells that the link has its IPv4 address (RFC 5227 §2.3); 0: there is nothing to tell. */
size_t dad_announcement(const struct io_link *l, uint8_t *out);

/* A host that has, or asks for, an address of ours. */
struct dad_conflict {
	struct uw_ip ip;
	uint8_t mac[6];
};

/* Does a received frame (n octets of its first buffer) tell of such a host? searching: somebody who
 * asks for the address at the same time counts (RFC 5227 §2.1.1, RFC 4862 §5.4.3); later whoever
 * asks is told. */
bool dad_read(const struct io_link *l, const uint8_t *frame, size_t n, bool searching,
	      struct dad_conflict *out);

/* Of an address that is in use: when what is done. Times are microseconds; all zero at first. */
struct dad_defence {
	unsigned announced;    /* how often we told that the address is ours */
	uint64_t announced_us; /* the last time */
	uint64_t defended_us;  /* the last time that a conflict was answered; 0: never */
};

/* Is the next announcement due? Counts it. */
bool dad_announces(struct dad_defence *d, uint64_t now_us);
/* When it will be; UINT64_MAX: there is none any more. */
uint64_t dad_next_us(const struct dad_defence *d, uint64_t now_us);
/* Somebody else uses our address: is it to be answered, and said? RFC 5227 §2.4 (c): once in
 * DAD_DEFEND_US. The address is never given up: the program's connections have it. */
bool dad_defends(struct dad_defence *d, uint64_t now_us);

#endif
