/* SPDX-License-Identifier: BSD-3-Clause */
#include "named.h"

#include "conn/rc/rc.h"
#include "roce/mad.h"

#define HOSTS 3u
#define QPNS  6u /* that peers say they have; few, so that they meet */

static struct world *world_of(const struct named *n)
{
	return n->d->w;
}

static struct stack *first_stack(const struct named *n)
{
	return world_of(n)->raw.e->stack[0];
}

/* ---- the program ------------------------------------------------------------------------- */

static struct named *playing; /* whose SYNs are heard: a hook has one argument, the world's */

static void hear(void *world, const struct raw_tcp *t)
{
	world_hear(world, t);
	if ((t->flags & (RAW_SYN | RAW_ACK)) != RAW_SYN || t->dport == WORLD_THEIRS)
		return;
	playing->call = *t;
	playing->called = true;
}

static void on_async(void *ctx, enum uw_event ev)
{
	(void)ctx;
	CHECK(ev > 0 && ev < 32);
}

static void make_qp(struct named *n, unsigned i)
{
	struct uw_qp_attr a = { .send_cq = n->cq,
				.recv_cq = n->cq,
				.max_send_wr = 8,
				.max_recv_wr = 8,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.event = on_async };

	CHECK(!uw_qp_create(world_of(n)->pd, &a, &n->qp[i]));
	CHECK(!uw_qp_modify(n->qp[i], UW_QPS_INIT));
}

static void open_program(struct named *n, struct datagrams *d)
{
	struct uw_cq_attr ca = { .depth = 64 };

	n->d = d;
	CHECK(!uw_cq_create(d->w->raw.e, &ca, &n->cq));
	for (unsigned i = 0; i < NAMED_QPS; i++)
		make_qp(n, i);
	playing = n;
	d->w->raw.on_tcp = hear;
}

static void collect(const struct named *n)
{
	struct uw_wc wc;
	int got;

	while ((got = uw_cq_poll(n->cq, 1, &wc)))
		CHECK(got == 1);
}

/* What otherwise the end of the process does: the listener, and Requests that wait. */
static void forget_calls(const struct named *n)
{
	struct stack *s = first_stack(n);
	struct conn *next;

	sched_lock(&s->sched);
	rc_accept_stop(s);
	for (struct conn *c = s->conns; c; c = next) {
		next = c->next;
		if (c->cm_less)
			conn_free(c);
	}
	sched_unlock(&s->sched);
}

void named_close(struct named *n)
{
	if (!n->d)
		return;
	world_of(n)->raw.on_tcp = world_hear;
	collect(n);
	for (unsigned i = 0; i < NAMED_QPS; i++)
		CHECK(!uw_qp_destroy(n->qp[i]));
	CHECK(!uw_cq_destroy(n->cq));
	forget_calls(n);
	n->d = NULL;
}

static struct uw_qp *some_qp(const struct named *n, struct feed *f)
{
	return n->qp[feed_below(f, NAMED_QPS)];
}

static uint32_t some_host(struct feed *f)
{
	return feed_rarely(f, 8) ? RAW_OURS : RAW_THEIRS + feed_below(f, HOSTS);
}

/* One of ours, or of those that peers say they have. */
static uint32_t some_qpn(const struct named *n, struct feed *f)
{
	uint8_t pick = feed_u8(f);

	if (pick >= 250)
		return feed_u32(f) & ROCE_QPN_MASK;
	return pick & 1 ? uw_qp_num(n->qp[pick >> 1 & 1]) : 1000 + pick / 2 % QPNS;
}

static void name_peer(const struct named *n, struct feed *f)
{
	struct uw_qp *qp = some_qp(n, f);
	struct sockaddr_storage to = world_place(world_of(n), some_host(f), 0),
				from = world_place(world_of(n), RAW_OURS, 0);
	struct uw_peer p = { .addr = (struct sockaddr *)&to,
			     .from = (struct sockaddr *)&from,
			     .qpn = some_qpn(n, f),
			     .ird = 1 + feed_below(f, 4),
			     .tos = feed_u8(f) };
	const struct uw_path path = { feed_below(f, 8), feed_below(f, 32) };

	if (uw_qp_state(qp) != UW_QPS_INIT) {
		CHECK(!uw_qp_modify(qp, UW_QPS_RESET));
		CHECK(!uw_qp_modify(qp, UW_QPS_INIT));
	}
	if (feed_bool(f))
		(void)uw_qp_set_path(qp, &path);
	if (!uw_qp_name_peer(qp, &p) && !feed_rarely(f, 4))
		(void)uw_qp_modify(qp, UW_QPS_RTS);
}

static void post(const struct named *n, struct feed *f)
{
	struct uw_qp *qp = some_qp(n, f);
	struct uw_sge sge = { (uintptr_t)n->d->mem, feed_u8(f), uw_mr_stag(n->d->mr) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};
	struct uw_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };
	unsigned done;

	if (feed_bool(f))
		(void)uw_post_send(qp, &wr, 1, &done);
	else
		(void)uw_post_recv(qp, &recv, 1, &done);
}

static void end(struct named *n, struct feed *f)
{
	unsigned i = feed_below(f, NAMED_QPS);

	if (feed_bool(f)) {
		CHECK(!uw_qp_modify(n->qp[i], UW_QPS_ERR));
		return;
	}
	CHECK(!uw_qp_destroy(n->qp[i]));
	make_qp(n, i);
}

/* ---- between QP 1 and QP 1 ---------------------------------------------------------------- */

static void question(struct named *n, struct feed *f)
{
	struct roce_path path = datagrams_path(n->d, some_host(f), false);
	struct mad m = { .kind = MAD_SIDR_REQ, .tid = feed_u8(f), .request_id = feed_u8(f) };

	m.req = (struct sidr_req){ .space = SIDR_RC,
				   .port = RC_PORT,
				   .src_port = RC_PORT,
				   .src = path.src,
				   .dst = path.dst };
	uw_put32(m.req.data, some_qpn(n, f));
	datagrams_manage(n->d, &path, &m, f);
}

/* What one of the QPs has asked, if one has. */
static bool asked(const struct named *n, struct mad *m, struct uw_ip *whom)
{
	struct stack *s = first_stack(n);
	bool found = false;

	sched_lock(&s->sched);
	for (const struct rc *rc = s->rc.list; rc && !found; rc = rc->next) {
		found = rc->ask_tid;
		m->tid = rc->ask_tid;
		m->request_id = rc->self.qpn;
		*whom = rc->peer.addr;
	}
	sched_unlock(&s->sched);
	return found;
}

static void answer(struct named *n, struct feed *f)
{
	struct roce_path path = datagrams_path(n->d, some_host(f), false);
	struct mad m = { .kind = MAD_SIDR_REP };
	struct uw_ip whom;

	if (asked(n, &m, &whom) && !feed_rarely(f, 8))
		path.src = whom;
	if (feed_rarely(f, 8))
		m.tid = feed_u8(f);
	m.rep = (struct sidr_rep){ .status = feed_rarely(f, 8) ? feed_u8(f) : SIDR_VALID,
				   .qpn = some_qpn(n, f),
				   .space = SIDR_RC,
				   .port = RC_PORT };
	uw_put16(m.rep.data, feed_rarely(f, 4) ? feed_u16(f) : RC_PORT + 1);
	datagrams_manage(n->d, &path, &m, f);
}

/* ---- in TCP -------------------------------------------------------------------------------- */

static struct flow *flow_of(const struct named *n)
{
	return &world_of(n)->flows[WORLD_FLOWS - 1];
}

/* A start-up frame, whose words are nearly always those of QPs without rdma_cm. */
static void hello(const struct named *n, struct feed *f, bool reply)
{
	uint8_t pd[sizeof(struct rc_wire)], out[MPA_START_MAX];
	struct rc_hello h = { .from = some_qpn(n, f),
			      .to = some_qpn(n, f),
			      .refusal = feed_rarely(f, 4) ? feed_below(f, 8) : RC_REFUSED_NOT,
			      .rnr_retry = feed_below(f, 8) };
	struct mpa_start s = { .reply = reply,
			       .rev = 2,
			       .enhanced = true,
			       .ird = feed_below(f, 8),
			       .ord = feed_below(f, 8),
			       .crc = feed_bool(f),
			       .reject = reply && feed_rarely(f, 3),
			       .pd = { pd, sizeof(pd) } };
	size_t k;

	rc_hello_encode(&h, pd);
	if (feed_rarely(f, 8))
		pd[feed_below(f, sizeof(pd))] = feed_u8(f);
	if (feed_rarely(f, 8))
		k = flow_start_frame(f, reply, out);
	else
		k = mpa_start_encode(&s, out);
	flow_send(world_of(n), flow_of(n), RAW_ACK | RAW_PSH, out, k);
	flow_of(n)->seq += (uint32_t)k;
}

static void call(const struct named *n, struct feed *f)
{
	struct world *w = world_of(n);
	struct flow *fl = flow_of(n);
	struct raw_tcp t = { .flags = RAW_SYN, .window = 65535, .seq = 0x5000 };

	if (w->raw.link.flags & IO_P2P)
		w->raw.from = 0;
	else
		w->raw.from = RAW_THEIRS + feed_below(f, HOSTS);
	*fl = (struct flow){ .used = true,
			     .theirs = w->next_port++,
			     .ours = RC_PORT,
			     .seq = 0x5001,
			     .window = 65535 };
	t.sport = fl->theirs;
	t.dport = fl->ours;
	raw_tcp(&w->raw, &t);
	world_run(w);
	flow_send(w, fl, RAW_ACK, NULL, 0);
	hello(n, f, false);
	world_run(w);
	w->raw.from = 0;
}

/* Ours called: nobody is there, or somebody answers, so or so. The hosts have one port each. */
static void called(struct named *n, struct feed *f)
{
	struct world *w = world_of(n);
	struct flow *fl = flow_of(n);

	if (!n->called)
		return;
	n->called = false;
	*fl = (struct flow){ .used = true,
			     .theirs = n->call.dport,
			     .ours = n->call.sport,
			     .seq = 0x6000,
			     .ack = n->call.seq + 1,
			     .window = 65535 };
	if (feed_rarely(f, 3)) {
		flow_send(w, fl, RAW_RST | RAW_ACK, NULL, 0);
		fl->used = false;
		return;
	}
	flow_send(w, fl, RAW_SYN | RAW_ACK, NULL, 0);
	fl->seq++;
	world_run(w);
	hello(n, f, true);
}

static void says(const struct named *n, struct feed *f)
{
	uint8_t p[64];
	unsigned k = feed_length(f, sizeof(p));

	if (!flow_of(n)->used)
		return;
	if (feed_bool(f)) {
		flow_end(world_of(n), flow_of(n), f);
		return;
	}
	feed_fill(f, p, k);
	flow_send(world_of(n), flow_of(n), RAW_ACK | RAW_PSH, p, k);
	flow_of(n)->seq += k;
}

void named_play(struct named *n, struct datagrams *d, struct feed *f)
{
	if (!n->d)
		open_program(n, d);
	switch (feed_below(f, 12)) {
	case 0:
	case 1:
		name_peer(n, f);
		break;
	case 2:
		post(n, f);
		break;
	case 3:
		end(n, f);
		break;
	case 4:
		question(n, f);
		break;
	case 5:
		answer(n, f);
		break;
	case 6:
	case 7:
		call(n, f);
		break;
	case 8:
	case 9:
		called(n, f);
		break;
	case 10:
		says(n, f);
		break;
	default:
		raw_pass(&d->w->raw, 1000ull << feed_below(f, 16));
		break;
	}
	world_run(d->w);
	collect(n);
}
