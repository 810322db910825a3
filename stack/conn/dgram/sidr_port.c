/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of RDMA_PS_UDP: apart from TCP's, and few, so a walk over the endpoints finds them. */
#include "conn/dgram/sidr.h"

#include <arpa/inet.h>

#define EPHEMERAL_FIRST 32768u /* as conn/ports.c */
#define EPHEMERAL_COUNT 28232u

/* :: without only6 stands for both versions of IP. */
static bool overlap(const struct uw_ep *a, const struct uw_ep *b)
{
	bool both = (uw_ip_is_any(&a->local) && !uw_ip_is_v4(&a->local) && !a->only6) ||
		    (uw_ip_is_any(&b->local) && !uw_ip_is_v4(&b->local) && !b->only6);

	return both || uw_ip_is_v4(&a->local) == uw_ip_is_v4(&b->local);
}

/* An endpoint of a request has its listener's port, and holds it from nobody. */
static bool is_free(const struct uw_ep *ep, uint16_t port_be)
{
	for (const struct uw_ep *o = ep->stack->domain->eps; o; o = o->next) {
		if (o != ep && o->datagrams && o->lport == port_be &&
		    !(o->sidr && o->sidr->passive) && overlap(o, ep) &&
		    !(o->share_port && ep->share_port))
			return false;
	}
	return true;
}

/* RFC 6056 §3.3.1: from a random one on. */
uw_status sidr_take_port(struct uw_ep *ep, uint16_t port_be)
{
	unsigned start = stack_random(ep->stack) % EPHEMERAL_COUNT;

	if (port_be) {
		ep->lport = is_free(ep, port_be) ? port_be : 0;
		return ep->lport ? UW_OK : UW_E_ADDR_IN_USE;
	}
	for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
		uint16_t p = htons((uint16_t)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT));

		if (!is_free(ep, p))
			continue;
		ep->lport = p;
		return UW_OK;
	}
	return UW_E_ADDR_IN_USE;
}
