/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two QPs and a wire that TCP cuts as the input says: both post requests that are right, in any mix
 * and order, over streams of every kind (CRC, markers, RTR, IRD, ORD). Nothing may fail, everything
 * completes, and the memory of both is in the end what the requests, carried out one after the
 * other, make of it.
 */
#include <endian.h>

#include "bed.h"

#define WORDS 4u /* at the start of BED_ALL: counters for atomics */
#define RECVS 64u

struct side {
	struct bed b; /* first: on_wc finds the side */
	struct side *peer;
	/* What its memory has to be in the end. */
	uint8_t *all, *local;
	uint32_t all_used, local_used;
	uint32_t read_at, read_n; /* in local: what the last read brings */
	struct {
		uint32_t at, room;   /* in local */
		uint32_t length;     /* of the Send (or Write) that takes it */
		uint32_t imm, flags; /* as in the completion */
	} recv[RECVS];
	uint32_t recvs, taken, got;
};

/* ---- completions ------------------------------------------------------------------------- */

static void on_wc(struct bed *b, const struct uw_wc *wc, bool recv)
{
	struct side *s = (struct side *)b;

	CHECK(wc->status == UW_WC_SUCCESS);
	if (!recv)
		return;
	CHECK(s->got < s->taken && wc->wr_id == s->got);
	CHECK(wc->byte_len == s->recv[s->got].length);
	CHECK(wc->wc_flags == s->recv[s->got].flags);
	CHECK(!wc->wc_flags || wc->imm_or_inv == s->recv[s->got].imm);
	s->got++;
}

/* ---- requests ---------------------------------------------------------------------------- */

struct plan {
	struct side *s;
	struct uw_sge v[BED_SGE];
	uint8_t octets[4096]; /* what is sent */
	struct uw_send_wr wr;
	uint32_t length;
};

/* Where n octets of the side's own memory are free; false: nowhere. */
static bool local_room(struct side *s, uint32_t n, uint32_t *at)
{
	if (n > s->b.m[BED_LOCAL].r.len - s->local_used)
		return false;
	*at = s->local_used;
	s->local_used += n;
	return true;
}

static struct uw_sge local_sge(const struct side *s, uint32_t at, uint32_t n)
{
	const struct mem_region *r = &s->b.m[BED_LOCAL].r;

	return (struct uw_sge){ r->to + at, n, r->stag };
}

/* Octets that a read brings: behind a fence they are there. */
static void fenced_source(struct plan *p, uint32_t most)
{
	uint32_t n = p->s->read_n < most ? p->s->read_n : most;

	memcpy(p->octets, p->s->local + p->s->read_at, n);
	p->v[0] = local_sge(p->s, p->s->read_at, n);
	p->wr.num_sge = 1;
	p->wr.flags |= UW_SEND_FENCE;
	p->length = n;
}

/* Octets to send: pieces of the source region, or inline. */
static void some_source(struct plan *p, struct feed *f, uint32_t most)
{
	if (feed_rarely(f, 6)) {
		fenced_source(p, most);
		return;
	}
	const struct bed_mem *m = &p->s->b.m[BED_SOURCE];
	bool inl = feed_rarely(f, 4);

	p->wr.num_sge = feed_below(f, BED_SGE + 1);
	for (uint32_t i = 0; i < p->wr.num_sge; i++) {
		uint32_t n = feed_length(f, (uint32_t)m->r.len), at;

		if (inl && n > BED_INLINE / BED_SGE)
			n %= BED_INLINE / BED_SGE;
		if (n > most - p->length)
			n = most - p->length;
		at = feed_length(f, (uint32_t)m->r.len - n);
		memcpy(p->octets + p->length, m->mem + at, n);
		p->v[i] = (struct uw_sge){ m->r.to + at, n, m->r.stag };
		if (inl)
			p->v[i].addr = (uintptr_t)m->mem + at;
		p->length += n;
	}
	if (inl)
		p->wr.flags |= UW_SEND_INLINE;
}

static bool plan_write(struct plan *p, struct feed *f)
{
	struct side *to = p->s->peer;
	const struct mem_region *r = &to->b.m[BED_ALL].r;

	some_source(p, f, (uint32_t)r->len - to->all_used);
	p->wr.opcode = UW_WR_RDMA_WRITE;
	p->wr.rkey = r->stag;
	p->wr.remote_addr = r->to + to->all_used;
	memcpy(to->all + to->all_used, p->octets, p->length);
	to->all_used += p->length;
	return true;
}

static uint32_t take_recv(struct plan *p, struct feed *f, uint32_t flags)
{
	struct side *to = p->s->peer;
	uint32_t k = to->taken++;

	to->recv[k].length = p->length;
	to->recv[k].flags = flags;
	to->recv[k].imm = p->wr.imm_or_inv = flags ? feed_u32(f) : 0;
	return k;
}

static bool plan_write_imm(struct plan *p, struct feed *f)
{
	if (p->s->peer->taken == p->s->peer->recvs || !plan_write(p, f))
		return false;
	p->wr.opcode = UW_WR_RDMA_WRITE_WITH_IMM;
	take_recv(p, f, UW_WC_WITH_IMM);
	return true;
}

static bool plan_send(struct plan *p, struct feed *f)
{
	struct side *to = p->s->peer;
	bool imm = feed_bool(f);
	uint32_t k;

	if (to->taken == to->recvs)
		return false;
	some_source(p, f, to->recv[to->taken].room);
	p->wr.opcode = imm ? UW_WR_SEND_WITH_IMM : UW_WR_SEND;
	k = take_recv(p, f, imm ? UW_WC_WITH_IMM : 0);
	memcpy(to->local + to->recv[k].at, p->octets, p->length);
	return true;
}

static bool plan_read(struct plan *p, struct feed *f)
{
	const struct bed_mem *from = &p->s->peer->b.m[BED_READ];
	uint32_t n = feed_length(f, (uint32_t)from->r.len), at, cut;
	uint32_t off = feed_length(f, (uint32_t)from->r.len - n);

	if (!local_room(p->s, n, &at))
		return false;
	cut = feed_length(f, n);
	p->v[0] = local_sge(p->s, at, cut);
	p->v[1] = local_sge(p->s, at + cut, n - cut);
	p->wr.num_sge = 2;
	p->wr.opcode = UW_WR_RDMA_READ;
	p->wr.rkey = from->r.stag;
	p->wr.remote_addr = from->r.to + off;
	memcpy(p->s->local + at, from->mem + off, n);
	p->s->read_at = at;
	p->s->read_n = n;
	p->length = n;
	return true;
}

/* Only this side changes the peer's words, so what it finds is what it left. */
static bool plan_atomic(struct plan *p, struct feed *f)
{
	struct side *to = p->s->peer;
	const struct mem_region *r = &to->b.m[BED_ALL].r;
	uint32_t word = 8 * feed_below(f, WORDS), at;
	uint64_t old;

	if (!local_room(p->s, 8, &at))
		return false;
	memcpy(&old, to->all + word, 8);
	memcpy(p->s->local + at, &old, 8);
	p->v[0] = local_sge(p->s, at, 8);
	p->wr.num_sge = 1;
	p->wr.rkey = r->stag;
	p->wr.remote_addr = r->to + word;
	p->wr.compare_add = feed_u64(f);
	p->wr.swap = feed_u64(f);
	p->length = 8;
	if (feed_bool(f)) {
		p->wr.opcode = UW_WR_ATOMIC_FETCH_AND_ADD;
		old += p->wr.compare_add;
	} else {
		p->wr.opcode = UW_WR_ATOMIC_CMP_AND_SWP;
		if (feed_bool(f))
			p->wr.compare_add = old;
		if (p->wr.compare_add == old)
			old = p->wr.swap;
	}
	memcpy(to->all + word, &old, 8);
	return true;
}

static bool queue_has_room(const struct side *s)
{
	const struct sq *sq = &s->b.qp->sq;

	return atomic_load(&sq->tail) - atomic_load(&sq->freed) < sq->depth &&
	       !ledger_full(&s->b.sends);
}

static void post(struct side *s, struct feed *f)
{
	static bool (*const plans[])(struct plan * p,
				     struct feed * f) = { plan_write, plan_write_imm, plan_send,
							  plan_read, plan_atomic };
	static struct plan p;

	if (!queue_has_room(s))
		return;
	p = (struct plan){ .s = s };
	p.wr.wr_id = s->b.sends.posted;
	p.wr.sg_list = p.v;
	p.wr.flags = feed_below(f, 8); /* fence, signalled, solicited */
	if (!plans[feed_below(f, COUNT(plans))](&p, f))
		return;
	CHECK(s->b.post_send(&s->b, &p.wr));
	ledger_posted(&s->b.sends, p.length,
		      (p.wr.flags & UW_SEND_SIGNALED) || s->b.qp->sq.sig_all);
}

static void post_recv(struct side *s, struct feed *f)
{
	uint32_t n = feed_length(f, 900), at;
	struct uw_sge v[2];
	struct uw_recv_wr wr = { .wr_id = s->b.recvs.posted, .sg_list = v, .num_sge = 2 };

	if (s->recvs == RECVS || rq_outstanding(s->b.qp->rq) == BED_WR || !local_room(s, n, &at))
		return;
	v[0] = local_sge(s, at, n / 3);
	v[1] = local_sge(s, at + n / 3, n - n / 3);
	CHECK(s->b.post_recv(&s->b, &wr));
	ledger_posted(&s->b.recvs, n, true);
	s->recv[s->recvs].at = at;
	s->recv[s->recvs++].room = n;
}

/* ---- the wire ---------------------------------------------------------------------------- */

static bool carry(struct side *from, size_t room, struct feed *f)
{
	static uint8_t p[BED_ROOM];
	struct bed *to = &from->peer->b;
	size_t n = 0;

	if (to->in_n < BED_IN - BED_ROOM)
		n = bed_pull(&from->b, p, room);
	bed_arrive(to, p, n);
	/* Some may stay under way for a while. */
	if (feed_rarely(f, 4))
		return true;
	n = to->in_n;
	bed_deliver(to, f);
	CHECK(to->qp->state == UW_QPS_RTS);
	return n;
}

static void run_out(struct side *a, struct side *b)
{
	struct feed none = { NULL, 0 };
	bool more = true;

	for (unsigned i = 0; more; i++) {
		CHECK(i < 100000);
		more = carry(a, 1460, &none);
		more = carry(b, 1460, &none) || more;
	}
	CHECK(!a->b.in_n && !b->b.in_n);
}

/* ---- life -------------------------------------------------------------------------------- */

static void side_open(struct side *s, struct side *peer, struct feed *f)
{
	memset(s, 0, sizeof(*s));
	s->peer = peer;
	bed_make(&s->b, f);
	s->b.sends.lossy = s->b.recvs.lossy = false;
	s->b.scq.depth = s->b.rcq.depth = BED_WC;
	s->b.on_wc = on_wc;
	s->all = fuzz_copy(s->b.m[BED_ALL].mem, s->b.m[BED_ALL].r.len);
	s->local = fuzz_copy(s->b.m[BED_LOCAL].mem, s->b.m[BED_LOCAL].r.len);
	s->all_used = 8 * WORDS;
}

static void start(struct side *a, struct side *b, struct feed *f)
{
	uint8_t bits = feed_u8(f);
	struct mpa_agreed m = { .rev = 2,
				.crc = bits & 1,
				.tx_markers = bits & 2,
				.rx_markers = bits & 4,
				.p2p = bits & 8,
				.ird = 1 + feed_below(f, 6),
				.ord = 1 + feed_below(f, 6) };
	uint16_t ird = m.ird;

	if (m.p2p)
		m.rtr = (enum mpa_rtr)(1u << feed_below(f, 3));
	a->b.agreed = m;
	m.ird = m.ord;
	m.ord = ird;
	m.tx_markers = a->b.agreed.rx_markers;
	m.rx_markers = a->b.agreed.tx_markers;
	b->b.agreed = m;
	bed_start(&a->b, true);
	bed_start(&b->b, false);
	/* RFC 5044 §7.1.2: without an RTR the initiator has to speak first. */
	if (!m.p2p)
		post(a, &(struct feed){ NULL, 0 });
}

static void side_check(struct side *s)
{
	const struct bed_mem *all = &s->b.m[BED_ALL], *local = &s->b.m[BED_LOCAL];

	CHECK(s->b.qp->state == UW_QPS_RTS && sq_empty(&s->b.qp->sq));
	CHECK(s->got == s->taken && !s->b.sends.failed);
	ledger_check_empty(&s->b.sends);
	CHECK(!memcmp(all->mem, s->all, all->r.len));
	CHECK(!memcmp(local->mem, s->local, local->r.len));
	s->b.on_wc = NULL; /* what is left is flushed */
	free(s->all);
	free(s->local);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct side a, b;

	side_open(&a, &b, &f);
	side_open(&b, &a, &f);
	start(&a, &b, &f);
	while (f.n) {
		uint8_t what = feed_u8(&f);
		struct side *s = what & 1 ? &a : &b;

		if (what < 64)
			post_recv(s, &f);
		else if (what < 160)
			post(s, &f);
		else
			carry(s, 128 + feed_length(&f, BED_ROOM - 128), &f);
	}
	run_out(&a, &b);
	side_check(&a);
	side_check(&b);
	bed_close(&a.b);
	bed_close(&b.b);
	return 0;
}
