/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: what rdma_cm asks for. The connection's own course is conn.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"
#include "engine/say.h"
#include "io/addr.h"
#include "io/slab.h"
#include "io/steer.h"

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u /* to 60999, as Linux does */

/* ---- records ----------------------------------------------------------------------------- */

static void list(struct uw_ep *ep)
{
	struct uw_engine *e = ep->e;

	ep->next = e->eps;
	ep->link = &e->eps;
	if (ep->next)
		ep->next->link = &ep->next;
	e->eps = ep;
}

void engine_ep_move(struct uw_ep *ep, struct uw_engine *to)
{
	*ep->link = ep->next;
	if (ep->next)
		ep->next->link = ep->link;
	for (unsigned i = 0; i < to->n_links; i++) {
		if (ep->l == ep->e->links[i])
			ep->l = to->links[i];
	}
	ep->e = to;
	list(ep);
}

struct uw_ep *engine_ep_new(struct uw_engine *e)
{
	struct uw_ep *ep = slab_alloc(sizeof(*ep));

	if (!ep)
		return NULL;
	memset(ep, 0, sizeof(*ep));
	ep->e = e;
	ep->local = ep->remote = ep->asked = uw_ip_v4(INADDR_ANY);
	list(ep);
	return ep;
}

/* ---- local ports -------------------------------------------------------------------------- */

static bool port_taken(const struct uw_engine *e, unsigned port)
{
	return e->lead->ports[port / 64] >> (port % 64) & 1;
}

static void port_set(struct uw_engine *e, unsigned port, bool on)
{
	uint64_t bit = (uint64_t)1 << (port % 64);

	if (on)
		e->lead->ports[port / 64] |= bit;
	else
		e->lead->ports[port / 64] &= ~bit;
}

/* One after the other from a random one on: the last connection from the same port has left
 * TIME_WAIT by the time it comes round again. */
static unsigned any_port(struct uw_engine *e)
{
	unsigned *next = &e->lead->next_port;
	unsigned start = *next ? *next : engine_random(e) % EPHEMERAL_COUNT;

	for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
		unsigned port = EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT;

		if (port_taken(e, port) || !llp_port_free(e->llp, htons((uint16_t)port)))
			continue;
		*next = (start + i) % EPHEMERAL_COUNT + 1;
		return port;
	}
	return 0;
}

enum { IP4 = 1, IP6 = 2 };

/* The versions of IP that its local address stands for: a port of each is a port of its own. */
static unsigned versions(const struct uw_ep *ep)
{
	if (uw_ip_is_v4(&ep->local))
		return IP4;
	return uw_ip_is_any(&ep->local) && !ep->only6 ? IP4 | IP6 : IP6;
}

/* It stays so when the port is free again: connections that had it may still be closing. */
static void steer(const struct uw_ep *ep, uint8_t to)
{
	struct steer_ports *s = ep->e->lead->steer;
	unsigned v = versions(ep);

	if (s && v & IP4)
		steer_port(s, STEER_IP4, ep->lport, to);
	if (s && v & IP6)
		steer_port(s, STEER_IP6, ep->lport, to);
}

void engine_steer_lead(struct uw_engine *lead, uint16_t port)
{
	steer_port(lead->steer, STEER_IP4, htons(port), (uint8_t)lead->index);
	steer_port(lead->steer, STEER_IP6, htons(port), (uint8_t)lead->index);
}

void engine_steer_any(const struct uw_ep *ep)
{
	steer(ep, STEER_ANY);
}

/* Another endpoint that has `port` (network order): from the first of a stack's on. */
static struct uw_ep *next_holder(const struct uw_ep *ep, uint16_t port, struct uw_ep *from)
{
	for (; from; from = from->next) {
		if (from != ep && from->has_port && from->lport == port)
			return from;
	}
	return NULL;
}

/* All that have a port are on one stack. */
static struct uw_ep *first_holder(const struct uw_ep *ep, uint16_t port)
{
	struct uw_ep *o = next_holder(ep, port, ep->e->eps);

	for (struct uw_engine *e = ep->e->lead; e && !o; e = e->next)
		o = next_holder(ep, port, e->eps);
	return o;
}

/* Two of a port: of different versions, or both share it and neither listens. */
static bool may_both(const struct uw_ep *a, const struct uw_ep *b)
{
	return !(versions(a) & versions(b)) || (a->shares && b->shares && !a->ls && !b->ls);
}

/* A taken port may be ep's as well if it is taken by endpoints, and each of them allows it. */
static bool may_join(const struct uw_ep *ep, uint16_t port)
{
	const struct uw_ep *o = first_holder(ep, port);

	if (!o)
		return false;
	for (; o; o = next_holder(ep, port, o->next)) {
		if (!may_both(ep, o))
			return false;
	}
	return true;
}

/* Nobody has its port for the same version. */
bool engine_ep_is_alone(const struct uw_ep *ep)
{
	const struct uw_ep *o = first_holder(ep, ep->lport);

	while (o && !(versions(o) & versions(ep)))
		o = next_holder(ep, ep->lport, o->next);
	return !o;
}

static void join(struct uw_ep *ep)
{
	struct uw_ep *o = first_holder(ep, ep->lport);

	if (o->e != ep->e)
		engine_ep_move(ep, o->e);
	ep->joint = true;
	for (; o; o = next_holder(ep, ep->lport, o->next))
		o->joint = true;
}

/* For ep->local. False: port is 0 (there was none to be had) or somebody else's. */
static bool take_port(struct uw_ep *ep, unsigned port)
{
	bool taken = port && port_taken(ep->e, port);

	if (!port || (taken && !may_join(ep, htons((uint16_t)port))))
		return false;
	port_set(ep->e, port, true);
	ep->has_port = true;
	ep->lport = htons((uint16_t)port);
	ep->joint = false;
	if (taken)
		join(ep);
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
	if (!ep->joint || !first_holder(ep, ep->lport))
		port_set(ep->e, ntohs(ep->lport), false);
	ep->has_port = false;
}

static void unlist(const struct uw_ep *ep)
{
	struct uw_ep **p;

	for (p = &ep->e->stalled_eps; *p && *p != ep;)
		p = &(*p)->next_stalled;
	if (*p)
		*p = ep->next_stalled;
	for (p = &ep->e->settling_eps; *p && *p != ep;)
		p = &(*p)->next_settling;
	if (*p)
		*p = ep->next_settling;
}

void engine_ep_free(struct uw_ep *ep)
{
	engine_ep_drop(ep);
	engine_rc_unpark(ep);
	if (ep->ls)
		llp_unlisten(ep->e->llp, ep->ls);
	release_port(ep);
	unlist(ep);
	deadline_clear(&ep->e->deadlines, &ep->timer);
	*ep->link = ep->next;
	if (ep->next)
		ep->next->link = ep->link;
	slab_free(ep, sizeof(*ep));
}

/* ---- addresses --------------------------------------------------------------------------- */

struct place {
	struct uw_ip addr;
	uint16_t port; /* network order */
};

/* ::ffff:a.b.c.d is IPv4 as well. */
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
	memcpy(&p->addr, &s6->sin6_addr, sizeof(p->addr));
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

bool engine_means_all(const struct uw_ip *a)
{
	return uw_ip_is_any(a) || uw_ip_is_loopback(a);
}

bool engine_is_ours(const struct uw_engine *e, const struct uw_ip *addr, struct io_link **l)
{
	for (unsigned i = 0; i < e->n_links; i++) {
		if (engine_means_all(addr) || io_has(e->links[i], addr)) {
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
	engine_lock_all(e);
	ep = engine_ep_new(engine_next_home(e));
	if (ep) {
		ep->fn = fn;
		ep->ctx = ctx;
		ep->owned = true;
		atomic_fetch_add_explicit(&e->lead->objects, 1, memory_order_relaxed);
	}
	engine_unlock_all(e);
	*out = ep;
	return ep ? 0 : -ENOMEM;
}

void uw_ep_set_ctx(struct uw_ep *ep, void *ctx)
{
	struct uw_engine *e = ep->e;

	engine_lock_all(e);
	ep->ctx = ctx;
	ep->owned = true;
	engine_unlock_all(e);
}

uw_status engine_ep_bind(struct uw_ep *ep, const struct uw_ip *addr, uint16_t at)
{
	struct uw_engine *e = ep->e;
	unsigned port = ntohs(at);

	if (ep->state != EP_IDLE)
		return UW_E_INVAL;
	if (!engine_is_ours(e, addr, &ep->l))
		return UW_E_ADDR;
	ep->local = *addr;
	if (!take_port(ep, port ? port : any_port(e)))
		return UW_E_ADDR_IN_USE;
	ep->state = EP_BOUND;
	return UW_OK;
}

int uw_ep_bind(struct uw_ep *ep, const struct sockaddr *addr)
{
	struct place p;
	uw_status st = place_of(addr, &p);

	if (st)
		return engine_errno(st);
	engine_lock_all(ep->e);
	st = engine_ep_bind(ep, &p.addr, p.port);
	engine_unlock_all(ep->e);
	return engine_errno(st);
}

int uw_ep_share_port(struct uw_ep *ep, bool on)
{
	int err = 0;

	engine_lock_all(ep->e);
	if (on && ep->state != EP_IDLE)
		err = -EINVAL;
	else if (!ep->has_port)
		ep->shares = on;
	engine_unlock_all(ep->e);
	return err;
}

int uw_ep_only6(struct uw_ep *ep, bool on)
{
	int err = 0;

	engine_lock_all(ep->e);
	if (ep->state == EP_IDLE || ep->state == EP_BOUND)
		ep->only6 = on;
	else
		err = -EINVAL;
	engine_unlock_all(ep->e);
	return err;
}

/* RFC 3168 §5: the other two bits are ECN's, which no TCP of ours asks for. */
#define DSCP_MASK 0xfc

void engine_ep_set_tos(struct uw_ep *ep, uint8_t tos)
{
	if (ep->state != EP_IDLE && ep->state != EP_BOUND && ep->state != EP_RESOLVED &&
	    ep->state != EP_REQUESTED)
		return;
	ep->tos = tos & DSCP_MASK;
	if (ep->c)
		llp_set_tos(ep->e->llp, ep->c, ep->tos);
}

void uw_ep_set_tos(struct uw_ep *ep, uint8_t tos)
{
	engine_lock_all(ep->e);
	engine_ep_set_tos(ep, tos);
	engine_unlock_all(ep->e);
}

uw_status engine_find_way(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms)
{
	if (io_has(l, to))
		return UW_OK;
	if (l->ops->resolve && !uw_ip_is_any(to))
		return l->ops->resolve(l, to, port, timeout_ms);
	if (engine_means_all(to) && !io_source_for(l, to, to))
		return UW_E_UNREACHABLE;
	return UW_OK;
}

uw_status engine_local_for(const struct io_link *l, const struct uw_ip *from,
			   const struct uw_ip *to, struct uw_ip *out)
{
	if (engine_means_all(from))
		return io_source_for(l, to, out) ? UW_OK : UW_E_AFAMILY;
	*out = *from;
	return uw_ip_is_v4(from) == uw_ip_is_v4(to) ? UW_OK : UW_E_AFAMILY;
}

static uw_status take_way(struct uw_ep *ep, struct io_link *l, const struct uw_ip *local,
			  const struct uw_ip *to)
{
	uw_status st = UW_OK;

	engine_lock_all(ep->e);
	ep->l = l;
	ep->local = *local;
	ep->remote = *to;
	/* As with the kernel, the port is known from here on. */
	if (!ep->has_port && !take_port(ep, any_port(ep->e)))
		st = UW_E_ADDR_IN_USE;
	if (!st && (ep->state == EP_IDLE || ep->state == EP_BOUND))
		ep->state = EP_RESOLVED;
	engine_unlock_all(ep->e);
	return st;
}

int uw_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		  unsigned timeout_ms)
{
	struct uw_engine *e = ep->e;
	struct place to, from = { { { 0 } }, 0 };
	struct io_link *l = NULL;
	struct uw_ip local;
	uw_status st = place_of(dst, &to);

	if (!st && src && src->sa_family)
		st = place_of(src, &from);
	if (st)
		return engine_errno(st);
	if (ep->state == EP_BOUND)
		from.addr = ep->local;
	if (!engine_is_ours(e, &from.addr, &l))
		return engine_errno(UW_E_ADDR);
	ep->asked = to.addr;
	ep->rport = to.port;
	st = engine_find_way(l, &to.addr, to.port, timeout_ms);
	if (st == UW_MORE)
		return engine_errno(st);
	/* As with any local address of a host: resolving succeeds, connecting tells. */
	ep->unresolved = st && (l->flags & IO_P2P);
	if (st && !ep->unresolved) {
		engine_say_connect_failed(ep, st);
		return engine_errno(st);
	}
	st = engine_local_for(l, &from.addr, &to.addr, &local);
	return engine_errno(st ? st : take_way(ep, l, &local, &to.addr));
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
	struct uw_qp *qp = idmap_get(&e->lead->qps, qpn);

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
	if (!st)
		engine_qp_move(qp, ep->e);
	if (!st && p->private_data_len > (ep->e->policy.rev >= 2 ? 508u : 512u))
		st = UW_E_INVAL;
	if (!st)
		st = engine_ep_connect(ep, ENGINE_PATIENCE_US);
	if (!st)
		engine_ep_claim(ep, qp);
	return st;
}

uw_status engine_ep_call(struct uw_ep *ep)
{
	const struct llp_addrs a = { .local = ep->local,
				     .remote = ep->remote,
				     .lport = ep->has_port ? ep->lport : 0,
				     .rport = ep->rport,
				     .tos = ep->tos };

	steer(ep, (uint8_t)ep->e->index);
	return llp_connect(ep->e->llp, ep->l, &a, ep, &ep->c);
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
	engine_ep_arm(ep);
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

	engine_lock_all(ep->e);
	if (st && idmap_get(&ep->e->lead->qps, qpn)) {
		engine_ep_unreachable(ep, st);
		st = UW_OK;
	} else {
		st = connect_locked(ep, qpn, p);
	}
	llp_flush_links(ep->e->llp);
	engine_unlock_all(ep->e);
	if (!st)
		engine_await_request(ep);
	return engine_errno(st);
}

/* CM-less RC has it. */
static bool qp_is_named(const struct uw_engine *e, uint32_t qpn)
{
	const struct uw_qp *qp = idmap_get(&e->lead->qps, qpn);

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
		engine_qp_move(qp, ep->e);
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

	engine_lock_all(ep->e);
	st = qp_is_named(ep->e, qpn) ? UW_E_STATE : engine_ep_accept(ep, qpn, p);
	llp_flush_links(ep->e->llp);
	engine_unlock_all(ep->e);
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
	llp_flush_links(ep->e->llp); /* room: what is not sent now will not be */
	if (!st)
		st = engine_send_frame(ep, frame, n);
	if (st)
		return st;
	llp_close(ep->e->llp, ep->c);
	ep->c = NULL;
	ep->state = EP_ENDED;
	engine_ep_arm(ep);
	return UW_OK;
}

int uw_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	uw_status st;

	engine_lock_all(ep->e);
	st = engine_ep_reject(ep, p);
	llp_flush_links(ep->e->llp);
	engine_unlock_all(ep->e);
	return engine_errno(st);
}

int uw_ep_disconnect(struct uw_ep *ep)
{
	int err = -ENOTCONN;

	engine_lock_all(ep->e);
	if (ep->state == EP_STREAMING && ep->qp) {
		err = engine_errno(qp_modify(&ep->qp->qp, UW_QPS_SQD));
		engine_pump(ep->qp);
		llp_flush_links(ep->e->llp);
	} else if (ep->state == EP_CLOSING) {
		err = 0;
	}
	engine_unlock_all(ep->e);
	return err;
}

void uw_ep_destroy(struct uw_ep *ep)
{
	struct uw_engine *e = ep->e;

	if (ep->claimed)
		ep->l->ops->release_port(ep->l, ep->lport);
	engine_lock_all(e);
	engine_ep_unlisten(ep);
	engine_ep_free(ep);
	atomic_fetch_sub_explicit(&e->lead->objects, 1, memory_order_relaxed);
	llp_flush_links(e->llp);
	engine_unlock_all(e);
}

/* ---- names ------------------------------------------------------------------------------- */

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
	if (uw_ip_is_link_local(addr) && ep->l)
		six->sin6_scope_id = ep->l->scope;
}

void uw_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	name(a, ep, &ep->local, ep->lport);
}

void uw_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	name(a, ep, &ep->asked, ep->rport);
}
