/* SPDX-License-Identifier: BSD-3-Clause */
#include "speak.h"

#include "mpa/fpdu.h"

void speak_init(struct speaker *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned q = 0; q < RDMAP_QNS; q++)
		s->msn[q] = 1;
}

/* ---- what each opcode carries: fills in h and the octets behind the DDP header ------------- */

struct words {
	struct speaker *s;
	struct bed *b;
	struct feed *f;
	struct ddp_hdr h;
	uint8_t *body;
	size_t n; /* octets of body */
};

#define BODY_MAX (SPEAK_MAX - DDP_HDR_MAX)

static void say_write(struct words *w)
{
	struct bed_target t;

	w->n = feed_length(w->f, BODY_MAX);
	t = bed_target(w->b, w->f, (uint32_t)w->n);
	feed_fill(w->f, w->body, w->n);
	w->h.stag = t.stag;
	w->h.to = t.to;
}

static void say_read_request(struct words *w)
{
	struct rdmap_read r = { .sink_stag = feed_u8(w->f), .sink_to = feed_u8(w->f) };
	struct bed_target t;

	r.size = feed_rarely(w->f, 16) ? feed_u32(w->f) : feed_length(w->f, 5000);
	t = bed_target(w->b, w->f, r.size);
	r.src_stag = t.stag;
	r.src_to = t.to;
	w->n = sizeof(struct rdmap_read_wire);
	rdmap_read_encode(&r, w->body);
}

static void say_read_response(struct words *w)
{
	const struct outbound *o = &w->b->out;
	struct asked a = o->asked_n ? o->asked[0] : (struct asked){ 0 };
	uint32_t left = a.size > w->s->answered ? a.size - w->s->answered : 0;

	w->n = left > BODY_MAX || !w->h.last ? feed_length(w->f, BODY_MAX) : left;
	if (w->n > left)
		w->n = left;
	feed_fill(w->f, w->body, w->n);
	w->h.stag = a.stag;
	w->h.to = w->s->answered;
	w->s->answered += (uint32_t)w->n;
	if (feed_rarely(w->f, 16)) { /* short, or somewhere else */
		w->h.to = feed_u64(w->f);
		return;
	}
	w->h.last = w->h.last && w->s->answered == a.size;
	if (w->h.last && !a.atomic) {
		outbound_answered(&w->b->out);
		w->s->answered = 0;
	}
}

static void say_send(struct words *w)
{
	w->n = feed_length(w->f, BODY_MAX);
	feed_fill(w->f, w->body, w->n);
	w->h.rsvd_ulp32 = feed_rarely(w->f, 2) ? w->b->m[BED_ALL].r.stag : feed_u32(w->f);
	w->h.mo = w->s->mo;
	w->s->mo = w->h.last ? 0 : w->s->mo + (uint32_t)w->n;
}

/* The header of a segment that the peer says it got (RFC 5040 §4.8). */
static void name_request(struct words *w, struct rdmap_term *t)
{
	struct ddp_hdr h = { .last = true,
			     .tagged = feed_bool(w->f),
			     .qn = feed_below(w->f, RDMAP_QNS),
			     .msn = w->b->out.msn[RDMAP_QN_READ] - feed_below(w->f, 4) };
	const struct outbound *o = &w->b->out;

	h.rsvd_ulp = rdmap_ctrl(feed_bool(w->f) ? RDMAP_READ_REQUEST : RDMAP_ATOMIC_REQUEST);
	t->has_ddp = true;
	t->ddp_hdr_len = (uint8_t)ddp_hdr_encode(&h, t->ddp_hdr);
	t->has_rdmap = feed_bool(w->f);
	if (t->has_rdmap && o->asked_n)
		uw_put32(t->rdmap_hdr, o->asked[feed_below(w->f, o->asked_n)].stag);
}

static void say_terminate(struct words *w)
{
	struct rdmap_term t = { .layer = feed_below(w->f, 3), .etype = feed_below(w->f, 4) };

	w->h.last = true;
	if (feed_bool(w->f)) {
		w->n = feed_length(w->f, 80);
		feed_fill(w->f, w->body, w->n);
		return;
	}
	t.code = feed_u8(w->f) & 0x0f;
	if (feed_bool(w->f))
		name_request(w, &t);
	w->n = rdmap_term_encode(&t, w->body);
}

static void say_imm(struct words *w)
{
	w->h.last = true;
	w->n = RDMAP_IMM_SIZE;
	feed_fill(w->f, w->body, w->n);
}

/* Those of RFC 7306, and seldom the two of ADR 33. */
static uint8_t some_operation(struct feed *f)
{
	static const uint8_t ours[] = { RDMAP_FLUSH, RDMAP_ATOMIC_WRITE };
	uint8_t pick = feed_u8(f);

	return pick < 192 ? pick % 4 : ours[pick % 2];
}

/* Placement and selectivity; most often what there is. */
static uint64_t some_wish(struct feed *f)
{
	uint8_t pick = feed_u8(f);

	return pick < 240 ? pick % 4 | (pick & 0x10) : feed_u64(f);
}

static void say_atomic_request(struct words *w)
{
	struct bed_target t = bed_target(w->b, w->f, 8);
	struct rdmap_atomic a = { .aop = some_operation(w->f),
				  .req_id = feed_u32(w->f),
				  .stag = t.stag,
				  .to = feed_rarely(w->f, 4) ? t.to : t.to & ~(uint64_t)7,
				  .add_swap = feed_u8(w->f),
				  .compare = feed_u8(w->f),
				  .add_swap_mask = feed_bool(w->f) ? feed_u64(w->f) : 0,
				  .compare_mask = feed_bool(w->f) ? feed_u64(w->f) : UINT64_MAX };

	if (a.aop == RDMAP_FLUSH) {
		a.add_swap_mask = some_wish(w->f);
		a.add_swap = feed_length(w->f, 2000);
	}
	w->n = sizeof(struct rdmap_atomic_wire);
	rdmap_atomic_encode(&a, w->body);
}

static void say_atomic_response(struct words *w)
{
	const struct outbound *o = &w->b->out;
	struct asked a = o->asked_n ? o->asked[0] : (struct asked){ 0 };
	struct rdmap_atomic_resp r = { .req_id = a.stag, .original = feed_u64(w->f) };

	w->n = sizeof(struct rdmap_atomic_resp_wire);
	rdmap_atomic_resp_encode(&r, w->body);
	if (a.atomic)
		outbound_answered(&w->b->out);
}

static void (*const says[RDMAP_OPCODES])(struct words *w) = {
	[RDMAP_WRITE] = say_write,
	[RDMAP_READ_REQUEST] = say_read_request,
	[RDMAP_READ_RESPONSE] = say_read_response,
	[RDMAP_SEND] = say_send,
	[RDMAP_SEND_INV] = say_send,
	[RDMAP_SEND_SE] = say_send,
	[RDMAP_SEND_SE_INV] = say_send,
	[RDMAP_TERMINATE] = say_terminate,
	[RDMAP_IMM] = say_imm,
	[RDMAP_IMM_SE] = say_imm,
	[RDMAP_ATOMIC_REQUEST] = say_atomic_request,
	[RDMAP_ATOMIC_RESPONSE] = say_atomic_response,
	[RDMAP_SEND_IMM] = say_send,
};

/* ---- what goes wrong --------------------------------------------------------------------- */

static void spoil_header(struct ddp_hdr *h, struct feed *f)
{
	switch (feed_below(f, 8)) {
	case 0:
		h->tagged = !h->tagged;
		break;
	case 1:
		h->last = !h->last;
		break;
	case 2:
		h->rsvd_ulp ^= (uint8_t)(1u << feed_below(f, 8));
		break;
	case 3:
		h->qn = feed_u32(f);
		break;
	case 4:
		h->msn += feed_u8(f);
		break;
	case 5:
		h->mo += feed_u32(f);
		break;
	case 6:
		h->stag ^= 1u << feed_below(f, 32);
		break;
	default:
		h->to += (int64_t)feed_u64(f);
		break;
	}
}

static void spoil_octets(uint8_t *p, size_t *n, struct feed *f)
{
	uint8_t how = feed_u8(f);

	if (how < 64)
		*n -= feed_u8(f) % (*n + 1);
	else if (how < 128 && *n < SPEAK_MAX)
		p[(*n)++] = how;
	else if (*n)
		p[feed_u16(f) % *n] ^= (uint8_t)(1u << (how & 7));
}

size_t speak_ulpdu(struct speaker *s, struct bed *b, struct feed *f, uint8_t *out)
{
	uint8_t opcode = feed_u8(f) % RDMAP_OPCODES, how = feed_u8(f), body[SPEAK_MAX];
	struct words w = { .s = s, .b = b, .f = f, .body = body };
	size_t n;

	w.h.rsvd_ulp = rdmap_ctrl(opcode);
	w.h.last = how & 3;
	w.h.tagged = rdmap_ops[opcode].tagged;
	w.h.qn = rdmap_ops[opcode].qn;
	if (says[opcode])
		says[opcode](&w);
	else
		w.n = feed_below(f, 64);
	if (!w.h.tagged) {
		w.h.msn = s->msn[w.h.qn];
		s->msn[w.h.qn] += w.h.last;
	}
	if (how >= 240)
		spoil_header(&w.h, f);
	n = ddp_hdr_encode(&w.h, out);
	memcpy(out + n, body, w.n);
	n += w.n;
	if (how >= 232 && how < 240)
		spoil_octets(out, &n, f);
	return n;
}

void speak_fpdu(struct speaker *s, struct bed *b, struct feed *f)
{
	uint8_t out[SPEAK_MAX + 64];
	struct uw_stats stats = { 0 };
	struct mpa_tx tx = { .crc = b->agreed.crc,
			     .markers = b->agreed.rx_markers,
			     .phase = s->phase,
			     .stats = &stats };
	size_t n = speak_ulpdu(s, b, f, mpa_tx_ulpdu(out));

	n = mpa_tx_finish(&tx, out, n);
	s->phase = tx.phase;
	if (feed_rarely(f, 32))
		out[feed_u16(f) % n] ^= (uint8_t)(1u << feed_below(f, 8));
	bed_arrive(b, out, n);
}
