/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole receive path: Ethernet frames into an engine with a listener, connections and a QP at
 * work. Segments with any flags, numbers, options and windows, in any order; frames of rubbish;
 * start-up frames of any content; and a stream whose FPDUs are right or nearly so; while the
 * program posts, connects, answers, disconnects and destroys.
 */
#include "world.h"

static struct flow *some_flow(struct world *w, struct feed *f)
{
	uint8_t pick = feed_u8(f);

	return &w->flows[pick < 128 ? 0 : pick % WORLD_FLOWS];
}

/* ---- hostile segments -------------------------------------------------------------------- */

static void any_segment(struct world *w, struct feed *f)
{
	struct flow *fl = some_flow(w, f);
	uint8_t options[40], data[1460], how = feed_u8(f);
	struct raw_tcp t = { .sport = fl->theirs,
			     .dport = fl->ours,
			     .seq = fl->seq,
			     .ack = fl->ack,
			     .flags = feed_u8(f),
			     .window = feed_u16(f),
			     .options = options,
			     .data = data };

	if (how & 1)
		t.seq += feed_u32(f);
	else if (how & 2)
		t.seq += feed_u8(f) - 128u;
	if (how & 4)
		t.ack += feed_u32(f);
	else if (how & 8)
		t.ack += feed_u8(f) - 128u;
	if (how & 16) {
		t.options_n = 4 * feed_below(f, 11);
		feed_fill(f, options, t.options_n);
	}
	if (how & 32)
		t.urgent = feed_u16(f);
	if (how & 64) {
		t.n = feed_length(f, sizeof(data));
		feed_fill(f, data, t.n);
	}
	if (how & 128)
		t.flags |= RAW_ACK;
	raw_tcp(&w->raw, &t);
	world_run(w);
}

static void any_frame(struct world *w, struct feed *f)
{
	uint8_t p[1600], how = feed_u8(f);
	size_t n = feed_length(f, sizeof(p));

	feed_fill(f, p, n);
	switch (how % 8) {
	case 0:
		raw_send(&w->raw, p, n);
		break;
	case 6: /* neighbours, routers and all the rest */
		raw_icmp6(&w->raw, p, n < 4 ? 4 : n);
		break;
	case 7:
		raw_ip6(&w->raw, how & 0x80 ? feed_u8(f) : 6, p, n);
		break;
	case 1:
		raw_arp(&w->raw, feed_u16(f) & 3, RAW_THEIRS + feed_below(f, 4),
			RAW_OURS + feed_below(f, 4));
		break;
	case 2: /* ICMP */
		if (n > 1)
			p[0] = 8;
		raw_ip(&w->raw, 1, p, n);
		break;
	default:
		raw_ip(&w->raw, how & 0x80 ? how : 6, p, n);
		break;
	}
	world_run(w);
}

/* From the EtherType on, for n octets of packet. */
static void header4(uint8_t *p, uint16_t n)
{
	uw_put16(p, 0x0800);
	p[2] = 0x45;
	uw_put16(p + 4, n);
	p[10] = 64;
	p[11] = 6;
	uw_put32(p + 14, RAW_THEIRS);
	uw_put32(p + 18, RAW_OURS);
}

static void header6(uint8_t *p, uint16_t n)
{
	uw_put16(p, 0x86dd);
	p[2] = 0x60;
	uw_put16(p + 6, (uint16_t)(n - 40));
	p[8] = 6;
	p[9] = 64;
	memcpy(p + 10, RAW_NET6, 12);
	uw_put32(p + 22, RAW_THEIRS);
	memcpy(p + 26, RAW_NET6, 12);
	uw_put32(p + 38, RAW_OURS);
}

/* A well-formed frame with some octets changed: headers that nearly fit. */
static void bent_frame(struct world *w, struct feed *f)
{
	uint8_t p[14 + 1500] = { 0 }, *tcp = p + 14 + (w->raw.six ? 40 : 20);
	size_t n = (size_t)(tcp - p) + 20 + feed_length(f, 1400);
	const struct flow *fl = some_flow(w, f);
	unsigned changes = 1 + feed_below(f, 4);

	memcpy(p, w->raw.link.mac, 6);
	(w->raw.six ? header6 : header4)(p + 12, (uint16_t)(n - 14));
	uw_put16(tcp, fl->theirs);
	uw_put16(tcp + 2, fl->ours);
	uw_put32(tcp + 4, fl->seq);
	uw_put32(tcp + 8, fl->ack);
	tcp[12] = 0x50;
	tcp[13] = RAW_ACK;
	uw_put16(tcp + 14, fl->window);
	while (changes--)
		p[feed_below(f, 64)] = feed_u8(f);
	raw_send(&w->raw, p, feed_rarely(f, 4) ? feed_length(f, (uint32_t)n) : n);
	world_run(w);
}

/* ---- start-ups --------------------------------------------------------------------------- */

static void another_peer(struct world *w, struct feed *f)
{
	struct flow *fl = &w->flows[1 + feed_below(f, WORLD_FLOWS - 1)];
	uint8_t out[MPA_START_MAX + 8];
	struct slot *s;
	size_t n;

	if (!world_has_room(w))
		return;
	flow_syn(w, fl, f);
	n = flow_start_frame(f, feed_rarely(f, 8), out);
	if (feed_rarely(f, 4))
		out[feed_u16(f) % n] = feed_u8(f);
	if (feed_rarely(f, 8))
		n = feed_u16(f) % n;
	flow_send(w, fl, RAW_ACK | RAW_PSH, out, n);
	fl->seq += (uint32_t)n;
	world_run(w);
	s = world_requested(w);
	if (!s || feed_bool(f))
		return;
	if (feed_bool(f)) {
		CHECK(!uw_qp_modify(w->other, UW_QPS_RESET));
		CHECK(!uw_qp_modify(w->other, UW_QPS_INIT));
	}
	world_answer(s, f, w->other);
	world_run(w);
}

static void again(struct world *w, struct feed *f)
{
	if (!world_has_room(w))
		return;
	world_reset(w);
	flow_establish(w, f);
}

/* ---- the program ------------------------------------------------------------------------- */

static struct slot *some_slot(struct world *w, struct feed *f)
{
	unsigned at = feed_below(f, WORLD_EPS);

	for (unsigned i = 0; i < WORLD_EPS; i++) {
		struct slot *s = &w->slots[(at + i) % WORLD_EPS];

		if (s->ep)
			return s;
	}
	return NULL;
}

/* NULL: none, a refusal. */
static struct uw_qp *some_qp(struct world *w, struct feed *f)
{
	uint8_t pick = feed_u8(f);

	if (pick >= 192)
		return NULL;
	return pick & 1 ? w->other : w->qp;
}

/* With a reset what is posted is forgotten. */
static void change_state(struct world *w, enum uw_qp_state to)
{
	if (to == UW_QPS_RESET)
		world_reset(w);
	else
		(void)uw_qp_modify(w->qp, to);
}

static void program(struct world *w, struct feed *f)
{
	struct slot *s = some_slot(w, f);

	switch (feed_below(f, 16)) {
	case 0:
		if (w->main)
			(void)uw_ep_disconnect(w->main->ep);
		break;
	case 1:
		if (s)
			world_drop(s);
		break;
	case 2:
		if (w->main)
			world_drop(w->main);
		break;
	case 3:
		world_listen(w);
		break;
	case 4:
	case 5:
		s = world_requested(w);
		if (s)
			world_answer(s, f, some_qp(w, f));
		break;
	case 6:
		if (world_has_room(w))
			world_connect(w, f);
		break;
	case 7:
		change_state(w, (enum uw_qp_state)feed_below(f, 7));
		break;
	case 8:
		CHECK(!uw_qp_set_access(w->qp, feed_u8(f)));
		break;
	case 9:
		if (world_has_room(w))
			world_any_endpoint(w, f);
		break;
	case 10:
		world_queues(w, f);
		break;
	default:
		world_toggle(w, (enum bed_region)feed_below(f, BED_REGIONS));
		break;
	}
	world_run(w);
}

static void knobs(struct world *w, struct feed *f)
{
	switch (feed_below(f, 5)) {
	case 0:
		w->raw.pool = 8 + feed_u8(f);
		break;
	case 1:
		w->raw.split = feed_below(f, 120);
		break;
	case 2:
		w->raw.answers_arp = feed_bool(f);
		break;
	case 3:
		w->quiet = feed_bool(f);
		break;
	default:
		w->flows[0].window = feed_u16(f);
		break;
	}
}

static void one(struct world *w, struct feed *f)
{
	switch (feed_below(f, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		speak_fpdu(&w->speaker, &w->b, f);
		flow_stream(w, f);
		break;
	case 4:
		speak_fpdu(&w->speaker, &w->b, f);
		break;
	case 5:
		flow_stream(w, f);
		break;
	case 6:
	case 7:
		bed_post_send(&w->b, f);
		world_run(w);
		break;
	case 8:
		bed_post_recv(&w->b, f);
		break;
	case 9:
		any_segment(w, f);
		break;
	case 10:
		(feed_bool(f) ? any_frame : bent_frame)(w, f);
		break;
	case 11:
		raw_pass(&w->raw, 1000ull << feed_below(f, 14));
		world_run(w);
		break;
	case 12:
		program(w, f);
		break;
	case 13:
		switch (feed_below(f, 4)) {
		case 0:
			world_post_other(w, f);
			world_run(w);
			break;
		case 1:
			another_peer(w, f);
			break;
		default:
			flow_other(w, &w->flows[1 + feed_below(f, WORLD_FLOWS - 1)], f);
			break;
		}
		break;
	case 14:
		knobs(w, f);
		break;
	default:
		if (feed_rarely(f, 2))
			again(w, f);
		else
			flow_end(w, some_flow(w, f), f);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct world w;
	bool qp_first;

	world_open(&w, &f);
	qp_first = feed_bool(&f);
	if (!feed_rarely(&f, 8))
		flow_establish(&w, &f);
	while (f.n)
		one(&w, &f);
	world_close(&w, qp_first);
	return 0;
}
