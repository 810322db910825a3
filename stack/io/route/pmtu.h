/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a packet to an address may be, where that is less than the link takes: path MTU
 * discovery (RFC 1191, RFC 8201). Entries are forgotten after ten minutes, so that a longer one is
 * tried again (RFC 1191 §6.3). No function here sends or reads a clock.
 */
#ifndef UWARP_IO_ROUTE_PMTU_H
#define UWARP_IO_ROUTE_PMTU_H

#include "base/ip.h"

#define PMTU_PATHS   256u
#define PMTU_LIFE_US 600000000u
/* RFC 1191 §3 has 68 as the least. Below this, packets go without DF and routers cut them (as
 * Linux's min_pmtu): who could forge messages would have us send an octet at a time. */
#define PMTU_MIN_4 552u
#define PMTU_MIN_6 1280u /* RFC 8201 §4 */

enum pmtu_state {
	PMTU_KNOWN,   /* a router told it, or it was guessed and has been tried */
	PMTU_GUESSED, /* longer packets seem to vanish, but perhaps all do */
	PMTU_TRIED,   /* packets go through again: is it the longer ones as well? */
};

struct pmtu_path {
	struct uw_ip to; /* the any address: the entry is free */
	uint32_t mtu;
	uint64_t until_us;
	bool fragment; /* IPv4: the path takes less than mtu, so routers may cut */

	enum pmtu_state state;
	/* of one that is not known */
	bool again;	   /* guessed: it went through before, when longer ones did not */
	bool told;	   /* the size from before the guess was a router's */
	uint32_t before;   /* that size */
	uint32_t lost;	   /* the size that vanished */
	uint32_t passed;   /* tried: the longest that went through, less than lost */
	uint64_t since_us; /* when it was guessed or tried */
};

/* An acknowledged packet: its length, when it was sent last, and whether that was once. */
struct pmtu_packet {
	uint32_t octets;
	uint64_t sent_us;
	bool once;
};

struct pmtu_table {
	struct pmtu_path path[PMTU_PATHS];
	unsigned n;
	uint32_t least;	   /* the least mtu of all entries; UINT32_MAX without any */
	uint64_t until_us; /* when the first entry is to be forgotten; UINT64_MAX: never */
};

void pmtu_init(struct pmtu_table *t);
/* The entry of an address; NULL: none. */
const struct pmtu_path *pmtu_find(const struct pmtu_table *t, const struct uw_ip *to);
/* A packet of mtu octets is known to be the longest, at the time now_us. Without a free place the
 * oldest entry of those that share it is replaced. */
void pmtu_set(struct pmtu_table *t, const struct uw_ip *to, uint32_t mtu, uint64_t now_us);
/* Packets that long vanish in a row, and no router says so (RFC 4821 §7.7, RFC 8899 §4.3). mtu: of
 * the path until now. Returns what it is from now on: the next size below theirs, or the same if
 * there is none. A path that is dead for a while looks the same, so it is a guess, which pmtu_acked
 * judges. */
uint32_t pmtu_guess(struct pmtu_table *t, const struct uw_ip *to, uint32_t mtu, uint32_t octets,
		    uint64_t now_us);
/* A packet arrived. If it is the first of a guessed size, the size from before is tried: packets as
 * long as those that vanished do so again, or the guess was wrong and is forgotten. True: the
 * path's MTU is another now. */
bool pmtu_acked(struct pmtu_table *t, const struct uw_ip *to, const struct pmtu_packet *p,
		uint64_t now_us);
/* Forget what is too old. True: something was. */
bool pmtu_expire(struct pmtu_table *t, uint64_t now_us);

/* The next size to try below mtu (RFC 1191 §7.1's table): for a router that does not tell its MTU,
 * and where packets vanish (RFC 4821). v4: of IPv4; else 1280 is the least. */
uint32_t pmtu_below(uint32_t mtu, bool v4);

#endif
