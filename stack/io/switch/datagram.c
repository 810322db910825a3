/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/datagram.h"

#include <string.h>

#include "base/be.h"
#include "io/switch/head.h"

/* IBA §9.2 (BTH), §9.3.1 (DETH), §9.7.1: the opcode's upper three bits name the transport. */
enum { ROCE_PORT = 4791, TRANSPORT_UC = 1, TRANSPORT_UD = 3, ICRC = 4, BTH_LEN = 12, DETH_LEN = 8 };
/* More offsets in a frame. */
enum {
	UDP = ETHER + IP4_LEN, /* a packet with options is none of ours */
	BTH = UDP + 8,
	BTH_QP = BTH + 5,
	DETH = BTH + BTH_LEN,
	DETH_QP = DETH + 5,
};
_Static_assert(DETH + DETH_LEN <= SWITCH_HEAD_MAX, "all that is read is in the head");

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static unsigned transport(const struct switch_frame *f)
{
	return f->head[BTH] >> 5;
}

/* What may be read of the packet, and is whole. */
static enum switch_reason check(const struct switch_table *t, const struct switch_frame *f)
{
	const uint8_t *h = f->head;
	uint32_t total, need = BTH + BTH_LEN + ICRC;

	if (!t->qps || f->len < need || uw_be16(h + UDP + 2) != ROCE_PORT)
		return SWITCH_WHY_protocol;
	if (uw_be16(h + IP_FRAGMENT) & 0x3fff)
		return SWITCH_WHY_fragment;
	if (transport(f) != TRANSPORT_UD && transport(f) != TRANSPORT_UC)
		return SWITCH_WHY_protocol;
	if (transport(f) == TRANSPORT_UD)
		need += DETH_LEN;
	total = ETHER + uw_be16(h + IP_TOTAL);
	if (total < need || total > f->len || uw_be16(h + UDP + 4) != total - UDP)
		return SWITCH_WHY_length;
	return SWITCH_WHY_none;
}

static struct switch_result to_qp(const struct switch_table *t, const struct switch_frame *f)
{
	struct switch_result r = { .verdict = SWITCH_TO_CLIENT, .segments = 1 };
	uint32_t qpn = get24(f->head + BTH_QP);

	if (qpn == SWITCH_CM_QP) {
		r.verdict = SWITCH_TO_CM;
		return r;
	}
	r.client = t->qps->holder[qpn];
	return r.client ? r : switch_drop(SWITCH_WHY_no_holder);
}

static bool is_his(const struct switch_qps *q, uint16_t client, const struct switch_frame *f)
{
	uint32_t qpn;

	if (transport(f) == TRANSPORT_UC)
		return q->n[client];
	qpn = get24(f->head + DETH_QP);
	return qpn == SWITCH_CM_QP ? q->manages[client] : q->holder[qpn] == client;
}

struct switch_result datagram_out(const struct switch_table *t, uint16_t client,
				  const struct switch_frame *f)
{
	enum switch_reason why = check(t, f);
	const uint8_t *h = f->head;

	if (why)
		return switch_drop(why);
	if (f->gso_size)
		return switch_drop(SWITCH_WHY_merge);
	if (f->len > ETHER + t->mtu)
		return switch_drop(SWITCH_WHY_length);
	if (memcmp(h + IP_FROM, &t->addr, 4))
		return switch_drop(SWITCH_WHY_source_addr);
	if (!is_his(t->qps, client, f))
		return switch_drop(SWITCH_WHY_source_qp);
	if (h[0] & 1 || h[IP_TO] >= 224 || h[IP_TO] == 127)
		return switch_drop(SWITCH_WHY_target);
	if (!memcmp(h + IP_TO, &t->addr, 4))
		return to_qp(t, f);
	return (struct switch_result){ .verdict = SWITCH_TO_PORT, .segments = 1 };
}

struct switch_result datagram_in(const struct switch_table *t, const struct switch_frame *f)
{
	enum switch_reason why = check(t, f);

	if (why)
		return switch_drop(why);
	if (memcmp(f->head + IP_TO, &t->addr, 4) || f->head[0] & 1)
		return switch_drop(SWITCH_WHY_target);
	return to_qp(t, f);
}
