/* SPDX-License-Identifier: BSD-3-Clause */
/* The bed's program: what it posts, and what it finds in its completion queues. */
#include "bed.h"

static const uint32_t opcodes[] = {
	UW_WR_RDMA_WRITE,    UW_WR_RDMA_WRITE_WITH_IMM, UW_WR_SEND,	 UW_WR_RDMA_READ,
	UW_WR_SEND_WITH_IMM, UW_WR_ATOMIC_CMP_AND_SWP,	UW_WR_RDMA_READ, UW_WR_ATOMIC_FETCH_AND_ADD,
	UW_WR_SEND_WITH_INV, UW_WR_LOCAL_INV,		UW_WR_BIND_MW,	 UW_WR_FLUSH,
	UW_WR_ATOMIC_WRITE,
};

static bool is_atomic(uint32_t opcode)
{
	return opcode == UW_WR_ATOMIC_CMP_AND_SWP || opcode == UW_WR_ATOMIC_FETCH_AND_ADD;
}

/* Memory of the program's own; seldom something that it may not use. */
static struct uw_sge some_sge(struct bed *b, struct feed *f, bool sink)
{
	static const uint8_t sinks[] = { BED_ALL, BED_LOCAL },
			     sources[] = { BED_ALL, BED_SOURCE, BED_READ, BED_LOCAL };
	uint8_t pick = feed_u8(f);
	unsigned which = sink ? sinks[pick % 2] : sources[pick % 4];
	struct uw_sge e;
	const struct mem_region *r;

	if (pick >= 240) /* BED_SECRET is named by nobody */
		which = pick & 1 ? BED_FOREIGN : BED_SOURCE;
	r = &b->m[which].r;
	e.length = feed_length(f, (uint32_t)r->len);
	e.addr = r->to + feed_length(f, (uint32_t)r->len - e.length);
	e.lkey = pick >= 252 ? 0xdeadu : r->stag;
	if (pick >= 250)
		e.length += feed_u8(f);
	return e;
}

static uint64_t some_sgl(struct bed *b, struct feed *f, struct uw_sge *v, uint32_t n, bool sink)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < n; i++) {
		v[i] = some_sge(b, f, sink);
		length += v[i].length;
	}
	return length;
}

/* Inline octets are the program's, registered or not, but they must be there. */
static uint64_t inline_sgl(struct bed *b, struct feed *f, struct uw_sge *v, uint32_t n)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < n; i++) {
		v[i] = (struct uw_sge){ .addr = (uintptr_t)b->in, .length = feed_below(f, 40) };
		length += v[i].length;
	}
	return length;
}

void bed_post_send(struct bed *b, struct feed *f)
{
	struct uw_sge v[BED_SGE + 2];
	struct uw_send_wr wr = { .wr_id = b->sends.posted, .sg_list = v };
	uint64_t length;
	struct bed_target t;
	bool signalled;

	if (b->qp->state < UW_QPS_RTS || ledger_full(&b->sends))
		return;
	wr.opcode = opcodes[feed_below(f, COUNT(opcodes))];
	wr.flags = feed_below(f, 16);
	wr.num_sge = feed_below(f, BED_SGE + 2);
	if (wr.flags & UW_SEND_INLINE)
		length = inline_sgl(b, f, v, wr.num_sge);
	else
		length = some_sgl(b, f, v, wr.num_sge, wr.opcode == UW_WR_RDMA_READ);
	if (is_atomic(wr.opcode) && !feed_rarely(f, 8)) {
		wr.num_sge = 1;
		wr.flags &= ~(unsigned)UW_SEND_INLINE;
		v[0] = (struct uw_sge){ b->m[BED_LOCAL].r.to + feed_below(f, 256), 8,
					b->m[BED_LOCAL].r.stag };
		length = 8;
	}
	if (wr.opcode == UW_WR_FLUSH || wr.opcode == UW_WR_ATOMIC_WRITE) {
		wr.num_sge = 0;
		wr.flags &= ~(unsigned)UW_SEND_INLINE;
		length = 0;
	}
	t = bed_target(b, f, (uint32_t)length);
	wr.rkey = t.stag;
	wr.remote_addr = t.to;
	wr.imm_or_inv = feed_u32(f);
	wr.compare_add = feed_u8(f);
	wr.swap = wr.opcode == UW_WR_FLUSH ? UW_FLUSH_WISH(1 + feed_below(f, 3), feed_bool(f))
					   : feed_u8(f);
	signalled = (wr.flags & UW_SEND_SIGNALED) || b->qp->sq.sig_all;
	if (b->post_send(b, &wr))
		ledger_posted(&b->sends, length, signalled);
	bed_poll(b);
}

void bed_post_recv(struct bed *b, struct feed *f)
{
	struct uw_sge v[BED_SGE + 2];
	struct uw_recv_wr wr = { .wr_id = b->recvs.posted, .sg_list = v };
	uint64_t length;

	if (ledger_full(&b->recvs))
		return;
	wr.num_sge = feed_below(f, BED_SGE + 2);
	length = some_sgl(b, f, v, wr.num_sge, true);
	/* An Immediate Data message may follow a Write of any length. */
	if (b->post_recv(b, &wr))
		ledger_posted(&b->recvs, length, true);
	bed_poll(b);
}

/* ---- the queues' own functions ------------------------------------------------------------ */

/* What of a slot the request in it does not use may not be touched. */
static void fence(void *slot, size_t size, size_t used)
{
	fuzz_allow(slot, size);
	fuzz_forbid((uint8_t *)slot + used, size - used);
}

static bool queue_send(struct bed *b, const struct uw_send_wr *wr)
{
	struct sq *sq = &b->qp->sq;
	struct sqe *e = sq_at(sq, atomic_load(&sq->tail));
	bool full = atomic_load(&sq->tail) - atomic_load(&sq->freed) >= sq->depth;
	bool inl = wr->flags & UW_SEND_INLINE;

	if (full) {
		CHECK(sq_post(sq, wr) == UW_E_NOMEM);
		return false;
	}
	fuzz_allow(e, sq->slot_size);
	if (sq_post(sq, wr))
		return false;
	fence(e, sq->slot_size,
	      sizeof(*e) + (inl ? e->length : e->num_sge * sizeof(struct uw_sge)));
	return true;
}

static bool queue_recv(struct bed *b, const struct uw_recv_wr *wr)
{
	struct rq *rq = b->qp->rq;
	struct rqe *e = rq_at(rq, atomic_load(&rq->tail));

	if (rq_outstanding(rq) >= rq->depth) {
		CHECK(rq_post(rq, wr) == UW_E_NOMEM);
		return false;
	}
	fuzz_allow(e, rq->slot_size);
	if (rq_post(rq, wr))
		return false;
	fence(e, rq->slot_size, sizeof(*e) + e->num_sge * sizeof(struct uw_sge));
	return true;
}

static unsigned queue_take(struct bed *b, bool recv, unsigned n, struct uw_wc *wc)
{
	/* What was posted to a QP in error, as the engine does. */
	if (b->qp->state == UW_QPS_ERR)
		qp_flush(b->qp);
	return cq_take(recv ? &b->rcq : &b->scq, n, wc, NULL);
}

void bed_use_queues(struct bed *b)
{
	b->post_send = queue_send;
	b->post_recv = queue_recv;
	b->take = queue_take;
}

/* ---- completions ------------------------------------------------------------------------- */

static void take(struct bed *b, bool recv)
{
	struct uw_wc wc[3];
	unsigned n;

	while ((n = b->take(b, recv, COUNT(wc), wc))) {
		for (unsigned i = 0; i < n; i++) {
			CHECK(wc[i].qp_num == b->qp->num);
			if (b->on_wc)
				b->on_wc(b, &wc[i], recv);
			/* byte_len is then the Write's, which has no receive. */
			if (wc[i].opcode == UW_WC_RECV_RDMA_WITH_IMM)
				wc[i].byte_len = 0;
			ledger_completed(recv ? &b->recvs : &b->sends, &wc[i]);
		}
	}
}

void bed_poll(struct bed *b)
{
	take(b, false);
	take(b, true);
}
