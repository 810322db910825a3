/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rdmap_wire.h"

#include <string.h>

/* RFC 5040 §4.3 figure 4; RFC 7306 §4.1 figure 2. */
const struct rdmap_op rdmap_ops[RDMAP_OPCODES] = {
	/* opcode                  name                  tagged qn hdr payload inval solicited */
	[RDMAP_WRITE] = { "RDMA Write", true, 0, 0, true, false, false },
	[RDMAP_READ_REQUEST] = { "Read Request", false, RDMAP_QN_READ, 28, false, false, false },
	[RDMAP_READ_RESPONSE] = { "Read Response", true, 0, 0, true, false, false },
	[RDMAP_SEND] = { "Send", false, RDMAP_QN_SEND, 0, true, false, false },
	[RDMAP_SEND_INV] = { "Send with Invalidate", false, RDMAP_QN_SEND, 0, true, true, false },
	[RDMAP_SEND_SE] = { "Send with SE", false, RDMAP_QN_SEND, 0, true, false, true },
	[RDMAP_SEND_SE_INV] = { "Send with SE and Invalidate", false, RDMAP_QN_SEND, 0, true, true,
				true },
	[RDMAP_TERMINATE] = { "Terminate", false, RDMAP_QN_TERMINATE, 4, true, false, false },
	[RDMAP_IMM] = { "Immediate Data", false, RDMAP_QN_SEND, 8, false, false, false },
	[RDMAP_IMM_SE] = { "Immediate Data with SE", false, RDMAP_QN_SEND, 8, false, false, true },
	[RDMAP_ATOMIC_REQUEST] = { "Atomic Request", false, RDMAP_QN_READ, 52, false, false,
				   false },
	[RDMAP_ATOMIC_RESPONSE] = { "Atomic Response", false, RDMAP_QN_ATOMIC, 12, false, false,
				    false },
	[RDMAP_SEND_IMM] = { "Send with Immediate (experimental)", false, RDMAP_QN_SEND, 0, true,
			     false, false },
};

void rdmap_read_encode(const struct rdmap_read *r, uint8_t *out)
{
	struct rdmap_read_wire *w = (struct rdmap_read_wire *)out;

	uw_put32(w->sink_stag, r->sink_stag);
	uw_put64(w->sink_to, r->sink_to);
	uw_put32(w->size, r->size);
	uw_put32(w->src_stag, r->src_stag);
	uw_put64(w->src_to, r->src_to);
}

void rdmap_read_decode(const uint8_t *in, struct rdmap_read *r)
{
	const struct rdmap_read_wire *w = (const struct rdmap_read_wire *)in;

	r->sink_stag = uw_be32(w->sink_stag);
	r->sink_to = uw_be64(w->sink_to);
	r->size = uw_be32(w->size);
	r->src_stag = uw_be32(w->src_stag);
	r->src_to = uw_be64(w->src_to);
}

void rdmap_atomic_encode(const struct rdmap_atomic *a, uint8_t *out)
{
	struct rdmap_atomic_wire *w = (struct rdmap_atomic_wire *)out;

	uw_put32(w->aop, a->aop & 0x0f);
	uw_put32(w->req_id, a->req_id);
	uw_put32(w->stag, a->stag);
	uw_put64(w->to, a->to);
	uw_put64(w->add_swap, a->add_swap);
	uw_put64(w->add_swap_mask, a->add_swap_mask);
	uw_put64(w->compare, a->compare);
	uw_put64(w->compare_mask, a->compare_mask);
}

void rdmap_atomic_decode(const uint8_t *in, struct rdmap_atomic *a)
{
	const struct rdmap_atomic_wire *w = (const struct rdmap_atomic_wire *)in;

	a->aop = w->aop[3] & 0x0f;
	a->req_id = uw_be32(w->req_id);
	a->stag = uw_be32(w->stag);
	a->to = uw_be64(w->to);
	a->add_swap = uw_be64(w->add_swap);
	a->add_swap_mask = uw_be64(w->add_swap_mask);
	a->compare = uw_be64(w->compare);
	a->compare_mask = uw_be64(w->compare_mask);
}

void rdmap_atomic_resp_encode(const struct rdmap_atomic_resp *r, uint8_t *out)
{
	struct rdmap_atomic_resp_wire *w = (struct rdmap_atomic_resp_wire *)out;

	uw_put32(w->req_id, r->req_id);
	uw_put64(w->original, r->original);
}

void rdmap_atomic_resp_decode(const uint8_t *in, struct rdmap_atomic_resp *r)
{
	const struct rdmap_atomic_resp_wire *w = (const struct rdmap_atomic_resp_wire *)in;

	r->req_id = uw_be32(w->req_id);
	r->original = uw_be64(w->original);
}

unsigned rdmap_term_encode(const struct rdmap_term *t, uint8_t *out)
{
	struct rdmap_term_wire *w = (struct rdmap_term_wire *)out;
	uint8_t *p = out + sizeof(*w);

	w->layer_etype = (uint8_t)(t->layer << 4 | t->etype);
	w->code = t->code;
	/* RFC 5040 §4.8: D needs M. */
	w->hdrct = (uint8_t)((t->has_ddp ? RDMAP_TERM_M | RDMAP_TERM_D : 0) |
			     (t->has_rdmap ? RDMAP_TERM_R : 0));
	w->reserved = 0;
	if (t->has_ddp) {
		uw_put16(p, t->ddp_length);
		memcpy(p + 2, t->ddp_hdr, t->ddp_hdr_len);
		p += 2 + t->ddp_hdr_len;
	}
	if (t->has_rdmap) {
		memcpy(p, t->rdmap_hdr, sizeof(t->rdmap_hdr));
		p += sizeof(t->rdmap_hdr);
	}
	return (unsigned)(p - out);
}

/* RFC 5040 figure 9: layers 0..2; RDMAP types 0..2, DDP 0..3, LLP 0. */
static bool pair_exists(unsigned layer, unsigned etype)
{
	static const uint8_t types[3] = { 3, 4, 1 };

	return layer < 3 && etype < types[layer];
}

/* siw writes layer and type swapped and the flags as bits 0..2 of the third octet (M = 1, D = 2,
 * R = 4). Codes tell the two apart where both readings of the first octet would be possible. */
static bool looks_like_siw(const struct rdmap_term_wire *w)
{
	unsigned hi = w->layer_etype >> 4, lo = w->layer_etype & 0x0f;

	if (w->hdrct & 0xe0)
		return false;
	if (w->hdrct & 0x07)
		return true;
	if (!pair_exists(hi, lo))
		return pair_exists(lo, hi);
	return uw_status_from_term((uint8_t)hi, (uint8_t)lo, w->code) == UW_E_RDMAP_UNSPEC &&
	       uw_status_from_term((uint8_t)lo, (uint8_t)hi, w->code) != UW_E_RDMAP_UNSPEC;
}

static unsigned siw_hdrct(unsigned b)
{
	return (b & 1 ? RDMAP_TERM_M : 0) | (b & 2 ? RDMAP_TERM_D : 0) | (b & 4 ? RDMAP_TERM_R : 0);
}

static uw_status decode_headers(struct uw_span in, unsigned hdrct, struct rdmap_term *t)
{
	size_t at = sizeof(struct rdmap_term_wire);

	if (hdrct & RDMAP_TERM_M) {
		if (in.n < at + 2)
			return UW_E_RDMAP_UNSPEC;
		t->ddp_length = uw_be16(in.p + at);
		at += 2;
	}
	if (hdrct & RDMAP_TERM_D) {
		if (in.n < at + 1)
			return UW_E_RDMAP_UNSPEC;
		t->ddp_hdr_len = (uint8_t)ddp_hdr_size(in.p[at] & DDP_CTRL_TAGGED);
		if (in.n < at + t->ddp_hdr_len)
			return UW_E_RDMAP_UNSPEC;
		memcpy(t->ddp_hdr, in.p + at, t->ddp_hdr_len);
		t->has_ddp = true;
		at += t->ddp_hdr_len;
	}
	if (hdrct & RDMAP_TERM_R) {
		if (in.n < at + sizeof(t->rdmap_hdr))
			return UW_E_RDMAP_UNSPEC;
		memcpy(t->rdmap_hdr, in.p + at, sizeof(t->rdmap_hdr));
		t->has_rdmap = true;
	}
	return UW_OK;
}

uw_status rdmap_term_decode(struct uw_span in, struct rdmap_term *t)
{
	const struct rdmap_term_wire *w = (const struct rdmap_term_wire *)in.p;
	unsigned hdrct;

	memset(t, 0, sizeof(*t));
	if (in.n < sizeof(*w))
		return UW_E_RDMAP_UNSPEC;
	t->siw_order = looks_like_siw(w);
	t->layer = t->siw_order ? w->layer_etype & 0x0f : w->layer_etype >> 4;
	t->etype = t->siw_order ? w->layer_etype >> 4 : w->layer_etype & 0x0f;
	t->code = w->code;
	hdrct = t->siw_order ? siw_hdrct(w->hdrct) : w->hdrct;
	return decode_headers(in, hdrct, t);
}
