/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local TCP ports of a process, and which endpoints have them. Two endpoints may have one port if
 * they are of different versions of IP, or if both agreed to share it and neither listens. All
 * endpoints of a port are on one stack. Under the locks of all stacks.
 */
#ifndef UWARP_CONN_PORTS_H
#define UWARP_CONN_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct uw_ep;
struct conn_domain;

struct ports {
	struct uw_ep **holders;	       /* 65,536 lists, by port in host order */
	uint64_t reserved[65536 / 64]; /* not the program's to bind */
	unsigned next_ephemeral;       /* counted from the first ephemeral port, + 1; 0: any */
};

uw_status ports_init(struct ports *p) UW_CHECK;
void ports_free(struct ports *p);
/* No endpoint gets this port (host order). */
void ports_reserve(struct ports *p, unsigned port);

/* Give ep, which has an address and no port, this port (host order) or, if it is 0, a free one. The
 * endpoint may move to another stack. UW_E_ADDR_IN_USE. */
uw_status ports_take(struct conn_domain *d, struct uw_ep *ep, unsigned port) UW_CHECK;
/* ep need not have one. */
void ports_release(struct uw_ep *ep);
/* Does no other endpoint have ep's port for the same version of IP? */
bool ports_is_alone(const struct conn_domain *d, const struct uw_ep *ep);
/* A connection without an endpoint needs a local port: one that no endpoint has, in host order; 0:
 * there is none. CM-less RC returns it by ports_give_back. */
unsigned ports_borrow(struct conn_domain *d);
void ports_give_back(struct conn_domain *d, unsigned port);

/* From now on segments to ep's port are for the stack of that index, or for whichever they come to
 * (-1). It stays so when the port is free again: connections that had it may still be closing. */
void ports_steer(const struct conn_domain *d, const struct uw_ep *ep, int to);

#endif
