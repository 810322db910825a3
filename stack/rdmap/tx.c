/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMAP outbound: messages to segments. RFC 5040 §5. */
#include "rdmap/rdmap.h"

#include <endian.h>
#include <string.h>

#include "base/guard.h"
#include "rdmap/atomic.h"
#include "rdmap/flush.h"

void rdmap_stream_init(struct rdmap_stream *s, const struct rdmap_queues *q, struct uw_stats *st)
{
	memset(s, 0, sizeof(*s));
	ddp_stream_init(&s->ddp, st);
	s->irq = (struct rdmap_irq){ .v = q->irq, .cap = q->ird };
	s->orq = (struct rdmap_orq){ .v = q->orq, .cap = q->ord };
	s->next_sink = q->first_sink ? q->first_sink : 1;
	s->stats = st;
}

static void begin(struct rdmap_stream *s, unsigned opcode, enum rdmap_source source)
{
	s->tx.opcode = (uint8_t)opcode;
	s->tx.msg.hdr.rsvd_ulp = rdmap_ctrl(opcode);
	s->tx.source = source;
	s->tx.off = 0;
	s->tx.answers = false;
}

void rdmap_send(struct rdmap_stream *s, unsigned opcode, const struct mem_sgl *sgl,
		uint32_t inv_stag)
{
	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_SEND, sgl->len);
	/* RFC 5040 §4.1: the Invalidate STag field is zero for all but two opcodes. */
	s->tx.msg.hdr.rsvd_ulp32 = rdmap_ops[opcode].invalidates ? inv_stag : 0;
	s->tx.sgl = *sgl;
	begin(s, opcode, RDMAP_FROM_SGL);
}

void rdmap_send_imm(struct rdmap_stream *s, const struct mem_sgl *sgl, uint32_t imm_be,
		    bool solicited)
{
	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_SEND, sgl->len);
	s->tx.msg.hdr.rsvd_ulp32 = be32toh(imm_be);
	s->tx.sgl = *sgl;
	begin(s, RDMAP_SEND_IMM, RDMAP_FROM_SGL);
	if (solicited)
		s->tx.msg.hdr.rsvd_ulp |= RDMAP_CTRL_SE;
}

void rdmap_imm(struct rdmap_stream *s, uint32_t imm_be, bool solicited)
{
	memset(s->tx.bytes, 0, RDMAP_IMM_SIZE);
	memcpy(s->tx.bytes, &imm_be, sizeof(imm_be));
	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_SEND, RDMAP_IMM_SIZE);
	begin(s, solicited ? RDMAP_IMM_SE : RDMAP_IMM, RDMAP_FROM_BYTES);
}

void rdmap_write(struct rdmap_stream *s, const struct mem_sgl *sgl, uint32_t stag, uint64_t to)
{
	ddp_msg_tagged(&s->tx.msg, stag, to, sgl->len);
	s->tx.sgl = *sgl;
	begin(s, RDMAP_WRITE, RDMAP_FROM_SGL);
}

/* RFC 5040 §5.2: never more than ORD Reads are outstanding. */
static uw_status orq_room(const struct rdmap_stream *s)
{
	if (!s->orq.cap)
		return UW_E_ORD;
	return s->orq.count < s->orq.cap ? UW_OK : UW_MORE;
}

/* Take a place in the ORQ, which has one, under a private STag that no other has. */
static struct rdmap_orq_entry *outstanding(struct rdmap_stream *s, const struct mem_sgl *sink)
{
	struct rdmap_orq *q = &s->orq;
	struct rdmap_orq_entry *e = &q->v[rdmap_queue_at(q->head, q->count, q->cap)];

	*e = (struct rdmap_orq_entry){ .sink = *sink, .stag = s->next_sink };
	q->count++;
	s->next_sink = s->next_sink == UINT32_MAX ? 1 : s->next_sink + 1;
	return e;
}

static void request_read(struct rdmap_stream *s, const struct mem_sgl *sink, uint32_t stag,
			 uint64_t to, bool hidden)
{
	struct rdmap_read r = { .size = (uint32_t)sink->len, .src_stag = stag, .src_to = to };
	struct rdmap_orq_entry *e = outstanding(s, sink);

	e->hidden = hidden;
	/* Sink TO 0: offsets into the sink list; the STag says which. */
	r.sink_stag = e->stag;
	rdmap_read_encode(&r, s->tx.bytes);
	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_READ, sizeof(struct rdmap_read_wire));
	begin(s, RDMAP_READ_REQUEST, RDMAP_FROM_BYTES);
}

uw_status rdmap_read(struct rdmap_stream *s, const struct mem_sgl *sink, uint32_t stag, uint64_t to)
{
	uw_status st = orq_room(s);

	if (st)
		return st;
	request_read(s, sink, stag, to, false);
	return UW_OK;
}

/* RFC 7306 §5: an Atomic Request counts as a read against ORD. */
uw_status rdmap_atomic(struct rdmap_stream *s, const struct mem_sgl *sink, struct rdmap_atomic *a)
{
	struct rdmap_orq_entry *e;
	uw_status st = orq_room(s);

	if (st)
		return st;
	e = outstanding(s, sink);
	e->atomic = true;
	a->req_id = e->stag;
	rdmap_atomic_encode(a, s->tx.bytes);
	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_READ, sizeof(struct rdmap_atomic_wire));
	begin(s, RDMAP_ATOMIC_REQUEST, RDMAP_FROM_BYTES);
	return UW_OK;
}

void rdmap_rtr(struct rdmap_stream *s, enum rdmap_rtr kind)
{
	const struct mem_sgl none = { 0 };

	/* STag 1: some adapters fault on STag 0 even at length 0. */
	if (kind == RDMAP_RTR_SEND)
		rdmap_send(s, RDMAP_SEND, &none, 0);
	else if (kind == RDMAP_RTR_WRITE)
		rdmap_write(s, &none, 1, 0);
	else if (s->orq.cap)
		request_read(s, &none, 1, 0, true);
}

/* The word is looked up again: it may have been deregistered since the Request came. */
static bool execute(struct rdmap_stream *s, struct rdmap_irq_entry *e)
{
	struct mem_access at = { .stag = e->a.stag,
				 .pd = s->pd,
				 .stream = s->num,
				 .to = e->a.to,
				 .len = 8,
				 .need = UW_ACCESS_REMOTE_ATOMIC };
	uint8_t *va = NULL;

	s->irq.waiting--;
	return !mem_check(s->mem, &at, &va) && rdmap_atomic_execute(&e->a, va, &e->original);
}

static void respond_atomic(struct rdmap_stream *s, struct rdmap_irq_entry *e)
{
	struct rdmap_atomic_resp r = { .req_id = e->a.req_id };

	ddp_msg_untagged(&s->ddp, &s->tx.msg, RDMAP_QN_ATOMIC,
			 sizeof(struct rdmap_atomic_resp_wire));
	if (!e->executed && !execute(s, e)) {
		/* STag 0 names nothing: rdmap_tx_segment reports that the memory is gone. */
		s->tx.src_stag = 0;
		s->tx.src_to = 0;
		begin(s, RDMAP_ATOMIC_RESPONSE, RDMAP_FROM_STAG);
		return;
	}
	r.original = e->original;
	rdmap_atomic_resp_encode(&r, s->tx.bytes);
	begin(s, RDMAP_ATOMIC_RESPONSE, RDMAP_FROM_BYTES);
}

void rdmap_respond(struct rdmap_stream *s)
{
	struct rdmap_irq_entry *e = &s->irq.v[s->irq.head];
	const struct rdmap_read *r = &e->r;

	if (e->atomic) {
		respond_atomic(s, e);
		s->tx.answers = true;
		return;
	}
	ddp_msg_tagged(&s->tx.msg, r->sink_stag, r->sink_to, r->size);
	s->tx.src_stag = r->src_stag;
	s->tx.src_to = r->src_to;
	begin(s, RDMAP_READ_RESPONSE, RDMAP_FROM_STAG);
	s->tx.answers = true;
}

/* RFC 5040 §4.8: the Terminate about a Read that fails while it is answered brings its Request
 * back, advanced by what has been answered. An Atomic Request comes without (RFC 7306 §8.1). */
static void blame_request(struct rdmap_stream *s)
{
	const struct rdmap_irq_entry *e = &s->irq.v[s->irq.head];
	unsigned opcode = e->atomic ? RDMAP_ATOMIC_REQUEST : RDMAP_READ_REQUEST;
	struct ddp_hdr h = { .last = true,
			     .rsvd_ulp = rdmap_ctrl(opcode),
			     .qn = RDMAP_QN_READ,
			     .msn = s->ddp.rx_msn[RDMAP_QN_READ] - s->irq.count };
	struct rdmap_read r;

	s->bad.hdr_len = (uint8_t)ddp_hdr_encode(&h, s->bad.raw);
	s->bad.length = (uint16_t)(s->bad.hdr_len + rdmap_ops[opcode].hdr);
	s->bad_read = !e->atomic;
	if (e->atomic)
		return;
	r = e->r;
	r.size -= (uint32_t)s->tx.off;
	r.sink_to += s->tx.off;
	r.src_to += s->tx.off;
	rdmap_read_encode(&r, s->bad_hdr);
}

/* A Read Response reads what the peer named, so the check is the peer's rights, each time: the
 * region may have been deregistered since the Request came (RFC 5042 §6.2.2, §6.3.3). */
static uw_status from_stag(struct rdmap_stream *s, uint8_t *out, size_t n)
{
	struct mem_access a = { .stag = s->tx.src_stag,
				.pd = s->pd,
				.stream = s->num,
				.to = s->tx.src_to + s->tx.off,
				.len = n,
				.need = UW_ACCESS_REMOTE_READ };
	uint8_t *va = NULL;
	enum mem_verdict v = n ? mem_check(s->mem, &a, &va) : MEM_OK;

	if (!v && n && !uw_guarded_copy(out, va, n))
		v = MEM_NO_BOUNDS;
	if (v)
		blame_request(s);
	return mem_verdict_status(v, MEM_FOR_RDMAP);
}

static uw_status fetch(struct rdmap_stream *s, uint8_t *out, size_t n)
{
	if (s->tx.source == RDMAP_FROM_STAG)
		return from_stag(s, out, n);
	return n ? mem_gather(s->mem, &s->tx.sgl, s->tx.off, out, n) : UW_OK;
}

static uw_status payload(struct rdmap_stream *s, uint8_t *out, size_t n)
{
	switch (s->tx.source) {
	case RDMAP_FROM_SGL:
	case RDMAP_FROM_STAG:
		return fetch(s, out, n);
	case RDMAP_FROM_BYTES:
		memcpy(out, s->tx.bytes + s->tx.off, n);
		return UW_OK;
	case RDMAP_FROM_NONE:
		break;
	}
	return UW_E_STATE;
}

static void finished(struct rdmap_stream *s)
{
	if (s->tx.answers) {
		s->tx.answers = false;
		s->irq.waiting -= s->tx.opcode == RDMAP_READ_RESPONSE;
		s->irq.head = rdmap_queue_at(s->irq.head, 1, s->irq.cap);
		s->irq.count--;
	}
	s->tx.source = RDMAP_FROM_NONE;
	s->stats->rdmap_tx_messages++;
}

static void advance(struct rdmap_stream *s, size_t len)
{
	s->tx.off += len;
	if (s->tx.source != RDMAP_FROM_BYTES)
		s->stats->payload_tx_bytes += len;
	if (ddp_msg_done(&s->tx.msg))
		finished(s);
}

uw_status rdmap_tx_segment(struct rdmap_stream *s, uint8_t *out, size_t max, size_t *n)
{
	size_t len;
	unsigned hdr = ddp_tx_segment(&s->ddp, &s->tx.msg, out, max, &len);
	uw_status st = payload(s, out + hdr, len);

	if (st)
		return st;
	*n = hdr + len;
	advance(s, len);
	return UW_OK;
}
