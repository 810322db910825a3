/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/be.h"
#include "base/guard.h"
#include "roce/qp.h"

/* = IBV_WC_GRH */
#define WC_GRH 1u
/* Annex A17.4.5.1: a completion of UD says of which kind the packet was. Verbs have no field for
 * it; cards say it in sl, and UCX drops an IPv4 packet whose sl does not. */
enum { SL_UDP_IP6 = 9, SL_UDP_IP4 = 10 };

static bool may_receive(const struct qp *qp)
{
	return qp->state == UW_QPS_RTR || qp->state == UW_QPS_RTS || qp->state == UW_QPS_SQD;
}

static struct uw_wc wc_of(const struct roce_packet *p, uint32_t octets)
{
	struct uw_wc wc = { .opcode = UW_WC_RECV, .byte_len = octets, .wc_flags = WC_GRH };

	if (p->op->imm) {
		wc.wc_flags |= UW_WC_WITH_IMM;
		wc.imm_or_inv = p->imm_be;
	}
	if (p->op->transport == ROCE_UD) {
		wc.src_qp = p->deth.src_qp;
		wc.sl = uw_ip_is_v4(&p->dst) ? SL_UDP_IP4 : SL_UDP_IP6;
		wc.slid = uw_ip_is_v4(&p->src) ? uw_be16(p->src.b + 14) : 0;
	}
	return wc;
}

/* The receive that was taken cannot be used: it fails, and so does the QP. */
static uw_status receive_failed(struct roce_qp *r, uw_status st)
{
	struct uw_wc wc = { .status = uw_status_wc(st), .vendor_err = st, .opcode = UW_WC_RECV };

	r->has_recv = r->qp->rd.recv_open = false;
	qp_received(r->qp, &wc, false);
	return st;
}

/* ---- UD ---------------------------------------------------------------------------------- */

/* What does not fit is dropped and takes no receive: anybody may send, and must not cost the
 * program its receives (IBA §9.8.3.2.2 leaves it to us). */
static bool take_fitting(struct roce_qp *r, const struct roce_packet *p, struct mem_sgl *sgl)
{
	struct uw_stats *stats = r->qp->stats;

	switch (qp_take_receive(r->qp, ROCE_GRH + (uint64_t)p->payload.len, sgl)) {
	case UW_OK:
		return true;
	case UW_E_LEN:
		stats->roce_rx_too_long++;
		return false;
	default:
		stats->roce_rx_no_receive++;
		return false;
	}
}

static uw_status scatter_datagram(const struct roce_qp *r, const struct mem_sgl *sgl,
				  const struct roce_packet *p)
{
	uint8_t grh[ROCE_GRH];
	struct uw_span s = { grh, sizeof(grh) };
	uw_status st;

	roce_packet_grh(p, r->infiniband, grh);
	st = mem_scatter(r->qp->mem, sgl, 0, uw_rope_of(&s));
	return st || !p->payload.len ? st : mem_scatter(r->qp->mem, sgl, ROCE_GRH, p->payload);
}

static uw_status rx_ud(struct roce_qp *r, const struct roce_packet *p)
{
	struct mem_sgl sgl;
	struct uw_wc wc;
	uw_status st;

	if (p->deth.qkey != r->qkey) { /* IBA §9.6.1.4.1 */
		r->qp->stats->roce_rx_bad_qkey++;
		return UW_OK;
	}
	if (!take_fitting(r, p, &sgl))
		return UW_OK;
	st = scatter_datagram(r, &sgl, p);
	if (st)
		return receive_failed(r, st);
	wc = wc_of(p, ROCE_GRH + p->payload.len);
	qp_received(r->qp, &wc, p->bth.solicited);
	return UW_OK;
}

/* ---- UC ---------------------------------------------------------------------------------- */

/* The rest of the message will be dropped; the next one begins with its first packet (IBA
 * §9.8.2.2). A receive that was taken for it is kept for that one. */
static uw_status drop_message(struct roce_qp *r, uint64_t *counter)
{
	r->open = ROCE_NO_MESSAGE;
	++*counter;
	return UW_OK;
}

/* False: there is no receive. */
static bool take_receive(struct roce_qp *r)
{
	if (!r->has_recv)
		r->has_recv = !qp_take_receive(r->qp, 0, &r->sgl);
	r->qp->rd.recv_open = r->has_recv && r->qp->shared_rq;
	return r->has_recv;
}

static uw_status deliver(struct roce_qp *r, const struct roce_packet *p, uint32_t opcode)
{
	struct uw_wc wc = wc_of(p, r->got);

	wc.opcode = opcode;
	wc.src_qp = r->dest_qpn;
	r->has_recv = r->qp->rd.recv_open = false;
	r->open = ROCE_NO_MESSAGE;
	qp_received(r->qp, &wc, p->bth.solicited);
	return UW_OK;
}

static uw_status rx_send(struct roce_qp *r, const struct roce_packet *p)
{
	struct uw_stats *stats = r->qp->stats;
	uw_status st = UW_OK;

	if (p->op->first && !take_receive(r))
		return drop_message(r, &stats->roce_rx_no_receive);
	if (r->got + (uint64_t)p->payload.len > r->sgl.len)
		return receive_failed(r, UW_E_LEN);
	if (p->payload.len)
		st = mem_scatter(r->qp->mem, &r->sgl, r->got, p->payload);
	if (st)
		return receive_failed(r, st);
	r->got += p->payload.len;
	return p->op->last ? deliver(r, p, UW_WC_RECV) : UW_OK;
}

/* Looked up for every packet: the region may be gone meanwhile. */
static bool place(const struct roce_qp *r, struct uw_rope in)
{
	const struct qp *qp = r->qp;
	struct mem_access a = { .stag = r->target.rkey,
				.pd = qp->pd,
				.stream = qp->num,
				.to = r->target.va + r->got,
				.len = in.len,
				.need = UW_ACCESS_REMOTE_WRITE };
	uint8_t *va;

	if (!in.len)
		return true;
	if (!(qp->rd.remote_rights & UW_ACCESS_REMOTE_WRITE) || mem_check(qp->mem, &a, &va))
		return false;
	return !va || uw_rope_place(in, va, in.len);
}

/* IBA §9.7.4.1.5 (for UC too): the packets' lengths add up to that of the RETH. */
static bool lengths_agree(const struct roce_qp *r, const struct roce_packet *p)
{
	uint64_t end = r->got + (uint64_t)p->payload.len;

	return p->op->last ? end == r->target.length : end < r->target.length;
}

static uw_status rx_write(struct roce_qp *r, const struct roce_packet *p)
{
	struct uw_stats *stats = r->qp->stats;

	if (p->op->first)
		r->target = p->reth;
	if (!lengths_agree(r, p) || !place(r, p->payload))
		return drop_message(r, &stats->roce_rx_refused);
	r->got += p->payload.len;
	if (!p->op->last)
		return UW_OK;
	r->open = ROCE_NO_MESSAGE;
	if (!p->op->imm)
		return UW_OK;
	if (!take_receive(r))
		return drop_message(r, &stats->roce_rx_no_receive);
	return deliver(r, p, UW_WC_RECV_RDMA_WITH_IMM);
}

/* IBA §9.8.2.2: the first packet of a message is taken at any PSN, and ends the message before it.
 * Any other one must be the next of its message. */
static bool is_next(const struct roce_qp *r, const struct roce_packet *p)
{
	if (p->op->first)
		return true;
	return r->open == (p->op->write ? ROCE_WRITE : ROCE_SEND) && p->bth.psn == r->expected;
}

static uw_status rx_uc(struct roce_qp *r, const struct roce_packet *p)
{
	struct uw_stats *stats = r->qp->stats;

	if (!is_next(r, p))
		return drop_message(r, &stats->roce_rx_lost);
	if (p->op->first) {
		stats->roce_rx_lost += r->open != ROCE_NO_MESSAGE;
		r->open = p->op->write ? ROCE_WRITE : ROCE_SEND;
		r->got = 0;
	}
	r->expected = (p->bth.psn + 1) & ROCE_PSN_MASK;
	return p->op->write ? rx_write(r, p) : rx_send(r, p);
}

/* ------------------------------------------------------------------------------------------- */

/* IBA §9.6.1.2, §9.6.1.3: the QP's transport and state; UC: its peer. */
static bool is_meant(const struct roce_qp *r, const struct roce_packet *p)
{
	if (!may_receive(r->qp) || p->op->transport != r->transport)
		return false;
	return r->transport == ROCE_UD || uw_ip_eq(&p->src, &r->path.dst);
}

uw_status roce_rx(struct roce_qp *r, const struct roce_packet *p)
{
	struct uw_stats *stats = r->qp->stats;

	if (!is_meant(r, p)) {
		stats->roce_rx_no_qp++;
		return UW_OK;
	}
	stats->roce_rx_packets++;
	stats->payload_rx_bytes += p->payload.len;
	return r->transport == ROCE_UD ? rx_ud(r, p) : rx_uc(r, p);
}

void roce_rx_forget(struct roce_qp *r)
{
	r->has_recv = false;
	r->open = ROCE_NO_MESSAGE;
	r->sent = 0;
}
