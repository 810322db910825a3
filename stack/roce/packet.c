/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/packet.h"

#include <string.h>

#include "base/sum.h"
#include "roce/icrc.h"

enum { IP4 = 20, IP6 = 40, UDP = 8, IPPROTO_UDP_ = 17 };

#define DONT_FRAGMENT 0x4000u

/* ---- checksums --------------------------------------------------------------------------- */

/* An odd piece shifts those behind it by an octet. */
static uint32_t sum_rope(uint32_t sum, struct uw_rope r)
{
	bool odd = false;

	while (r.len) {
		struct uw_span s = uw_rope_head(r);
		uint32_t part = uw_sum_fold(uw_sum_add(0, s.p, s.n));

		sum += odd ? (part << 8 & 0xffff) | part >> 8 : part;
		odd ^= s.n & 1;
		r = uw_rope_sub(r, s.n, r.len - s.n);
	}
	return sum;
}

/* ---- in ---------------------------------------------------------------------------------- */

struct reader {
	struct uw_rope rest;
	unsigned ip_len;
	size_t udp_len;	 /* octets of the IP payload */
	uint32_t pseudo; /* sum of the pseudo header, RFC 768, RFC 8200 §8.1 */
};

static enum roce_verdict read_ip4(struct reader *r, struct roce_packet *p)
{
	const uint8_t *ip = p->ip;
	uint32_t src, dst;
	size_t total;

	if (r->rest.len < IP4)
		return ROCE_BAD_HEADER;
	uw_rope_copy(r->rest, p->ip, IP4);
	total = uw_be16(ip + 2);
	/* annex A17.3.1: no options; a fragment has no whole ICRC */
	if (ip[0] != 0x45 || total < IP4 || total > r->rest.len || (uw_be16(ip + 6) & 0x3fff))
		return ROCE_BAD_HEADER;
	if (uw_sum_fold(uw_sum_add(0, ip, IP4)) != 0xffff)
		return ROCE_BAD_SUM;
	memcpy(&src, ip + 12, 4);
	memcpy(&dst, ip + 16, 4);
	p->src = uw_ip_v4(src);
	p->dst = uw_ip_v4(dst);
	r->ip_len = IP4;
	r->udp_len = total - IP4;
	r->pseudo = uw_sum_add(IPPROTO_UDP_ + (uint32_t)r->udp_len, ip + 12, 8);
	return ip[9] == IPPROTO_UDP_ ? ROCE_GOOD : ROCE_BAD_HEADER;
}

static enum roce_verdict read_ip6(struct reader *r, struct roce_packet *p)
{
	const uint8_t *ip = p->ip;

	if (r->rest.len < IP6)
		return ROCE_BAD_HEADER;
	uw_rope_copy(r->rest, p->ip, IP6);
	r->ip_len = IP6;
	r->udp_len = uw_be16(ip + 4);
	if (r->udp_len > r->rest.len - IP6 || ip[6] != IPPROTO_UDP_)
		return ROCE_BAD_HEADER;
	memcpy(p->src.b, ip + 8, 16);
	memcpy(p->dst.b, ip + 24, 16);
	r->pseudo = uw_sum_add(IPPROTO_UDP_ + (uint32_t)r->udp_len, ip + 8, 32);
	return ROCE_GOOD;
}

/* UDP's checksum may be absent; a sum that is there must be right. */
static enum roce_verdict read_udp(const struct reader *r)
{
	uint8_t udp[UDP];

	if (r->udp_len < UDP + ROCE_BTH + ROCE_ICRC)
		return ROCE_BAD_HEADER;
	uw_rope_copy(uw_rope_sub(r->rest, r->ip_len, UDP), udp, UDP);
	if (uw_be16(udp + 4) != r->udp_len)
		return ROCE_BAD_HEADER;
	if (uw_be16(udp + 6) &&
	    uw_sum_fold(sum_rope(r->pseudo, uw_rope_sub(r->rest, r->ip_len, r->udp_len))) != 0xffff)
		return ROCE_BAD_SUM;
	return ROCE_GOOD;
}

static enum roce_verdict read_icrc(const struct reader *r)
{
	size_t end = r->ip_len + r->udp_len - ROCE_ICRC;
	uint8_t icrc[ROCE_ICRC];

	uw_rope_copy(uw_rope_sub(r->rest, end, ROCE_ICRC), icrc, ROCE_ICRC);
	return roce_icrc(uw_rope_sub(r->rest, 0, end), r->ip_len) == roce_icrc_get(icrc)
		       ? ROCE_GOOD
		       : ROCE_BAD_ICRC;
}

static void read_extended(const uint8_t *at, struct roce_packet *p)
{
	if (p->op->transport == ROCE_UD) {
		roce_deth_decode(at, &p->deth);
		at += ROCE_DETH;
	}
	if (roce_op_has_reth(p->op)) {
		roce_reth_decode(at, &p->reth);
		at += ROCE_RETH;
	}
	if (p->op->imm)
		memcpy(&p->imm_be, at, ROCE_IMM);
}

static enum roce_verdict read_transport(const struct reader *r, struct roce_packet *p)
{
	struct uw_rope body = uw_rope_sub(r->rest, r->ip_len + UDP, r->udp_len - UDP - ROCE_ICRC);
	uint8_t head[ROCE_BTH + ROCE_DETH + ROCE_RETH + ROCE_IMM];
	unsigned n;

	uw_rope_copy(body, head, ROCE_BTH);
	roce_bth_decode(head, &p->bth);
	if (p->bth.version) /* IBA §9.6.1.1.1 */
		return ROCE_BAD_HEADER;
	if ((p->bth.pkey & 0x7fff) != (ROCE_PKEY & 0x7fff)) /* IBA §9.6.1.1.3 */
		return ROCE_BAD_PKEY;
	p->op = roce_op_of(p->bth.opcode);
	if (!p->op)
		return ROCE_BAD_OPCODE;
	n = ROCE_BTH + roce_op_headers(p->op);
	if (body.len < n + p->bth.pad)
		return ROCE_BAD_HEADER;
	uw_rope_copy(body, head, n);
	read_extended(head + ROCE_BTH, p);
	p->payload = uw_rope_sub(body, n, body.len - n - p->bth.pad);
	return ROCE_GOOD;
}

enum roce_verdict roce_packet_read(struct uw_rope in, struct roce_packet *p)
{
	struct reader r = { .rest = in };
	enum roce_verdict v;
	uint8_t first;

	if (!in.len)
		return ROCE_BAD_HEADER;
	uw_rope_copy(in, &first, 1);
	v = first >> 4 == 4 ? read_ip4(&r, p) : first >> 4 == 6 ? read_ip6(&r, p) : ROCE_BAD_HEADER;
	if (!v)
		v = read_udp(&r);
	if (!v)
		v = read_icrc(&r);
	return v ? v : read_transport(&r, p);
}

/* IBA §8.3: as an IPv6 header, and the next one is InfiniBand's. */
static void write_grh(const struct roce_packet *p, uint8_t grh[ROCE_GRH])
{
	enum { NEXT_BTH = 0x1b };
	bool ip4 = uw_ip_is_v4(&p->dst);
	uint8_t tos = ip4 ? p->ip[1] : (uint8_t)(uw_be16(p->ip) >> 4);

	grh[0] = (uint8_t)(0x60 | tos >> 4);
	grh[1] = (uint8_t)(tos << 4);
	uw_put16(grh + 4, (uint16_t)(ROCE_BTH + roce_op_headers(p->op) + p->payload.len +
				     p->bth.pad + ROCE_ICRC));
	grh[6] = NEXT_BTH;
	grh[7] = p->ip[ip4 ? 8 : 7];
	memcpy(grh + 8, p->src.b, sizeof(p->src.b));
	memcpy(grh + 24, p->dst.b, sizeof(p->dst.b));
}

void roce_packet_grh(const struct roce_packet *p, bool infiniband, uint8_t grh[ROCE_GRH])
{
	bool ip4 = uw_ip_is_v4(&p->dst);

	memset(grh, 0, ROCE_GRH);
	if (infiniband)
		write_grh(p, grh);
	else
		memcpy(grh + (ip4 ? ROCE_GRH - IP4 : 0), p->ip, ip4 ? IP4 : IP6);
}

/* ---- out --------------------------------------------------------------------------------- */

static unsigned ip_size(const struct roce_head *h)
{
	return uw_ip_is_v4(&h->path->dst) ? IP4 : IP6;
}

unsigned roce_head_size(const struct roce_head *h)
{
	return ip_size(h) + UDP + ROCE_BTH + roce_op_headers(&h->op);
}

static void write_ip4(const struct roce_head *h, uint8_t *ip, size_t total)
{
	memset(ip, 0, IP4);
	ip[0] = 0x45;
	ip[1] = h->path->tos;
	uw_put16(ip + 2, (uint16_t)total);
	uw_put16(ip + 4, h->ip_id);
	uw_put16(ip + 6, DONT_FRAGMENT);
	ip[8] = h->path->hops;
	ip[9] = IPPROTO_UDP_;
	memcpy(ip + 12, h->path->src.b + 12, 4);
	memcpy(ip + 16, h->path->dst.b + 12, 4);
	uw_put16(ip + 10, (uint16_t)~uw_sum_fold(uw_sum_add(0, ip, IP4)));
}

static void write_ip6(const struct roce_head *h, uint8_t *ip, size_t total)
{
	uw_put32(ip, 6u << 28 | (uint32_t)h->path->tos << 20);
	uw_put16(ip + 4, (uint16_t)(total - IP6));
	ip[6] = IPPROTO_UDP_;
	ip[7] = h->path->hops;
	memcpy(ip + 8, h->path->src.b, 16);
	memcpy(ip + 24, h->path->dst.b, 16);
}

/* The checksum is 0, over IPv6 too: the ICRC protects the packet (annex A17.3.2, RFC 6935). */
static void write_udp(const struct roce_head *h, uint8_t *udp, size_t len)
{
	uw_put16(udp, h->path->src_port);
	uw_put16(udp + 2, ROCE_UDP_PORT);
	uw_put16(udp + 4, (uint16_t)len);
	uw_put16(udp + 6, 0);
}

static void write_transport(const struct roce_head *h, uint8_t *out)
{
	roce_bth_encode(&h->bth, out);
	out += ROCE_BTH;
	if (h->op.transport == ROCE_UD) {
		roce_deth_encode(&h->deth, out);
		out += ROCE_DETH;
	}
	if (roce_op_has_reth(&h->op)) {
		roce_reth_encode(&h->reth, out);
		out += ROCE_RETH;
	}
	if (h->op.imm)
		memcpy(out, &h->imm_be, ROCE_IMM);
}

size_t roce_packet_write(struct roce_head *h, uint8_t *out, size_t n)
{
	unsigned ip_len = ip_size(h), pad = -(unsigned)n & 3;
	size_t end = roce_head_size(h) + n + pad, total = end + ROCE_ICRC;
	struct uw_span whole = { out, end };

	h->bth.opcode = roce_op_code(&h->op);
	h->bth.pad = (uint8_t)pad;
	if (ip_len == IP4)
		write_ip4(h, out, total);
	else
		write_ip6(h, out, total);
	write_udp(h, out + ip_len, total - ip_len);
	write_transport(h, out + ip_len + UDP);
	memset(out + end - pad, 0, pad);
	roce_icrc_put(out + end, roce_icrc(uw_rope_of(&whole), ip_len));
	return total;
}

/* ---- UDP source ports -------------------------------------------------------------------- */

#define EPHEMERAL 0xc000u

uint16_t roce_uc_port(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t v = flow_label;

	if (!v) {
		v = (uint64_t)qpn * dest_qpn;
		v ^= v >> 20;
		v ^= v >> 40;
	}
	v &= 0xfffff;
	return (uint16_t)(EPHEMERAL | ((v & 0x3fff) ^ v >> 14));
}

uint16_t roce_ud_port(uint32_t qpn)
{
	return (uint16_t)(EPHEMERAL + (qpn * 0x61c88647u >> 18));
}
