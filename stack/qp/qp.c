/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP's life: states, completions, flush. The stream's octets: qp/stream.c. */
#include "qp/qp.h"

#include <string.h>

static uint32_t wc_opcode(unsigned wr_opcode)
{
	static const uint32_t map[] = {
		[UW_WR_RDMA_WRITE] = UW_WC_RDMA_WRITE,
		[UW_WR_RDMA_WRITE_WITH_IMM] = UW_WC_RDMA_WRITE,
		[UW_WR_SEND] = UW_WC_SEND,
		[UW_WR_SEND_WITH_IMM] = UW_WC_SEND,
		[UW_WR_RDMA_READ] = UW_WC_RDMA_READ,
		[UW_WR_ATOMIC_CMP_AND_SWP] = UW_WC_COMP_SWAP,
		[UW_WR_ATOMIC_FETCH_AND_ADD] = UW_WC_FETCH_ADD,
		[UW_WR_LOCAL_INV] = UW_WC_LOCAL_INV,
		[UW_WR_BIND_MW] = UW_WC_BIND_MW,
		[UW_WR_SEND_WITH_INV] = UW_WC_SEND,
		[UW_WR_FLUSH] = UW_WC_FLUSH,
		[UW_WR_ATOMIC_WRITE] = UW_WC_ATOMIC_WRITE,
	};

	return map[wr_opcode];
}

static bool count(struct qp *qp, bool pushed)
{
	if (pushed)
		qp->stats->qp_completed++;
	else
		qp->stats->cq_overflows++;
	return pushed;
}

static uint32_t wc_status(uw_status st)
{
	return st ? uw_status_wc(st) : UW_WC_SUCCESS;
}

/* What the QP writes of every completion. */
static void fill_wc(const struct qp *qp, struct uw_wc *wc, uint64_t wr_id, uw_status st)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->status = wc_status(st);
	wc->vendor_err = st;
	wc->qp_num = qp->num;
}

static bool push_sent(struct qp *qp, const struct sqe *e, uw_status st, uint32_t upto)
{
	struct cqe *c = cq_begin(qp->scq);

	if (!c)
		return count(qp, false);
	fill_wc(qp, &c->wc, e->wr_id, st);
	c->wc.opcode = wc_opcode(e->opcode);
	c->wc.byte_len = (uint32_t)e->length;
	cq_end_sent(qp->scq, c, &qp->sq, upto);
	return count(qp, true);
}

/* RFC 5040 §5.5: completions in the order of posting, so a done request waits for older ones. */
void qp_reap(struct qp *qp)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	bool silent = false;

	while (head != tail) {
		const struct sqe *e = sq_at(&qp->sq, head);
		/* Behind one that failed all are flushed, those too that TCP took meanwhile. */
		uw_status st = qp->sq_failed && !e->status ? UW_E_FLUSHED : (uw_status)e->status;

		if (!e->done)
			break;
		qp->sq_failed = st != UW_OK;
		head++;
		if ((int32_t)(head - qp->sq.tx) > 0)
			qp->sq.tx = head;
		atomic_store_explicit(&qp->sq.head, head, memory_order_release);
		silent = !((st || (e->flags & UW_SEND_SIGNALED)) && push_sent(qp, e, st, head));
	}
	if ((int32_t)(head - qp->unacked) > 0) /* not behind by 2^31, ever */
		qp->unacked = head;
	if (silent) /* the last; what comes before a completion is free when that is polled */
		sq_free_unsignaled(&qp->sq);
}

static void complete(struct qp *qp, struct sqe *e, uw_status st)
{
	e->done = 1;
	e->status = (uint8_t)st;
	qp_reap(qp);
}

static void tell_delivery(struct uw_wc *wc, const struct rdmap_delivery *d)
{
	wc->byte_len = d->length;
	if (d->has_imm) {
		wc->wc_flags = UW_WC_WITH_IMM;
		wc->imm_or_inv = d->imm_be;
		if (d->write_imm)
			wc->opcode = UW_WC_RECV_RDMA_WITH_IMM;
	}
	if (d->invalidated) {
		wc->wc_flags = UW_WC_WITH_INV;
		wc->imm_or_inv = d->inv_stag;
	}
}

static void push_recv(struct qp *qp, uint64_t wr_id, uw_status st, const struct rdmap_delivery *d)
{
	struct cqe *c = cq_begin(qp->rcq);

	if (!c) {
		rq_free(qp->rq, 1); /* nobody will poll it */
		count(qp, false);
		return;
	}
	fill_wc(qp, &c->wc, wr_id, st);
	c->wc.opcode = UW_WC_RECV;
	if (d)
		tell_delivery(&c->wc, d);
	cq_end_received(qp->rcq, c, qp->rq, d && d->solicited);
	count(qp, true);
}

/* ---- what the RDMAP stream calls --------------------------------------------------------- */

static void raise_limit(struct qp *qp)
{
	if (!qp->rq->limit || rq_count(qp->rq) >= qp->rq->limit)
		return;
	qp->rq->limit = 0; /* one event per arming */
	if (qp->rq->limit_reached)
		qp->rq->limit_reached(qp->rq->ctx);
}

static uw_status take_first(struct qp *qp, struct mem_sgl *sgl)
{
	struct rqe *e = rq_first(qp->rq);

	if (!e)
		return qp->rnr_wait ? UW_MORE : UW_E_DDP_NO_BUFFER;
	*sgl = (struct mem_sgl){ .v = rqe_sge(e),
				 .n = e->num_sge,
				 .pd = qp->shared_rq ? qp->rq->pd : qp->pd,
				 .len = e->length };
	qp->taken_wr_id = e->wr_id;
	if (qp->shared_rq) {
		/* Other QPs go on taking: keep what this one needs and let the slot go. */
		memcpy(qp->taken, rqe_sge(e), e->num_sge * sizeof(struct uw_sge));
		sgl->v = qp->taken;
		rq_drop(qp->rq);
		raise_limit(qp);
	}
	return UW_OK;
}

static uw_status recv_take(void *arg, struct mem_sgl *sgl)
{
	struct qp *qp = arg;
	uw_status st;

	if (!qp->shared_rq || !qp->guard)
		return take_first(qp, sgl);
	qp->guard(qp->rq, true);
	st = take_first(qp, sgl);
	qp->guard(qp->rq, false);
	return st;
}

static void recv_done(void *arg, const struct rdmap_delivery *d)
{
	struct qp *qp = arg;

	/* An answer may bring the ACK of its question: first things first. */
	qp_complete_acked(qp);
	if (!qp->shared_rq)
		rq_drop(qp->rq);
	push_recv(qp, qp->taken_wr_id, UW_OK, d);
}

static struct sqe *read_after(struct qp *qp, unsigned n)
{
	for (uint32_t i = atomic_load_explicit(&qp->sq.head, memory_order_relaxed); i != qp->sq.tx;
	     i++) {
		struct sqe *e = sq_at(&qp->sq, i);

		if (sqe_is_answered(e) && !e->done && !n--)
			return e;
	}
	return NULL;
}

static struct sqe *oldest_read(struct qp *qp)
{
	return read_after(qp, 0);
}

static void read_done(void *arg)
{
	struct qp *qp = arg;
	struct sqe *e = oldest_read(qp);

	qp_complete_acked(qp);
	if (e)
		complete(qp, e, UW_OK);
}

/* RFC 5040 §4.8: the header that comes along tells what the Terminate is about. */
static bool about_read(const struct rdmap_term *t)
{
	unsigned opcode = rdmap_ctrl_opcode(t->ddp_hdr[1]);

	if (!t->has_ddp)
		return t->layer == 0 && t->etype == 1;
	return opcode == RDMAP_READ_REQUEST || opcode == RDMAP_ATOMIC_REQUEST;
}

/* RFC 7306 §8.2 has the code of a stream's catastrophe for an address that is not aligned. Whoever
 * asked knows it, and InfiniBand's NAK for it is that of an invalid request. */
static uw_status why(const struct sqe *e, const struct rdmap_term *t)
{
	const unsigned aligned = 1u << UW_WR_ATOMIC_CMP_AND_SWP | 1u << UW_WR_ATOMIC_FETCH_AND_ADD |
				 1u << UW_WR_ATOMIC_WRITE;
	uw_status st;

	if (rdmap_is_local(t))
		return UW_E_TERMINATED;
	st = uw_status_from_term(t->layer, t->etype, t->code);
	if (st == UW_E_RDMAP_STREAM_CATASTROPHIC && (aligned >> e->opcode & 1) &&
	    e->remote_addr % 8)
		return UW_E_MISALIGNED;
	return st;
}

/* A Terminate names the request that is to blame. One whose completion is out cannot fail any more:
 * see qp_blamed. */
static void terminated(void *arg, const struct rdmap_term *t)
{
	struct qp *qp = arg;
	struct sqe *e = about_read(t) ? read_after(qp, rdmap_blamed(&qp->rd, t)) : NULL;

	qp->peer_term = *t;
	if (!e)
		e = qp_blamed(qp, t);
	if (e)
		complete(qp, e, why(e, t));
}

static uw_status persist(void *arg, void *va, uint64_t len)
{
	struct qp *qp = arg;

	if (qp->persist)
		return qp->persist(qp, va, len);
	return qp->mem->persist(va, len) ? UW_OK : UW_E_RDMAP_STREAM_CATASTROPHIC;
}

static const struct rdmap_ulp ulp = { recv_take, recv_done, read_done, terminated, persist };

/* ---- life -------------------------------------------------------------------------------- */

void qp_init(struct qp *qp, const struct qp_setup *s)
{
	qp->num = s->num;
	qp->pd = s->pd;
	qp->scq = s->scq;
	qp->rcq = s->rcq;
	qp->rq = s->srq ? s->srq : &qp->own_rq;
	qp->shared_rq = s->srq != NULL;
	qp->rnr_wait = s->rnr_wait;
	qp->stats = s->stats;
	qp->state = UW_QPS_RESET;
	qp->mem = s->mem;
	qp->guard = s->guard;
	qp->persist = s->persist;
	qp->rd.mem = s->mem;
	qp->rd.remote_rights = UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |
			       UW_ACCESS_REMOTE_ATOMIC | UW_ACCESS_FLUSH_GLOBAL |
			       UW_ACCESS_FLUSH_PERSISTENT;
}

void qp_move(struct qp *qp, struct uw_stats *stats)
{
	qp->stats = stats;
}

uw_status qp_start(struct qp *qp, const struct qp_stream *s)
{
	const struct mem_table *mem = qp->rd.mem;
	unsigned rights = qp->rd.remote_rights;
	const struct mpa_agreed *a = s->agreed;

	if (qp->on || qp->state == UW_QPS_ERR)
		return UW_E_STATE;
	qp->mrx = (struct mpa_rx){
		.crc = a->crc, .markers = a->rx_markers, .scratch = s->scratch, .stats = qp->stats
	};
	qp->mtx = (struct mpa_tx){ .crc = a->crc, .markers = a->tx_markers, .stats = qp->stats };
	rdmap_stream_init(&qp->rd, &s->queues, qp->stats);
	qp->rd.mem = mem;
	qp->rd.pd = qp->pd;
	qp->rd.num = qp->num;
	qp->rd.remote_rights = rights;
	qp->rd.ulp = &ulp;
	qp->rd.ulp_arg = qp;
	qp->rd.rtr_send = !s->initiator && a->p2p && a->rtr == MPA_RTR_SEND;
	qp->gated = !s->initiator; /* RFC 5044 §7.1.2 */
	qp->rnr = qp->respond_next = qp->sending_sq = qp->fin_wanted = qp->sq_failed = false;
	qp->cause = UW_OK;
	qp->confirmed = s->confirmed;
	qp->out = qp->acked = 0;
	qp->on = true;
	if (!qp->cm_less)
		qp->state = UW_QPS_RTS;
	if (s->initiator && a->rtr)
		rdmap_rtr(&qp->rd, (enum rdmap_rtr)a->rtr);
	return UW_OK;
}

static void flush_rq(struct qp *qp)
{
	struct rqe *e;

	if (qp->shared_rq) {
		/* The receive that was being filled belongs to this QP alone. */
		if (qp->rd.recv_open && !qp->rd.rtr_send)
			push_recv(qp, qp->taken_wr_id, UW_E_FLUSHED, NULL);
		qp->rd.recv_open = false;
		return;
	}
	while ((e = rq_first(qp->rq))) {
		uint64_t wr_id = e->wr_id;

		rq_drop(qp->rq);
		push_recv(qp, wr_id, UW_E_FLUSHED, NULL);
		qp->stats->qp_flushed++;
	}
}

void qp_flush(struct qp *qp)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);

	for (uint32_t i = head; i != tail; i++) {
		struct sqe *e = sq_at(&qp->sq, i);

		if (e->done)
			continue;
		e->done = 1;
		e->status = UW_E_FLUSHED;
		qp->stats->qp_flushed++;
	}
	qp_reap(qp);
	flush_rq(qp);
}

/* A receive that cannot hold the Send, or a receive or Read that names memory which may not be
 * written, fails itself; the rest is flushed. */
static void blame_inbound(struct qp *qp, uw_status why)
{
	const struct ddp_hdr *bad = &qp->rd.bad.hdr;
	struct sqe *read = oldest_read(qp);

	if (why != UW_E_LKEY && why != UW_E_DDP_TOO_LONG)
		return;
	if (bad->tagged || bad->qn == RDMAP_QN_ATOMIC) { /* a Read or Atomic Response */
		if (read)
			complete(qp, read, why);
		return;
	}
	if (!qp->rd.recv_open || qp->rd.rtr_send)
		return;
	qp->rd.recv_open = false;
	if (!qp->shared_rq)
		rq_drop(qp->rq);
	push_recv(qp, qp->taken_wr_id, why == UW_E_LKEY ? UW_E_LKEY : UW_E_LEN, NULL);
}

/* A request asks for what it may not. */
static bool own_fault(uw_status why)
{
	return why == UW_E_LKEY || why == UW_E_BIND || why == UW_E_ORD;
}

/* InfiniBand's affiliated event, whenever an SRQ's QP comes to error: it takes no more of the SRQ's
 * receives. */
static void tell_last_receive(struct qp *qp)
{
	if (qp->shared_rq && qp->event)
		qp->event(qp->event_ctx, UW_EVENT_QP_LAST_WQE_REACHED);
}

void qp_fail(struct qp *qp, uw_status why)
{
	bool had_stream = qp->on;

	if (qp->state == UW_QPS_ERR) {
		qp_flush(qp);
		return;
	}
	if (own_fault(why))
		qp->acked = qp->out; /* what TCP has it delivers: the end is orderly */
	qp_complete_acked(qp);
	if (had_stream && qp->sending_sq && own_fault(why))
		complete(qp, sq_at(&qp->sq, qp->sq.tx), why);
	else if (had_stream)
		blame_inbound(qp, why);
	qp->state = UW_QPS_ERR;
	/* Dekker with uw_post_recv: the state, fence, the receives (qp_flush). */
	atomic_thread_fence(memory_order_seq_cst);
	qp->cause = why;
	qp->on = false;
	if (had_stream) {
		qp->rd.tx.source = RDMAP_FROM_NONE;
		qp->sending_sq = false;
		/* Our own memory at fault: the peer only learns that the stream is over. */
		if (why != UW_OK)
			rdmap_terminate(&qp->rd, own_fault(why) ? UW_E_RDMAP_LOCAL : why);
	}
	qp_flush(qp);
	tell_last_receive(qp);
}

void qp_detach(struct qp *qp)
{
	qp_complete_acked(qp);
	qp->peer_silent = qp->gated;
	qp->on = qp->gated = qp->sending_sq = false;
	qp->rd.tx.source = RDMAP_FROM_NONE;
}

void qp_refuse(struct qp *qp, uw_status why)
{
	qp_detach(qp);
	rdmap_terminate(&qp->rd, why);
}

void qp_give_up(struct qp *qp, uw_status why)
{
	uint32_t i = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);

	while (i != atomic_load_explicit(&qp->sq.tail, memory_order_acquire) &&
	       sq_at(&qp->sq, i)->done)
		i++;
	if (i != atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		complete(qp, sq_at(&qp->sq, i), why);
	qp_fail(qp, UW_E_FLUSHED);
}

void qp_forget_posted(struct qp *qp)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);

	qp->sq.tx = qp->unacked = tail;
	atomic_store_explicit(&qp->sq.head, tail, memory_order_release);
	while (!qp->shared_rq && rq_first(qp->rq)) {
		rq_drop(qp->rq);
		rq_free(qp->rq, 1);
	}
	if (qp->shared_rq && qp->rd.recv_open && !qp->rd.rtr_send)
		rq_free(qp->rq, 1);
	qp->rd.recv_open = false;
}

static uw_status to_sqd(struct qp *qp)
{
	if (qp->state == UW_QPS_ERR || qp->state == UW_QPS_SQD)
		return UW_OK;
	if (qp->state != UW_QPS_RTS)
		return UW_E_STATE;
	qp->state = UW_QPS_SQD;
	qp->fin_wanted = !qp->cm_less;
	qp->drained = false;
	return UW_OK;
}

/* In SQD there is more to send: what was begun, to its end; over a stream of rdma_cm's all that was
 * posted (stream.c: may_begin). */
static bool goes_on(const struct qp *qp)
{
	return qp->sending_sq ||
	       (sq_ready(&qp->sq) && (!qp->cm_less || sq_at(&qp->sq, qp->sq.tx)->written));
}

bool qp_drained(struct qp *qp)
{
	if (qp->state != UW_QPS_SQD || qp->drained || goes_on(qp) ||
	    qp->sq.tx != atomic_load_explicit(&qp->sq.head, memory_order_relaxed))
		return false;
	qp->drained = true;
	return true;
}

uw_status qp_modify(struct qp *qp, enum uw_qp_state to)
{
	switch (to) {
	case UW_QPS_ERR:
		qp_fail(qp, UW_E_FLUSHED);
		return UW_OK;
	case UW_QPS_SQD:
		return to_sqd(qp);
	case UW_QPS_RESET:
		qp_forget_posted(qp);
		if (qp->on)
			qp_fail(qp, UW_E_FLUSHED);
		qp->cm_less = qp->sq_failed = qp->sending_sq = false;
		qp->state = UW_QPS_RESET;
		return UW_OK;
	case UW_QPS_INIT:
	case UW_QPS_RTR:
	case UW_QPS_RTS:
		/* The connection manager makes the real change; programs and librdmacm ask before
		 * or after it. */
		if (qp->cm_less && qp->state != UW_QPS_ERR)
			qp->state = to;
		else if (!qp->cm_less && !qp->on && qp->state != UW_QPS_ERR)
			qp->state = to == UW_QPS_RTS ? UW_QPS_RTR : to;
		return UW_OK;
	default:
		return UW_E_INVAL;
	}
}

void qp_sent(struct qp *qp)
{
	struct sqe *e = sq_at(&qp->sq, qp->sq.tx);

	qp->sending_sq = false;
	if (e->opcode == UW_WR_RDMA_WRITE_WITH_IMM && !e->written) {
		e->written = 1; /* RFC 7306 §6: its Immediate Data follows as the next message */
		return;
	}
	qp->sq.tx++;
	e->end = qp->out;
	/* RFC 5040 §5.5: a read is done when its Response is, everything else when TCP took it: our
	 * TCP, or the peer's. */
	if (sqe_is_local(e) || !(sqe_is_answered(e) || qp->confirmed))
		e->done = 1;
}

/* ---- without a stream --------------------------------------------------------------------- */

uw_status qp_take_receive(struct qp *qp, uint64_t least, struct mem_sgl *sgl)
{
	const bool guarded = qp->shared_rq && qp->guard;
	const struct rqe *e;
	uw_status st;

	if (guarded)
		qp->guard(qp->rq, true);
	e = rq_first(qp->rq);
	st = e && e->length < least ? UW_E_LEN : take_first(qp, sgl);
	if (guarded)
		qp->guard(qp->rq, false);
	return st;
}

void qp_received(struct qp *qp, const struct uw_wc *wc, bool solicited)
{
	struct cqe *c;

	if (!qp->shared_rq)
		rq_drop(qp->rq);
	c = cq_begin(qp->rcq);
	if (!c) {
		rq_free(qp->rq, 1); /* nobody will poll it */
		count(qp, false);
		return;
	}
	c->wc = *wc;
	c->wc.wr_id = qp->taken_wr_id;
	c->wc.qp_num = qp->num;
	cq_end_received(qp->rcq, c, qp->rq, solicited);
	count(qp, true);
}

void qp_request_sent(struct qp *qp)
{
	sq_at(&qp->sq, qp->sq.tx)->written = 1; /* a WRITE with its immediate data */
	qp_sent(qp);
	qp_reap(qp);
}

void qp_request_failed(struct qp *qp, uw_status st)
{
	qp->sending_sq = false;
	complete(qp, sq_at(&qp->sq, qp->sq.tx), st);
}
