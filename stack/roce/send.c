/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "roce/qp.h"

#define BIT(op) (1u << UW_WR_##op)

uint32_t roce_refused_ops(enum roce_transport t)
{
	uint32_t sends = BIT(SEND) | BIT(SEND_WITH_IMM);

	return ~(t == ROCE_UD ? sends : sends | BIT(RDMA_WRITE) | BIT(RDMA_WRITE_WITH_IMM));
}

/* ---- address handles --------------------------------------------------------------------- */

enum { TOS_AT = 24, HOPS_AT = 32, SOURCE_AT = 40 };

struct roce_to roce_to_of(const struct sqe *e)
{
	struct roce_to to = { .qpn = (uint32_t)e->remote_addr & ROCE_QPN_MASK,
			      .tos = (uint8_t)(e->remote_addr >> TOS_AT),
			      .hops = (uint8_t)(e->remote_addr >> HOPS_AT),
			      .source = (uint8_t)(e->remote_addr >> SOURCE_AT) };

	memcpy(to.dst.b, &e->compare_add, 8);
	memcpy(to.dst.b + 8, &e->swap, 8);
	return to;
}

void roce_to_pack(const struct roce_to *to, uint64_t *how, uint64_t dst[2])
{
	*how = (uint64_t)to->tos << TOS_AT | (uint64_t)to->hops << HOPS_AT |
	       (uint64_t)to->source << SOURCE_AT;
	memcpy(dst, to->dst.b, sizeof(to->dst.b));
}

/* ---- packets ----------------------------------------------------------------------------- */

/* IBA §10.3.1: SQD begins no message, and ends the one that was begun. */
bool roce_tx_ready(const struct roce_qp *r)
{
	const struct qp *qp = r->qp;

	return qp->state == UW_QPS_RTS ? sq_ready(&qp->sq)
				       : qp->state == UW_QPS_SQD && qp->sending_sq;
}

const struct sqe *roce_tx_next(const struct roce_qp *r)
{
	return sq_at(&r->qp->sq, r->qp->sq.tx);
}

static bool is_write(const struct sqe *e)
{
	return e->opcode == UW_WR_RDMA_WRITE || e->opcode == UW_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(const struct sqe *e)
{
	return e->opcode == UW_WR_SEND_WITH_IMM || e->opcode == UW_WR_RDMA_WRITE_WITH_IMM;
}

static struct mem_sgl sgl_of(const struct qp *qp, struct sqe *e)
{
	struct mem_sgl sgl = { .v = sqe_sge(e), .n = e->num_sge, .pd = qp->pd, .len = e->length };

	if (e->flags & UW_SEND_INLINE)
		sgl.inl = sqe_inline(e);
	return sgl;
}

/* IBA §10.2.5: a Q_Key whose highest bit is set stands for that of the QP. */
static uint32_t qkey_of(const struct roce_qp *r, const struct sqe *e)
{
	return e->rkey & ROCE_OWN_QKEY ? r->qkey : e->rkey;
}

/* IBA §9.8.2.1: all packets of a message but the last are full. Immediate data and SE are the last
 * one's; SE only where the receiver completes something. */
static struct roce_head head_of(const struct roce_qp *r, const struct sqe *e, size_t n)
{
	bool last = r->sent + n == e->length, ud = r->transport == ROCE_UD;
	struct roce_head h = {
		.op = { .transport = r->transport,
			.write = is_write(e),
			.first = !r->sent,
			.last = last,
			.imm = last && has_imm(e) },
		.bth = { .pkey = ROCE_PKEY,
			 .solicited = last && (e->flags & UW_SEND_SOLICITED) &&
				      e->opcode != UW_WR_RDMA_WRITE,
			 .dest_qp = ud ? (uint32_t)e->remote_addr & ROCE_QPN_MASK : r->dest_qpn,
			 .psn = r->psn },
		.imm_be = e->imm_or_inv,
	};

	if (ud)
		h.deth = (struct roce_deth){ .qkey = qkey_of(r, e), .src_qp = r->qp->num };
	if (h.op.write)
		h.reth = (struct roce_reth){ e->remote_addr, e->rkey, (uint32_t)e->length };
	return h;
}

static size_t failed(struct roce_qp *r, uw_status st)
{
	r->sent = 0;
	qp_request_failed(r->qp, st);
	return 0;
}

/* The packet is made; perhaps its request is done. */
static void count(struct roce_qp *r, struct sqe *e, size_t n)
{
	struct qp *qp = r->qp;

	r->psn = (r->psn + 1) & ROCE_PSN_MASK;
	r->sent += n;
	qp->stats->roce_tx_packets++;
	qp->stats->payload_tx_bytes += n;
	qp->sending_sq = r->sent != e->length;
	if (qp->sending_sq)
		return;
	r->sent = 0;
	qp_request_sent(qp);
}

size_t roce_tx(struct roce_qp *r, const struct roce_path *path, uint8_t *out, size_t room)
{
	struct sqe *e = sq_at(&r->qp->sq, r->qp->sq.tx);
	struct mem_sgl sgl = sgl_of(r->qp, e);
	uint64_t left = e->length - r->sent;
	size_t n = left < r->mtu ? (size_t)left : r->mtu, total;
	struct roce_head h;
	uw_status st;

	/* IBA §9.8.3.1: a datagram is one packet */
	if (r->transport == ROCE_UD && left > r->mtu)
		return failed(r, UW_E_LEN);
	h = head_of(r, e, n);
	h.path = path;
	if (roce_head_size(&h) + n + ROCE_TAIL_MAX > room)
		return failed(r, UW_E_LEN);
	st = mem_gather(r->qp->mem, &sgl, r->sent, out + roce_head_size(&h), n);
	if (st)
		return failed(r, st);
	total = roce_packet_write(&h, out, n);
	count(r, e, n);
	return total;
}
