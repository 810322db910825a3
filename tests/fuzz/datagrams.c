/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagrams.h"

#include <arpa/inet.h>

#include "conn/dgram/sidr.h"
#include "packet_repair.h"
#include "roce/mad.h"

#define GROUP	 0xef010203u /* 239.1.2.3 */
#define GROUP6	 "\xff\x05\0\0\0\0\0\0\0\0\0\0"
#define QKEY	 0x1234u
#define RECVS	 8u
#define ROOM	 600u /* of a receive, the GRH included: some datagrams are longer */
#define PAYLOADS 1024u
#define HOSTS	 4u

/* ---- the program ------------------------------------------------------------------------- */

static void post_recv(const struct datagrams *d, unsigned i)
{
	struct uw_sge sge = { (uintptr_t)d->mem + (size_t)i * ROOM, ROOM, uw_mr_stag(d->mr) };
	struct uw_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	unsigned done;

	(void)uw_post_recv(d->qp, &wr, 1, &done);
}

static void bring_up(const struct datagrams *d)
{
	const struct uw_datagrams attr = { .sq_psn = 77, .qkey = QKEY };

	CHECK(!uw_qp_modify(d->qp, UW_QPS_INIT));
	CHECK(!uw_qp_set_datagrams(d->qp, &attr));
	CHECK(!uw_qp_modify(d->qp, UW_QPS_RTR) && !uw_qp_modify(d->qp, UW_QPS_RTS));
	for (unsigned i = 0; i < RECVS; i++)
		post_recv(d, i);
}

static void collect(const struct datagrams *d)
{
	struct uw_wc wc;
	int n;

	while ((n = uw_cq_poll(d->cq, 1, &wc))) {
		CHECK(n == 1 && wc.qp_num == uw_qp_num(d->qp));
		if (!(wc.opcode & UW_WC_RECV))
			continue;
		CHECK(wc.wr_id < RECVS);
		if (wc.status)
			continue;
		CHECK(wc.byte_len >= ROCE_GRH && wc.byte_len <= ROOM);
		post_recv(d, (unsigned)wc.wr_id);
	}
	if (uw_qp_state(d->qp) ==
	    UW_QPS_ERR) { /* a datagram was too long, or a request was wrong */
		CHECK(!uw_qp_modify(d->qp, UW_QPS_RESET));
		bring_up(d);
	}
}

static void on_async(void *ctx, enum uw_event ev)
{
	(void)ctx;
	CHECK(ev > 0 && ev < 32);
}

static void serve(struct world *w)
{
	struct sockaddr_storage at = world_place(w, RAW_OURS, WORLD_PORT);
	struct slot *s = world_endpoint(w);

	if (!s)
		return;
	CHECK(!uw_ep_set_datagrams(s->ep));
	CHECK(!uw_ep_bind(s->ep, (struct sockaddr *)&at));
	CHECK(!uw_ep_listen(s->ep, 8));
}

static void open_program(struct datagrams *d, struct world *w)
{
	struct uw_cq_attr ca = { .depth = 64, .ctx = w };
	struct uw_qp_attr a = { .type = UW_QPT_UD,
				.max_send_wr = 16,
				.max_recv_wr = RECVS,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.event = on_async,
				.ctx = w };
	size_t n = (size_t)RECVS * ROOM;

	d->w = w;
	d->mem = fuzz_alloc(n);
	memset(d->mem, 0, n);
	CHECK(!uw_mr_reg(w->pd, d->mem, n, (uintptr_t)d->mem, UW_ACCESS_LOCAL_WRITE, &d->mr));
	CHECK(!uw_cq_create(w->raw.e, &ca, &d->cq));
	a.send_cq = a.recv_cq = d->cq;
	CHECK(!uw_qp_create(w->pd, &a, &d->qp));
	bring_up(d);
	serve(w);
}

void datagrams_close(struct datagrams *d)
{
	if (!d->w)
		return;
	collect(d);
	CHECK(!uw_qp_destroy(d->qp) && !uw_cq_destroy(d->cq) && !uw_mr_dereg(d->mr));
	free(d->mem);
	d->w = NULL;
}

static struct sockaddr_storage group(const struct world *w)
{
	struct sockaddr_storage a = world_place(w, GROUP, 0);

	if (w->raw.six)
		memcpy(&((struct sockaddr_in6 *)&a)->sin6_addr, GROUP6, 12);
	return a;
}

static void send_one(struct datagrams *d, struct feed *f)
{
	bool to_group = feed_rarely(f, 4);
	struct sockaddr_storage to =
		to_group ? group(d->w)
			 : world_place(d->w, RAW_OURS + feed_below(f, HOSTS), WORLD_PORT);
	struct uw_ah_attr a = { .addr = (struct sockaddr *)&to, .tos = feed_u8(f) };
	struct uw_sge sge = { (uintptr_t)d->mem, feed_length(f, PAYLOADS), uw_mr_stag(d->mr) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = feed_bool(f) ? UW_WR_SEND : UW_WR_SEND_WITH_IMM,
				 .flags = UW_SEND_SIGNALED,
				 .rkey = feed_rarely(f, 8) ? feed_u32(f) : QKEY };
	struct uw_ah ah;
	unsigned done;

	if (uw_ah_make(d->w->pd, &a, &ah))
		return;
	wr.remote_addr = ah.how | (to_group	       ? ROCE_MULTICAST
				   : feed_rarely(f, 8) ? feed_u32(f) & ROCE_QPN_MASK
						       : uw_qp_num(d->qp));
	wr.compare_add = ah.dst[0];
	wr.swap = ah.dst[1];
	(void)uw_post_send(d->qp, &wr, 1, &done);
}

/* ---- endpoints --------------------------------------------------------------------------- */

static struct uw_cm_param param(struct feed *f, uint8_t *data)
{
	struct uw_cm_param p = { .private_data = data,
				 .private_data_len = (uint16_t)feed_length(f, 200) };

	feed_fill(f, data, p.private_data_len);
	return p;
}

static void ask(struct datagrams *d, struct feed *f)
{
	uint32_t host = feed_rarely(f, 8) ? RAW_OURS : RAW_THEIRS + feed_below(f, HOSTS);
	struct sockaddr_storage to = world_place(d->w, host, WORLD_PORT);
	struct slot *s = world_has_room(d->w) ? world_endpoint(d->w) : NULL;
	uint8_t data[200];
	struct uw_cm_param p = param(f, data);

	if (!s)
		return;
	CHECK(!uw_ep_set_datagrams(s->ep));
	if (!uw_ep_resolve(s->ep, NULL, (struct sockaddr *)&to, 10))
		(void)uw_ep_connect(s->ep, 0, &p);
}

/* One of those of datagrams, from anywhere in the row; NULL: none. */
static struct slot *some_slot(struct world *w, struct feed *f, bool request)
{
	unsigned from = feed_below(f, WORLD_EPS);

	for (unsigned i = 0; i < WORLD_EPS; i++) {
		struct slot *s = &w->slots[(from + i) % WORLD_EPS];

		if (s->ep && s->ep->datagrams && s->request >= request)
			return s;
	}
	return NULL;
}

static void answer(struct datagrams *d, struct feed *f)
{
	struct slot *s = some_slot(d->w, f, true);
	uint8_t data[200];
	struct uw_cm_param p = param(f, data);

	if (!s)
		return;
	uw_ep_set_ctx(s->ep, s);
	if (feed_rarely(f, 4))
		(void)uw_ep_reject(s->ep, &p);
	else
		(void)uw_ep_accept(s->ep, uw_qp_num(d->qp), &p);
	s->request = false; /* a request with too much data is still there, and asked for again */
}

/* The listener, too, now and then; another takes its place. */
static void drop(struct datagrams *d, struct feed *f)
{
	struct slot *s = some_slot(d->w, f, false);
	bool listens = s && s->ep->state == EP_LISTENING;

	if (!s)
		return;
	world_drop(s);
	if (listens && feed_bool(f))
		serve(d->w);
}

/* ---- the peers --------------------------------------------------------------------------- */

static struct uw_ip address(const struct sockaddr_storage *a)
{
	struct uw_ip out;

	if (a->ss_family == AF_INET)
		return uw_ip_v4(((const struct sockaddr_in *)a)->sin_addr.s_addr);
	memcpy(out.b, &((const struct sockaddr_in6 *)a)->sin6_addr, sizeof(out.b));
	return out;
}

struct roce_path datagrams_path(const struct datagrams *d, uint32_t host, bool to_group)
{
	const struct world *w = d->w;
	struct sockaddr_storage from = world_place(w, host, 0),
				to = to_group ? group(w) : world_place(w, RAW_OURS, 0);

	return (struct roce_path){
		.src = address(&from), .dst = address(&to), .tos = w->raw.tos, .hops = 64
	};
}

static struct roce_path some_path(const struct datagrams *d, struct feed *f)
{
	uint32_t host = feed_rarely(f, 16) ? RAW_OURS : RAW_THEIRS + feed_below(f, HOSTS);

	return datagrams_path(d, host, feed_rarely(f, 4));
}

static uint32_t some_qpn(const struct datagrams *d, struct feed *f)
{
	const uint32_t known[] = { uw_qp_num(d->qp), uw_qp_num(d->qp), ROCE_MULTICAST, MAD_QPN,
				   uw_qp_num(d->w->qp) };
	uint8_t pick = feed_u8(f);

	return pick < 250 ? known[pick % COUNT(known)] : feed_u32(f) & ROCE_QPN_MASK;
}

/* The payload, n octets, is in its place. Whole it is right in every sum; damaged it is, too, most
 * of the time. */
static void put_on_wire(struct datagrams *d, struct feed *f, struct roce_head *h, uint8_t *out,
			size_t n)
{
	uint8_t damage = feed_u8(f);

	n = roce_packet_write(h, out, n);
	if (damage >= 192) {
		for (unsigned k = 1 + damage % 4; k--;)
			out[feed_below(f, (uint32_t)n)] = feed_u8(f);
		if (damage % 8 == 5 && n > PACKET_LEAST)
			n -= feed_below(f, (uint32_t)n - PACKET_LEAST);
		if (damage % 8 && n > PACKET_LEAST)
			packet_repair(out, n);
	}
	raw_packet(&d->w->raw, out, n);
}

/* Of a transport that has datagrams, to any QP. */
static void packet(struct datagrams *d, struct feed *f)
{
	uint8_t out[ROCE_HEAD_MAX + PAYLOADS + ROCE_TAIL_MAX];
	const struct roce_path path = some_path(d, f);
	struct roce_head h = { .path = &path, .imm_be = feed_u8(f) };
	const struct roce_op *op = NULL;
	size_t n = feed_length(f, PAYLOADS);

	for (uint8_t code = feed_rarely(f, 8) ? feed_u8(f) : 0x64 + feed_below(f, 2); !op; code++)
		op = roce_op_of(code);
	h.op = *op;
	h.bth = (struct roce_bth){ .solicited = feed_bool(f),
				   .pkey = ROCE_PKEY,
				   .dest_qp = some_qpn(d, f),
				   .psn = feed_u8(f) };
	h.deth = (struct roce_deth){ feed_rarely(f, 8) ? feed_u32(f) : QKEY, some_qpn(d, f) };
	memset(out + roce_head_size(&h), 0x5a, n);
	put_on_wire(d, f, &h, out, n);
}

static struct mad request_of(const struct roce_path *path, struct feed *f)
{
	static const uint16_t spaces[] = { SIDR_UDP, SIDR_UDP, SIDR_UDP, SIDR_RC, SIDR_TCP };
	struct mad m = { .kind = MAD_SIDR_REQ, .tid = feed_u8(f), .request_id = feed_below(f, 4) };

	m.req = (struct sidr_req){ .space = spaces[feed_below(f, COUNT(spaces))],
				   .port = feed_rarely(f, 8) ? feed_u16(f) : WORLD_PORT,
				   .src_port = feed_u16(f),
				   .src = path->src,
				   .dst = path->dst };
	feed_fill(f, m.req.data, 16);
	return m;
}

/* To whoever has asked, if somebody has, from where he asked. */
static struct mad reply_of(struct datagrams *d, struct roce_path *path, struct feed *f)
{
	struct mad m = { .kind = MAD_SIDR_REP, .tid = feed_u8(f), .request_id = feed_below(f, 4) };
	struct stack *s = d->w->raw.e->stack[0];
	bool stale = feed_rarely(f, 8);

	sched_lock(&s->sched);
	for (const struct sidr *r = s->sidrs; r && !stale; r = r->next) {
		if (r->state != SIDR_ASKING)
			continue;
		m.tid = r->tid;
		m.request_id = r->request_id;
		path->src = r->ep->remote;
		break;
	}
	sched_unlock(&s->sched);
	m.rep = (struct sidr_rep){ .status = feed_rarely(f, 4) ? feed_u8(f) : SIDR_VALID,
				   .qpn = feed_u32(f) & ROCE_QPN_MASK,
				   .qkey = feed_u32(f),
				   .space = feed_rarely(f, 8) ? SIDR_RC : SIDR_UDP,
				   .port = WORLD_PORT };
	feed_fill(f, m.rep.data, 16);
	return m;
}

void datagrams_manage(struct datagrams *d, const struct roce_path *path, const struct mad *m,
		      struct feed *f)
{
	uint8_t out[ROCE_HEAD_MAX + MAD_SIZE + ROCE_TAIL_MAX];
	struct roce_head h = {
		.path = path,
		.op = { .transport = ROCE_UD, .first = true, .last = true },
		.bth = { .pkey = ROCE_PKEY, .dest_qp = MAD_QPN },
		.deth = { feed_rarely(f, 16) ? feed_u32(f) : MAD_QKEY, MAD_QPN },
	};

	mad_encode(m, out + roce_head_size(&h));
	put_on_wire(d, f, &h, out, MAD_SIZE);
}

static void management(struct datagrams *d, struct feed *f)
{
	struct roce_path path = some_path(d, f);
	struct mad m;

	if (!world_has_room(d->w)) /* what it asks for may be an endpoint */
		return;
	m = feed_bool(f) ? request_of(&path, f) : reply_of(d, &path, f);
	datagrams_manage(d, &path, &m, f);
}

void datagrams_play(struct datagrams *d, struct world *w, struct feed *f)
{
	struct sockaddr_storage a;

	if (!d->w)
		open_program(d, w);
	switch (feed_below(f, 12)) {
	case 0:
	case 1:
	case 2:
		packet(d, f);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		management(d, f);
		break;
	case 7:
		ask(d, f);
		break;
	case 8:
	case 9:
		send_one(d, f);
		break;
	case 10:
		drop(d, f);
		break;
	default:
		a = group(w);
		(void)uw_qp_group(d->qp, (struct sockaddr *)&a, feed_bool(f));
		break;
	}
	world_run(w);
	if (feed_bool(f))
		answer(d, f);
	world_run(w);
	collect(d);
}
