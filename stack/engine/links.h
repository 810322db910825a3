/* SPDX-License-Identifier: BSD-3-Clause */
/* How a link is opened from the configuration; which kinds exist depends on the build. */
#ifndef UWARP_ENGINE_LINKS_H
#define UWARP_ENGINE_LINKS_H

#include "engine/engine.h"

#define LINK_IP6_MAX (IO_IP6_MAX - 2) /* the other two are made: io/addr.h */

#define LINK_HOST "host" /* of the transport socket: the kernel's network */

struct link_addr {
	uint32_t addr, mask; /* IPv4, network order; 0: none */
	struct uw_net ip6[LINK_IP6_MAX];
	unsigned n_ip6;
};

/* cfg->ip: "A" or "A/N", one of IPv4 and up to LINK_IP6_MAX of IPv6, with commas between. When it
 * is empty an address of 127.0.0.0/8 made from the process id. Between processes there is always
 * one of IPv4, and all others end in it. UW_E_INVAL, said on stderr. */
uw_status link_parse_ip(const struct uw_config *c, struct link_addr *out) UW_CHECK;
/* The link as far as it is known before it is open: its addresses, and the MTU that they need. */
void link_foresee(const struct uw_config *c, struct io_link *l);
/* The link "loop": nobody else on it. */
uw_status link_open_loop(struct uw_engine *e, const struct io_env *env,
			 struct io_link **out) UW_CHECK;

/* LINK_HOST. Frames, and what limits or records them, it does not have. */
uw_status link_open_host(struct uw_engine *e, const struct io_env *env,
			 struct io_link **out) UW_CHECK;

/* In front of *l a link that is no faster than the configuration says, and one that impairs. Closes
 * *l on an error, also if it cannot have the addresses or the TSO that were asked for. */
uw_status link_limit(struct uw_engine *e, struct io_link **l) UW_CHECK;

/* As link_limit, all of them. */
uw_status links_limit(struct uw_engine *e, struct io_link **l) UW_CHECK;

#endif
