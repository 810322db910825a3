/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP's octets: TCP to stream, stream to TCP. */
#include <endian.h>

#include "qp/qp.h"

#define PART_LEAST 128u /* octets of a ULPDU */

/* ---- receive ----------------------------------------------------------------------------- */

uw_status qp_rx(struct qp *qp, struct uw_rope in, size_t *consumed)
{
	uw_status st = UW_OK;

	*consumed = 0;
	qp->rnr = false;
	while (in.len && qp->on) {
		struct uw_rope ulpdu = { 0 };
		size_t used;

		st = mpa_rx_next(&qp->mrx, in, &ulpdu, &used);
		if (st == UW_MORE)
			return UW_OK;
		if (!st) {
			qp->gated = false; /* RFC 5044 §7.1.2: one valid FPDU opens our half */
			st = rdmap_rx(&qp->rd, ulpdu);
		}
		if (st == UW_MORE) { /* no receive for this Send, or a FLUSH under way */
			mpa_rx_put_back(&qp->mrx, ulpdu, used);
			qp->rnr = true;
			return UW_OK;
		}
		if (st) {
			/* Not the fault of the request that is going out. */
			qp->sending_sq = false;
			qp_fail(qp, st);
			break;
		}
		*consumed += used;
		in = uw_rope_sub(in, used, in.len - used);
	}
	/* RFC 5041 §7.1: after an error whatever else comes is dropped silently. */
	if (!qp->on)
		*consumed += in.len;
	return st;
}

/* ---- transmit ---------------------------------------------------------------------------- */

/* ---- one function for each opcode. UW_MORE: ORD reads are outstanding. ---- */

struct request {
	struct qp *qp;
	struct sqe *e;
	struct mem_sgl sgl;
	bool solicited;
};

static uw_status start_send(const struct request *r)
{
	rdmap_send(&r->qp->rd, r->solicited ? RDMAP_SEND_SE : RDMAP_SEND, &r->sgl, 0);
	return UW_OK;
}

static uw_status start_send_inv(const struct request *r)
{
	rdmap_send(&r->qp->rd, r->solicited ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV, &r->sgl,
		   r->e->imm_or_inv);
	return UW_OK;
}

static uw_status start_send_imm(const struct request *r)
{
	rdmap_send_imm(&r->qp->rd, &r->sgl, r->e->imm_or_inv, r->solicited);
	return UW_OK;
}

static uw_status start_write(const struct request *r)
{
	rdmap_write(&r->qp->rd, &r->sgl, r->e->rkey, r->e->remote_addr);
	return UW_OK;
}

/* RFC 7306 §6: two messages, the Write and then its Immediate Data. */
static uw_status start_write_imm(const struct request *r)
{
	if (!r->e->written)
		return start_write(r);
	rdmap_imm(&r->qp->rd, r->e->imm_or_inv, r->solicited);
	return UW_OK;
}

static uw_status start_read(const struct request *r)
{
	return rdmap_read(&r->qp->rd, &r->sgl, r->e->rkey, r->e->remote_addr);
}

/* RFC 7306 §5.1: without masks, FetchAdd has none and CmpSwap has both full. */
static uw_status start_fetch_add(const struct request *r)
{
	struct rdmap_atomic a = { .aop = RDMAP_FETCH_ADD,
				  .stag = r->e->rkey,
				  .to = r->e->remote_addr,
				  .add_swap = r->e->compare_add,
				  .compare_mask = UINT64_MAX };

	return rdmap_atomic(&r->qp->rd, &r->sgl, &a);
}

static uw_status start_cmp_swap(const struct request *r)
{
	struct rdmap_atomic a = { .aop = RDMAP_CMP_SWAP,
				  .stag = r->e->rkey,
				  .to = r->e->remote_addr,
				  .add_swap = r->e->swap,
				  .add_swap_mask = UINT64_MAX,
				  .compare = r->e->compare_add,
				  .compare_mask = UINT64_MAX };

	return rdmap_atomic(&r->qp->rd, &r->sgl, &a);
}

/* doc/adr/0033; the value's octets go as they are in memory. */
static uw_status start_atomic_write(const struct request *r)
{
	struct rdmap_atomic a = { .aop = RDMAP_ATOMIC_WRITE,
				  .stag = r->e->rkey,
				  .to = r->e->remote_addr,
				  .add_swap = be64toh(r->e->compare_add) };

	return rdmap_atomic(&r->qp->rd, &r->sgl, &a);
}

static uw_status start_flush(const struct request *r)
{
	struct rdmap_atomic a = { .aop = RDMAP_FLUSH,
				  .stag = r->e->rkey,
				  .to = r->e->remote_addr,
				  .add_swap = r->e->compare_add,
				  .add_swap_mask = r->e->swap & 0xff };

	if (r->e->swap == UW_FLUSH_WISH(a.add_swap_mask, UW_FLUSH_MR))
		a.add_swap_mask |= RDMAP_FLUSH_REGION;
	return rdmap_atomic(&r->qp->rd, &r->sgl, &a);
}

static uw_status (*const starters[])(const struct request *r) = {
	[UW_WR_RDMA_WRITE] = start_write,
	[UW_WR_RDMA_WRITE_WITH_IMM] = start_write_imm,
	[UW_WR_SEND] = start_send,
	[UW_WR_SEND_WITH_IMM] = start_send_imm,
	[UW_WR_RDMA_READ] = start_read,
	[UW_WR_ATOMIC_CMP_AND_SWP] = start_cmp_swap,
	[UW_WR_ATOMIC_FETCH_AND_ADD] = start_fetch_add,
	[UW_WR_SEND_WITH_INV] = start_send_inv,
	[UW_WR_FLUSH] = start_flush,
	[UW_WR_ATOMIC_WRITE] = start_atomic_write,
};

/* Start the request at sq.tx. UW_MORE: it has to wait (fence, ORD). */
static uw_status start_request(struct qp *qp)
{
	struct sqe *e = sq_at(&qp->sq, qp->sq.tx);
	struct request r = {
		.qp = qp,
		.e = e,
		.sgl = { .v = sqe_sge(e), .n = e->num_sge, .pd = qp->pd, .len = e->length },
		.solicited = e->flags & UW_SEND_SOLICITED,
	};
	uw_status st;

	/* RFC 5040 §5.2: reads may be overtaken; the fence says not here. */
	if ((e->flags & UW_SEND_FENCE) && qp->rd.orq.count)
		return UW_MORE;
	if (e->flags & UW_SEND_INLINE)
		r.sgl.inl = sqe_inline(e);
	st = starters[e->opcode](&r);
	qp->sending_sq = st != UW_MORE; /* also if it fails: it is the one to blame */
	return st;
}

/* SQD of a named QP begins nothing new; an Immediate Data behind its Write is not new. */
static bool may_begin(const struct qp *qp)
{
	return qp->state == UW_QPS_RTS || (qp->state == UW_QPS_SQD && !qp->cm_less) ||
	       (qp->state == UW_QPS_SQD && sq_at(&qp->sq, qp->sq.tx)->written);
}

/* ---- requests that send nothing ---- */

static uw_status bind_window(struct qp *qp, const struct sqe *e)
{
	const struct mem_bind b = { .stag = e->rkey,
				    .parent = e->imm_or_inv,
				    .addr = e->remote_addr,
				    .len = e->swap,
				    .rights = (unsigned)e->compare_add,
				    .pd = qp->pd,
				    .stream = qp->num };

	return mem_bind(qp->mem, &b);
}

/* Carry out those that are next, in their order; the fence holds for them as well. */
static void do_local(struct qp *qp)
{
	while (qp->on && rdmap_tx_idle(&qp->rd) && sq_ready(&qp->sq) && may_begin(qp)) {
		struct sqe *e = sq_at(&qp->sq, qp->sq.tx);
		uw_status st;

		if (!sqe_is_local(e) || ((e->flags & UW_SEND_FENCE) && qp->rd.orq.count))
			return;
		st = e->opcode == UW_WR_BIND_MW
			     ? bind_window(qp, e)
			     : mem_invalidate(qp->mem, e->imm_or_inv, qp->pd, qp->num);
		qp->sending_sq = true;
		if (st) {
			qp_fail(qp, st);
			return;
		}
		qp_sent(qp);
		qp_reap(qp);
	}
}

static bool is_local_next(const struct qp *qp)
{
	return sq_ready(&qp->sq) && sqe_is_local(sq_at(&qp->sq, qp->sq.tx));
}

/* Make a message current if there is one that may go. */
static bool next_message(struct qp *qp)
{
	uw_status st = UW_MORE;
	bool due, ready;

	if (!rdmap_tx_idle(&qp->rd))
		return true;
	if (!qp->on)
		return false;
	due = rdmap_response_due(&qp->rd);
	ready = sq_ready(&qp->sq) && may_begin(qp) && !sqe_is_local(sq_at(&qp->sq, qp->sq.tx));
	/* Take turns, so that neither direction of reading starves the other. */
	if (ready && !(due && qp->respond_next))
		st = start_request(qp);
	if (!st) {
		qp->respond_next = true;
		return true;
	}
	if (st != UW_MORE) {
		qp_fail(qp, st);
		return !rdmap_tx_idle(&qp->rd); /* its Terminate */
	}
	if (!due)
		return false;
	rdmap_respond(&qp->rd);
	qp->respond_next = false;
	return true;
}

/* Asked after every segment, and mostly so. */
static bool has_nothing(const struct qp *qp)
{
	return rdmap_tx_idle(&qp->rd) && !sq_ready(&qp->sq) && !rdmap_response_due(&qp->rd);
}

bool qp_tx_prepare(struct qp *qp)
{
	if (has_nothing(qp))
		return false;
	if (is_local_next(qp))
		do_local(qp);
	return !qp->gated && next_message(qp);
}

bool qp_tx_empty_write(struct qp *qp)
{
	if (qp->state != UW_QPS_RTS || qp->gated || next_message(qp))
		return false;
	rdmap_rtr(&qp->rd, RDMAP_RTR_WRITE);
	return true;
}

void qp_open_gate(struct qp *qp)
{
	qp->gated = false;
}

static bool is_last(const struct qp *qp)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);

	return !rdmap_response_due(&qp->rd) && tail - qp->sq.tx == qp->sending_sq;
}

size_t qp_tx_segments(const struct qp *qp, size_t each)
{
	const struct ddp_msg *m = &qp->rd.tx.msg;
	size_t head = ddp_hdr_size(m->hdr.tagged), fit = mpa_tx_fit(&qp->mtx, each);

	if (rdmap_tx_idle(&qp->rd) || !is_last(qp) || fit <= head)
		return 0;
	return (m->left + fit - head - 1) / (fit - head);
}

static bool fits(const struct qp *qp, size_t fit)
{
	const struct ddp_msg *m = &qp->rd.tx.msg;

	return ddp_hdr_size(m->hdr.tagged) + m->left <= fit;
}

/* May the current message go behind what is in the segment already? Whole; or its beginning, if it
 * takes several segments anyhow, and this is no small part of one. A smaller one that is cut would
 * gain nothing. Where segments go together (several), only full ones do, so that it pays sooner. */
static bool goes_behind(const struct qp *qp, size_t fit, size_t room, bool several)
{
	size_t least = several ? PART_LEAST : room / 4;

	return fits(qp, fit) || (fit >= least && !fits(qp, mpa_tx_fit(&qp->mtx, room)));
}

size_t qp_tx_many(struct qp *qp, uint8_t *out, size_t room, size_t each)
{
	size_t at = 0, begin = 0;

	while (at < room && qp_tx_prepare(qp)) {
		size_t fit = mpa_tx_fit(&qp->mtx, begin + each - at), n;
		uw_status st;

		/* A message of headers alone is one segment: the peer takes no other. */
		bool whole = qp->rd.tx.source == RDMAP_FROM_BYTES;

		if (fit <= DDP_HDR_MAX || (whole && !fits(qp, fit)) ||
		    (at > begin && !goes_behind(qp, fit, each, room > each)))
			break;
		st = rdmap_tx_segment(&qp->rd, mpa_tx_ulpdu(out + at), fit, &n);
		if (st) {
			qp_fail(qp, st);
			continue; /* its Terminate is next */
		}
		n = mpa_tx_finish(&qp->mtx, out + at, n);
		at += n;
		begin = at == begin + each ? at : begin;
		qp->out += (uint32_t)n;
		if (rdmap_tx_idle(&qp->rd) && qp->sending_sq)
			qp_sent(qp);
	}
	qp_reap(qp);
	return at;
}

size_t qp_tx(struct qp *qp, uint8_t *out, size_t room)
{
	return qp_tx_many(qp, out, room, room);
}
