/* SPDX-License-Identifier: BSD-3-Clause */
/* UC and UD QPs: their records, their peers, the addresses of datagrams. */
#include "conn/dgram/dgram.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "conn/endpoint.h"
#include "io/addr.h"

/* A process that is there answers within milliseconds. */
#define RESOLVE_MS 1000u
/* A neighbour answers within a millisecond or two; a question may be lost. */
#define NEIGHBOUR_MS 300u
/* ---- records ----------------------------------------------------------------------------- */

uw_status dgram_possible(const struct conn_domain *d)
{
	static bool said;

	if (d->first->llp->packet_begin)
		return UW_OK;
	if (!said)
		uw_log("UD and UC queue pairs need the transport raw (--transport raw)");
	said = true;
	return UW_E_UNSUPPORTED;
}

uw_status dgram_make(struct conn_qp *q, const struct conn_domain *domain, enum roce_transport t)
{
	struct dgram *d = calloc(1, sizeof(*d));

	if (!d)
		return UW_E_NOMEM;
	d->q = q;
	d->r.qp = &q->qp;
	d->r.transport = (uint8_t)t;
	d->r.infiniband = domain->cfg->infiniband;
	q->qp.cm_less = true;
	q->qp.rnr_wait = false;
	q->qp.sq.refused = (uint16_t)roce_refused_ops(t);
	q->peer_ops = &dgram_peer_ops;
	q->dgram = d;
	return UW_OK;
}

static void release(const struct stack *s, uint32_t qpn)
{
	for (unsigned i = 0; i < s->n_links; i++) {
		struct io_link *l = s->links[i];

		if (l->ops->release_packets)
			l->ops->release_packets(l, qpn);
	}
}

void dgram_reset(struct conn_qp *q)
{
	struct dgram *d = q->dgram;

	if (!d)
		return;
	release(conn_qp_stack(q), q->qp.num);
	dgram_wait_no_more(d);
	roce_rx_forget(&d->r);
	q->qp.cm_less = true;
}

uw_status dgram_ready(struct conn_qp *q)
{
	return q->dgram ? dgram_claim(conn_qp_stack(q), q->qp.num) : UW_OK;
}

/* ---- addresses --------------------------------------------------------------------------- */

static bool number_of(const struct stack *s, const struct uw_ip *a, uint8_t *out)
{
	for (unsigned i = 0; i <= UINT8_MAX; i++) {
		struct uw_ip ip;

		*out = (uint8_t)i;
		if (dgram_source(s, *out, &ip) && uw_ip_eq(&ip, a))
			return true;
	}
	return false;
}

/* As Linux's drivers have it: what the program says counts for multicast only. The pingpongs say 1,
 * and would not get through a router. */
static uint8_t hops_to(const struct uw_ip *to, uint8_t asked)
{
	return uw_ip_is_multicast(to) && asked ? asked : ROCE_HOPS;
}

static bool knows_neighbour(struct stack *s, struct io_link *l, const struct uw_ip *to)
{
	bool known;

	sched_lock(&s->sched);
	known = stack_is_without_links(s) || s->llp->neighbour(l, to);
	stack_flush(s);
	sched_unlock(&s->sched);
	return known;
}

/* A first message of several packets would be lost. Asking again after a time makes good for a
 * question or an answer that was lost. */
static void await_neighbour(struct stack *s, struct io_link *l, const struct uw_ip *to)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (unsigned ms = 0; ms < NEIGHBOUR_MS; ms++) {
		if (knows_neighbour(s, l, to) || s->domain->manual)
			return;
		nanosleep(&pause, NULL);
	}
}

/* Who is not there now may come later and find us; what is sent meanwhile is lost. */
static void find_way(struct stack *s, struct io_link *l, struct uw_ip *to)
{
	struct uw_ip there = *to;

	if (!ep_find_way(l, &there, htons(ROCE_UDP_PORT), RESOLVE_MS))
		*to = there;
	if (s->llp->neighbour && !uw_ip_is_multicast(to))
		await_neighbour(s, l, to);
}

/* Both ends, by the program's words, and the link between them. Under the lock. */
static uw_status ends(const struct stack *s, const struct sockaddr *addr,
		      const struct sockaddr *own, struct roce_path *out, struct io_link **l)
{
	struct uw_ip from = { { 0 } };
	uint16_t unused;
	uw_status st = ep_read_addr(addr, &out->dst, &unused);

	if (!st && own)
		st = ep_read_addr(own, &from, &unused);
	if (!st && !ep_find_link(s, &from, l))
		st = UW_E_ADDR;
	return st ? st : ep_local_for(*l, &from, &out->dst, &out->src);
}

void dgram_find_way(struct stack *s, const struct uw_peer *p)
{
	struct roce_path path;
	struct io_link *l;
	bool held;

	sched_lock(&s->sched);
	held = !ends(s, p->addr, p->from, &path, &l) && stack_hold_links(s);
	sched_unlock(&s->sched);
	if (!held)
		return;
	find_way(s, l, &path.dst);
	stack_let_links_go(s);
}

/* The links are held then, which *out is of. */
static uw_status ends_of_datagrams(struct stack *s, const struct uw_ah_attr *a,
				   struct roce_path *path, struct roce_to *to, struct io_link **out)
{
	uw_status st;

	sched_lock(&s->sched);
	st = ends(s, a->addr, a->from, path, out);
	if (!st && !number_of(s, &path->src, &to->source))
		st = UW_E_ADDR;
	if (!st && !stack_hold_links(s))
		st = UW_E_STATE;
	sched_unlock(&s->sched);
	return st;
}

uw_status dgram_address(struct stack *s, const struct uw_ah_attr *a, struct uw_ah *out)
{
	struct io_link *l;
	struct roce_path path;
	struct roce_to to = { .tos = a->tos };
	uw_status st = ends_of_datagrams(s, a, &path, &to, &l);

	if (st)
		return st;
	find_way(s, l, &path.dst);
	stack_let_links_go(s);
	to.dst = path.dst;
	to.hops = hops_to(&to.dst, a->hops);
	roce_to_pack(&to, &out->how, out->dst);
	return UW_OK;
}

uw_status dgram_name_peer(struct conn_qp *q, const struct uw_peer *p)
{
	struct roce_qp *r = &q->dgram->r;
	struct io_link *l;
	uw_status st;

	if (r->transport != ROCE_UC || q->qp.state != UW_QPS_INIT)
		return UW_E_STATE;
	r->path = (struct roce_path){ .tos = p->tos };
	st = dgram_ready(q);
	if (st)
		return st;
	st = ends(conn_qp_stack(q), p->addr, p->from, &r->path, &l);
	if (st)
		return st;
	r->path.hops = hops_to(&r->path.dst, p->hops);
	q->dgram->l = l;
	r->path.src_port = roce_uc_port(p->flow_label, q->qp.num, p->qpn);
	r->dest_qpn = p->qpn & ROCE_QPN_MASK;
	r->expected = p->rq_psn & ROCE_PSN_MASK;
	r->mtu = p->path_mtu && p->path_mtu < dgram_mtu(l) ? p->path_mtu : dgram_mtu(l);
	return qp_modify(&q->qp, UW_QPS_RTR);
}
