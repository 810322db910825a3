/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: their records, their addresses, and what rdma_cm asks of them but for connections. */
#include "conn/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conn/api.h"
#include "conn/dgram/dgram.h"
#include "conn/dgram/sidr.h"
#include "io/addr.h"
#include "base/slab.h"

#define TO(s) (1u << EP_##s)

/* Which states may follow which. */
static const unsigned next_states[EP_STATES] = {
	[EP_IDLE] = TO(BOUND) | TO(RESOLVED) | TO(NO_PEER_YET) | TO(HAS_CONN) | TO(HAS_SIDR),
	[EP_BOUND] = TO(RESOLVED) | TO(NO_PEER_YET) | TO(LISTENING),
	[EP_RESOLVED] = TO(RESOLVED) | TO(NO_PEER_YET) | TO(HAS_CONN) | TO(HAS_SIDR),
	[EP_NO_PEER_YET] = TO(RESOLVED) | TO(NO_PEER_YET) | TO(HAS_CONN) | TO(HAS_SIDR),
	[EP_LISTENING] = TO(BOUND),
	[EP_HAS_CONN] = 0,
	[EP_HAS_SIDR] = 0,
};

bool ep_may_enter(enum ep_state from, enum ep_state to)
{
	return next_states[from] & 1u << to;
}

/* ---- records ----------------------------------------------------------------------------- */

static void enter_list(struct conn_domain *d, struct uw_ep *ep)
{
	spin_lock(&d->eps_lock);
	ep->next = d->eps;
	ep->link = &d->eps;
	if (ep->next)
		ep->next->link = &ep->next;
	d->eps = ep;
	spin_unlock(&d->eps_lock);
}

static void leave_list(struct uw_ep *ep)
{
	struct conn_domain *d = ep->stack->domain;

	spin_lock(&d->eps_lock);
	*ep->link = ep->next;
	if (ep->next)
		ep->next->link = ep->link;
	spin_unlock(&d->eps_lock);
}

struct uw_ep *ep_new(struct conn_domain *d, struct stack *s)
{
	struct uw_ep *ep = slab_alloc(sizeof(*ep));

	if (!ep)
		return NULL;
	memset(ep, 0, sizeof(*ep));
	ep->stack = s;
	ep->local = ep->remote = ep->asked = uw_ip_v4(INADDR_ANY);
	enter_list(d, ep);
	return ep;
}

static void stop_listening(struct uw_ep *ep)
{
	sidr_unlisten(ep);
	if (!ep->listener)
		return;
	listener_stop(ep->listener);
	free(ep->listener);
	ep->listener = NULL;
}

static void forget_sidr(struct uw_ep *ep)
{
	struct sidr **at = &ep->stack->sidrs;

	if (!ep->sidr)
		return;
	while (*at != ep->sidr)
		at = &(*at)->next;
	*at = ep->sidr->next;
	free(ep->sidr);
	ep->sidr = NULL;
}

void ep_free(struct uw_ep *ep)
{
	forget_sidr(ep);
	stop_listening(ep);
	if (ep->conn)
		conn_free(ep->conn);
	ports_release(ep);
	leave_list(ep);
	slab_free(ep, sizeof(*ep));
}

/* ---- addresses --------------------------------------------------------------------------- */

/* ::ffff:a.b.c.d is IPv4 as well. */
uw_status ep_read_addr(const struct sockaddr *sa, struct uw_ip *addr, uint16_t *port)
{
	const struct sockaddr_in *s4 = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *s6 = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family == AF_INET) {
		*addr = uw_ip_v4(s4->sin_addr.s_addr);
		*port = s4->sin_port;
		return UW_OK;
	}
	if (sa->sa_family != AF_INET6)
		return UW_E_AFAMILY;
	*port = s6->sin6_port;
	memcpy(addr, &s6->sin6_addr, sizeof(*addr));
	return UW_OK;
}

bool ep_means_all(const struct uw_ip *a)
{
	return uw_ip_is_any(a) || uw_ip_is_loopback(a);
}

bool ep_find_link(const struct stack *s, const struct uw_ip *addr, struct io_link **l)
{
	for (unsigned i = 0; i < s->n_links; i++) {
		if (ep_means_all(addr) || io_has(s->links[i], addr)) {
			*l = s->links[i];
			return true;
		}
	}
	return false;
}

uw_status ep_local_for(const struct io_link *l, const struct uw_ip *from, const struct uw_ip *to,
		       struct uw_ip *out)
{
	if (ep_means_all(from))
		return io_source_for(l, to, out) ? UW_OK : UW_E_AFAMILY;
	*out = *from;
	return uw_ip_is_v4(from) == uw_ip_is_v4(to) ? UW_OK : UW_E_AFAMILY;
}

uw_status ep_find_way(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms)
{
	if (l->ops->reaches && !l->ops->reaches(l, to))
		return UW_E_UNREACHABLE;
	if (io_has(l, to))
		return UW_OK;
	if (l->ops->resolve && !uw_ip_is_any(to))
		return l->ops->resolve(l, to, port, timeout_ms);
	if (ep_means_all(to) && !io_source_for(l, to, to))
		return UW_E_UNREACHABLE;
	return UW_OK;
}

static void name(struct sockaddr_storage *a, const struct uw_ep *ep, const struct uw_ip *addr,
		 uint16_t port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)a;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)a;

	memset(a, 0, sizeof(*a));
	if (uw_ip_is_v4(addr)) {
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = uw_ip_v4_be(addr);
		sin->sin_port = port;
		return;
	}
	six->sin6_family = AF_INET6;
	memcpy(&six->sin6_addr, addr, sizeof(*addr));
	six->sin6_port = port;
	if (uw_ip_is_link_local(addr))
		six->sin6_scope_id = ep->scope;
}

void uw_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	name(a, ep, &ep->local, ep->lport);
}

void uw_ep_peer_gid(const struct uw_ep *ep, uint8_t gid[16])
{
	memcpy(gid, ep->remote.b, sizeof(ep->remote.b));
}

void uw_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	name(a, ep, &ep->asked, ep->rport);
}

/* ---- making, binding, options --------------------------------------------------------------- */

int ep_create(struct conn_domain *d, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	struct uw_ep *ep;

	sched_lock_all(&d->first->sched);
	ep = ep_new(d, stack_next_home(d));
	if (ep) {
		ep->fn = fn;
		ep->ctx = ctx;
		ep->owned = true;
		atomic_fetch_add_explicit(&d->n_eps, 1, memory_order_relaxed);
	}
	sched_unlock_all(&d->first->sched);
	*out = ep;
	return ep ? 0 : -ENOMEM;
}

void uw_ep_set_ctx(struct uw_ep *ep, void *ctx)
{
	struct stack *s = conn_api_lock(ep);

	ep->ctx = ctx;
	ep->owned = true;
	conn_api_unlock(s);
}

int uw_ep_set_datagrams(struct uw_ep *ep)
{
	uw_status st = dgram_possible(ep->stack->domain);
	struct stack *s;

	if (st)
		return conn_errno(st);
	s = conn_api_lock(ep);
	st = ep->state == EP_IDLE ? UW_OK : UW_E_INVAL;
	ep->datagrams = !st;
	if (!st)
		ep->stack = s->domain->first; /* as the QPs */
	atomic_store_explicit(&ep->stack->domain->datagram_eps, true, memory_order_relaxed);
	conn_api_unlock(s);
	return conn_errno(st);
}

static bool has_port(const struct uw_ep *ep)
{
	return ep->datagrams ? ep->lport : ep->port_link != NULL;
}

/* 0: any free one. */
static uw_status take_port(struct uw_ep *ep, uint16_t port_be)
{
	struct conn_domain *d = ep->stack->domain;
	uw_status st;

	if (ep->datagrams)
		return sidr_take_port(ep, port_be);
	st = ports_take(d, ep, ntohs(port_be));
	/* of its own ports the program knows */
	if (st == UW_E_ADDR_IN_USE && port_be && !ports_is_ours(d, ntohs(port_be)))
		conn_log_port_taken(&ep->local, port_be);
	return st;
}

static uw_status bind_locked(struct uw_ep *ep, const struct uw_ip *addr, uint16_t port)
{
	struct io_link *l;
	uw_status st;

	if (ep->state != EP_IDLE)
		return UW_E_INVAL;
	if (!ep_find_link(ep->stack, addr, &l)) {
		conn_log_no_address(ep->stack, addr);
		return UW_E_ADDR;
	}
	ep_set_link(ep, l);
	ep->local = *addr;
	st = take_port(ep, port);
	if (!st)
		ep->state = EP_BOUND;
	return st;
}

bool ep_hold_links(struct uw_ep *ep)
{
	struct stack *s = conn_api_lock(ep);
	bool held = stack_hold_links(s);

	conn_api_unlock(s);
	return held;
}

static uw_status claim_held(struct uw_ep *ep)
{
	uw_status st;

	if (!ep->l->ops->claim_port || ep->claimed || !ep_means_all(&ep->local))
		return UW_OK;
	if (ep->datagrams && io_shared_versions(ep->l)) /* where ports of TCP alone are claimed */
		return UW_OK;
	st = ep->l->ops->claim_port(ep->l, ep->lport, ports_versions(ep));
	ep->claimed = (uint8_t)(st ? 0 : ports_versions(ep));
	/* Another process has 127.0.0.1's port. A wildcard still listens on its own address. */
	if (st == UW_E_ADDR_IN_USE && uw_ip_is_any(&ep->local))
		return UW_OK;
	return st;
}

/* Wildcard and loopback: whoever connects to 127.0.0.1 comes here. No lock held: it may block. */
static uw_status claim_port(struct uw_ep *ep)
{
	uw_status st;

	if (!ep_hold_links(ep))
		return UW_E_STATE;
	st = claim_held(ep);
	stack_let_links_go(ep->stack);
	return st;
}

/* No lock held. */
static uw_status claim_or_unbind(struct uw_ep *ep)
{
	uw_status st = claim_port(ep);
	struct stack *s;

	if (!st)
		return UW_OK;
	s = conn_api_lock(ep);
	ep->lport = 0;
	ep->state = EP_IDLE;
	conn_api_unlock(s);
	return st;
}

int uw_ep_bind(struct uw_ep *ep, const struct sockaddr *addr)
{
	struct uw_ip ip;
	uint16_t port;
	struct stack *s;
	uw_status st = ep_read_addr(addr, &ip, &port);

	if (st)
		return conn_errno(st);
	s = conn_api_lock(ep);
	st = bind_locked(ep, &ip, port);
	conn_api_unlock(s);
	/* rsockets name 127.0.0.1 and their port to the peer, and never listen */
	if (!st && ep->datagrams && uw_ip_is_loopback(&ip))
		st = claim_or_unbind(ep);
	/* as the kernel says it of a port below 1024 */
	return st == UW_E_PERM ? -EACCES : conn_errno(st);
}

int uw_ep_share_port(struct uw_ep *ep, bool on)
{
	struct stack *s = conn_api_lock(ep);
	int err = 0;

	if (on && ep->state != EP_IDLE)
		err = -EINVAL;
	else if (!has_port(ep))
		ep->share_port = on;
	conn_api_unlock(s);
	return err;
}

int uw_ep_only6(struct uw_ep *ep, bool on)
{
	struct stack *s = conn_api_lock(ep);
	int err = 0;

	if (ep->state == EP_IDLE || ep->state == EP_BOUND)
		ep->only6 = on;
	else
		err = -EINVAL;
	conn_api_unlock(s);
	return err;
}

/* RFC 3168 §5: the other two bits are ECN's. */
#define DSCP_MASK 0xfc

static bool tos_may_change(const struct uw_ep *ep)
{
	return ep->state == EP_HAS_CONN ? ep->conn->state == CONN_REQUESTED
					: ep->state != EP_LISTENING;
}

void uw_ep_set_tos(struct uw_ep *ep, uint8_t tos)
{
	struct stack *s = conn_api_lock(ep);

	if (tos_may_change(ep)) {
		ep->tos = tos & DSCP_MASK;
		if (ep->conn && ep->conn->llp)
			ep->stack->llp->set_tos(ep->conn->llp, ep->tos);
	}
	conn_api_unlock(s);
}

/* ---- resolving ----------------------------------------------------------------------------- */

/* Where an endpoint resolves from, and to. */
struct way {
	struct io_link *l;
	struct uw_ip local, to;
	uint16_t lport; /* 0: any free one, unless it has one already */
};

static uw_status take_way(struct uw_ep *ep, const struct way *way, bool nobody_yet)
{
	enum ep_state next = nobody_yet ? EP_NO_PEER_YET : EP_RESOLVED;
	struct stack *s = conn_api_lock(ep);
	uw_status st = UW_OK;

	if (!ep_may_enter(ep->state, next))
		st = UW_E_INVAL;
	else if (stack_is_without_links(s))
		st = UW_E_STATE;
	else if (ep->stack->llp->has_way && !ep->stack->llp->has_way(way->l, &way->to))
		st = UW_E_NO_ROUTE;
	if (!st) {
		ep_set_link(ep, way->l);
		ep->local = way->local;
		ep->remote = way->to;
	}
	/* As with the kernel, the port is known from here on. */
	if (!st && !has_port(ep))
		st = take_port(ep, way->lport);
	if (!st)
		ep->state = (uint8_t)next;
	conn_api_unlock(s);
	if (st == UW_E_NO_ROUTE)
		conn_log_failed(ep->stack, &ep->asked, ep->rport, st);
	return st;
}

/* The links are held then. */
static uw_status find_source(struct uw_ep *ep, const struct uw_ip *from, struct way *way)
{
	struct stack *s = conn_api_lock(ep);
	bool found = ep_find_link(s, from, &way->l) && stack_hold_links(s);

	conn_api_unlock(s);
	return found ? UW_OK : UW_E_ADDR;
}

/* With the links held. */
static uw_status resolve(struct uw_ep *ep, const struct uw_ip *from, struct way *way,
			 unsigned timeout_ms)
{
	uw_status st = ep_find_way(way->l, &way->to, ep->rport, timeout_ms);
	bool nobody_yet;

	if (st == UW_MORE)
		return st;
	/* As with any local address of a host: resolving succeeds, connecting tells. */
	nobody_yet = st && (way->l->flags & IO_P2P);
	if (!st || nobody_yet)
		st = ep_local_for(way->l, from, &way->to, &way->local);
	if (st)
		conn_log_failed(ep->stack, &ep->asked, ep->rport, st);
	return st ? st : take_way(ep, way, nobody_yet);
}

int uw_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		  unsigned timeout_ms)
{
	struct uw_ip from = { { 0 } };
	struct way way = { 0 };
	uint16_t port;
	uw_status st = ep_read_addr(dst, &way.to, &port);

	if (!st && src && src->sa_family)
		st = ep_read_addr(src, &from, &way.lport);
	if (!st && !ep_may_enter(ep->state, EP_RESOLVED))
		st = UW_E_INVAL;
	if (st)
		return conn_errno(st);
	if (ep->state == EP_BOUND)
		from = ep->local;
	st = find_source(ep, &from, &way);
	if (st)
		return conn_errno(st);
	ep->asked = way.to;
	ep->rport = port;
	st = resolve(ep, &from, &way, timeout_ms);
	stack_let_links_go(ep->stack);
	return conn_errno(st);
}

/* ---- listening ------------------------------------------------------------------------------ */

static void on_request(struct listener *ls, struct conn *c, struct uw_cm_event *ev);

static uw_status make_listener(struct uw_ep *ep, int backlog)
{
	const struct llp_place at = {
		.addr = ep->local, .port = ep->lport, .only6 = ep->only6, .tos = ep->tos
	};
	struct listener *ls = calloc(1, sizeof(*ls));
	uw_status st;

	if (!ls)
		return UW_E_NOMEM;
	ls->requested = on_request;
	ls->ctx = ep;
	ls->tos = ep->tos;
	st = listener_start(ls, ep->stack, ep->l, &at, backlog, LISTENER_ON_ALL);
	if (st == UW_E_ADDR_IN_USE)
		conn_log_port_taken(&ep->local, ep->lport);
	if (st) {
		free(ls);
		return st;
	}
	ep->listener = ls;
	ep->state = EP_LISTENING;
	ports_steer(ep->stack->domain, ep, -1);
	return UW_OK;
}

static uw_status listen_locked(struct uw_ep *ep, int backlog)
{
	const struct uw_ip any = uw_ip_v4(INADDR_ANY);
	uw_status st = UW_OK;

	if (ep->state == EP_IDLE)
		st = bind_locked(ep, &any, 0);
	if (!st && ep->state != EP_BOUND)
		st = UW_E_INVAL;
	if (ep->datagrams)
		return st ? st : sidr_listen(ep);
	/* Whoever listens shares with nobody. */
	if (!st && !ports_is_alone(ep->stack->domain, ep))
		st = UW_E_ADDR_IN_USE;
	return st ? st : make_listener(ep, backlog);
}

int uw_ep_listen(struct uw_ep *ep, int backlog)
{
	struct stack *s = conn_api_lock(ep);
	uw_status st = listen_locked(ep, backlog);

	conn_api_unlock(s);
	if (st)
		return conn_errno(st);
	st = claim_port(ep);
	if (!st)
		return 0;
	s = conn_api_lock(ep);
	stop_listening(ep);
	ep->state = EP_BOUND;
	conn_api_unlock(s);
	uw_log("cannot listen on port %u: %s", ntohs(ep->lport),
	       st == UW_E_ADDR_IN_USE ? "another uwarp process does; choose another port"
				      : uw_status_name(st));
	return conn_errno(st);
}

/* ---- a Request came ------------------------------------------------------------------------- */

static void on_event(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev)
{
	const struct uw_ep *ep = c->ctx;

	(void)type;
	if (ep->owned && ep->fn)
		ep->fn(ep->ctx, ev);
}

const struct conn_user ep_conn_user = { .event = on_event };

static struct uw_ep *ep_for(struct conn *c, const struct uw_ep *listening)
{
	struct uw_ep *ep = ep_new(c->stack->domain, c->stack);

	if (!ep)
		return NULL;
	ep_set_link(ep, c->l);
	ep->local = c->local;
	ep->remote = ep->asked = c->remote;
	ep->lport = c->lport;
	ep->rport = c->rport;
	ep->tos = c->tos;
	ep->fn = listening->fn;
	ep->conn = c;
	ep->state = EP_HAS_CONN;
	c->user = &ep_conn_user;
	c->ctx = ep;
	ports_hold(ep);
	return ep;
}

/* The peer hears it now, and not when it has waited for long enough. */
static void reject_not_taken(struct conn *c)
{
	const struct cm_param nothing = { 0 };

	c->stack->sched.stats.cm_not_taken++;
	if (conn_reject(c, &nothing)) /* it hears that the connection ends */
		c->stack->sched.stats.cm_failed++;
}

static void on_request(struct listener *ls, struct conn *c, struct uw_cm_event *ev)
{
	struct uw_ep *listening = ls->ctx, *ep;
	struct conn_domain *d = c->stack->domain;

	ep = listening->owned && listening->fn ? ep_for(c, listening) : NULL;
	if (!ep) {
		reject_not_taken(c);
		conn_free(c);
		return;
	}
	atomic_fetch_add_explicit(&d->n_eps, 1, memory_order_relaxed);
	ev->ep = ep;
	if (listening->fn(listening->ctx, ev))
		return;
	reject_not_taken(c);
	atomic_fetch_sub_explicit(&d->n_eps, 1, memory_order_relaxed);
	ep_free(ep);
}

/* ---- the end ------------------------------------------------------------------------------- */

void uw_ep_destroy(struct uw_ep *ep)
{
	struct stack *s;
	struct conn_domain *d = ep->stack->domain;

	if (ep->claimed && ep_hold_links(ep)) {
		ep->l->ops->release_port(ep->l, ep->lport, ep->claimed);
		stack_let_links_go(ep->stack);
	}
	s = conn_api_lock(ep);
	ep->owned = false;
	sched_drain_all(&d->first->sched); /* what was posted goes first (doc/adr/0071) */
	ep_free(ep);
	atomic_fetch_sub_explicit(&d->n_eps, 1, memory_order_relaxed);
	conn_api_unlock(s);
}
