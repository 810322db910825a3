/* SPDX-License-Identifier: BSD-3-Clause */
/* Before the links are used: does another host have their addresses, or another process of this one
 * (io/dad, doc/adr/0036)? */
#ifndef UWARP_ENGINE_ADDRESSES_H
#define UWARP_ENGINE_ADDRESSES_H

#include "engine/engine.h"

/* links: one for each stack. Blocks for UWARP_DAD_MS if the user chose an address. Otherwise only
 * asks, and whoever answers is heard later (RFC 4429): the link's own IPv6 address ends in an IPv4
 * address that the kernel looks after. UW_E_ADDR_IN_USE: one line on stderr says who.
 * Else this process holds them (e->held) until engine_close_links(). */
UW_CHECK uw_status engine_addresses_search(struct uw_engine *e, struct io_link *const *links);

#endif
