/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include "conn/endpoint.h"

#include <arpa/inet.h>

/* ---- events ------------------------------------------------------------------------------ */

static bool on_event(void *ctx, const struct uw_cm_event *ev)
{
	struct slot *s = ctx, *child;

	CHECK(!s->gone);
	CHECK(ev->type <= UW_CM_DISCONNECTED);
	/* of datagrams it may be the status of the peer's reply, an octet */
	CHECK(ev->error <= (s->ep->datagrams ? UINT8_MAX : 0));
	CHECK(ev->param.private_data_len <= UW_PRIVATE_DATA_MAX);
	/* It is there to be read. */
	free(fuzz_copy(ev->param.private_data, ev->param.private_data_len));
	if (ev->type != UW_CM_CONNECT_REQUEST)
		return true;
	child = world_free_slot(s->w);
	CHECK(ev->ep && child);
	child->ep = ev->ep;
	child->request = true;
	return true;
}

static void on_async(void *ctx, enum uw_event ev)
{
	((struct world *)ctx)->b.events++;
	CHECK(ev > 0 && ev < 32);
}

/* ---- endpoints --------------------------------------------------------------------------- */

struct slot *world_free_slot(struct world *w)
{
	for (unsigned i = 0; i < WORLD_EPS; i++) {
		if (!w->slots[i].ep) {
			w->slots[i] = (struct slot){ .w = w };
			return &w->slots[i];
		}
	}
	return NULL;
}

bool world_has_room(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORLD_EPS; i++)
		n += !w->slots[i].ep;
	return n > 2 * WORLD_FLOWS;
}

static struct sockaddr_in at(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(addr) };
}

/* Of the version that the peers speak. */
struct sockaddr_storage world_place(const struct world *w, uint32_t addr, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&a;

	if (w->raw.six) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		memcpy(&six->sin6_addr, RAW_NET6, 12);
		uw_put32(six->sin6_addr.s6_addr + 12, addr);
	} else {
		*(struct sockaddr_in *)&a = at(addr, port);
	}
	return a;
}

struct slot *world_endpoint(struct world *w)
{
	struct slot *s = world_free_slot(w);

	if (s)
		CHECK(!uw_ep_create(w->raw.e, on_event, s, &s->ep));
	return s;
}

void world_listen(struct world *w)
{
	struct sockaddr_storage any = world_place(w, RAW_OURS, WORLD_PORT);
	struct slot *s = world_free_slot(w);

	if (w->listener || !s)
		return;
	CHECK(!uw_ep_create(w->raw.e, on_event, s, &s->ep));
	CHECK(!uw_ep_bind(s->ep, (struct sockaddr *)&any));
	CHECK(!uw_ep_listen(s->ep, 8));
	w->listener = s;
}

static struct uw_cm_param param(struct feed *f, uint8_t *pd)
{
	struct uw_cm_param p = { .private_data = pd,
				 .private_data_len = (uint16_t)feed_length(f, 520),
				 .ird = feed_u8(f),
				 .ord = feed_u8(f) };

	feed_fill(f, pd, p.private_data_len);
	return p;
}

void world_connect(struct world *w, struct feed *f)
{
	bool self = feed_rarely(f, 8); /* a program may talk to itself */
	struct sockaddr_storage to = self ? world_place(w, RAW_OURS, WORLD_PORT)
					  : world_place(w, RAW_THEIRS, WORLD_THEIRS);
	struct slot *s = world_free_slot(w);
	uint8_t pd[520];
	struct uw_cm_param p = param(f, pd);

	if (!s)
		return;
	CHECK(!uw_ep_create(w->raw.e, on_event, s, &s->ep));
	if (!uw_ep_resolve(s->ep, NULL, (struct sockaddr *)&to, 10) && w->qp)
		(void)uw_ep_connect(s->ep, uw_qp_num(w->qp), &p);
	w->main = s;
}

void world_answer(struct slot *s, struct feed *f, struct uw_qp *qp)
{
	uint8_t pd[520];
	struct uw_cm_param p = param(f, pd);

	if (feed_rarely(f, 8))
		p.private_data_len = (uint16_t)(p.private_data_len % 8);
	uw_ep_set_ctx(s->ep, s);
	s->request = false;
	if (!qp) {
		(void)uw_ep_reject(s->ep, &p);
		return;
	}
	if (uw_ep_accept(s->ep, uw_qp_num(qp), &p))
		return;
	if (qp == s->w->qp) {
		s->w->main = s;
	} else {
		speak_init(&s->w->other_speaker);
		s->w->other_port = ntohs(s->ep->rport);
	}
}

struct slot *world_requested(struct world *w)
{
	for (unsigned i = 0; i < WORLD_EPS; i++)
		if (w->slots[i].ep && w->slots[i].request)
			return &w->slots[i];
	return NULL;
}

/* Families and forms of addresses that programs may come with. */
static void any_address(struct feed *f, struct sockaddr_storage *out)
{
	struct sockaddr_in *s4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *s6 = (struct sockaddr_in6 *)out;
	uint8_t pick = feed_u8(f);

	memset(out, 0, sizeof(*out));
	if (pick & 1) {
		*s4 = at(RAW_OURS + (pick >> 1 & 3), feed_u8(f));
		if (pick & 8)
			s4->sin_addr.s_addr = pick & 16 ? 0 : htonl(INADDR_LOOPBACK);
		return;
	}
	s6->sin6_family = pick & 2 ? AF_INET6 : feed_u8(f);
	s6->sin6_port = feed_u8(f);
	if (pick & 4)
		s6->sin6_addr = in6addr_loopback;
	else if (pick & 8)
		memcpy(s6->sin6_addr.s6_addr + 10, "\xff\xff\x0a\0\0\1", 6);
	else if (pick & 16)
		feed_fill(f, &s6->sin6_addr, 16);
}

void world_any_endpoint(struct world *w, struct feed *f)
{
	struct slot *s = world_free_slot(w);
	struct sockaddr_storage a, b;
	struct sockaddr *pa = (struct sockaddr *)&a, *pb = (struct sockaddr *)&b;
	uint8_t what = feed_u8(f);

	any_address(f, &a);
	any_address(f, &b);
	CHECK(!uw_ep_create(w->raw.e, on_event, s, &s->ep));
	if (what & 1)
		(void)uw_ep_bind(s->ep, pa);
	if (what & 2)
		(void)uw_ep_resolve(s->ep, what & 4 ? pa : NULL, pb, 1);
	if (what & 8)
		(void)uw_ep_listen(s->ep, feed_u8(f));
	if (what & 16)
		(void)uw_ep_connect(s->ep, feed_u8(f), &(struct uw_cm_param){ 0 });
	uw_ep_local_addr(s->ep, &a);
	uw_ep_peer_addr(s->ep, &b);
	CHECK(a.ss_family == AF_INET || a.ss_family == AF_INET6);
	CHECK(b.ss_family == AF_INET || b.ss_family == AF_INET6);
	if (what & 32)
		world_drop(s);
}

void world_drop(struct slot *s)
{
	struct uw_ep *ep = s->ep;

	if (s->w->listener == s)
		s->w->listener = NULL;
	if (s->w->main == s)
		s->w->main = NULL;
	uw_ep_destroy(ep);
	s->gone = true;
	s->ep = NULL;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* No file is behind this memory, so nothing makes it persistent. */
static void reg(struct world *w, unsigned i)
{
	struct bed_mem *m = &w->b.m[i];

	m->r.rights &= ~(unsigned)UW_ACCESS_FLUSH_PERSISTENT;
	CHECK(!uw_mr_reg(i == BED_FOREIGN ? w->foreign : w->pd, m->mem, m->r.len, m->r.to,
			 m->r.rights, &w->mr[i]));
	m->r.stag = uw_mr_stag(w->mr[i]);
	m->in = true;
}

void world_toggle(struct world *w, enum bed_region which)
{
	struct bed_mem *m = &w->b.m[which];

	if (!m->in) {
		if (!bed_is_forbidden(which))
			fuzz_allow(m->mem, m->r.len);
		reg(w, which);
		return;
	}
	CHECK(!uw_mr_dereg(w->mr[which]));
	fuzz_forbid(m->mem, m->r.len);
	m->in = false;
}

/* ---- queues ------------------------------------------------------------------------------ */

static struct world *of(struct bed *b)
{
	return (struct world *)((char *)b - offsetof(struct world, b));
}

static bool post_send(struct bed *b, const struct uw_send_wr *wr)
{
	unsigned done;

	return !uw_post_send(of(b)->qp, wr, 1, &done);
}

static bool post_recv(struct bed *b, const struct uw_recv_wr *wr)
{
	struct world *w = of(b);
	unsigned done;

	if (w->srq)
		return !uw_srq_post_recv(w->srq, wr, 1, &done);
	return !uw_post_recv(w->qp, wr, 1, &done);
}

static unsigned take(struct bed *b, bool recv, unsigned n, struct uw_wc *wc)
{
	int got = uw_cq_poll(recv ? of(b)->rcq : of(b)->scq, (int)n, wc);

	CHECK(got >= 0);
	return (unsigned)got;
}

static struct uw_qp *make_qp(struct world *w, struct uw_cq *scq, struct uw_cq *rcq)
{
	struct uw_qp_attr a = { .send_cq = scq,
				.recv_cq = rcq,
				.max_send_wr = BED_WR,
				.max_recv_wr = BED_WR,
				.max_send_sge = BED_SGE,
				.max_recv_sge = BED_SGE,
				.max_inline = BED_INLINE,
				.event = on_async,
				.ctx = w };
	struct uw_qp *qp;

	a.srq = w->srq;
	CHECK(!uw_qp_create(w->pd, &a, &qp));
	CHECK(!uw_qp_modify(qp, UW_QPS_INIT));
	return qp;
}

/* Receives of a common SRQ are in the books whoever takes them. */
static void poll_other(struct world *w)
{
	struct uw_wc wc;
	int n;

	while ((n = uw_cq_poll(w->other_cq, 1, &wc))) {
		CHECK(n == 1 && wc.qp_num == uw_qp_num(w->other));
		if (w->srq && (wc.opcode & UW_WC_RECV) && wc.wr_id < w->b.recvs.posted) {
			wc.byte_len = 0;
			ledger_completed(&w->b.recvs, &wc);
		}
	}
}

void world_post_other(struct world *w, struct feed *f)
{
	const struct mem_region *r = &w->b.m[BED_ALL].r;
	struct uw_sge sge = { r->to, feed_length(f, (uint32_t)r->len), r->stag };
	struct bed_target t = bed_target(&w->b, f, sge.length);
	struct uw_send_wr wr = { .wr_id = UINT64_MAX,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .flags = UW_SEND_SIGNALED,
				 .opcode = feed_bool(f) ? UW_WR_RDMA_READ : UW_WR_SEND,
				 .remote_addr = t.to,
				 .rkey = t.stag };
	struct uw_recv_wr recv = { .wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1 };
	unsigned done;

	(void)uw_post_send(w->other, &wr, 1, &done);
	if (!w->srq)
		(void)uw_post_recv(w->other, &recv, 1, &done);
	poll_other(w);
}

void world_flush(struct world *w)
{
	bed_poll(&w->b);
	CHECK(!uw_qp_modify(w->qp, UW_QPS_ERR));
	bed_poll(&w->b);
	ledger_check_empty(&w->b.sends);
	if (!w->srq)
		ledger_check_empty(&w->b.recvs);
}

void world_reset(struct world *w)
{
	bed_poll(&w->b);
	CHECK(!uw_qp_modify(w->qp, UW_QPS_RESET));
	bed_poll(&w->b);
	ledger_forget(&w->b.sends);
	if (w->srq)
		w->b.recvs.failed = 0;
	else
		ledger_forget(&w->b.recvs);
	CHECK(!uw_qp_modify(w->qp, UW_QPS_INIT));
}

static void on_notify(void *ctx)
{
	((struct world *)ctx)->b.events++;
}

void world_queues(struct world *w, struct feed *f)
{
	struct uw_cq *cq = feed_bool(f) ? w->scq : w->rcq;

	switch (feed_below(f, 3)) {
	case 0:
		CHECK(!uw_cq_arm(cq, feed_bool(f)));
		break;
	case 1:
		CHECK(!uw_cq_resize(cq, BED_WC + feed_below(f, 300)));
		break;
	default:
		if (w->srq)
			(void)uw_srq_set_limit(w->srq, feed_below(f, 2 * BED_WR));
		break;
	}
}

static void make_srq(struct world *w)
{
	struct uw_srq_attr a = {
		.max_wr = BED_WR, .max_sge = BED_SGE, .event = on_async, .ctx = w
	};

	CHECK(!uw_srq_create(w->pd, &a, &w->srq));
}

/* ---- life -------------------------------------------------------------------------------- */

void world_open(struct world *w, struct feed *f)
{
	world_open_as(w, f, &(struct uw_config){ .addr_fd = -1 }, 0);
}

static struct uw_config configured(const struct uw_config *base, uint8_t bits)
{
	struct uw_config cfg = *base;

	cfg.addr_fd = -1;
	cfg.crc = bits & 1 ? UW_CRC_ON : UW_CRC_OFF;
	cfg.mpa_rev = bits & 2 ? 1 : 2;
	cfg.p2p = bits & 4;
	cfg.ird = 1 + (bits >> 3 & 3);
	cfg.ord = 1 + (bits >> 5 & 3);
	cfg.connect_ms = 1000;
	return cfg;
}

void world_open_as(struct world *w, struct feed *f, const struct uw_config *base, unsigned flags)
{
	uint8_t bits = feed_u8(f);
	struct uw_config cfg = configured(base, bits);
	struct uw_cq_attr ca = { .depth = BED_WC, .notify = on_notify, .ctx = w };
	uint8_t more = feed_u8(f);
	bool shared = more >= 192;

	memset(w, 0, sizeof(*w));
	raw_open(&w->raw, &cfg, flags | (bits & 128 ? IO_P2P : 0));
	w->raw.on_tcp = world_hear;
	w->raw.arg = w;
	w->raw.six = more & 1;
	w->next_port = 40000;
	w->heard = fuzz_alloc(WORLD_HEARD);
	w->b.in = fuzz_alloc(BED_IN);
	w->b.post_send = post_send;
	w->b.post_recv = post_recv;
	w->b.take = take;
	CHECK(!uw_pd_alloc(w->raw.e, &w->pd) && !uw_pd_alloc(w->raw.e, &w->foreign));
	CHECK(!uw_cq_create(w->raw.e, &ca, &w->scq) && !uw_cq_create(w->raw.e, &ca, &w->rcq));
	CHECK(!uw_cq_create(w->raw.e, &ca, &w->other_cq));
	bed_make_memory(&w->b);
	for (unsigned i = 0; i < BED_REGIONS; i++)
		reg(w, i);
	if (shared)
		make_srq(w);
	w->qp = make_qp(w, w->scq, w->rcq);
	w->other = make_qp(w, w->other_cq, w->other_cq);
	w->b.qp = &w->qp->c.qp;
	w->b.recvs.any_order = shared;
	world_listen(w);
}

void world_close(struct world *w, bool qp_first)
{
	world_flush(w);
	poll_other(w);
	if (qp_first)
		CHECK(!uw_qp_destroy(w->qp) && !uw_qp_destroy(w->other));
	for (unsigned i = 0; i < WORLD_EPS; i++)
		if (w->slots[i].ep)
			world_drop(&w->slots[i]);
	world_run(w);
	if (!qp_first)
		CHECK(!uw_qp_destroy(w->other) && !uw_qp_destroy(w->qp));
	for (unsigned i = 0; i < BED_REGIONS; i++)
		if (w->b.m[i].in)
			CHECK(!uw_mr_dereg(w->mr[i]));
	CHECK(!w->srq || !uw_srq_destroy(w->srq));
	CHECK(!uw_cq_destroy(w->scq) && !uw_cq_destroy(w->rcq) && !uw_cq_destroy(w->other_cq));
	CHECK(!uw_pd_dealloc(w->pd) && !uw_pd_dealloc(w->foreign));
	raw_close(&w->raw);
	bed_free_memory(&w->b);
	free(w->heard);
	free(w->b.in);
}
