/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMAP inbound: check the opcode against the table, place, deliver. RFC 5040 §5, §7.2. */
#include "rdmap/rdmap.h"

#include <endian.h>
#include <string.h>

#include "base/guard.h"
#include "rdmap/atomic.h"
#include "rdmap/flush.h"

/* ---- tagged ------------------------------------------------------------------------------ */

/* RFC 5040 §5.1, RFC 5041 §5.2: check, place, never deliver. */
static uw_status rx_write(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	struct mem_access a = { .stag = seg->hdr.stag,
				.pd = s->pd,
				.stream = s->num,
				.to = seg->hdr.to,
				.len = seg->payload.len,
				.need = UW_ACCESS_REMOTE_WRITE };
	uint8_t *va = NULL;
	enum mem_verdict v;

	s->write_len = s->write_open ? s->write_len + (uint32_t)a.len : (uint32_t)a.len;
	s->write_open = !seg->hdr.last;
	if (!a.len) /* RFC 5041 §5.2: a zero-length message's STag and TO are not checked */
		return UW_OK;
	v = mem_check(s->mem, &a, &va);
	if (!v && !(s->remote_rights & UW_ACCESS_REMOTE_WRITE))
		v = MEM_NO_RIGHTS;
	if (v)
		return mem_verdict_status(v, MEM_FOR_DDP);
	if (!uw_rope_place(seg->payload, va, seg->payload.len))
		return mem_verdict_status(MEM_NO_BOUNDS, MEM_FOR_DDP);
	return UW_OK;
}

/* A peer may guess what is going to be asked; there is no answer before the question. */
static struct rdmap_orq_entry *oldest_read(struct rdmap_stream *s)
{
	bool unsent = s->tx.source == RDMAP_FROM_BYTES &&
		      (s->tx.opcode == RDMAP_READ_REQUEST || s->tx.opcode == RDMAP_ATOMIC_REQUEST);

	return s->orq.count > unsent ? &s->orq.v[s->orq.head] : NULL;
}

static void read_finished(struct rdmap_stream *s, const struct rdmap_orq_entry *e)
{
	bool hidden = e->hidden;

	s->orq.head = rdmap_queue_at(s->orq.head, 1, s->orq.cap);
	s->orq.count--;
	if (!hidden)
		s->ulp->read_done(s->ulp_arg);
}

/* RFC 5040 §5.2: a Response fills the sink of the oldest Request, whose private STag it bears. */
static uw_status rx_read_response(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	struct rdmap_orq_entry *e = oldest_read(s);
	uint64_t n = seg->payload.len;
	uw_status st;

	if (!e || e->atomic)
		return UW_E_RDMAP_OPCODE;
	if (n) {
		if (seg->hdr.stag != e->stag)
			return UW_E_DDP_STAG;
		if (seg->hdr.to + n < n)
			return UW_E_DDP_WRAP;
		/* RFC 5041 §5.2: as with a Send, each segment begins where the one before it ended
		 * (the sink's TO begins with 0). */
		if (seg->hdr.to != e->placed || n > e->sink.len - e->placed)
			return UW_E_DDP_BOUNDS;
		st = mem_scatter(s->mem, &e->sink, seg->hdr.to, seg->payload);
		if (st)
			return st;
		e->placed += n;
	}
	if (!seg->hdr.last)
		return UW_OK;
	if (e->placed < e->sink.len) /* a Response shorter than what was asked is no answer */
		return UW_E_RDMAP_STREAM_CATASTROPHIC;
	read_finished(s, e);
	return UW_OK;
}

/* ---- untagged ---------------------------------------------------------------------------- */

static uw_status open_recv(struct rdmap_stream *s)
{
	uw_status st;

	if (s->recv_open)
		return UW_OK;
	memset(&s->recv, 0, sizeof(s->recv));
	if (!s->rtr_send) {
		st = s->ulp->recv_take(s->ulp_arg, &s->recv);
		if (st)
			return st;
	}
	s->recv_open = true;
	s->recv_len = 0;
	return UW_OK;
}

/* RFC 5040 §5.3; RFC 5041 §5.3, §7.1: buffer there, offset and length within it. A sender gives a
 * message's segments in the order of their offsets (RFC 5041 §5.2) and TCP keeps it, so each begins
 * where the one before it ended. With any other the message would have a hole, and is not to be
 * delivered (§5.3). */
static uw_status rx_send(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	const struct rdmap_op *op = &rdmap_ops[rdmap_ctrl_opcode(seg->hdr.rsvd_ulp)];
	struct rdmap_delivery d = { .solicited = op->solicited };
	uint64_t end = (uint64_t)seg->hdr.mo + seg->payload.len;
	uw_status st = open_recv(s);

	if (st)
		return st;
	if (seg->hdr.mo != s->recv_len)
		return UW_E_DDP_MO;
	/* RFC 5040 §5.2: 2^32-1 octets at most, even if the receive holds more. */
	if (end > s->recv.len || end > UINT32_MAX)
		return UW_E_DDP_TOO_LONG;
	st = mem_scatter(s->mem, &s->recv, seg->hdr.mo, seg->payload);
	if (st)
		return st;
	s->recv_len = (uint32_t)end;
	if (!seg->hdr.last)
		return UW_OK;
	if (op->invalidates) {
		st = mem_invalidate_remote(s->mem, seg->hdr.rsvd_ulp32, s->pd, s->num);
		if (st)
			return st;
		d.invalidated = true;
		d.inv_stag = seg->hdr.rsvd_ulp32;
	}
	s->recv_open = false;
	d.length = s->recv_len;
	if (rdmap_ctrl_opcode(seg->hdr.rsvd_ulp) == RDMAP_SEND_IMM) {
		d.has_imm = true;
		d.imm_be = htobe32(seg->hdr.rsvd_ulp32);
		d.solicited = seg->hdr.rsvd_ulp & RDMAP_CTRL_SE;
	}
	if (s->rtr_send)
		s->rtr_send = false;
	else
		s->ulp->recv_done(s->ulp_arg, &d);
	return UW_OK;
}

/* The IRQ has room for it. */
static struct rdmap_irq_entry *next_entry(struct rdmap_stream *s)
{
	return &s->irq.v[rdmap_queue_at(s->irq.head, s->irq.count, s->irq.cap)];
}

/* RFC 5040 §5.2: check the source before accepting, keep the order, never hold more than IRD
 * (RFC 5042 §6.4.3.3). RFC 5042 §6.5: the rights of the stream limit those of its regions. */
static uw_status rx_read_request(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	struct rdmap_read r;
	struct mem_access a = { .pd = s->pd, .stream = s->num, .need = UW_ACCESS_REMOTE_READ };
	struct rdmap_irq_entry *e;
	uint8_t *va = NULL;
	enum mem_verdict v;

	uw_rope_copy(seg->payload, s->bad_hdr, sizeof(s->bad_hdr));
	rdmap_read_decode(s->bad_hdr, &r);
	s->bad_read = true;
	if (s->irq.count == s->irq.cap)
		return UW_E_DDP_NO_BUFFER;
	if (r.size) { /* RFC 5040 §5.2: a zero-length read is not checked */
		a.stag = r.src_stag;
		a.to = r.src_to;
		a.len = r.size;
		v = mem_check(s->mem, &a, &va);
		if (!v && !(s->remote_rights & UW_ACCESS_REMOTE_READ))
			v = MEM_NO_RIGHTS;
		if (v)
			return mem_verdict_status(v, MEM_FOR_RDMAP);
	}
	e = next_entry(s);
	e->atomic = e->executed = false;
	e->r = r;
	s->irq.count++;
	s->irq.waiting++;
	s->bad_read = false;
	return UW_OK;
}

/* RFC 7306 §5, §8.2: rights, bounds and alignment before anything is touched. */
static uw_status check_atomic(const struct rdmap_stream *s, const struct rdmap_atomic *a,
			      uint8_t **va)
{
	const struct mem_access at = { .stag = a->stag,
				       .pd = s->pd,
				       .stream = s->num,
				       .to = a->to,
				       .len = 8,
				       .need = UW_ACCESS_REMOTE_ATOMIC };
	enum mem_verdict v;

	if (a->aop != RDMAP_FETCH_ADD && a->aop != RDMAP_CMP_SWAP)
		return UW_E_RDMAP_OPCODE;
	v = mem_check(s->mem, &at, va);
	if (!v && !(s->remote_rights & UW_ACCESS_REMOTE_ATOMIC))
		v = MEM_NO_RIGHTS;
	if (v)
		return mem_verdict_status(v, MEM_FOR_RDMAP);
	return (uintptr_t)*va % 8 ? UW_E_RDMAP_STREAM_CATASTROPHIC : UW_OK;
}

/* RFC 7306 §5: behind the Reads and atomics before it. If no Read waits for its answer, that is
 * now; else it is when its turn to be answered comes. */
static uw_status begin_atomic(struct rdmap_stream *s, struct rdmap_irq_entry *e)
{
	uint8_t *va = NULL;
	uw_status st = check_atomic(s, &e->a, &va);

	if (st || s->irq.waiting)
		return st;
	e->executed = rdmap_atomic_execute(&e->a, va, &e->original);
	return e->executed ? UW_OK : mem_verdict_status(MEM_NO_BOUNDS, MEM_FOR_RDMAP);
}

/* A FLUSH or ATOMIC WRITE does not wait for Reads (doc/adr/0033). */
static uw_status begin_placement(const struct rdmap_stream *s, struct rdmap_irq_entry *e)
{
	e->executed = true;
	return rdmap_place(s, &e->a);
}

static uw_status rx_atomic_request(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	uint8_t flat[sizeof(struct rdmap_atomic_wire)];
	struct rdmap_irq_entry *e;
	uw_status st;

	if (s->irq.count == s->irq.cap)
		return UW_E_DDP_NO_BUFFER;
	e = next_entry(s);
	e->atomic = true;
	e->executed = false;
	e->original = 0;
	rdmap_atomic_decode(uw_rope_flat(seg->payload, flat, sizeof(flat)), &e->a);
	st = rdmap_is_placement(&e->a) ? begin_placement(s, e) : begin_atomic(s, e);
	if (st)
		return st;
	s->irq.count++;
	s->irq.waiting += !e->executed;
	return UW_OK;
}

/* RFC 7306 §5.2.2: answers come in the order of the requests. */
static uw_status rx_atomic_response(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	struct rdmap_orq_entry *e = oldest_read(s);
	uint8_t flat[sizeof(struct rdmap_atomic_resp_wire)];
	struct rdmap_atomic_resp r;
	struct uw_span original = { (const uint8_t *)&r.original, sizeof(r.original) };
	uw_status st;

	if (!e || !e->atomic)
		return UW_E_RDMAP_OPCODE;
	rdmap_atomic_resp_decode(uw_rope_flat(seg->payload, flat, sizeof(flat)), &r);
	if (r.req_id != e->stag)
		return UW_E_RDMAP_STREAM_CATASTROPHIC;
	/* A FLUSH or ATOMIC WRITE brings no value back. */
	st = e->sink.len ? mem_scatter(s->mem, &e->sink, 0, uw_rope_of(&original)) : UW_OK;
	if (st)
		return st;
	read_finished(s, e);
	return UW_OK;
}

/* RFC 7306 §6: takes one receive, brings eight octets, of which the verbs know four. */
static uw_status rx_imm(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	unsigned opcode = rdmap_ctrl_opcode(seg->hdr.rsvd_ulp);
	struct rdmap_delivery d = { .solicited = rdmap_ops[opcode].solicited,
				    .has_imm = true,
				    .write_imm = true };
	uw_status st;

	if (s->rtr_send) /* RFC 6581 §9.2: a Send opens the stream, and has no receive to give */
		return UW_E_RDMAP_OPCODE;
	st = open_recv(s);
	if (st)
		return st;
	d.length = s->write_len; /* the Write in front of it, which is what verbs report */
	s->write_len = 0;
	uw_rope_copy(seg->payload, &d.imm_be, sizeof(d.imm_be));
	s->recv_open = false;
	s->ulp->recv_done(s->ulp_arg, &d);
	return UW_OK;
}

static uw_status rx_terminate(struct rdmap_stream *s, const struct ddp_seg *seg)
{
	uint8_t flat[RDMAP_TERM_MAX];
	size_t n = seg->payload.len < sizeof(flat) ? seg->payload.len : sizeof(flat);
	struct rdmap_term t;

	uw_rope_copy(seg->payload, flat, n);
	s->term_rcvd = true;
	s->stats->rdmap_rx_terminates++;
	/* A malformed one ends the stream all the same (RFC 5040 §5.4). */
	if (rdmap_term_decode((struct uw_span){ flat, n }, &t))
		t.has_ddp = t.has_rdmap = false;
	s->ulp->terminated(s->ulp_arg, &t);
	return UW_E_TERMINATED;
}

/* ---- dispatch ---------------------------------------------------------------------------- */

typedef uw_status handler(struct rdmap_stream *s, const struct ddp_seg *seg);

static handler *const handlers[RDMAP_OPCODES] = {
	[RDMAP_WRITE] = rx_write,
	[RDMAP_READ_REQUEST] = rx_read_request,
	[RDMAP_READ_RESPONSE] = rx_read_response,
	[RDMAP_SEND] = rx_send,
	[RDMAP_SEND_INV] = rx_send,
	[RDMAP_SEND_SE] = rx_send,
	[RDMAP_SEND_SE_INV] = rx_send,
	[RDMAP_TERMINATE] = rx_terminate,
	[RDMAP_IMM] = rx_imm,
	[RDMAP_IMM_SE] = rx_imm,
	[RDMAP_ATOMIC_REQUEST] = rx_atomic_request,
	[RDMAP_ATOMIC_RESPONSE] = rx_atomic_response,
	[RDMAP_SEND_IMM] = rx_send,
};

/* RFC 5040 §7.2: version, opcode, and that tag and queue are the opcode's. */
static uw_status check(const struct ddp_seg *seg, const struct rdmap_op *op)
{
	if (rdmap_ctrl_version(seg->hdr.rsvd_ulp) != RDMAP_VERSION)
		return UW_E_RDMAP_VERSION;
	if (!op->name || op->tagged != seg->hdr.tagged)
		return UW_E_RDMAP_OPCODE;
	if (!op->tagged && op->qn != seg->hdr.qn)
		return UW_E_RDMAP_OPCODE;
	if (seg->payload.len < op->hdr || (!op->payload && seg->payload.len != op->hdr))
		return UW_E_RDMAP_UNSPEC;
	/* A header-only message is one segment: its buffer on the queue takes no more. */
	if (op->hdr && (!seg->hdr.last || seg->hdr.mo))
		return UW_E_DDP_MO;
	return UW_OK;
}

uw_status rdmap_rx(struct rdmap_stream *s, struct uw_rope ulpdu)
{
	struct ddp_seg *seg = &s->bad;
	unsigned opcode;
	uw_status st = ddp_rx(&s->ddp, ulpdu, seg);

	s->bad_read = false;
	if (st)
		return st;
	opcode = rdmap_ctrl_opcode(seg->hdr.rsvd_ulp);
	st = check(seg, &rdmap_ops[opcode]);
	if (st)
		return st;
	st = handlers[opcode](s, seg);
	if (st == UW_MORE)
		ddp_rx_put_back(&s->ddp, seg);
	else
		s->stats->payload_rx_bytes += seg->payload.len - rdmap_ops[opcode].hdr;
	if (st)
		return st;
	if (seg->hdr.last) {
		ddp_rx_delivered(&s->ddp, seg);
		s->stats->rdmap_rx_messages++;
	}
	return UW_OK;
}
