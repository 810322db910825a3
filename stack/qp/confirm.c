/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that wait for the peer's TCP (doc/adr/0014): which of them the acknowledgements cover,
 * and which of them a Terminate is about.
 */
#include "qp/qp.h"

static bool after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static uint32_t oldest(const struct qp *qp)
{
	return atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

bool qp_acked(struct qp *qp, uint32_t in_flight)
{
	uint32_t acked = qp->out - in_flight;

	if (after(acked, qp->acked))
		qp->acked = acked;
	return qp->confirmed && qp->unacked != qp->sq.tx;
}

/* Everything before `upto` that has no answer to wait for is done. */
static void complete_before(struct qp *qp, uint32_t upto)
{
	for (; qp->unacked != upto; qp->unacked++) {
		struct sqe *e = sq_at(&qp->sq, qp->unacked);

		if (!sqe_is_answered(e))
			e->done = 1;
	}
	qp_reap(qp);
}

void qp_complete_acked(struct qp *qp)
{
	uint32_t i = qp->unacked;

	while (i != qp->sq.tx && !after(sq_at(&qp->sq, i)->end, qp->acked))
		i++;
	if (i != qp->unacked)
		complete_before(qp, i);
}

/* ---- a Terminate's request --------------------------------------------------------------- */

/* Requests that have sent something: the one in transmission, too. */
static uint32_t begun(const struct qp *qp)
{
	return qp->sq.tx + qp->sending_sq;
}

static bool writes_there(const struct sqe *e, const struct ddp_hdr *h)
{
	return (e->opcode == UW_WR_RDMA_WRITE || e->opcode == UW_WR_RDMA_WRITE_WITH_IMM) &&
	       e->rkey == h->stag && h->to - e->remote_addr <= e->length;
}

static bool find_write(const struct qp *qp, const struct ddp_hdr *h, uint32_t *at)
{
	for (*at = qp->unacked; *at != begun(qp); ++*at) {
		if (writes_there(sq_at(&qp->sq, *at), h))
			return true;
	}
	return false;
}

/* It has taken a number of the Send queue (RFC 5040 §5.1; an Immediate Data does, RFC 7306 §6). */
static bool is_numbered(const struct qp *qp, uint32_t i)
{
	const struct sqe *e = sq_at(&qp->sq, i);

	if (e->opcode == UW_WR_RDMA_WRITE_WITH_IMM)
		return e->written;
	return !sqe_is_local(e) && !sqe_is_answered(e) && e->opcode != UW_WR_RDMA_WRITE;
}

/* From the last one, whose number is known, backwards. */
static bool find_send(const struct qp *qp, uint32_t msn, uint32_t *at)
{
	uint32_t n = qp->rd.ddp.tx_msn[RDMAP_QN_SEND];

	for (*at = begun(qp); *at != qp->unacked;) {
		--*at;
		if (is_numbered(qp, *at) && --n == msn)
			return true;
	}
	return false;
}

/* The first that may have met the receive that is at fault. */
static bool find_first_send(const struct qp *qp, uint32_t *at)
{
	for (*at = qp->unacked; *at != begun(qp); ++*at) {
		if (is_numbered(qp, *at))
			return true;
	}
	return false;
}

/* False: the Terminate brings no header of a segment, or none that can be read. */
static bool header_of(const struct rdmap_term *t, struct ddp_hdr *h)
{
	return t->has_ddp && !ddp_hdr_decode((struct uw_span){ t->ddp_hdr, t->ddp_hdr_len }, h);
}

static bool find_blamed(const struct qp *qp, const struct rdmap_term *t, uint32_t *at)
{
	struct ddp_hdr h;

	if (rdmap_is_local(t))
		return find_first_send(qp, at);
	if (!header_of(t, &h))
		return false;
	return h.tagged ? find_write(qp, &h, at)
			: h.qn == RDMAP_QN_SEND && find_send(qp, h.msn, at);
}

/* Without qp->confirmed the Send or Write that the Terminate names has nearly always completed, as
 * our TCP has taken it. Nothing behind it is carried out any more (RFC 5041 §7.1), for the same
 * reason: so the first Send or Write that has not completed fails with it. NULL: there is none, or
 * the Terminate is not about a Send or a Write. */
static struct sqe *first_behind(const struct qp *qp, const struct rdmap_term *t)
{
	struct ddp_hdr h;

	if (qp->confirmed || !header_of(t, &h))
		return NULL;
	if (h.tagged ? rdmap_ctrl_opcode(h.rsvd_ulp) != RDMAP_WRITE : h.qn != RDMAP_QN_SEND)
		return NULL;
	for (uint32_t i = oldest(qp); i != atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	     i++) {
		struct sqe *e = sq_at(&qp->sq, i);

		if (!e->done && !sqe_is_answered(e) && !sqe_is_local(e))
			return e;
	}
	return NULL;
}

struct sqe *qp_blamed(struct qp *qp, const struct rdmap_term *t)
{
	uint32_t i;

	if (!find_blamed(qp, t, &i))
		return first_behind(qp, t);
	complete_before(qp, i);
	return sq_at(&qp->sq, i);
}
