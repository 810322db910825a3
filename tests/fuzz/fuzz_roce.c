/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2: any octets as a packet, with an ICRC that fits or not; what is written reads the same;
 * any packets in any order to a UC or UD QP whose program posts, polls and deregisters meanwhile.
 * IBA volume 1, §9.2, §7.8.1, §9.8.2, §9.8.3, annex A17.
 */
#include "bed.h"
#include "packet_repair.h"
#include "roce/qp.h"

#define PACKET_MAX (ROCE_HEAD_MAX + ROCE_MTU_MAX + ROCE_TAIL_MAX)

/* All that a good packet names is there. */
static void touch(const struct roce_packet *p, size_t n)
{
	uint8_t grh[ROCE_GRH], *payload = fuzz_alloc(p->payload.len);

	CHECK(p->op && p->op->code == p->bth.opcode);
	CHECK(p->payload.len + roce_op_headers(p->op) + 20 + 8 + ROCE_BTH + ROCE_ICRC <= n);
	uw_rope_copy(p->payload, payload, p->payload.len);
	roce_packet_grh(p, false, grh);
	roce_packet_grh(p, true, grh);
	free(payload);
}

static void receive(const uint8_t *octets, size_t n, struct feed *f)
{
	struct roce_packet p;
	struct cut c;

	cut_make(&c, (struct uw_span){ octets, n }, f);
	if (roce_packet_read(c.rope, &p) == ROCE_GOOD)
		touch(&p, n);
	cut_free(&c);
}

static struct roce_path path_of(struct feed *f)
{
	struct roce_path p = { .tos = feed_u8(f), .hops = feed_u8(f), .src_port = feed_u16(f) };

	if (feed_bool(f)) {
		p.src = uw_ip_v4(feed_u32(f));
		p.dst = uw_ip_v4(feed_u32(f));
		return p;
	}
	feed_fill(f, p.src.b, sizeof(p.src.b));
	feed_fill(f, p.dst.b, sizeof(p.dst.b));
	p.src.b[0] = p.dst.b[0] = 0xfd; /* no IPv4 */
	return p;
}

static size_t write_one(struct feed *f, uint8_t *out)
{
	struct roce_path path = path_of(f);
	struct roce_head h = { .path = &path, .ip_id = feed_u16(f), .imm_be = feed_u32(f) };
	const struct roce_op *op = NULL;
	size_t n = feed_length(f, ROCE_MTU_MAX);

	for (uint8_t code = feed_u8(f); !op; code++)
		op = roce_op_of(code);
	h.op = *op;
	h.bth = (struct roce_bth){ .solicited = feed_bool(f),
				   .pkey = ROCE_PKEY,
				   .dest_qp = feed_u32(f) & ROCE_QPN_MASK,
				   .psn = feed_u32(f) & ROCE_PSN_MASK };
	h.deth = (struct roce_deth){ feed_u32(f), feed_u32(f) & ROCE_QPN_MASK };
	memset(out + roce_head_size(&h), 0x5a, n);
	return roce_packet_write(&h, out, n);
}

/* Whole it is good; damaged and repaired it is whatever the damage makes of it. */
static void carry(struct feed *f)
{
	uint8_t out[PACKET_MAX];
	size_t n = write_one(f, out);
	struct uw_span s = { out, n };
	struct roce_packet p;

	CHECK(n <= sizeof(out));
	CHECK(roce_packet_read(uw_rope_of(&s), &p) == ROCE_GOOD);
	touch(&p, n);
	for (unsigned k = feed_below(f, 4); k--;)
		out[feed_below(f, (uint32_t)n)] = feed_u8(f);
	if (feed_bool(f))
		n -= feed_below(f, (uint32_t)n - 43);
	if (n > PACKET_LEAST)
		packet_repair(out, n);
	receive(out, n, f);
}

/* ---- a QP -------------------------------------------------------------------------------- */

#define MTU 256u

static const struct roce_op *some_op(struct feed *f, uint8_t transport)
{
	const struct roce_op *op = NULL;

	if (transport == ROCE_UD)
		return roce_op_of(feed_bool(f) ? 0x64 : 0x65);
	while (!op)
		op = roce_op_of((uint8_t)(0x20 + feed_below(f, 12)));
	return op;
}

/* A packet that roce_packet_read let through; the peer is not honest. */
static bool hear(struct bed *b, struct roce_qp *r, struct feed *f)
{
	struct roce_packet p = { .src = r->path.dst, .dst = r->path.src, .imm_be = 5 };
	struct uw_span s = { b->in, feed_length(f, 600) };
	struct bed_target t;

	p.op = some_op(f, r->transport);
	p.bth = (struct roce_bth){ .opcode = p.op->code,
				   .solicited = feed_bool(f),
				   .psn = feed_rarely(f, 8) ? feed_u8(f) : r->expected };
	p.deth = (struct roce_deth){ feed_rarely(f, 16) ? 1 : r->qkey, 9 };
	t = bed_target(b, f, (uint32_t)s.n);
	p.reth = (struct roce_reth){ t.to, t.stag,
				     feed_bool(f) ? (uint32_t)s.n : feed_length(f, 2000) };
	p.payload = uw_rope_of(&s);
	p.ip[0] = 0x45;
	if (!roce_rx(r, &p))
		return true;
	qp_fail(r->qp, UW_E_FLUSHED);
	return false;
}

static void speak(struct roce_qp *r)
{
	uint8_t out[PACKET_MAX];
	struct roce_packet p;

	while (roce_tx_ready(r)) {
		struct uw_span s = { out, roce_tx(r, &r->path, out, 1500) };

		if (!s.n) {
			qp_fail(r->qp, UW_E_FLUSHED);
			return;
		}
		CHECK(s.n <= 1500 && roce_packet_read(uw_rope_of(&s), &p) == ROCE_GOOD);
		CHECK(p.payload.len <= r->mtu && p.op->transport == r->transport);
	}
}

static void live(struct bed *b, struct roce_qp *r, struct feed *f)
{
	bool alive = true;

	while (f->n && alive) {
		switch (feed_below(f, 8)) {
		case 0:
			bed_post_send(b, f);
			speak(r);
			break;
		case 1:
		case 2:
			bed_post_recv(b, f);
			break;
		case 3:
			if (feed_rarely(f, 4))
				bed_toggle(b, (enum bed_region)feed_below(f, BED_REGIONS));
			break;
		default:
			alive = hear(b, r, f);
		}
		bed_poll(b);
		alive &= r->qp->state == UW_QPS_RTS;
	}
}

static void a_qp(struct feed *f)
{
	struct bed b;
	struct roce_qp r = { .mtu = MTU, .qkey = 77, .dest_qpn = 9 };

	bed_make(&b, f);
	r.qp = b.qp;
	r.transport = feed_bool(f) ? ROCE_UC : ROCE_UD;
	r.path = (struct roce_path){ .src = uw_ip_v4(1), .dst = uw_ip_v4(2), .hops = 64 };
	b.qp->cm_less = true;
	b.qp->sq.refused = (uint16_t)roce_refused_ops((enum roce_transport)r.transport);
	CHECK(!qp_modify(b.qp, UW_QPS_INIT) && !qp_modify(b.qp, UW_QPS_RTR) &&
	      !qp_modify(b.qp, UW_QPS_RTS));
	live(&b, &r, f);
	bed_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	if (feed_bool(&f)) {
		a_qp(&f);
		return 0;
	}
	while (f.n) {
		struct uw_span s;

		if (feed_bool(&f)) {
			carry(&f);
			continue;
		}
		s = feed_span(&f, feed_length(&f, PACKET_MAX));
		receive(s.p, s.n, &f);
	}
	return 0;
}
