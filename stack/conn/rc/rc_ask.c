/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which TCP port leads to a QP. Processes that share an address (IO_SHARED) cannot all have
 * RC_PORT: the first one has, the others have a port of their own. A caller that does not find the
 * QP at RC_PORT asks by a datagram from QP 1 to QP 1, which all of them hear, and who has the QP
 * answers (doc/adr/0048).
 */
#include <arpa/inet.h>

#include "base/be.h"
#include "conn/dgram/dgram.h"
#include "conn/dgram/sidr.h"
#include "conn/listener.h"
#include "conn/rc/rc.h"
#include "io/addr.h"

static struct listener *listener_of(const struct stack *s, const struct io_link *l)
{
	struct listener *ls = s->domain->listeners;

	while (ls && !(ls->cm_less && ls->part[0].l == l))
		ls = ls->next;
	return ls;
}

unsigned rc_port_of(const struct stack *s, const struct io_link *l)
{
	const struct listener *ls = listener_of(s, l);

	return ls ? ls->rc_port : 0;
}

static struct conn_qp *qp_of(const struct stack *s, uint32_t qpn)
{
	return s->domain->hooks.find_qp(s->domain->hooks.find_qp_arg, qpn);
}

static struct roce_path path_of(const struct uw_ip *from, const struct uw_ip *to)
{
	return (struct roce_path){
		.src = *from, .dst = *to, .hops = ROCE_HOPS, .src_port = roce_ud_port(MAD_QPN)
	};
}

/* ---- asking ------------------------------------------------------------------------------- */

static void send_question(struct rc *rc)
{
	struct mad m = { .kind = MAD_SIDR_REQ, .tid = rc->ask_tid, .request_id = rc->self.qpn };
	const struct roce_path path = path_of(&rc->self.addr, &rc->peer.addr);
	uint8_t octets[MAD_SIZE];

	m.req = (struct sidr_req){ .space = SIDR_RC,
				   .port = RC_PORT,
				   .src_port = RC_PORT,
				   .src = rc->self.addr,
				   .dst = rc->peer.addr };
	uw_put32(m.req.data, rc->peer.qpn);
	mad_encode(&m, octets);
	/* without room now: the next try asks again */
	if (mad_send(rc_stack(rc), rc->l, &path, octets, MAD_FOR_OTHERS))
		rc_stack(rc)->sched.stats.rc_asked++;
}

void rc_ask(struct rc *rc)
{
	struct stack *s = rc_stack(rc);

	rc->peer_port = 0;
	if (io_has(rc->l, &rc->peer.addr) && qp_of(s, rc->peer.qpn)) {
		rc->peer_port = (uint16_t)rc_port_of(s, rc->l);
		return;
	}
	if ((rc->l->flags & IO_P2P) || !s->llp->packet_begin)
		return; /* nobody shares the address, or nobody could answer */
	while (!rc->ask_tid)
		rc->ask_tid = (uint64_t)stack_random(s) << 32 | stack_random(s);
	send_question(rc);
}

void rc_answered(struct stack *s, const struct roce_packet *p, const struct mad *m)
{
	struct rc *rc = s->rc.list;

	while (rc && !(rc->ask_tid == m->tid && rc->self.qpn == m->request_id &&
		       uw_ip_eq(&rc->peer.addr, &p->src)))
		rc = rc->next;
	if (!rc || !m->tid || m->rep.status != SIDR_VALID || m->rep.qpn != rc->peer.qpn ||
	    rc->state != RC_WAITING) {
		s->sched.stats.sidr_rx_stale++;
		return;
	}
	rc->peer_port = uw_be16(m->rep.data);
	rc->next_us = stack_now_us(s);
	rc_due_at(s, rc->next_us);
}

/* ---- being asked -------------------------------------------------------------------------- */

/* Over a link that tells QPs apart an answer gets out only from who has claimed the QP. What cannot
 * be had now (the uwarpd is away, say) is claimed again when somebody asks. */
void rc_claim(struct rc *rc)
{
	const struct listener *ls = listener_of(rc_stack(rc), rc->l);
	const struct io_ops *ops = rc->l->ops;

	if (!rc->claimed && ls && ls->asked && ops->release_packets)
		rc->claimed = !ops->claim_packets(rc->l, rc->self.qpn);
}

void rc_unclaim(struct rc *rc)
{
	if (rc->claimed && !stack_is_without_links(rc_stack(rc)))
		rc->l->ops->release_packets(rc->l, rc->self.qpn);
	rc->claimed = false;
}

void rc_asked(struct stack *s, struct io_link *l, const struct roce_packet *p, const struct mad *m)
{
	unsigned port = rc_port_of(s, l);
	const struct roce_path back = path_of(&p->dst, &p->src);
	struct mad reply = { .kind = MAD_SIDR_REP, .tid = m->tid, .request_id = m->request_id };
	const struct conn_qp *q = port ? qp_of(s, uw_be32(m->req.data)) : NULL;
	uint8_t octets[MAD_SIZE];

	if (!q)
		return; /* whoever has the QP answers */
	if (q->rc)
		rc_claim(q->rc);
	reply.rep = (struct sidr_rep){ .status = SIDR_VALID,
				       .qpn = uw_be32(m->req.data) & ROCE_QPN_MASK,
				       .space = SIDR_RC,
				       .port = RC_PORT };
	uw_put16(reply.rep.data, (uint16_t)port);
	mad_encode(&reply, octets);
	if (mad_send(s, l, &back, octets, MAD_FOR_OTHERS))
		s->sched.stats.rc_told++;
}
