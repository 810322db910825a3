/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

/* ---- memory ------------------------------------------------------------------------------ */

static const struct {
	uint32_t len, pd;
	unsigned rights;
	uint64_t to; /* 1: its address */
} kinds[BED_REGIONS] = {
	[BED_ALL] = { 8192, BED_PD,
		      UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |
			      UW_ACCESS_REMOTE_ATOMIC | UW_ACCESS_FLUSH_GLOBAL |
			      UW_ACCESS_FLUSH_PERSISTENT,
		      0x10000 },
	[BED_READ] = { 601, BED_PD, UW_ACCESS_REMOTE_READ, 1 },
	[BED_LOCAL] = { 8191, BED_PD, UW_ACCESS_LOCAL_WRITE, UINT64_MAX - 8191 },
	[BED_SOURCE] = { 777, BED_PD, 0, 0 },
	[BED_FOREIGN] = { 333, BED_PD + 1,
			  UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |
				  UW_ACCESS_REMOTE_ATOMIC,
			  0x20000 },
	[BED_SECRET] = { 256, BED_PD, UW_ACCESS_LOCAL_WRITE, 0x30000 },
};

static uint32_t stag_of(unsigned i)
{
	return 0x5a000001u + i * 0x01010100u;
}

bool bed_is_forbidden(unsigned i)
{
	return i == BED_FOREIGN || i == BED_SECRET;
}

static const uint8_t *pattern(void)
{
	static uint8_t octets[8192 + 13 * BED_REGIONS];
	static bool made;

	for (uint32_t k = 0; !made && k < sizeof(octets); k++)
		octets[k] = (uint8_t)(k * 31);
	made = true;
	return octets;
}

/* What a FLUSH makes persistent may be read, to its last octet. */
static bool persist(void *va, uint64_t len)
{
	free(fuzz_copy(va, len));
	return len % 16 != 15;
}

void bed_make_memory(struct bed *b)
{
	mem_table_init(&b->t, b->slots, COUNT(b->slots));
	b->t.persist = persist;
	for (unsigned i = 0; i < BED_REGIONS; i++) {
		struct bed_mem *m = &b->m[i];
		uint32_t n = kinds[i].len;

		m->mem = fuzz_alloc(n);
		memcpy(m->mem, pattern() + 13 * i, n);
		if (i == BED_READ || i == BED_SOURCE)
			m->before = fuzz_copy(m->mem, n);
		m->r = (struct mem_region){ .pd = kinds[i].pd,
					    .base = m->mem,
					    .to = kinds[i].to == 1 ? (uintptr_t)m->mem
								   : kinds[i].to,
					    .len = n,
					    .rights = kinds[i].rights };
		CHECK(!mem_insert(&b->t, &m->r, stag_of(i)));
		m->in = true;
		if (bed_is_forbidden(i))
			fuzz_forbid(m->mem, n);
	}
}

void bed_toggle(struct bed *b, enum bed_region which)
{
	struct bed_mem *m = &b->m[which];

	if (m->in) {
		mem_remove(&b->t, &m->r);
		fuzz_forbid(m->mem, m->r.len); /* RFC 5042 §6.2.2: nothing reaches it any more */
	} else {
		CHECK(!mem_insert(&b->t, &m->r, stag_of(which)));
		if (!bed_is_forbidden(which))
			fuzz_allow(m->mem, m->r.len);
	}
	m->in = !m->in;
	if (mem_table_full(&b->t)) {
		struct mem_region *old[COUNT(b->slots)];

		memcpy(old, b->slots, sizeof(old));
		b->t.slots = old;
		mem_table_move(&b->t, b->slots, COUNT(b->slots));
	}
}

struct bed_target bed_target(struct bed *b, struct feed *f, uint32_t len)
{
	uint8_t pick = feed_u8(f);
	const struct mem_region *r = &b->m[pick % BED_REGIONS].r;
	struct bed_target t;

	if (pick >= 248)
		return (struct bed_target){ feed_u32(f), feed_u64(f) };
	if (pick < 160) /* mostly something that works */
		r = &b->m[BED_ALL].r;
	t.stag = r->stag;
	t.to = r->to + feed_length(f, (uint32_t)r->len);
	if (!feed_rarely(f, 8) && t.to - r->to + len > r->len)
		t.to = r->to + (len < r->len ? r->len - len : 0);
	return t;
}

void bed_free_memory(struct bed *b)
{
	for (unsigned i = 0; i < BED_REGIONS; i++) {
		struct bed_mem *m = &b->m[i];

		fuzz_allow(m->mem, m->r.len);
		CHECK(!m->before || !memcmp(m->mem, m->before, m->r.len));
		free(m->mem);
		free(m->before);
	}
}

/* ---- set-up ------------------------------------------------------------------------------ */

static void on_event(void *ctx, enum uw_event ev)
{
	((struct bed *)ctx)->events++;
	CHECK(ev > 0 && ev < 32);
}

static void on_limit(void *ctx)
{
	((struct bed *)ctx)->events++;
}

static void make_cq(struct cq *cq, uint32_t depth)
{
	*cq = (struct cq){ .ring = fuzz_alloc(BED_WC * sizeof(struct cqe)),
			   .mask = BED_WC - 1,
			   .depth = depth };
}

static void make_rq(struct rq *rq)
{
	*rq = (struct rq){ .slot_size = rq_slot_size(BED_SGE),
			   .mask = BED_WR - 1,
			   .depth = BED_WR,
			   .max_sge = BED_SGE,
			   .pd = BED_PD };
	rq->slots = fuzz_alloc(BED_WR * rq->slot_size);
}

static void make_qp(struct bed *b, bool shared, bool sig_all)
{
	struct qp_setup s = { .num = 42,
			      .pd = BED_PD,
			      .scq = &b->scq,
			      .rcq = &b->rcq,
			      .mem = &b->t,
			      .stats = &b->stats };
	struct qp *qp = aligned_alloc(64, (sizeof(*qp) + 63) & ~(size_t)63);

	CHECK(qp);
	memset(qp, 0, sizeof(*qp));
	b->qp = qp;
	qp->sq = (struct sq){ .slot_size = sq_slot_size(BED_SGE, BED_INLINE),
			      .mask = BED_WR - 1,
			      .depth = BED_WR,
			      .max_sge = BED_SGE,
			      .max_inline = BED_INLINE,
			      .sig_all = sig_all };
	qp->sq.slots = aligned_alloc(64, BED_WR * qp->sq.slot_size);
	CHECK(qp->sq.slots);
	if (shared) {
		b->srq = aligned_alloc(64, (sizeof(*b->srq) + 63) & ~(size_t)63);
		CHECK(b->srq);
		make_rq(b->srq);
		b->srq->limit = 3;
		b->srq->limit_reached = on_limit;
		b->srq->ctx = b;
		qp->taken = fuzz_alloc(BED_SGE * sizeof(struct uw_sge));
		s.srq = b->srq;
	} else {
		make_rq(&qp->own_rq);
	}
	qp->event = on_event;
	qp->event_ctx = b;
	qp_init(qp, &s);
}

void bed_make(struct bed *b, struct feed *f)
{
	uint8_t bits = feed_u8(f);

	memset(b, 0, sizeof(*b));
	b->in = fuzz_alloc(BED_IN);
	bed_make_memory(b);
	bed_use_queues(b);
	/* Seldom a CQ that overflows: then completions are lost, nothing else. */
	b->sends.lossy = b->recvs.lossy = (bits & 0xe0) == 0xe0;
	make_cq(&b->scq, b->sends.lossy ? 3 : BED_WC);
	make_cq(&b->rcq, b->recvs.lossy ? 3 : BED_WC);
	make_qp(b, bits & 1, bits & 2);
	CHECK(!qp_modify(b->qp, UW_QPS_INIT));
}

void bed_open(struct bed *b, struct feed *f)
{
	uint8_t bits;

	bed_make(b, f);
	bits = feed_u8(f);
	b->agreed = (struct mpa_agreed){ .rev = 2,
					 .crc = bits & 1,
					 .tx_markers = (bits & 6) == 6,
					 .rx_markers = (bits & 10) == 10,
					 .p2p = bits & 16,
					 .ird = 1 + feed_below(f, 5),
					 .ord = 1 + feed_below(f, 5) };
	if (b->agreed.p2p)
		b->agreed.rtr = (enum mpa_rtr)(1u << feed_below(f, 3));
	bed_start(b, bits & 32);
}

void bed_start(struct bed *b, bool initiator)
{
	struct qp_stream s = { .agreed = &b->agreed, .initiator = initiator };

	free(b->irq);
	free(b->orq);
	b->irq = fuzz_alloc(b->agreed.ird * sizeof(*b->irq));
	b->orq = fuzz_alloc(b->agreed.ord * sizeof(*b->orq));
	s.queues = (struct rdmap_queues){ b->irq, b->agreed.ird, b->orq, b->agreed.ord,
					  0xfffffffdu }; /* wraps soon */
	free(b->qp->mrx.scratch);
	s.scratch = b->agreed.rx_markers ? fuzz_alloc(MPA_FPDU_MAX) : NULL;
	outbound_init(&b->out, b->agreed.crc, b->agreed.tx_markers, b->agreed.ord);
	b->in_n = 0;
	CHECK(!qp_start(b->qp, &s) && b->qp->state == UW_QPS_RTS);
}

void bed_close(struct bed *b)
{
	struct qp *qp = b->qp;

	bed_poll(b);
	qp_fail(qp, UW_E_FLUSHED);
	CHECK(qp->state == UW_QPS_ERR && sq_empty(&qp->sq));
	bed_pull_all(b, BED_ROOM);
	qp_flush(qp);
	bed_poll(b);
	if (!b->srq) {
		CHECK(!rq_count(qp->rq));
		ledger_check_empty(&b->recvs);
	}
	ledger_check_empty(&b->sends);
	bed_free_memory(b);
	free(qp->sq.slots);
	free(qp->own_rq.slots);
	free(qp->taken);
	free(qp->mrx.scratch);
	free(qp);
	if (b->srq)
		free(b->srq->slots);
	free(b->srq);
	free(b->irq);
	free(b->orq);
	free(b->scq.ring);
	free(b->rcq.ring);
	free(b->in);
}

/* ---- the wire ---------------------------------------------------------------------------- */

void bed_arrive(struct bed *b, const void *p, size_t n)
{
	if (n > BED_IN - b->in_n)
		n = BED_IN - b->in_n;
	if (n)
		memcpy(b->in + b->in_n, p, n);
	b->in_n += n;
}

static void check_queues(const struct qp *qp)
{
	CHECK(qp->rd.irq.count <= qp->rd.irq.cap && qp->rd.orq.count <= qp->rd.orq.cap);
}

void bed_deliver(struct bed *b, struct feed *f)
{
	enum uw_qp_state before = b->qp->state;
	size_t used;
	struct cut c;
	uw_status st;

	cut_make(&c, (struct uw_span){ b->in, b->in_n }, f);
	st = qp_rx(b->qp, c.rope, &used);
	cut_free(&c);
	CHECK(used <= b->in_n && st != UW_MORE);
	if (st)
		CHECK(before != UW_QPS_ERR && b->qp->state == UW_QPS_ERR);
	if (b->qp->state == UW_QPS_ERR || b->qp->state == UW_QPS_RESET)
		CHECK(used == b->in_n); /* RFC 5041 §7.1: dropped silently */
	memmove(b->in, b->in + used, b->in_n - used);
	b->in_n -= used;
	check_queues(b->qp);
	bed_poll(b);
}

/* Reads and atomics of the QP that are on the wire and not answered. */
static unsigned asked_now(const struct qp *qp)
{
	const struct rdmap_tx *tx = &qp->rd.tx;
	bool unsent = tx->source == RDMAP_FROM_BYTES &&
		      (tx->opcode == RDMAP_READ_REQUEST || tx->opcode == RDMAP_ATOMIC_REQUEST);

	return qp->rd.orq.count - unsent;
}

size_t bed_pull(struct bed *b, uint8_t *p, size_t room)
{
	uint8_t *exact = fuzz_alloc(room);
	bool gated = b->qp->gated;
	size_t n;

	/* Answered in ways that the speaker does not know of. */
	while (b->out.asked_n > asked_now(b->qp))
		outbound_answered(&b->out);
	n = qp_tx(b->qp, exact, room);
	CHECK(n <= room && (!gated || !n)); /* RFC 5044 §7.1.2 */
	outbound_check(&b->out, exact, n);
	check_queues(b->qp);
	if (n)
		memcpy(p, exact, n);
	free(exact);
	bed_poll(b);
	return n;
}

void bed_pull_all(struct bed *b, size_t room)
{
	uint8_t p[BED_ROOM];
	unsigned segments = 0;

	while (bed_pull(b, p, room))
		CHECK(++segments < 100000); /* it ends */
	/* Only a segment with room for nothing may leave something over. */
	CHECK(!qp_tx_prepare(b->qp) || room < 128);
}
