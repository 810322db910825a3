/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/datagram.h"

#include "base/be.h"
#include "io/switch/head.h"

/* IBA §9.2 (BTH), §9.3.1 (DETH), §9.7.1: the opcode's upper three bits name the transport. */
enum { ROCE_PORT = 4791, TRANSPORT_UC = 1, TRANSPORT_UD = 3, ICRC = 4, BTH_LEN = 12, DETH_LEN = 8 };
/* Offsets from the UDP header. */
enum {
	UDP_TO = 2,
	UDP_LEN = 4,
	BTH = 8,
	BTH_QP = BTH + 5,
	DETH = BTH + BTH_LEN,
	DETH_QP = DETH + 5
};
/* A management datagram, IBA §13.4.3, §12.11.2: SIDR_REP. Its first octets. */
enum {
	UD_SEND_ONLY = 0x64,
	MAD = DETH + DETH_LEN,
	MAD_LEN = 256,
	MAD_CLASS = MAD + 1,
	CLASS_CM = 7,
	MAD_ATTRIBUTE = MAD + 16,
	SIDR_REP = 0x18,
	REP_QP = MAD + 32,
	REP_SERVICE = MAD + 36,
	REP_READ = MAD + 44,
	SERVICE_RC = 0x01fd, /* roce/mad.h */
};
_Static_assert(ETHER + IP6_LEN + REP_READ <= SWITCH_HEAD_MAX, "all that is read is there");

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static unsigned transport(const uint8_t *udp)
{
	return udp[BTH] >> 5;
}

/* What may be read of the packet, and is whole. */
static enum switch_reason check(const struct switch_table *t, const struct switch_frame *f,
				const struct switch_ip *p)
{
	const uint8_t *udp = f->head + p->at;
	uint32_t need = p->at + BTH + BTH_LEN + ICRC;

	if (!t->qps || f->len < need || uw_be16(udp + UDP_TO) != ROCE_PORT)
		return SWITCH_WHY_protocol;
	if (transport(udp) != TRANSPORT_UD && transport(udp) != TRANSPORT_UC)
		return SWITCH_WHY_protocol;
	if (transport(udp) == TRANSPORT_UD)
		need += DETH_LEN;
	if (p->total < need || p->total > f->len || uw_be16(udp + UDP_LEN) != p->total - p->at)
		return SWITCH_WHY_length;
	return SWITCH_WHY_none;
}

/* What goes to QP 1 is copied for each client that has it: nothing longer than what may go there
 * (IBA §13.4.2). */
static bool is_mad(const struct switch_frame *f, const struct switch_ip *p)
{
	return f->len == p->total && p->total - p->at == MAD + MAD_LEN + ICRC;
}

static struct switch_result to_qp(const struct switch_table *t, const struct switch_frame *f,
				  const struct switch_ip *p)
{
	struct switch_result r = { .verdict = SWITCH_TO_CLIENT, .segments = 1 };
	uint32_t qpn = get24(f->head + p->at + BTH_QP);

	if (qpn == SWITCH_CM_QP) {
		r.verdict = SWITCH_TO_CM;
		return is_mad(f, p) ? r : switch_drop(SWITCH_WHY_length);
	}
	r.client = t->qps->holder[qpn];
	return r.client ? r : switch_drop(SWITCH_WHY_no_holder);
}

/* Where RC QPs are is told by who has them, and nobody else (doc/adr/0048). udp has n octets to
 * read. What is shorter than an answer is none. */
static bool may_say(const struct switch_qps *q, uint16_t client, const uint8_t *udp, uint32_t n)
{
	if (udp[BTH] != UD_SEND_ONLY)
		return false;
	if (n < REP_READ || udp[MAD_CLASS] != CLASS_CM || uw_be16(udp + MAD_ATTRIBUTE) != SIDR_REP)
		return true;
	if (uw_be32(udp + REP_SERVICE) || uw_be16(udp + REP_SERVICE + 4) != SERVICE_RC)
		return true;
	return q->holder[get24(udp + REP_QP)] == client;
}

static bool is_his(const struct switch_qps *q, uint16_t client, const struct switch_frame *f,
		   const struct switch_ip *p)
{
	const uint8_t *udp = f->head + p->at;
	uint32_t qpn, n = (f->len < SWITCH_HEAD_MAX ? f->len : SWITCH_HEAD_MAX) - p->at;

	if (transport(udp) == TRANSPORT_UC)
		return q->n[client];
	qpn = get24(udp + DETH_QP);
	if (qpn != SWITCH_CM_QP)
		return q->holder[qpn] == client;
	/* with options of IP it would be out of sight */
	return q->manages[client] && (p->six || p->at == ETHER + IP4_LEN) &&
	       may_say(q, client, udp, n);
}

struct switch_result datagram_out(const struct switch_table *t, uint16_t client,
				  const struct switch_frame *f, const struct switch_ip *p)
{
	enum switch_reason why = check(t, f, p);

	if (why)
		return switch_drop(why);
	if (f->gso_size)
		return switch_drop(SWITCH_WHY_merge);
	if (f->len > ETHER + t->mtu)
		return switch_drop(SWITCH_WHY_length);
	if (!p->from_us)
		return switch_drop(SWITCH_WHY_source_addr);
	if (!is_his(t->qps, client, f, p))
		return switch_drop(SWITCH_WHY_source_qp);
	if (switch_to_group(f) || p->to_no_host)
		return switch_drop(SWITCH_WHY_target);
	if (p->to_us)
		return to_qp(t, f, p);
	return (struct switch_result){ .verdict = SWITCH_TO_PORT, .segments = 1 };
}

struct switch_result datagram_in(const struct switch_table *t, const struct switch_frame *f,
				 const struct switch_ip *p)
{
	enum switch_reason why = check(t, f, p);

	if (why)
		return switch_drop(why);
	if (!p->to_us || switch_to_group(f))
		return switch_drop(SWITCH_WHY_target);
	return to_qp(t, f, p);
}
