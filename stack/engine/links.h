/* SPDX-License-Identifier: BSD-3-Clause */
/* How a link is opened from the configuration; which kinds exist depends on the build. */
#ifndef UWARP_ENGINE_LINKS_H
#define UWARP_ENGINE_LINKS_H

#include "engine/engine.h"

struct link_addr {
	uint32_t addr, mask; /* network order */
};

/* "A" or "A/N" of cfg->ip; when it is empty an address of 127.0.0.0/8 made from the process id.
 * UW_E_INVAL, said on stderr. */
uw_status link_parse_ip(const char *ip, struct link_addr *out) UW_CHECK;
/* As above, but says nothing. */
uw_status link_read_ip(const char *ip, struct link_addr *out) UW_CHECK;
/* The link "loop": nobody else on it. */
uw_status link_open_loop(struct uw_engine *e, const struct io_env *env,
			 struct io_link **out) UW_CHECK;

/* In front of *l a link that is no faster than the configuration says. */
uw_status link_limit(struct uw_engine *e, struct io_link **l) UW_CHECK;

#endif
