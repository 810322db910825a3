/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw.h"

#include <endian.h>

#include "io/addr.h"
#include "io/packet/segments.h"
#include "lwip/priv/memp_priv.h"
#include "lwip/priv/tcp_priv.h"

#define ETH	 14u
#define HEADROOM 128u
#define STEPS	 40u

/* lwIP's state is one per process, and its clock must not go back. */
static uint64_t clock_us = 1000000;

static uint64_t now(void *arg)
{
	(void)arg;
	return clock_us;
}

/* ---- the link ---------------------------------------------------------------------------- */

struct raw_frame {
	struct io_frame f;
	unsigned refs;
	struct raw_frame *next;
	uint8_t octets[];
};

static struct raw *of(struct io_link *l)
{
	return (struct raw *)l;
}

static struct raw_frame *frame_of(const struct io_frame *f)
{
	return (struct raw_frame *)(uintptr_t)f;
}

static struct raw_frame *frame_new(struct raw *r, size_t room)
{
	struct raw_frame *f = fuzz_alloc(sizeof(*f) + room);

	memset(f, 0, sizeof(*f));
	f->f.link = &r->link;
	f->f.buf = f->f.data = f->octets;
	f->f.room = (uint32_t)room;
	f->refs = 1;
	r->frames++;
	return f;
}

static struct io_frame *link_alloc(struct io_link *l)
{
	struct raw *r = of(l);
	struct raw_frame *f;

	if (r->frames >= r->pool) {
		l->stats.no_frame++;
		return NULL;
	}
	f = frame_new(r, HEADROOM + ETH + RAW_MTU);
	f->f.data += HEADROOM;
	return &f->f;
}

static struct io_frame *link_alloc_long(struct io_link *l)
{
	struct raw *r = of(l);
	struct raw_frame *f;

	if (r->frames >= r->pool)
		return NULL;
	f = frame_new(r, HEADROOM + IO_LONG_MAX);
	f->f.data += HEADROOM;
	return &f->f;
}

static void link_free(struct io_frame *f)
{
	CHECK(frame_of(f)->refs);
	if (--frame_of(f)->refs)
		return;
	of(f->link)->frames--;
	free(frame_of(f));
}

static void link_ref(struct io_frame *f)
{
	frame_of(f)->refs++;
}

static unsigned link_refs(const struct io_frame *f)
{
	return frame_of(f)->refs;
}

static void put(struct raw_frame **list, struct raw_frame *f)
{
	while (*list)
		list = &(*list)->next;
	*list = f;
}

static struct raw_frame *get(struct raw_frame **list)
{
	struct raw_frame *f = *list;

	if (f)
		*list = f->next;
	return f;
}

static unsigned link_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	unsigned got = 0;
	struct raw_frame *f;

	while (got < n && (f = get(&of(l)->in)))
		v[got++] = &f->f;
	return got;
}

/* A copy, as a card takes one: what TCP keeps for a retransmission changes later. */
static void wire(struct raw *r, struct uw_span head, struct uw_span payload)
{
	size_t n = head.n + payload.n;
	struct raw_frame *f = frame_new(r, n);

	CHECK(n >= ETH && n <= ETH + RAW_MTU);
	memcpy(f->octets, head.p, head.n);
	if (payload.n)
		memcpy(f->octets + head.n, payload.p, payload.n);
	f->f.len = (uint32_t)n;
	put(&r->out, f);
}

/* The segments of a long one, as a card cuts it. */
static void wire_pieces(struct raw *r, const struct io_frame *f, unsigned pieces)
{
	for (unsigned i = 0; i < pieces; i++) {
		uint8_t head[SEGMENT_HEADERS];
		struct virtio_net_hdr vnet;
		struct uw_span payload;
		unsigned n = segment_part(f, i, 1, head, &vnet, &payload);

		CHECK(n && payload.n && payload.n <= f->cut);
		wire(r, (struct uw_span){ head, n }, payload);
	}
}

static unsigned link_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct raw *r = of(l);

	for (unsigned i = 0; i < n; i++) {
		const struct io_frame *f = v[i];
		unsigned pieces = segment_pieces(f);

		CHECK(!f->next && f->data >= f->buf);
		CHECK(f->data + f->len <= f->buf + f->room);
		if (pieces > 1)
			wire_pieces(r, f, pieces);
		else
			wire(r, (struct uw_span){ f->data, f->len }, (struct uw_span){ 0 });
		link_free(v[i]);
	}
	return n;
}

static bool link_pending(struct io_link *l)
{
	return of(l)->in;
}

static void free_list(struct raw_frame **list)
{
	struct raw_frame *f;

	while ((f = get(list))) {
		if (f->f.next)
			link_free(f->f.next);
		link_free(&f->f);
	}
}

static void link_close(struct io_link *l)
{
	free_list(&of(l)->in);
	free_list(&of(l)->out);
}

static const struct io_ops ops = {
	.name = "raw",
	.rx = link_rx,
	.tx = link_tx,
	.alloc = link_alloc,
	.free = link_free,
	.ref = link_ref,
	.refs = link_refs,
	.pending = link_pending,
	.close = link_close,
};

/* A card that computes checksums cuts long segments, too (adr/0044). */
static const struct io_ops cutting_ops = {
	.name = "raw",
	.rx = link_rx,
	.tx = link_tx,
	.alloc = link_alloc,
	.alloc_long = link_alloc_long,
	.free = link_free,
	.ref = link_ref,
	.refs = link_refs,
	.pending = link_pending,
	.close = link_close,
};

/* ---- life -------------------------------------------------------------------------------- */

void raw_open(struct raw *r, const struct uw_config *cfg, unsigned flags)
{
	struct io_link *l = &r->link;
	struct uw_net six = { .bits = 64 };

	memset(r, 0, sizeof(*r));
	clock_us += 1000000;
	r->answers_arp = true;
	r->pool = 256;
	l->ops = flags & IO_TX_CSUM ? &cutting_ops : &ops;
	l->addr = htobe32(RAW_OURS);
	l->mask = htobe32(0xffffff00);
	l->mtu = RAW_MTU;
	l->headroom = HEADROOM;
	l->flags = flags;
	l->bps = 10000000000u;
	l->doorbell = &r->doorbell;
	io_mac_of(l->addr, l->mac);
	memcpy(six.ip.b, RAW_NET6, 12);
	uw_put32(six.ip.b + 12, RAW_OURS);
	io_set_ip6(l, &six, 1);
	CHECK(!engine_open_manual(cfg, &l, 1, now, NULL, &r->e));
}

/* lwIP's segments come from a pool of its own, so nobody else would see one that is lost. To count
 * them takes as long as a run, so not every time; but always in the first, which is the only one
 * when an input is repeated. */
static void check_segments(void)
{
	static unsigned closed;
	unsigned n = 0;

	if (closed++ % 64)
		return;
	for (const struct memp *m = *memp_pools[MEMP_TCP_SEG]->tab; m; m = m->next)
		n++;
	CHECK(n == MEMP_NUM_TCP_SEG);
}

static void abort_all(struct tcp_pcb **list)
{
	while (*list)
		tcp_abort(*list);
}

void raw_close(struct raw *r)
{
	sched_lock(&r->e->stack[0]->sched);
	CHECK(!r->e->conn.eps && !r->e->stack[0]->conns);
	/* What still closes belongs to nobody; nobody is told. */
	abort_all(&tcp_active_pcbs);
	abort_all(&tcp_tw_pcbs);
	sched_unlock(&r->e->stack[0]->sched);
	r->on_tcp = NULL;
	raw_run(r);
	CHECK(!tcp_active_pcbs && !tcp_tw_pcbs && !tcp_bound_pcbs);
	CHECK(!tcp_listen_pcbs.listen_pcbs);
	check_segments();
	CHECK(!r->e->stack[0]->sched.stats.tcp_assertions);
	uw_engine_close(r->e);
	CHECK(!r->frames);
}

/* ---- out --------------------------------------------------------------------------------- */

static uint16_t sum(const uint8_t *p, size_t n, uint32_t s)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	if (n & 1)
		s += (uint32_t)p[n - 1] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static struct raw_frame *buffer_of(struct raw *r, const uint8_t *p, size_t n)
{
	struct raw_frame *f = frame_new(r, n);

	if (n)
		memcpy(f->octets, p, n);
	f->f.len = (uint32_t)n;
	return f;
}

void raw_send(struct raw *r, const uint8_t *p, size_t n)
{
	size_t first = r->split && r->split < n ? r->split : n;
	struct raw_frame *f;

	if (r->frames >= r->pool)
		return; /* the card has no buffer: dropped */
	f = buffer_of(r, p, first);
	if (first < n)
		f->f.next = &buffer_of(r, p + first, n - first)->f;
	f->f.marks = r->marks;
	put(&r->in, f);
}

static uint32_t source(const struct raw *r)
{
	return r->from ? r->from : RAW_THEIRS;
}

static void ethernet(struct raw *r, uint16_t type, uint8_t *frame)
{
	memcpy(frame, r->link.mac, 6);
	io_mac_of(htobe32(RAW_THEIRS), frame + 6);
	uw_put16(frame + 12, type);
}

void raw_ip(struct raw *r, uint8_t proto, const uint8_t *p, size_t n)
{
	uint8_t frame[ETH + RAW_MTU] = { 0 }, *ip = frame + ETH;

	if (n > RAW_MTU - 20)
		n = RAW_MTU - 20;
	ethernet(r, 0x0800, frame);
	ip[0] = 0x45;
	ip[1] = r->tos;
	uw_put16(ip + 2, (uint16_t)(20 + n));
	ip[8] = 64;
	ip[9] = proto;
	uw_put32(ip + 12, source(r));
	uw_put32(ip + 16, RAW_OURS);
	uw_put16(ip + 10, sum(ip, 20, 0));
	if (n)
		memcpy(ip + 20, p, n);
	raw_send(r, frame, ETH + 20 + n);
}

static void address6(uint8_t *to, uint32_t host)
{
	memcpy(to, RAW_NET6, 12);
	uw_put32(to + 12, host);
}

void raw_ip6(struct raw *r, uint8_t next, const uint8_t *p, size_t n)
{
	uint8_t frame[ETH + RAW_MTU] = { 0 }, *ip = frame + ETH;

	if (n > RAW_MTU - 40)
		n = RAW_MTU - 40;
	ethernet(r, 0x86dd, frame);
	uw_put16(ip, (uint16_t)(0x6000 | r->tos << 4));
	uw_put16(ip + 4, (uint16_t)n);
	ip[6] = next;
	ip[7] = 255;
	address6(ip + 8, source(r));
	address6(ip + 24, RAW_OURS);
	if (n)
		memcpy(ip + 40, p, n);
	raw_send(r, frame, ETH + 40 + n);
}

void raw_packet(struct raw *r, const uint8_t *p, size_t n)
{
	uint8_t frame[ETH + RAW_MTU];

	if (n > RAW_MTU)
		n = RAW_MTU;
	ethernet(r, p[0] >> 4 == 6 ? 0x86dd : 0x0800, frame);
	memcpy(frame + ETH, p, n);
	raw_send(r, frame, ETH + n);
}

/* Of the two addresses, whichever way, and the protocol. */
static uint32_t pseudo(const struct raw *r, bool six, uint8_t proto)
{
	return (RAW_OURS >> 16) + (RAW_OURS & 0xffff) + (source(r) >> 16) + (source(r) & 0xffff) +
	       (six ? 2u * 0xfd00 : 0) + proto;
}

void raw_icmp6(struct raw *r, const uint8_t *p, size_t n)
{
	uint8_t m[RAW_MTU - 40];

	if (n > sizeof(m))
		n = sizeof(m);
	memcpy(m, p, n);
	uw_put16(m + 2, 0);
	uw_put16(m + 2, sum(m, n, pseudo(r, true, 58) + (uint32_t)n));
	raw_ip6(r, 58, m, n);
}

void raw_tcp(struct raw *r, const struct raw_tcp *t)
{
	uint8_t seg[RAW_MTU - 20] = { 0 };
	size_t head = 20 + t->options_n, n = t->n, room = RAW_MTU - (r->six ? 40 : 20);

	if (n > room - head)
		n = room - head;
	uw_put16(seg, t->sport);
	uw_put16(seg + 2, t->dport);
	uw_put32(seg + 4, t->seq);
	uw_put32(seg + 8, t->ack);
	seg[12] = (uint8_t)(head / 4 << 4);
	seg[13] = t->flags;
	uw_put16(seg + 14, t->window);
	uw_put16(seg + 18, t->urgent);
	if (t->options_n)
		memcpy(seg + 20, t->options, t->options_n);
	if (n)
		memcpy(seg + head, t->data, n);
	uw_put16(seg + 16, sum(seg, head + n, pseudo(r, r->six, 6) + (uint32_t)(head + n)));
	(r->six ? raw_ip6 : raw_ip)(r, 6, seg, head + n);
}

void raw_arp(struct raw *r, uint16_t op, uint32_t sender, uint32_t target)
{
	uint8_t frame[ETH + 28] = { 0 }, *a = frame + ETH;

	ethernet(r, 0x0806, frame);
	uw_put16(a, 1);
	uw_put16(a + 2, 0x0800);
	a[4] = 6;
	a[5] = 4;
	uw_put16(a + 6, op);
	io_mac_of(htobe32(RAW_THEIRS), a + 8);
	uw_put32(a + 14, sender);
	memcpy(a + 18, r->link.mac, 6);
	uw_put32(a + 24, target);
	raw_send(r, frame, sizeof(frame));
}

/* ---- in ---------------------------------------------------------------------------------- */

static void hear_tcp(struct raw *r, const uint8_t *p, size_t n)
{
	struct raw_tcp t = { .sport = uw_be16(p),
			     .dport = uw_be16(p + 2),
			     .seq = uw_be32(p + 4),
			     .ack = uw_be32(p + 8),
			     .flags = p[13],
			     .window = uw_be16(p + 14) };
	size_t head = (size_t)(p[12] >> 4) * 4;

	CHECK(head >= 20 && head <= n);
	t.data = p + head;
	t.n = n - head;
	if (r->on_tcp)
		r->on_tcp(r->arg, &t);
}

/* It is who the engine asks for, whoever that is. */
static void answer_solicitation(struct raw *r, const uint8_t *target)
{
	uint8_t m[32] = { 136, [4] = 0x60, [24] = 2, [25] = 1 };

	memcpy(m + 8, target, 16);
	io_mac_of(htobe32(RAW_THEIRS), m + 26);
	raw_icmp6(r, m, sizeof(m));
}

static void hear_ip6(struct raw *r, const uint8_t *ip, size_t n)
{
	size_t payload = uw_be16(ip + 4);
	bool from_pair = !memcmp(ip + 8, RAW_NET6, 12) && !memcmp(ip + 24, RAW_NET6, 12);

	CHECK(n >= 40 && ip[0] >> 4 == 6 && payload <= n - 40);
	/* MLD has an option in front (RFC 2710 §3) */
	CHECK(ip[6] == 6 || ip[6] == 58 || ip[6] == 17 || ip[6] == 0);
	if (ip[6] == 58 && r->answers_arp && ip[40] == 135 && payload >= 24)
		answer_solicitation(r, ip + 48);
	if (ip[6] != 6 || !from_pair)
		return;
	CHECK(r->link.flags & (IO_P2P | IO_TX_CSUM) ||
	      !sum(ip + 8, 32 + payload, 6 + (uint32_t)payload)); /* RFC 8200 §8.1 */
	hear_tcp(r, ip + 40, payload);
}

static void hear(struct raw *r, const struct io_frame *f)
{
	const uint8_t *p = f->data, *ip = p + ETH;

	if (uw_be16(p + 12) == 0x86dd) {
		hear_ip6(r, ip, f->len - ETH);
		return;
	}
	if (uw_be16(p + 12) == 0x0806) {
		CHECK(f->len >= ETH + 28);
		if (r->answers_arp && uw_be16(ip + 6) == 1)
			raw_arp(r, 2, uw_be32(ip + 24), uw_be32(ip + 14));
		return;
	}
	CHECK(uw_be16(p + 12) == 0x0800 && f->len >= ETH + 20);
	/* IGMP has an option (RFC 2236 §2) */
	CHECK(ip[0] == (ip[9] == 2 ? 0x46 : 0x45) && uw_be16(ip + 2) <= f->len - ETH);
	CHECK(r->link.flags & IO_P2P || ip[9] == 17 || !sum(ip, ip[9] == 2 ? 24 : 20, 0));
	if (ip[9] == 6)
		hear_tcp(r, ip + 20, uw_be16(ip + 2) - 20u);
}

void raw_run(struct raw *r)
{
	for (unsigned i = 0; i < STEPS; i++) {
		struct raw_frame *f;
		unsigned work;

		sched_lock(&r->e->stack[0]->sched);
		work = sched_run(&r->e->stack[0]->sched);
		sched_unlock(&r->e->stack[0]->sched);
		for (; (f = get(&r->out)); work++) {
			hear(r, &f->f);
			link_free(&f->f);
		}
		if (!work)
			return;
	}
}

void raw_pass(struct raw *r, uint64_t us)
{
	/* Timers run every 10 ms; long waits in few steps. */
	uint64_t step = us / 32 > 10000 ? us / 32 : 10000;

	for (uint64_t done = 0; done < us; done += step) {
		clock_us += us - done < step ? us - done : step;
		raw_run(r);
	}
}
