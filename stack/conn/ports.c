/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/ports.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "cm/rc.h"
#include "conn/endpoint.h"

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u /* to 60999, as Linux does */

uw_status ports_init(struct ports *p)
{
	/* Untouched pages of it cost nothing. */
	p->holders = calloc(65536, sizeof(struct uw_ep *));
	if (!p->holders)
		return UW_E_NOMEM;
	ports_reserve(p, RC_PORT);
	return UW_OK;
}

void ports_free(struct ports *p)
{
	free(p->holders);
	p->holders = NULL;
}

static bool is_reserved(const struct ports *p, unsigned port)
{
	return p->reserved[port / 64] >> (port % 64) & 1;
}

void ports_reserve(struct ports *p, unsigned port)
{
	p->reserved[port / 64] |= (uint64_t)1 << (port % 64);
}

static void unreserve(struct ports *p, unsigned port)
{
	p->reserved[port / 64] &= ~((uint64_t)1 << (port % 64));
}

unsigned ports_versions(const struct uw_ep *ep)
{
	if (uw_ip_is_v4(&ep->local))
		return IO_V4;
	return uw_ip_is_any(&ep->local) && !ep->only6 ? IO_V4 | IO_V6 : IO_V6;
}

/* ---- steering: which stack the port's segments are for -------------------------------------- */

void ports_steer(const struct conn_domain *d, const struct uw_ep *ep, int to)
{
	unsigned v = ports_versions(ep);

	if (!d->hooks.steer)
		return;
	if (v & IO_V4)
		d->hooks.steer(d->hooks.steer_arg, false, ep->lport, to);
	if (v & IO_V6)
		d->hooks.steer(d->hooks.steer_arg, true, ep->lport, to);
}

/* ---- claiming: on an address that the kernel has, too -----------------------------------------
 */

/* Which versions of a port the link wants to be asked for. */
static unsigned asked_first(const struct io_link *l, unsigned versions)
{
	return l->ops->claim_port ? io_shared_versions(l) & versions : 0;
}

static void unclaim(const struct conn_domain *d, unsigned port, unsigned versions, unsigned links)
{
	struct stack *s = d->first;

	for (unsigned i = 0; i < links; i++) {
		struct io_link *l = s->links[i];
		unsigned some = asked_first(l, versions);

		if (some)
			l->ops->release_port(l, htons((uint16_t)port), some);
	}
}

/* UW_E_ADDR_IN_USE: another program has the port. With IO_NAMED in versions: see there. */
static uw_status claim(const struct conn_domain *d, unsigned port, unsigned versions)
{
	struct stack *s = d->first;

	for (unsigned i = 0; i < s->n_links; i++) {
		struct io_link *l = s->links[i];
		unsigned some = asked_first(l, versions);
		uw_status st = UW_OK;

		if (some)
			st = l->ops->claim_port(l, htons((uint16_t)port),
						some | (versions & IO_NAMED));
		if (st) {
			unclaim(d, port, versions, i);
			return st;
		}
	}
	return UW_OK;
}

/* ---- taking ------------------------------------------------------------------------------- */

static bool is_free(const struct conn_domain *d, unsigned port)
{
	const struct llp_ops *llp = d->first->llp;

	return !d->ports.holders[port] && !is_reserved(&d->ports, port) &&
	       (!llp->port_free || llp->port_free(htons((uint16_t)port)));
}

/* RFC 6056 §3.3.1: from a random one on, one after the other, so that the last connection from the
 * same port has left TIME_WAIT by the time it comes round again. What is wrong with a claim but
 * that another program has the port is wrong with all of them. */
static uw_status free_port(struct conn_domain *d, unsigned versions, unsigned *out)
{
	unsigned *next = &d->ports.next_ephemeral;
	unsigned start = *next ? *next : stack_random(d->first) % EPHEMERAL_COUNT;

	for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
		unsigned port = EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT;
		uw_status st = is_free(d, port) ? claim(d, port, versions) : UW_E_ADDR_IN_USE;

		if (st == UW_E_ADDR_IN_USE)
			continue;
		*next = (start + i) % EPHEMERAL_COUNT + 1;
		*out = port;
		return st;
	}
	return UW_E_ADDR_IN_USE;
}

/* May both have one port? */
static bool are_compatible(const struct uw_ep *a, const struct uw_ep *b)
{
	return !(ports_versions(a) & ports_versions(b)) ||
	       (a->share_port && b->share_port && !a->listener && !b->listener);
}

static bool may_join(const struct conn_domain *d, const struct uw_ep *ep, unsigned port)
{
	const struct uw_ep *o = d->ports.holders[port];

	while (o && are_compatible(ep, o))
		o = o->port_next;
	return !o && !is_reserved(&d->ports, port);
}

bool ports_is_ours(const struct conn_domain *d, unsigned port)
{
	return d->ports.holders[port] || is_reserved(&d->ports, port);
}

bool ports_is_alone(const struct conn_domain *d, const struct uw_ep *ep)
{
	const struct uw_ep *o = d->ports.holders[ntohs(ep->lport)];

	while (o && (o == ep || !(ports_versions(o) & ports_versions(ep))))
		o = o->port_next;
	return !o;
}

/* An endpoint without a connection goes to another stack. */
static void move(struct uw_ep *ep, struct stack *to)
{
	for (unsigned i = 0; i < to->n_links; i++) {
		if (ep->l == ep->stack->links[i])
			ep->l = to->links[i];
	}
	ep->stack = to;
}

static void enter(struct conn_domain *d, struct uw_ep *ep, unsigned port)
{
	struct uw_ep **list = &d->ports.holders[port];

	if (*list && (*list)->stack != ep->stack)
		move(ep, (*list)->stack);
	ep->lport = htons((uint16_t)port);
	ep->port_next = *list;
	ep->port_link = list;
	if (*list)
		(*list)->port_link = &ep->port_next;
	*list = ep;
}

uw_status ports_take(struct conn_domain *d, struct uw_ep *ep, unsigned port)
{
	unsigned versions = ports_versions(ep);
	uw_status st = UW_E_ADDR_IN_USE;

	if (!port)
		st = free_port(d, versions, &port);
	else if (may_join(d, ep, port))
		st = claim(d, port, versions | IO_NAMED);
	if (st)
		return st;
	ep->claims = (uint8_t)versions;
	enter(d, ep, port);
	return UW_OK;
}

/* The listener has the port, so this only counts. */
void ports_hold(struct uw_ep *ep)
{
	unsigned versions = ports_versions(ep);

	if (!claim(ep->stack->domain, ntohs(ep->lport), versions))
		ep->claims = (uint8_t)versions;
}

void ports_release(struct uw_ep *ep)
{
	const struct conn_domain *d = ep->stack->domain;
	unsigned port = ntohs(ep->lport);

	unclaim(d, port, ep->claims, d->first->n_links);
	ep->claims = 0;
	if (!ep->port_link)
		return;
	*ep->port_link = ep->port_next;
	if (ep->port_next)
		ep->port_next->port_link = ep->port_link;
	ep->port_link = NULL;
}

uw_status ports_borrow(struct conn_domain *d, unsigned versions, unsigned *out)
{
	uw_status st = free_port(d, versions, out);

	if (st)
		*out = 0;
	else
		ports_reserve(&d->ports, *out);
	return st;
}

uw_status ports_borrow_rc(struct conn_domain *d, unsigned versions, unsigned *out)
{
	*out = RC_PORT;
	return claim(d, RC_PORT, versions) ? ports_borrow(d, versions, out) : UW_OK;
}

void ports_give_back(struct conn_domain *d, unsigned port, unsigned versions)
{
	if (port != RC_PORT)
		unreserve(&d->ports, port);
	unclaim(d, port, versions, d->first->n_links);
}
