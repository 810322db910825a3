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
/* Management datagrams, IBA §13.4.3, §12.11 (roce/mad.h): their first octets. */
enum {
	UD_SEND_ONLY = 0x64,
	MAD = DETH + DETH_LEN,
	MAD_LEN = 256,
	MAD_CLASS = MAD + 1,
	CLASS_CM = 7,
	MAD_TID = MAD + 8,
	MAD_ATTRIBUTE = MAD + 16,
	SIDR_REQ = 0x17,
	SIDR_REP = 0x18,
	REQ_SERVICE = MAD + 32,
	REQ_QP = MAD + 76, /* of RC, in the private data */
	REQ_READ = REQ_QP + 4,
	REP_QP = MAD + 32,
	REP_SERVICE = MAD + 36,
	REP_READ = MAD + 44,
	SERVICE_RC = 0x01fd, /* roce/mad.h */
};
_Static_assert(ETHER + IP6_LEN + REQ_READ <= SWITCH_HEAD_MAX, "all that is read is there");
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

/* What goes to QP 1 may be copied for each client that has it: nothing longer than what may go
 * there (IBA §13.4.2). */
static bool is_mad(const struct switch_frame *f, const struct switch_ip *p)
{
	return f->len == p->total && p->total - p->at == MAD + MAD_LEN + ICRC;
}

/* Octets from the UDP header on that may be read. */
static uint32_t seen(const struct switch_frame *f, const struct switch_ip *p)
{
	uint32_t end = p->total < SWITCH_HEAD_MAX ? p->total : SWITCH_HEAD_MAX;

	return (f->len < end ? f->len : end) - p->at;
}

/* SIDR_REQ, SIDR_REP; 0: none of them, so nobody here understands it. n octets can be read. */
static unsigned message(const uint8_t *udp, uint32_t n)
{
	unsigned attribute;

	if (n < REQ_READ || udp[BTH] != UD_SEND_ONLY || udp[MAD_CLASS] != CLASS_CM)
		return 0;
	attribute = uw_be16(udp + MAD_ATTRIBUTE);
	return attribute == SIDR_REQ || attribute == SIDR_REP ? attribute : 0;
}

static bool is_of_rc(const uint8_t *service)
{
	return !uw_be32(service) && uw_be16(service + 4) == SERVICE_RC;
}

static struct switch_asked *asked_at(struct switch_qps *q, const uint8_t *udp)
{
	return &q->asked[uw_be64(udp + MAD_TID) % SWITCH_ASKED_MAX];
}

/* A client asks: the answer is for it. Who hears the question cannot take the answer away, by the
 * same transaction or another one at its place. Whoever asks thousands of them keeps others from
 * hearing answers as long as it goes on. */
static void note_question(struct switch_qps *q, uint16_t client, const uint8_t *udp, uint32_t n)
{
	struct switch_asked *a = asked_at(q, udp);
	bool is_old = (uint16_t)(q->second - a->second) >= SWITCH_ASKED_S;

	if (message(udp, n) == SIDR_REQ && (!a->client || a->client == client || is_old))
		*a = (struct switch_asked){ uw_be64(udp + MAD_TID), client, q->second };
}

static struct switch_result to_client(uint16_t client)
{
	return client ? (struct switch_result){ .verdict = SWITCH_TO_CLIENT,
						.client = client,
						.segments = 1 }
		      : switch_drop(SWITCH_WHY_no_holder);
}

/* An answer is for who asked, a question about a QP for who has it. The ports of rdma_cm's
 * datagrams are claimed by nobody (doc/adr/0039). */
static struct switch_result to_cm(struct switch_qps *q, const uint8_t *udp, uint32_t n)
{
	const struct switch_result all = { .verdict = SWITCH_TO_CM, .segments = 1 };
	const struct switch_asked *a;
	uint16_t client;

	switch (message(udp, n)) {
	case SIDR_REP:
		a = asked_at(q, udp);
		return to_client(a->tid == uw_be64(udp + MAD_TID) ? a->client : SWITCH_NOBODY);
	case SIDR_REQ:
		if (!is_of_rc(udp + REQ_SERVICE))
			return all;
		client = q->holder[uw_be32(udp + REQ_QP) % SWITCH_QPN_END];
		if (!client && q->may_ask_all) {
			q->may_ask_all = false;
			return all;
		}
		return to_client(q->manages[client] ? client : SWITCH_NOBODY);
	default:
		return switch_drop(SWITCH_WHY_protocol);
	}
}

static struct switch_result to_qp(const struct switch_table *t, const struct switch_frame *f,
				  const struct switch_ip *p)
{
	const uint8_t *udp = f->head + p->at;
	uint32_t qpn = get24(udp + BTH_QP);

	if (qpn != SWITCH_CM_QP)
		return to_client(t->qps->holder[qpn]);
	return is_mad(f, p) ? to_cm(t->qps, udp, seen(f, p)) : switch_drop(SWITCH_WHY_length);
}

/* Where RC QPs are is told by who has them, and nobody else (doc/adr/0048). udp has n octets to
 * read. What is shorter than an answer is none. */
static bool may_say(const struct switch_qps *q, uint16_t client, const uint8_t *udp, uint32_t n)
{
	if (udp[BTH] != UD_SEND_ONLY)
		return false;
	if (message(udp, n) != SIDR_REP || !is_of_rc(udp + REP_SERVICE))
		return true;
	return q->holder[get24(udp + REP_QP)] == client;
}

static bool is_his(const struct switch_qps *q, uint16_t client, const struct switch_frame *f,
		   const struct switch_ip *p)
{
	const uint8_t *udp = f->head + p->at;
	uint32_t qpn;

	if (transport(udp) == TRANSPORT_UC)
		return q->n[client];
	qpn = get24(udp + DETH_QP);
	if (qpn != SWITCH_CM_QP)
		return q->holder[qpn] == client;
	/* with options of IP it would be out of sight */
	return q->manages[client] && (p->six || p->at == ETHER + IP4_LEN) &&
	       may_say(q, client, udp, seen(f, p));
}

struct switch_result datagram_out(const struct switch_table *t, uint16_t client,
				  const struct switch_frame *f, const struct switch_ip *p)
{
	const uint8_t *udp = f->head + p->at;
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
	if (transport(udp) == TRANSPORT_UD && get24(udp + BTH_QP) == SWITCH_CM_QP &&
	    get24(udp + DETH_QP) == SWITCH_CM_QP)
		note_question(t->qps, client, udp, seen(f, p));
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
