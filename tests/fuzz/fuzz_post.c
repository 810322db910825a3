/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests as a program may hand them in: any opcode, flags, number and lengths of SGEs,
 * inline or not, into queues of any shape. What is taken is in the queue as it was given, what is
 * refused leaves it alone; slots are blocks of exactly their size.
 */
#include "base/bits.h"
#include "fuzz.h"
#include "qp/rq.h"
#include "qp/sq.h"

#define SGES 40u
#define DATA 4096u

struct request {
	struct uw_sge v[SGES];
	struct uw_send_wr wr;
	uint64_t length;
};

static uint32_t some_length(struct feed *f)
{
	return feed_rarely(f, 8) ? feed_u32(f) : feed_length(f, 200);
}

static void make(struct request *r, struct feed *f, const uint8_t *data)
{
	uint32_t n = feed_length(f, SGES);

	r->length = 0;
	r->wr = (struct uw_send_wr){ .wr_id = feed_u64(f),
				     .sg_list = r->v,
				     .num_sge = n,
				     .opcode = feed_rarely(f, 16) ? feed_u32(f) : feed_below(f, 11),
				     .flags = feed_below(f, 16),
				     .imm_or_inv = feed_u32(f),
				     .rkey = feed_u32(f),
				     .remote_addr = feed_u64(f),
				     .compare_add = feed_u64(f),
				     .swap = feed_u64(f) };
	for (uint32_t i = 0; i < n; i++) {
		r->v[i] = (struct uw_sge){ .length = some_length(f), .lkey = feed_u32(f) };
		r->v[i].addr = feed_u64(f);
		/* Inline data is read at once; an address is only ever wrong when nothing is. */
		if ((r->wr.flags & UW_SEND_INLINE) && r->v[i].length)
			r->v[i].addr = (uintptr_t)data + feed_below(f, DATA / 2);
		r->length += r->v[i].length;
	}
}

/* ---- send queue -------------------------------------------------------------------------- */

static void sq_make(struct sq *sq, struct feed *f)
{
	memset(sq, 0, sizeof(*sq));
	sq->depth = 1 + feed_below(f, 20);
	sq->mask = uw_pow2_above(sq->depth) - 1;
	sq->max_sge = 1 + feed_below(f, 32);
	sq->max_inline = feed_length(f, 1024);
	sq->sig_all = feed_bool(f);
	sq->slot_size = sq_slot_size(sq->max_sge, sq->max_inline);
	sq->slots = fuzz_alloc((size_t)(sq->mask + 1) * sq->slot_size);
	/* Counters wrap. */
	sq->tx = 0u - feed_below(f, 8);
	atomic_store(&sq->head, sq->tx);
	atomic_store(&sq->tail, sq->tx);
}

static void check_sqe(const struct sq *sq, struct sqe *e, const struct request *r)
{
	const struct uw_send_wr *wr = &r->wr;
	uint8_t *p = sqe_inline(e);

	CHECK(e->wr_id == wr->wr_id && e->remote_addr == wr->remote_addr && e->rkey == wr->rkey);
	CHECK(e->imm_or_inv == wr->imm_or_inv && e->opcode == wr->opcode);
	CHECK(e->length == r->length && e->length <= UINT32_MAX);
	CHECK((e->flags & ~UW_SEND_SIGNALED) == (wr->flags & ~(unsigned)UW_SEND_SIGNALED));
	CHECK(!e->done && (!sq->sig_all || (e->flags & UW_SEND_SIGNALED)));
	if (!(wr->flags & UW_SEND_INLINE)) {
		CHECK(e->num_sge == wr->num_sge && e->num_sge <= sq->max_sge);
		CHECK(!e->num_sge || !memcmp(sqe_sge(e), r->v, e->num_sge * sizeof(r->v[0])));
		return;
	}
	CHECK(e->length <= sq->max_inline);
	for (uint32_t i = 0; i < wr->num_sge; i++) {
		CHECK(!r->v[i].length ||
		      !memcmp(p, (void *)(uintptr_t)r->v[i].addr, r->v[i].length));
		p += r->v[i].length;
	}
}

static void send_queue(struct feed *f, const uint8_t *data)
{
	static struct request r;
	struct sq sq;

	sq_make(&sq, f);
	while (f->n && !feed_rarely(f, 32)) {
		uint32_t tail = atomic_load(&sq.tail), count = tail - atomic_load(&sq.freed);
		uw_status st;

		if (feed_rarely(f, 4) && count) {
			atomic_fetch_add(&sq.freed, 1 + feed_below(f, count));
			continue;
		}
		make(&r, f, data);
		st = sq_post(&sq, &r.wr);
		CHECK(st == UW_OK || st == UW_E_NOMEM || st == UW_E_INVAL || st == UW_E_LEN);
		CHECK((st == UW_E_NOMEM) == (count == sq.depth));
		CHECK(atomic_load(&sq.tail) == tail + !st);
		if (!st)
			check_sqe(&sq, sq_at(&sq, tail), &r);
	}
	free(sq.slots);
}

/* ---- receive queue ----------------------------------------------------------------------- */

static void check_rqe(struct rqe *e, const struct uw_recv_wr *wr, uint64_t length)
{
	CHECK(e && e->wr_id == wr->wr_id && e->num_sge == wr->num_sge && e->length == length);
	CHECK(!e->num_sge || !memcmp(rqe_sge(e), wr->sg_list, e->num_sge * sizeof(struct uw_sge)));
}

static void recv_queue(struct feed *f, const uint8_t *data)
{
	static struct request r;
	struct rq rq = { .depth = 1 + feed_below(f, 20), .max_sge = 1 + feed_below(f, 32) };

	rq.mask = uw_pow2_above(rq.depth) - 1;
	rq.slot_size = rq_slot_size(rq.max_sge);
	rq.slots = fuzz_alloc((size_t)(rq.mask + 1) * rq.slot_size);
	while (f->n) {
		uint32_t count = rq_count(&rq), taken = rq_outstanding(&rq) - count;
		struct uw_recv_wr wr;
		uw_status st;

		CHECK((rq_first(&rq) != NULL) == (count != 0));
		if (feed_rarely(f, 3) && count) {
			rq_drop(&rq);
			continue;
		}
		if (feed_rarely(f, 3) && taken) {
			rq_free(&rq, 1);
			continue;
		}
		make(&r, f, data);
		wr = (struct uw_recv_wr){ r.wr.wr_id, r.v, r.wr.num_sge };
		st = rq_post(&rq, &wr);
		if (count + taken == rq.depth)
			CHECK(st == UW_E_NOMEM);
		else
			CHECK(st == (wr.num_sge > rq.max_sge ? UW_E_INVAL : UW_OK));
		CHECK(rq_count(&rq) == count + !st);
		if (!st)
			check_rqe(rq_at(&rq, atomic_load(&rq.tail) - 1), &wr, r.length);
	}
	free(rq.slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	uint8_t *octets = fuzz_alloc(DATA);

	memset(octets, 0x42, DATA);
	if (feed_bool(&f))
		send_queue(&f, octets);
	recv_queue(&f, octets);
	free(octets);
	return 0;
}
