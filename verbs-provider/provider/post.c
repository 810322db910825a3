/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: the verbs' linked lists become arrays on the stack, one doorbell per array. */
#include "provider.h"

#define BATCH 64u /* posted together they share segments and a doorbell */

/* False: it names no window or no address handle, or cannot be said in this form. */
static bool fill_send(struct uw_send_wr *to, const struct ibv_send_wr *from)
{
	to->wr_id = from->wr_id;
	to->sg_list = (const struct uw_sge *)from->sg_list;
	to->num_sge = (uint32_t)from->num_sge;
	to->opcode = from->opcode;
	to->flags = from->send_flags;
	to->imm_or_inv = from->imm_data;
	switch ((unsigned)from->opcode) {
	case IBV_WR_BIND_MW:
		return uwarp_fill_bind(to, from->bind_mw.mw, from->bind_mw.rkey,
				       &from->bind_mw.bind_info);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->remote_addr = from->wr.atomic.remote_addr;
		to->rkey = from->wr.atomic.rkey;
		to->compare_add = from->wr.atomic.compare_add;
		to->swap = from->wr.atomic.swap;
		break;
	case UW_WR_FLUSH: /* by ibv_wr_*() only */
	case UW_WR_ATOMIC_WRITE:
		return false;
	default:
		to->remote_addr = from->wr.rdma.remote_addr;
		to->rkey = from->wr.rdma.rkey;
		to->compare_add = to->swap = 0;
	}
	return true;
}

static void fill_recv(struct uw_recv_wr *to, const struct ibv_recv_wr *from)
{
	to->wr_id = from->wr_id;
	to->sg_list = (const struct uw_sge *)from->sg_list;
	to->num_sge = (uint32_t)from->num_sge;
}

/* Other requests have another address where the AH would be. */
static bool names_ah(const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM) && wr->wr.ud.ah;
}

static bool fill_datagram(struct uw_send_wr *to, const struct ibv_send_wr *from)
{
	if (!names_ah(from))
		return false;
	to->wr_id = from->wr_id;
	to->sg_list = (const struct uw_sge *)from->sg_list;
	to->num_sge = (uint32_t)from->num_sge;
	to->opcode = from->opcode;
	to->flags = from->send_flags;
	to->imm_or_inv = from->imm_data;
	uwarp_fill_to(to, from->wr.ud.ah, from->wr.ud.remote_qpn, from->wr.ud.remote_qkey);
	return true;
}

typedef bool fill_fn(struct uw_send_wr *to, const struct ibv_send_wr *from);

__attribute__((always_inline)) static inline int post_send(struct uwarp_qp *qp,
							   struct ibv_send_wr *wr,
							   struct ibv_send_wr **bad, fill_fn *fill)
{
	struct uw_send_wr batch[BATCH];

	while (wr) {
		struct ibv_send_wr *first = wr;
		unsigned n = 0, done = 0;
		int rc = 0;

		for (; wr && n < BATCH && fill(&batch[n], wr); wr = wr->next)
			n++;
		if (n)
			rc = qp->api->post_send(qp->uw, batch, n, &done);
		if (!rc && wr && n < BATCH) /* a bad one behind the good ones */
			rc = -EINVAL;
		if (rc) {
			while (done--)
				first = first->next;
			*bad = first;
			errno = -rc;
			return -rc;
		}
	}
	return 0;
}

int uwarp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct uwarp_qp *qp = to_uwarp_qp(ibqp);

	return qp->is_ud ? post_send(qp, wr, bad, fill_datagram)
			 : post_send(qp, wr, bad, fill_send);
}

/* Take up to BATCH requests off the list; returns the rest of it. */
static struct ibv_recv_wr *take_recv(struct ibv_recv_wr *wr, struct uw_recv_wr *batch, unsigned *n)
{
	for (*n = 0; wr && *n < BATCH; wr = wr->next)
		fill_recv(&batch[(*n)++], wr);
	return wr;
}

static int refused_recv(struct ibv_recv_wr *first, unsigned done, int rc, struct ibv_recv_wr **bad)
{
	while (done--)
		first = first->next;
	*bad = first;
	errno = -rc;
	return -rc;
}

int uwarp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uwarp_qp *qp = to_uwarp_qp(ibqp);
	struct uw_recv_wr batch[BATCH];

	while (wr) {
		struct ibv_recv_wr *first = wr;
		unsigned n, done = 0;
		int rc;

		if (qp->is_reset)
			return refused_recv(first, 0, -EINVAL, bad);
		wr = take_recv(wr, batch, &n);
		rc = qp->api->post_recv(qp->uw, batch, n, &done);
		if (rc)
			return refused_recv(first, done, rc, bad);
	}
	return 0;
}

int uwarp_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uwarp_srq *srq = to_uwarp_srq(ibsrq);
	struct uw_recv_wr batch[BATCH];

	while (wr) {
		struct ibv_recv_wr *first = wr;
		unsigned n, done = 0;
		int rc;

		wr = take_recv(wr, batch, &n);
		rc = srq->api->srq_post_recv(srq->uw, batch, n, &done);
		if (rc)
			return refused_recv(first, done, rc, bad);
	}
	return 0;
}
