/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local TCP ports of a process, and the endpoints that hold them. Two endpoints may have the
 * same port if their IP versions differ, or if both agreed to share the port and neither listens.
 * All endpoints of a port are on one stack. Under the locks of all stacks.
 */
#ifndef UWARP_CONN_PORTS_H
#define UWARP_CONN_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "io/io.h"

struct uw_ep;
struct conn_domain;

struct ports {
	struct uw_ep **holders; /* 65,536 lists of endpoints, indexed by port in host order */
	uint64_t reserved[65536 / 64]; /* one bit for each port that no endpoint may have */
	/* the next ephemeral port to try, 1 for the first; 0: begin at a random one */
	unsigned next_ephemeral;
};

uw_status ports_init(struct ports *p) UW_CHECK;
void ports_free(struct ports *p);
/* Reserve a port (host order): no endpoint will get the port. */
void ports_reserve(struct ports *p, unsigned port);

/* Give ep, which has an address and no port, this port (host order); 0: any free one. May move ep
 * to another stack. UW_E_ADDR_IN_USE, or what the link says to the claim. */
uw_status ports_take(struct conn_domain *d, struct uw_ep *ep, unsigned port) UW_CHECK;
/* Keep the port of ep, which came in at a listener, claimed from the links (IO_SHARED, IO_SHARED6)
 * until ports_release: the listener may end before. */
void ports_hold(struct uw_ep *ep);
/* Release the port of ep, if ep has or holds one. */
void ports_release(struct uw_ep *ep);
/* Has an endpoint of this process the port, or is it kept for CM-less RC? */
bool ports_is_ours(const struct conn_domain *d, unsigned port);
/* Does no other endpoint have ep's port for the same version of IP? */
bool ports_is_alone(const struct conn_domain *d, const struct uw_ep *ep);
/* A local port for a connection without an endpoint (CM-less RC), which no endpoint has, in host
 * order; 0 with an error. Return the port by ports_give_back. UW_E_ADDR_IN_USE: none is free, or
 * what the link says to the claim. */
uw_status ports_borrow(struct conn_domain *d, unsigned versions, unsigned *out) UW_CHECK;
void ports_give_back(struct conn_domain *d, unsigned port, unsigned versions);
/* Where CM-less RC is called: RC_PORT, or if another process of a shared address has that, a port
 * as of ports_borrow. */
uw_status ports_borrow_rc(struct conn_domain *d, unsigned versions, unsigned *out) UW_CHECK;

/* The versions of IP (enum io_versions) that ep's local address stands for: a port of each is a
 * port of its own. */
unsigned ports_versions(const struct uw_ep *ep);

/* Direct segments for the port of ep to the stack of index `to`; -1: to the stack on whose queue
 * they arrive. This stays so when the port is free again, since old connections may still be
 * closing. */
void ports_steer(const struct conn_domain *d, const struct uw_ep *ep, int to);

#endif
