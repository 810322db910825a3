/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens links from the configuration; the kinds of links depend on the build. */
#ifndef UWARP_ENGINE_LINKS_H
#define UWARP_ENGINE_LINKS_H

#include "engine/engine.h"

#define LINK_IP6_MAX (IO_IP6_MAX - 2) /* the link makes the other two itself: io/addr.h */

#define LINK_HOST "host" /* link of the transport "socket": the kernel's network */

struct link_addr {
	uint32_t addr, mask; /* IPv4, network order; 0: none */
	struct uw_net ip6[LINK_IP6_MAX];
	unsigned n_ip6;
};

/* Parse cfg->ip: "A" or "A/N", separated by commas, at most one IPv4 and LINK_IP6_MAX IPv6
 * addresses. If empty: an address in 127.0.0.0/8 made from the process id. A link between processes
 * always has an IPv4 address, and its IPv6 addresses end in the same octets. UW_E_INVAL: one line
 * on stderr names the error. */
uw_status link_parse_ip(const struct uw_config *c, struct link_addr *out) UW_CHECK;
/* Fill in what is known of the link before the start: its addresses, MTU and speed. Programs ask
 * for them before their first QP, and keep what they heard. Only a uwarpd and hardware tell theirs
 * later. */
void link_foresee(const struct uw_config *c, struct io_link *l);
/* Open the link "loop", which has no peer. */
uw_status link_open_loop(struct uw_engine *e, const struct io_env *env,
			 struct io_link **out) UW_CHECK;

/* The interface of the kernel in a link's name. "": none of the kernel's. */
const char *link_interface(const char *link);

/* Does e->cfg name the packet link (an interface's name, or "packet:IF")? */
bool link_is_packet(const struct uw_engine *e);
uw_status link_open_packet(struct uw_engine *e, const struct io_env *env,
			   struct io_link **out) UW_CHECK;

/* Does e->cfg name the link of a uwarpd ("uwarpd" or "uwarpd:PATH")? */
bool link_is_uwarpd(const struct uw_engine *e);
uw_status link_open_uwarpd(struct uw_engine *e, const struct io_env *env,
			   struct io_link **out) UW_CHECK;

/* Open LINK_HOST, which has no frames, and so no rate limit, impairment or capture. */
uw_status link_open_host(struct uw_engine *e, const struct io_env *env,
			 struct io_link **out) UW_CHECK;

/* Put the configured link filters above *l: rate limit and impairment. On an error *l is closed;
 * also if *l lacks the addresses or the TSO that the configuration demands. */
uw_status link_limit(struct uw_engine *e, struct io_link **l) UW_CHECK;

/* link_limit for the links of all stacks. */
uw_status links_limit(struct uw_engine *e, struct io_link **l) UW_CHECK;

#endif
