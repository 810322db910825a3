/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of a host among others: marks of congestion, windows that close and open, blocks of
 * SACK, merged frames, packets of RoCEv2, QPs without rdma_cm, floods of SYNs, buffers that run
 * short, a link that comes and goes, peers that die; with every control of congestion, and cards
 * that compute checksums.
 */
#include "named.h"

#include "conn/walk.h"
#include "io/rx_budget.h"

enum { UDP = 17, ROCE = 4791, ECE = 0x40, CWR = 0x80 };

static struct sched *lock(struct world *w)
{
	struct sched *s = &w->raw.e->stack[0]->sched;

	sched_lock(s);
	return s;
}

/* ---- segments ---------------------------------------------------------------------------- */

static uint32_t near(struct feed *f, uint32_t seq)
{
	return seq - 3000 + feed_u16(f) % 6000;
}

static size_t sack(struct feed *f, const struct flow *fl, bool stamped, uint8_t *out)
{
	unsigned n = 1 + feed_below(f, stamped ? 3 : 4);

	out[0] = out[1] = 1;
	out[2] = 5;
	out[3] = (uint8_t)(2 + 8 * n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t left = near(f, fl->ack);

		uw_put32(out + 4 + 8 * i, left);
		uw_put32(out + 8 + 8 * i, left + feed_u16(f) % 3000);
	}
	return 4 + 8 * n;
}

/* An ACK for less than came, with blocks, with another window, with ECE or CWR, marked CE. */
static void ack(struct world *w, struct feed *f)
{
	struct flow *fl = &w->flows[0];
	uint8_t options[40], how = feed_u8(f);
	struct raw_tcp t = { .sport = fl->theirs,
			     .dport = fl->ours,
			     .seq = fl->seq,
			     .ack = how & 1 ? near(f, fl->ack) : fl->ack,
			     .flags = RAW_ACK,
			     .options = options,
			     .window = how & 2 ? feed_u16(f) : fl->window };

	if (!(how & 32)) /* RFC 7323 §3.2: one without is dropped */
		t.options_n = flow_stamp(w, options);
	if (how & 4)
		t.options_n += (unsigned)sack(f, fl, t.options_n, options + t.options_n);
	t.flags |= (how & 8 ? ECE : 0) | (how & 16 ? CWR : 0);
	raw_tcp(&w->raw, &t);
	for (unsigned i = how >> 6; i; i--) /* duplicates */
		raw_tcp(&w->raw, &t);
}

/* A connection that offers ECN (RFC 3168 §6.1.1), as flow 0. */
static void syn(struct world *w, struct feed *f)
{
	uint8_t options[24] = { 2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 1, 1 };
	unsigned n = 12 + flow_stamp(w, options + 12);
	struct flow *fl = &w->flows[1 + feed_below(f, WORLD_FLOWS - 1)];
	struct raw_tcp t = { .flags = RAW_SYN | (feed_bool(f) ? ECE | CWR : 0),
			     .options = options,
			     .options_n = feed_bool(f) ? n : 0,
			     .window = 65535,
			     .seq = 0x3000,
			     .dport = WORLD_PORT };

	*fl = (struct flow){ .used = true,
			     .theirs = w->next_port++,
			     .ours = WORLD_PORT,
			     .seq = 0x3001,
			     .window = 65535 };
	t.sport = fl->theirs;
	raw_tcp(&w->raw, &t);
	world_run(w);
	if (feed_bool(f) && world_has_room(w))
		flow_send(w, fl, RAW_ACK, NULL, 0);
}

/* From many hosts, beyond what may be half open. */
static void flood(struct world *w, struct feed *f)
{
	struct raw_tcp t = { .flags = RAW_SYN, .window = 65535, .dport = WORLD_PORT, .sport = 1 };
	unsigned n = feed_bool(f) ? 1100 : feed_u8(f), hosts = 1 + feed_u8(f);

	if (w->raw.link.flags & IO_P2P)
		return;
	for (unsigned i = 0; i < n; i++) {
		w->raw.from = RAW_THEIRS + 1 + i % hosts;
		t.sport++;
		t.seq = i * 77;
		raw_tcp(&w->raw, &t);
		if (i % 64 == 63)
			raw_run(&w->raw);
	}
	w->raw.from = 0;
}

/* What the bed has to say, with what is out of order left waiting, and seldom in one long frame, as
 * a card that merges hands it up. */
static void stream(struct world *w, struct feed *f)
{
	struct flow later = w->flows[0];

	speak_fpdu(&w->speaker, &w->b, f);
	if (feed_rarely(f, 4)) {
		uint8_t p[1400];

		later.seq += 1 + feed_u16(f);
		memset(p, 0, sizeof(p));
		flow_send(w, &later, RAW_ACK, p, 1 + feed_length(f, sizeof(p) - 1));
		return;
	}
	flow_stream(w, f);
}

/* ---- packets of RoCEv2 ------------------------------------------------------------------- */

/* Any octets: the ICRC hardly ever lets them go on (datagrams.h has what does). */
static void datagram_in(struct world *w, struct feed *f)
{
	uint8_t p[600];
	size_t n = 8 + feed_length(f, sizeof(p) - 8);

	feed_fill(f, p, n);
	uw_put16(p + 2, feed_rarely(f, 8) ? feed_u16(f) : ROCE);
	uw_put16(p + 4, (uint16_t)n);
	(w->raw.six ? raw_ip6 : raw_ip)(&w->raw, UDP, p, n);
}

static void datagrams(struct world *w, struct datagrams *d, struct named *n, struct feed *f)
{
	if (feed_rarely(f, 8)) {
		datagram_in(w, f);
		return;
	}
	datagrams_play(d, w, f);
	for (unsigned i = feed_below(f, 8); i && f->n; i--)
		named_play(n, d, f);
}

static struct uw_ip somebody(const struct world *w, struct feed *f)
{
	uint32_t host = feed_bool(f)   ? RAW_THEIRS + feed_below(f, 4)
			: feed_bool(f) ? RAW_OURS
				       : feed_u32(f);
	struct uw_ip to;

	if (!w->raw.six)
		return uw_ip_v4(htobe32(host));
	memcpy(to.b, RAW_NET6, 12);
	uw_put32(to.b + 12, host);
	if (feed_rarely(f, 8))
		feed_fill(f, to.b, 8);
	return to;
}

/* A whole packet with a right header, as roce/packet.c makes it. */
static size_t packet(const struct world *w, const struct uw_ip *to, size_t n, uint8_t *out)
{
	memset(out, 0, n);
	if (w->raw.six) {
		out[0] = 0x60;
		uw_put16(out + 4, (uint16_t)(n - 40));
		out[6] = UDP;
		out[7] = 64;
		memcpy(out + 24, to->b, 16);
		return n;
	}
	out[0] = 0x45;
	uw_put16(out + 2, (uint16_t)n);
	out[8] = 64;
	out[9] = UDP;
	memcpy(out + 16, to->b + 12, 4);
	return n;
}

static void datagram_out(struct world *w, struct feed *f)
{
	const struct uw_ip to = somebody(w, f);
	struct sched *s = lock(w);
	struct io_link *l = &w->raw.link;
	size_t room = 0, n = 60 + feed_u8(f);
	uint8_t *p;

	(void)llp_raw.neighbour(l, &to);
	p = llp_raw.packet_begin(l, NULL, &room);
	if (p) {
		CHECK(room >= n && room <= l->mtu);
		llp_raw.packet_end(l, feed_rarely(f, 8) ? 0 : packet(w, &to, n, p), &to,
				   feed_rarely(f, 8));
	}
	sched_unlock(s);
}

/* ---- who looks, and what happens to the host --------------------------------------------- */

static void reports(struct world *w)
{
	struct sched *s = lock(w);
	struct conn_walk walk;
	struct conn_report r;
	struct conn *c;

	conn_walk_begin(&walk, w->raw.e->stack[0]);
	while ((c = conn_walk_next(&walk))) {
		conn_report(c, &r);
		CHECK(r.state && r.llp.in_flight <= 1u << 30);
	}
	conn_walk_end(&walk);
	sched_unlock(s);
}

static void dies(struct world *w, struct feed *f)
{
	struct sched *s = lock(w);

	llp_raw.peer_down(&w->raw.link, feed_bool(f) ? htobe32(RAW_THEIRS) : 0);
	sched_unlock(s);
}

static void comes_up(struct world *w)
{
	struct sched *s = lock(w);

	llp_raw.link_up(&w->raw.link);
	sched_unlock(s);
}

/* Others of the process hold all there is, for a while. */
static void pressure(struct world *w, struct feed *f)
{
	bool copies = feed_bool(f);
	unsigned n = feed_below(f, 16);

	if (copies)
		rx_budget_copy(RX_COPIED_MAX);
	else
		rx_budget_pin(RX_PINNED_MAX);
	while (n-- && f->n) {
		stream(w, f);
		world_run(w);
	}
	if (copies)
		rx_budget_copy(-RX_COPIED_MAX);
	else
		rx_budget_pin(-RX_PINNED_MAX);
}

static void knobs(struct world *w, struct feed *f)
{
	switch (feed_below(f, 8)) {
	case 5: /* old ones (PAWS), or from far ahead */
		w->stamp += (uint32_t)feed_u16(f) << 16;
		break;
	case 6:
		w->stamps = feed_bool(f);
		break;
	case 0:
		w->quiet = feed_bool(f);
		break;
	case 1:
		w->raw.tos = feed_u8(f);
		break;
	case 2:
		w->raw.marks = feed_bool(f) ? IO_FRAME_SUM_GOOD : 0;
		break;
	case 3:
		w->raw.pool = 8 + feed_u8(f);
		break;
	case 4:
		w->raw.split = feed_below(f, 120);
		break;
	default:
		if (w->main)
			uw_ep_set_tos(w->main->ep, feed_u8(f));
		break;
	}
}

static void what_happens(struct world *w, struct feed *f)
{
	switch (feed_below(f, 8)) {
	case 0:
		dies(w, f);
		break;
	case 1:
		flood(w, f);
		break;
	case 2:
		pressure(w, f);
		break;
	case 3:
		comes_up(w);
		break;
	case 4:
		w->raw.answers_arp = feed_bool(f);
		break;
	case 5:
		syn(w, f);
		break;
	default:
		raw_pass(&w->raw, 1000000ull * feed_below(f, 30));
		break;
	}
}

static void one(struct world *w, struct datagrams *d, struct named *n, struct feed *f)
{
	switch (feed_below(f, 16)) {
	case 0:
	case 1:
	case 2:
		stream(w, f);
		break;
	case 3:
	case 4:
	case 5:
		bed_post_send(&w->b, f);
		break;
	case 6:
		bed_post_recv(&w->b, f);
		break;
	case 7:
	case 8:
	case 9:
		ack(w, f);
		break;
	case 10:
		datagrams(w, d, n, f);
		break;
	case 11:
		datagram_out(w, f);
		break;
	case 12:
		reports(w);
		break;
	case 13:
		what_happens(w, f);
		break;
	case 14:
		raw_pass(&w->raw, 1000ull << feed_below(f, 12));
		break;
	default:
		knobs(w, f);
		break;
	}
	world_run(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum uw_congestion controls[] = { UW_CC_CUBIC, UW_CC_DCTCP, UW_CC_DELAY };
	struct feed f = { data, size };
	uint8_t bits = feed_u8(&f);
	struct uw_config cfg = { .addr_fd = -1,
				 .congestion = controls[bits % COUNT(controls)],
				 .timestamps = bits & 4,
				 .ecn = bits & 8,
				 .rc_wait_ms = 2000,
				 .keepalive_ms = bits & 16 ? 4000 : 0,
				 .rnr_ms = bits & 32 ? 10000 : 0 };
	struct datagrams d = { 0 };
	struct named n = { 0 };
	static struct world w;

	world_open_as(&w, &f, &cfg, bits & 64 ? IO_RX_CSUM | IO_TX_CSUM : IO_NEIGHBOURS);
	w.stamps = bits & 4;
	flow_establish(&w, &f);
	while (f.n)
		one(&w, &d, &n, &f);
	w.raw.tos = 0;
	w.raw.marks = 0;
	named_close(&n);
	datagrams_close(&d);
	world_close(&w, bits & 128);
	return 0;
}
