/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies on QP 1: sent, repeated, received. */
#include "conn/dgram/sidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/dgram/dgram.h"

/* The first repetition comes soon, since a packet may be lost; each of the others waits twice as
 * long, at most 4.3 s as with Linux. */
#define FIRST_US   250000u
#define LONGEST_US 4300000u
/* The link had no room. */
#define NO_ROOM_US 1000u
/* Requests that a program has not answered, all over; half of them from one host. Each is an
 * endpoint, and whoever can send a packet may send as many as he likes. */
#define ASKED_MAX 1024u

static uw_status fit(const struct uw_cm_param *p, size_t limit)
{
	return p->private_data_len > limit ? UW_E_INVAL : UW_OK;
}

static void copy_data(uint8_t *to, const struct uw_cm_param *p)
{
	if (p->private_data_len)
		memcpy(to, p->private_data, p->private_data_len);
}

/* ---- packets ----------------------------------------------------------------------------- */

static bool serves(const struct uw_ep *ep, const struct uw_ip *at, uint16_t port_be)
{
	if (ep->lport != port_be || !ep->owned)
		return false;
	if (!ep_means_all(&ep->local))
		return uw_ip_eq(&ep->local, at);
	return uw_ip_is_v4(&ep->local) == uw_ip_is_v4(at) ||
	       (uw_ip_is_any(&ep->local) && !ep->only6 && !uw_ip_is_v4(&ep->local));
}

/* NULL: none of ours. It stays: only under the locks of all stacks does it end or stop listening.
 * Anybody may ask for any port, so only those that listen are looked at. */
static struct uw_ep *find_server(const struct stack *s, const struct uw_ip *at, uint16_t port_be)
{
	struct uw_ep *ep = s->domain->servers;

	while (ep && !serves(ep, at, port_be))
		ep = ep->serve_next;
	return ep;
}

/* Who waits for the reply of these names, from this address; NULL: nobody. */
static struct sidr *find_asking(const struct stack *s, uint64_t tid, uint32_t request_id,
				const struct uw_ip *from)
{
	struct sidr *r = s->sidrs;

	while (r && (r->state != SIDR_ASKING || r->tid != tid || r->request_id != request_id ||
		     !uw_ip_eq(&r->ep->remote, from)))
		r = r->next;
	return r;
}

/* No endpoint of ours has asked for it, or serves its port; where processes share an address, QP 1
 * is of all of them. */
static enum mad_for whom_for(const struct sidr *r)
{
	const struct uw_ep *ep = r->ep;
	bool ours = r->passive ? !!find_asking(ep->stack, r->tid, r->request_id, &ep->local)
			       : !!find_server(ep->stack, &ep->remote, ep->rport);

	return ours ? MAD_FOR_US : MAD_FOR_OTHERS;
}

static bool send_again(const struct sidr *r)
{
	const struct uw_ep *ep = r->ep;
	const struct roce_path path = { .src = ep->local,
					.dst = ep->remote,
					.tos = ep->tos,
					.hops = ROCE_HOPS,
					.src_port = roce_ud_port(MAD_QPN) };

	return mad_send(ep->stack, ep->l, &path, r->mad, whom_for(r));
}

/* ---- records ----------------------------------------------------------------------------- */

static struct sidr *make(struct uw_ep *ep, enum sidr_state state)
{
	struct stack *s = ep->stack;
	struct sidr *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ep = ep;
	r->state = (uint8_t)state;
	r->next = s->sidrs;
	s->sidrs = r;
	ep->sidr = r;
	ep->state = EP_HAS_SIDR;
	return r;
}

static bool tell(const struct uw_ep *ep, struct uw_cm_event *ev)
{
	ev->stack = (struct uw_stack *)ep->stack;
	return ep->owned && ep->fn && ep->fn(ep->ctx, ev);
}

static void unreachable(struct sidr *r, int error)
{
	struct uw_cm_event ev = { .type = UW_CM_UNREACHABLE, .error = error };

	r->state = SIDR_OVER;
	r->ep->stack->sched.stats.cm_failed++;
	tell(r->ep, &ev);
}

/* ---- asking ------------------------------------------------------------------------------ */

static void ask(struct sidr *r, uint64_t now)
{
	uint64_t wait = (uint64_t)FIRST_US << (r->tries < 8 ? r->tries : 8);

	if (!send_again(r)) {
		r->due_us = now + NO_ROOM_US;
		return;
	}
	r->tries++;
	r->due_us = now + (wait < LONGEST_US ? wait : LONGEST_US);
	if (r->due_us > r->until_us)
		r->due_us = r->until_us;
}

uw_status sidr_connect(struct uw_ep *ep, const struct uw_cm_param *p, uw_status why)
{
	struct mad m = { .kind = MAD_SIDR_REQ };
	struct stack *s = ep->stack;
	struct sidr *r;
	uw_status st = ep_may_enter(ep->state, EP_HAS_SIDR) && ep->state != EP_IDLE
			       ? fit(p, SIDR_REQ_DATA)
			       : UW_E_STATE;

	if (!st)
		st = dgram_claim(s, MAD_QPN);
	if (st)
		return st;
	r = make(ep, SIDR_ASKING);
	if (!r)
		return UW_E_NOMEM;
	m.tid = r->tid = (uint64_t)stack_random(s) << 32 | stack_random(s);
	m.request_id = r->request_id = stack_random(s);
	m.req = (struct sidr_req){ .space = SIDR_UDP,
				   .port = ntohs(ep->rport),
				   .src_port = ntohs(ep->lport),
				   .src = ep->local,
				   .dst = ep->remote };
	copy_data(m.req.data, p);
	mad_encode(&m, r->mad);
	r->until_us = stack_now_us(s) + s->domain->cfg->connect_ms * UINT64_C(1000);
	if (why)
		unreachable(r, -uw_status_errno(why));
	else
		ask(r, stack_now_us(s));
	return UW_OK;
}

void sidr_timers(struct stack *s, uint64_t now)
{
	for (struct sidr *r = s->sidrs, *next; r; r = next) {
		next = r->next;
		if (r->state != SIDR_ASKING || now < r->due_us)
			continue;
		if (now >= r->until_us)
			unreachable(r, -ETIMEDOUT);
		else
			ask(r, now);
	}
}

uint64_t sidr_next_us(const struct stack *s)
{
	uint64_t at = UINT64_MAX;

	for (const struct sidr *r = s->sidrs; r; r = r->next) {
		if (r->state == SIDR_ASKING && r->due_us < at)
			at = r->due_us;
	}
	return at;
}

/* IBA §12.11.2: the reply has the request's ID, and comes from where the request went. */
void sidr_reply(struct stack *s, const struct roce_packet *p, const struct mad *m)
{
	struct sidr *r = find_asking(s, m->tid, m->request_id, &p->src);
	struct uw_cm_event ev = { .type = UW_CM_ESTABLISHED };

	if (!r) {
		s->sched.stats.sidr_rx_stale++;
		return;
	}
	if (m->rep.status != SIDR_VALID) {
		unreachable(r, m->rep.status);
		return;
	}
	r->state = SIDR_OVER;
	ev.param = (struct uw_cm_param){ .private_data = m->rep.data,
					 .private_data_len = SIDR_REP_DATA,
					 .qpn = m->rep.qpn,
					 .qkey = m->rep.qkey };
	memcpy(ev.param.own_gid, r->ep->local.b, 16);
	memcpy(ev.param.peer_gid, r->ep->remote.b, 16);
	tell(r->ep, &ev);
}

/* ---- listening --------------------------------------------------------------------------- */

/* Requests come to QP 1. */
uw_status sidr_listen(struct uw_ep *ep)
{
	struct conn_domain *d = ep->stack->domain;
	uw_status st = dgram_claim(ep->stack, MAD_QPN);

	if (st)
		return st;
	ep->state = EP_LISTENING;
	ep->serve_next = d->servers;
	ep->serve_link = &d->servers;
	if (ep->serve_next)
		ep->serve_next->serve_link = &ep->serve_next;
	d->servers = ep;
	return UW_OK;
}

void sidr_unlisten(struct uw_ep *ep)
{
	if (!ep->serve_link)
		return;
	*ep->serve_link = ep->serve_next;
	if (ep->serve_next)
		ep->serve_next->serve_link = ep->serve_link;
	ep->serve_link = NULL;
}

/* ---- being asked ------------------------------------------------------------------------- */

static struct mad reply_to(const struct mad *request, enum sidr_status status)
{
	struct mad m = { .kind = MAD_SIDR_REP,
			 .tid = request->tid,
			 .request_id = request->request_id };

	m.rep = (struct sidr_rep){ .status = (uint8_t)status,
				   .space = request->req.space,
				   .port = request->req.port };
	return m;
}

/* Several processes may have the address (IO_SHARED), and each hears of all requests. So the first
 * one is left to whoever serves the port; when it comes again, nobody does. */
static void refuse(struct stack *s, struct io_link *l, const struct roce_packet *p,
		   const struct mad *request)
{
	const struct roce_path back = {
		.src = p->dst, .dst = p->src, .hops = ROCE_HOPS, .src_port = roce_ud_port(MAD_QPN)
	};
	struct mad m = reply_to(request, SIDR_NO_SERVICE);
	uint8_t out[MAD_SIZE];
	bool again = s->sidr_refused == request->tid;

	s->sidr_refused = request->tid;
	if (io_shared_versions(l) && !again)
		return;
	mad_encode(&m, out);
	mad_send(s, l, &back, out,
		 find_asking(s, request->tid, request->request_id, &p->dst) ? MAD_FOR_US
									    : MAD_FOR_OTHERS);
}

static struct sidr *find_request(const struct stack *s, const struct roce_packet *p,
				 const struct mad *m)
{
	struct sidr *r = s->sidrs;

	while (r && (!r->passive || r->tid != m->tid || r->request_id != m->request_id ||
		     !uw_ip_eq(&r->ep->remote, &p->src)))
		r = r->next;
	return r;
}

static bool has_place(struct stack *s, const struct uw_ip *from)
{
	unsigned all = 0, of_host = 0;

	for (const struct sidr *r = s->sidrs; r; r = r->next) {
		if (!r->passive || r->state != SIDR_ASKED)
			continue;
		all++;
		of_host += uw_ip_host(&r->ep->remote) == uw_ip_host(from);
	}
	if (all < ASKED_MAX && of_host < ASKED_MAX / 2)
		return true;
	s->sched.stats.sidr_rx_dropped++;
	return false;
}

static struct uw_ep *new_ep(struct stack *s, struct io_link *l, const struct roce_packet *p,
			    const struct uw_ep *listening)
{
	struct uw_ep *ep = ep_new(s->domain, s);

	if (!ep)
		return NULL;
	ep->datagrams = true;
	ep_set_link(ep, l);
	ep->local = p->dst;
	ep->remote = ep->asked = p->src;
	ep->lport = listening->lport;
	ep->tos = listening->tos;
	ep->fn = listening->fn;
	if (!make(ep, SIDR_ASKED)) {
		ep_free(ep);
		return NULL;
	}
	return ep;
}

static void reject_not_taken(struct uw_ep *ep)
{
	const struct uw_cm_param nothing = { 0 };
	struct stack *s = ep->stack;

	s->sched.stats.cm_not_taken++;
	if (sidr_reject(ep, &nothing))
		s->sched.stats.cm_failed++;
	atomic_fetch_sub_explicit(&s->domain->n_eps, 1, memory_order_relaxed);
	ep_free(ep);
}

static void on_new_request(struct stack *s, struct io_link *l, const struct roce_packet *p,
			   const struct mad *m, const struct uw_ep *listening)
{
	struct uw_cm_event ev = { .type = UW_CM_CONNECT_REQUEST };
	struct uw_ep *ep = has_place(s, &p->src) ? new_ep(s, l, p, listening) : NULL;

	if (!ep) /* the peer asks again */
		return;
	ep->rport = htons(m->req.src_port);
	ep->sidr->passive = true;
	ep->sidr->tid = m->tid;
	ep->sidr->request_id = m->request_id;
	mad_encode(m, ep->sidr->mad);
	atomic_fetch_add_explicit(&s->domain->n_eps, 1, memory_order_relaxed);
	ev.ep = ep;
	ev.param = (struct uw_cm_param){ .private_data = m->req.data,
					 .private_data_len = SIDR_REQ_DATA };
	if (!tell(listening, &ev))
		reject_not_taken(ep);
}

void sidr_request(struct stack *s, struct io_link *l, const struct roce_packet *p,
		  const struct mad *m)
{
	const struct sidr *r = find_request(s, p, m);
	const struct uw_ep *ep = NULL;

	if (r && r->state == SIDR_OVER)
		send_again(r);
	if (r)
		return;
	if (m->req.space == SIDR_UDP)
		ep = find_server(s, &p->dst, htons(m->req.port));
	if (ep)
		on_new_request(s, l, p, m, ep);
	else
		refuse(s, l, p, m);
}

static uw_status answer(struct uw_ep *ep, const struct sidr_rep *rep)
{
	struct sidr *r = ep->sidr;
	struct uw_span s = { r ? r->mad : NULL, MAD_SIZE };
	struct mad request, m;

	if (!r || !r->passive || r->state != SIDR_ASKED ||
	    mad_decode(uw_rope_of(&s), &request) != MAD_SIDR_REQ)
		return UW_E_STATE;
	m = reply_to(&request, SIDR_VALID);
	m.rep.status = rep->status;
	m.rep.qpn = rep->qpn;
	m.rep.qkey = rep->qkey;
	memcpy(m.rep.data, rep->data, sizeof(rep->data));
	mad_encode(&m, r->mad);
	r->state = SIDR_OVER;
	send_again(r); /* without room now: the peer asks again */
	return UW_OK;
}

uw_status sidr_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	struct sidr_rep rep = { .qpn = qpn & ROCE_QPN_MASK,
				.qkey = p->qkey ? p->qkey : UW_UD_QKEY };
	uw_status st = fit(p, SIDR_REP_DATA);

	if (st)
		return st;
	copy_data(rep.data, p);
	return answer(ep, &rep);
}

uw_status sidr_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	struct sidr_rep rep = { .status = SIDR_REJECTED };
	uw_status st = fit(p, SIDR_REP_DATA);

	if (st)
		return st;
	copy_data(rep.data, p);
	return answer(ep, &rep);
}
