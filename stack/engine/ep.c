/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: what rdma_cm asks for. The connection's own course is conn.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"
#include "engine/say.h"

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u /* to 60999, as Linux does */

/* ---- records ----------------------------------------------------------------------------- */

struct uw_ep *engine_ep_new(struct uw_engine *e)
{
	struct uw_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->e = e;
	ep->next = e->eps;
	ep->link = &e->eps;
	if (ep->next)
		ep->next->link = &ep->next;
	e->eps = ep;
	return ep;
}

/* ---- local ports -------------------------------------------------------------------------- */

static bool port_taken(const struct uw_engine *e, unsigned port)
{
	return e->ports[port / 64] >> (port % 64) & 1;
}

static void port_set(struct uw_engine *e, unsigned port, bool on)
{
	uint64_t bit = (uint64_t)1 << (port % 64);

	if (on)
		e->ports[port / 64] |= bit;
	else
		e->ports[port / 64] &= ~bit;
}

/* One after the other from a random one on: the last connection from the same port has left
 * TIME_WAIT by the time it comes round again. */
static unsigned any_port(struct uw_engine *e)
{
	unsigned start = e->next_port ? e->next_port : engine_random(e) % EPHEMERAL_COUNT;

	for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
		unsigned port = EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT;

		if (port_taken(e, port))
			continue;
		e->next_port = (start + i) % EPHEMERAL_COUNT + 1;
		return port;
	}
	return 0;
}

/* Another endpoint that has ep's port, or `port` in network order. */
static const struct uw_ep *next_holder(const struct uw_ep *ep, uint16_t port,
				       const struct uw_ep *from)
{
	for (; from; from = from->next) {
		if (from != ep && from->has_port && from->lport == port)
			return from;
	}
	return NULL;
}

/* It is taken by endpoints only, which all share it, and none listens on it. */
static bool may_share(const struct uw_ep *ep, uint16_t port)
{
	const struct uw_ep *o = next_holder(ep, port, ep->e->eps);

	if (!ep->shares || !o)
		return false;
	for (; o; o = next_holder(ep, port, o->next)) {
		if (!o->shares || o->ls)
			return false;
	}
	return true;
}

/* False: port is 0 (there was none to be had) or somebody else's. */
static bool take_port(struct uw_ep *ep, unsigned port)
{
	if (!port || (port_taken(ep->e, port) && !may_share(ep, htons((uint16_t)port))))
		return false;
	port_set(ep->e, port, true);
	ep->has_port = true;
	ep->lport = htons((uint16_t)port);
	return true;
}

bool engine_ep_any_port(struct uw_ep *ep)
{
	return take_port(ep, any_port(ep->e));
}

void engine_port_reserve(struct uw_engine *e, unsigned port)
{
	port_set(e, port, true);
}

static void release_port(struct uw_ep *ep)
{
	if (!ep->has_port)
		return;
	if (!ep->shares || !next_holder(ep, ep->lport, ep->e->eps))
		port_set(ep->e, ntohs(ep->lport), false);
	ep->has_port = false;
}

void engine_ep_free(struct uw_ep *ep)
{
	struct uw_engine *e = ep->e;

	engine_ep_drop(ep);
	engine_rc_unpark(ep);
	if (ep->ls)
		llp_unlisten(ep->ls);
	release_port(ep);
	for (struct uw_ep **p = &e->stalled_eps; *p; p = &(*p)->next_stalled) {
		if (*p == ep) {
			*p = ep->next_stalled;
			break;
		}
	}
	*ep->link = ep->next;
	if (ep->next)
		ep->next->link = ep->link;
	free(ep);
}

/* ---- addresses --------------------------------------------------------------------------- */

struct place {
	struct uw_ip addr;
	uint16_t port; /* network order */
};

/* IPv4, and the IPv6 forms that mean an IPv4 address: ::, ::1, ::ffff:a.b.c.d. */
static uw_status place_of(const struct sockaddr *sa, struct place *p)
{
	const struct sockaddr_in *s4 = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *s6 = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family == AF_INET) {
		*p = (struct place){ uw_ip_v4(s4->sin_addr.s_addr), s4->sin_port };
		return UW_OK;
	}
	if (sa->sa_family != AF_INET6)
		return UW_E_AFAMILY;
	p->port = s6->sin6_port;
	if (IN6_IS_ADDR_UNSPECIFIED(&s6->sin6_addr))
		p->addr = uw_ip_v4(INADDR_ANY);
	else if (IN6_IS_ADDR_LOOPBACK(&s6->sin6_addr))
		p->addr = uw_ip_v4(htonl(INADDR_LOOPBACK));
	else if (IN6_IS_ADDR_V4MAPPED(&s6->sin6_addr))
		memcpy(&p->addr, &s6->sin6_addr, sizeof(p->addr));
	else
		return UW_E_AFAMILY;
	return UW_OK;
}

bool engine_place_of(const struct sockaddr *sa, struct uw_ip *addr)
{
	struct place p;

	if (place_of(sa, &p))
		return false;
	*addr = p.addr;
	return true;
}

bool engine_is_ours(const struct uw_engine *e, const struct uw_ip *addr, struct io_link **l)
{
	bool every = uw_ip_is_any(addr) || uw_ip_is_loopback(addr);

	for (unsigned i = 0; i < e->n_links; i++) {
		struct uw_ip own = uw_ip_v4(e->links[i]->addr);

		if (every || uw_ip_eq(addr, &own)) {
			*l = e->links[i];
			return true;
		}
	}
	return false;
}

/* ---- life -------------------------------------------------------------------------------- */

int uw_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	struct uw_ep *ep;
	int err = uw_engine_start(e);

	if (err)
		return err;
	engine_lock(e);
	ep = engine_ep_new(e);
	if (ep) {
		ep->fn = fn;
		ep->ctx = ctx;
		ep->owned = true;
		atomic_fetch_add_explicit(&e->objects, 1, memory_order_relaxed);
	}
	engine_unlock(e);
	*out = ep;
	return ep ? 0 : -ENOMEM;
}

void uw_ep_set_ctx(struct uw_ep *ep, void *ctx)
{
	struct uw_engine *e = ep->e;

	engine_lock(e);
	ep->ctx = ctx;
	ep->owned = true;
	engine_unlock(e);
}

static uw_status bind_locked(struct uw_ep *ep, struct place p)
{
	struct uw_engine *e = ep->e;
	unsigned port = ntohs(p.port);

	if (ep->state != EP_IDLE)
		return UW_E_INVAL;
	if (!engine_is_ours(e, &p.addr, &ep->l))
		return UW_E_ADDR;
	if (!take_port(ep, port ? port : any_port(e)))
		return UW_E_ADDR_IN_USE;
	ep->local = p.addr;
	ep->state = EP_BOUND;
	return UW_OK;
}

int uw_ep_bind(struct uw_ep *ep, const struct sockaddr *addr)
{
	struct place p;
	uw_status st = place_of(addr, &p);

	if (st)
		return engine_errno(st);
	engine_lock(ep->e);
	st = bind_locked(ep, p);
	engine_unlock(ep->e);
	return engine_errno(st);
}

int uw_ep_share_port(struct uw_ep *ep, bool on)
{
	int err = 0;

	engine_lock(ep->e);
	if (on && ep->state != EP_IDLE)
		err = -EINVAL;
	else if (!ep->has_port)
		ep->shares = on;
	engine_unlock(ep->e);
	return err;
}

uw_status engine_find_way(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms)
{
	struct uw_ip own = uw_ip_v4(l->addr);

	if (uw_ip_is_any(to) || uw_ip_eq(to, &own))
		*to = own;
	else if (l->ops->resolve)
		return l->ops->resolve(l, to, port, timeout_ms);
	else if (uw_ip_is_loopback(to))
		*to = own;
	return UW_OK;
}

int uw_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		  unsigned timeout_ms)
{
	struct uw_engine *e = ep->e;
	struct place to, from = { { { 0 } }, 0 };
	struct io_link *l = NULL;
	uw_status st = place_of(dst, &to);

	if (!st && src && src->sa_family)
		st = place_of(src, &from);
	if (st)
		return engine_errno(st);
	if (!engine_is_ours(e, ep->state == EP_BOUND ? &ep->local : &from.addr, &l))
		return engine_errno(UW_E_ADDR);
	ep->asked = to.addr;
	ep->rport = to.port;
	st = engine_find_way(l, &to.addr, to.port, timeout_ms);
	/* As with any local address of a host: resolving succeeds, connecting tells. */
	ep->unresolved = st && (l->flags & IO_P2P);
	if (st && !ep->unresolved) {
		engine_say_connect_failed(ep, st);
		return engine_errno(st);
	}
	engine_lock(e);
	ep->l = l;
	ep->local = uw_ip_v4(l->addr);
	ep->remote = to.addr;
	/* As with the kernel, the port is known from here on. */
	if (!ep->has_port && !take_port(ep, any_port(e)))
		st = UW_E_ADDR_IN_USE;
	else
		st = UW_OK;
	if (!st && (ep->state == EP_IDLE || ep->state == EP_BOUND))
		ep->state = EP_RESOLVED;
	engine_unlock(e);
	return engine_errno(st);
}

/* ---- listening ---------------------------------------------------------------------------- */

static uw_status listen_locked(struct uw_ep *ep, int backlog)
{
	uw_status st = UW_OK;

	if (ep->state == EP_IDLE)
		st = bind_locked(ep, (struct place){ { { 0 } }, 0 });
	if (!st && ep->state != EP_BOUND)
		st = UW_E_INVAL;
	/* Whoever listens shares with nobody. */
	if (!st && ep->shares && next_holder(ep, ep->lport, ep->e->eps))
		st = UW_E_ADDR_IN_USE;
	if (!st)
		st = llp_listen(ep->l, ep->lport, backlog, ep, &ep->ls);
	if (!st)
		ep->state = EP_LISTENING;
	return st;
}

int uw_ep_listen(struct uw_ep *ep, int backlog)
{
	uw_status st;

	engine_lock(ep->e);
	st = listen_locked(ep, backlog);
	engine_unlock(ep->e);
	if (st)
		return engine_errno(st);
	/* Wildcard and loopback: whoever connects to 127.0.0.1 comes here. */
	if (ep->l->ops->claim_port && (uw_ip_is_any(&ep->local) || uw_ip_is_loopback(&ep->local))) {
		st = ep->l->ops->claim_port(ep->l, ep->lport);
		ep->claimed = !st;
	}
	if (st) {
		engine_lock(ep->e);
		llp_unlisten(ep->ls);
		ep->ls = NULL;
		ep->state = EP_BOUND;
		engine_unlock(ep->e);
		engine_say(
			"cannot listen on port %u: another uwarp process does; choose another port",
			ntohs(ep->lport));
	}
	return engine_errno(st);
}

/* ---- connecting, answering, ending ---------------------------------------------------------- */

static uw_status take_param(struct uw_ep *ep, const struct uw_cm_param *p, struct cm_param *out)
{
	if (p->private_data_len > sizeof(ep->pd))
		return UW_E_INVAL;
	if (p->private_data_len)
		memcpy(ep->pd, p->private_data, p->private_data_len);
	ep->patient = p->rnr_for_ever;
	*out = (struct cm_param){ .pd = { ep->pd, p->private_data_len },
				  .ird = p->ird,
				  .ord = p->ord };
	return UW_OK;
}

static uw_status free_qp(struct uw_engine *e, uint32_t qpn, struct uw_qp **out)
{
	struct uw_qp *qp = idmap_get(&e->qps, qpn);

	if (!qp)
		return UW_E_NOENT;
	if (qp->ep || qp->qp.state == UW_QPS_ERR)
		return UW_E_STATE;
	*out = qp;
	return UW_OK;
}

static uw_status connect_locked(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	struct uw_qp *qp;
	uw_status st = free_qp(ep->e, qpn, &qp);

	if (!st && (ep->state != EP_RESOLVED || qp->rc))
		st = UW_E_STATE;
	if (!st)
		st = take_param(ep, p, &ep->want);
	if (!st && p->private_data_len > (ep->e->policy.rev >= 2 ? 508u : 512u))
		st = UW_E_INVAL;
	if (!st)
		st = engine_ep_connect(ep, ENGINE_PATIENCE_US);
	if (!st)
		ep->qp = qp; /* qp->ep only once the stream is agreed */
	return st;
}

uw_status engine_ep_call(struct uw_ep *ep)
{
	const struct llp_addrs a = { .local = ep->local,
				     .remote = ep->remote,
				     .lport = ep->has_port ? ep->lport : 0,
				     .rport = ep->rport };

	return llp_connect(ep->l, &a, ep, &ep->c);
}

uw_status engine_ep_connect(struct uw_ep *ep, uint64_t patience_us)
{
	uw_status st;

	ep->cm = calloc(1, sizeof(*ep->cm));
	if (!ep->cm)
		return UW_E_NOMEM;
	st = engine_ep_call(ep);
	if (st) {
		free(ep->cm);
		ep->cm = NULL;
		return st;
	}
	ep->state = EP_CONNECTING;
	ep->deadline_us = engine_now_us(ep->e) + ep->e->cfg.connect_ms * 1000ull;
	ep->patient_until_us = engine_now_us(ep->e) + patience_us;
	return UW_OK;
}

/* Nobody was there when the address was resolved. Somebody may be now. */
static uw_status look_again(struct uw_ep *ep)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	uint64_t until = engine_now_us(ep->e) + ENGINE_PATIENCE_US;
	struct uw_ip addr;
	uw_status st;

	for (;;) {
		addr = ep->asked;
		st = engine_find_way(ep->l, &addr, ep->rport, ep->e->cfg.connect_ms);
		if (st != UW_E_REFUSED || engine_now_us(ep->e) >= until)
			break;
		nanosleep(&pause, NULL);
	}
	if (!st) {
		ep->remote = addr;
		ep->unresolved = false;
	}
	return st;
}

int uw_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	uw_status st = ep->unresolved ? look_again(ep) : UW_OK;

	engine_lock(ep->e);
	if (st && idmap_get(&ep->e->qps, qpn)) {
		engine_ep_unreachable(ep, st);
		st = UW_OK;
	} else {
		st = connect_locked(ep, qpn, p);
	}
	llp_flush_links();
	engine_unlock(ep->e);
	return engine_errno(st);
}

/* CM-less RC has it. */
static bool qp_is_named(const struct uw_engine *e, uint32_t qpn)
{
	const struct uw_qp *qp = idmap_get(&e->qps, qpn);

	return qp && qp->rc;
}

static uw_status answerable(const struct uw_ep *ep)
{
	if (ep->state == EP_ENDED && ep->passive)
		return UW_E_LLP_CLOSED; /* the peer gave up */
	return ep->state == EP_REQUESTED && ep->c ? UW_OK : UW_E_STATE;
}

uw_status engine_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	uint8_t frame[MPA_START_MAX];
	struct cm_param param;
	struct uw_qp *qp;
	size_t n;
	uw_status st = answerable(ep);

	if (!st)
		st = free_qp(ep->e, qpn, &qp);
	if (!st)
		st = take_param(ep, p, &param);
	if (!st)
		st = cm_accept(ep->cm, &param, frame, &n);
	if (!st)
		st = engine_send_frame(ep, frame, n);
	if (!st)
		st = engine_ep_start_stream(ep, qp, false);
	if (st)
		return st;
	engine_ep_event(ep, UW_CM_ESTABLISHED, UW_OK);
	free(ep->cm);
	ep->cm = NULL;
	return UW_OK;
}

int uw_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	uw_status st;

	engine_lock(ep->e);
	st = qp_is_named(ep->e, qpn) ? UW_E_STATE : engine_ep_accept(ep, qpn, p);
	llp_flush_links();
	engine_unlock(ep->e);
	return engine_errno(st);
}

uw_status engine_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	uint8_t frame[MPA_START_MAX];
	struct cm_param param;
	size_t n;
	uw_status st = answerable(ep);

	if (!st)
		st = take_param(ep, p, &param);
	if (!st)
		st = cm_reject(ep->cm, &param, frame, &n);
	if (!st)
		st = engine_send_frame(ep, frame, n);
	if (st)
		return st;
	llp_close(ep->c);
	ep->c = NULL;
	ep->state = EP_ENDED;
	return UW_OK;
}

int uw_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	uw_status st;

	engine_lock(ep->e);
	st = engine_ep_reject(ep, p);
	llp_flush_links();
	engine_unlock(ep->e);
	return engine_errno(st);
}

int uw_ep_disconnect(struct uw_ep *ep)
{
	int err = -ENOTCONN;

	engine_lock(ep->e);
	if (ep->state == EP_STREAMING && ep->qp) {
		err = engine_errno(qp_modify(&ep->qp->qp, UW_QPS_SQD));
		engine_pump(ep->qp);
		llp_flush_links();
	} else if (ep->state == EP_CLOSING) {
		err = 0;
	}
	engine_unlock(ep->e);
	return err;
}

static void drop_children(struct uw_ep *ls)
{
	struct uw_ep *next;

	for (struct uw_ep *ep = ls->e->eps; ep; ep = next) {
		next = ep->next;
		if (ep->listener != ls)
			continue;
		if (ep->state == EP_STARTING) {
			engine_ep_free(ep);
			continue;
		}
		ep->listener = NULL; /* handed to the program already */
	}
}

void uw_ep_destroy(struct uw_ep *ep)
{
	struct uw_engine *e = ep->e;

	if (ep->claimed)
		ep->l->ops->release_port(ep->l, ep->lport);
	engine_lock(e);
	if (ep->ls)
		drop_children(ep);
	engine_ep_free(ep);
	atomic_fetch_sub_explicit(&e->objects, 1, memory_order_relaxed);
	llp_flush_links();
	engine_unlock(e);
}

/* ---- names ------------------------------------------------------------------------------- */

static void name(struct sockaddr_storage *a, const struct uw_ip *addr, uint16_t port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)a;

	memset(a, 0, sizeof(*a));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = uw_ip_v4_be(addr);
	sin->sin_port = port;
}

void uw_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	name(a, &ep->local, ep->lport);
}

void uw_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	name(a, &ep->asked, ep->rport);
}
