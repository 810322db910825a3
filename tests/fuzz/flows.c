/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers of fuzz_frames: TCP conversations kept by hand. */
#include "mpa/fpdu.h"
#include "mpa/markers.h"
#include "world.h"

/* ---- hearing ----------------------------------------------------------------------------- */

static struct flow *flow_of(struct world *w, const struct raw_tcp *t)
{
	for (unsigned i = 0; i < WORLD_FLOWS; i++) {
		struct flow *fl = &w->flows[i];

		if (fl->used && fl->theirs == t->dport && fl->ours == t->sport)
			return fl;
	}
	return NULL;
}

/* Whose stream flow 0 is. */
static const struct qp *qp_of(const struct world *w)
{
	return w->flows[0].theirs == w->other_port ? &w->other->c.qp : &w->qp->c.qp;
}

/* The stream is a QP's: its kind is known now. */
static void begin_fpdus(struct world *w)
{
	const struct qp *qp = qp_of(w);

	w->heard_what = HEARD_FPDUS;
	/* Answers that the speaker does not know of make its count too high: no limit here. */
	outbound_init(&w->b.out, qp->mtx.crc, qp->mtx.markers, ASKED_MAX);
}

/* The size of what stands first, if it is there whole; else 0. */
static size_t first_frame(struct world *w)
{
	struct mpa_start s;
	size_t used, whole;
	uint8_t flat[MPA_LENGTH_SIZE];
	struct uw_span all = { w->heard, w->heard_n };
	unsigned phase = w->b.out.phase;
	int ok;

	if (w->heard_what == HEARD_START) {
		CHECK(mpa_start_decode(all, &s, &used) <= UW_MORE);
		return used;
	}
	if (!w->b.out.markers)
		phase = 4; /* far from the next */
	if (all.n < mpa_marked_size(phase, MPA_LENGTH_SIZE))
		return 0;
	mpa_markers_strip(uw_rope_of(&all), phase, flat, sizeof(flat), &ok);
	whole = mpa_fpdu_size(uw_be16(flat));
	if (w->b.out.markers)
		whole = mpa_marked_size(phase, whole);
	return whole <= all.n ? whole : 0;
}

static void look(struct world *w)
{
	struct outbound *o = &w->b.out;
	size_t n;

	while (w->heard_n) {
		if (w->heard_what == HEARD_REST)
			begin_fpdus(w);
		n = first_frame(w);
		if (!n)
			return;
		while (o->asked_n > qp_of(w)->rd.orq.count)
			outbound_answered(o);
		if (w->heard_what == HEARD_FPDUS)
			outbound_check(o, w->heard, n);
		else
			w->heard_what = HEARD_REST;
		memmove(w->heard, w->heard + n, w->heard_n - n);
		w->heard_n -= n;
	}
}

/* Our program connects: that becomes flow 0. */
static void hear_syn(struct world *w, const struct raw_tcp *t)
{
	struct flow *fl = &w->flows[0];

	if (t->dport != WORLD_THEIRS)
		return;
	*fl = (struct flow){
		.used = true, .theirs = t->dport, .ours = t->sport, .seq = 0x1000, .window = 65535
	};
	w->heard_n = 0;
	w->heard_what = HEARD_START;
	speak_init(&w->speaker);
	w->b.in_n = 0;
}

void world_hear(void *world, const struct raw_tcp *t)
{
	struct world *w = world;
	struct flow *fl = flow_of(w, t);
	size_t n = t->n;

	if (!fl && (t->flags & RAW_SYN) && !(t->flags & RAW_ACK)) {
		hear_syn(w, t);
		fl = flow_of(w, t);
	}
	if (!fl)
		return;
	if (t->flags & RAW_SYN)
		fl->ack = t->seq + 1;
	if (t->flags & RAW_RST)
		return;
	if (t->seq != fl->ack || !(n || (t->flags & RAW_FIN)))
		return;
	fl->owes_ack = true;
	fl->ack += (uint32_t)n + !!(t->flags & RAW_FIN);
	if (fl != w->flows || n > WORLD_HEARD - w->heard_n)
		return;
	memcpy(w->heard + w->heard_n, t->data, n);
	w->heard_n += n;
	look(w);
}

void world_run(struct world *w)
{
	for (unsigned i = 0; i < 12; i++) {
		bool more = false;

		raw_run(&w->raw);
		for (unsigned k = 0; k < WORLD_FLOWS && !w->quiet; k++) {
			struct flow *fl = &w->flows[k];

			if (!fl->used || !fl->owes_ack)
				continue;
			fl->owes_ack = false;
			more = true;
			flow_send(w, fl, RAW_ACK, NULL, 0);
		}
		bed_poll(&w->b);
		if (!more)
			return;
	}
}

/* ---- speaking ---------------------------------------------------------------------------- */

unsigned flow_stamp(struct world *w, uint8_t *out)
{
	if (!w->stamps)
		return 0;
	out[0] = out[1] = 1;
	out[2] = 8;
	out[3] = 10;
	uw_put32(out + 4, ++w->stamp);
	uw_put32(out + 8, w->stamp / 2);
	return 12;
}

void flow_send(struct world *w, struct flow *fl, uint8_t flags, const uint8_t *p, size_t n)
{
	uint8_t options[12];
	struct raw_tcp t = { .sport = fl->theirs,
			     .dport = fl->ours,
			     .seq = fl->seq,
			     .ack = fl->ack,
			     .flags = flags,
			     .window = fl->window,
			     .options = options,
			     .options_n = flow_stamp(w, options),
			     .data = p,
			     .n = n };

	raw_tcp(&w->raw, &t);
}

void flow_syn(struct world *w, struct flow *fl, struct feed *f)
{
	uint16_t mss = feed_rarely(f, 8) ? feed_u16(f) : 1460;
	uint8_t how = feed_u8(f);
	uint8_t options[24] = { 2, 4, (uint8_t)(mss >> 8), (uint8_t)mss, 1, 3, 3, how & 15, 4, 2,
				1, 1 };
	struct raw_tcp t = { .flags = RAW_SYN, .options = options };

	t.options_n = 12 + flow_stamp(w, options + 12);

	if (how & 0x80)
		t.options_n = 4;
	*fl = (struct flow){ .used = true,
			     .theirs = w->next_port++,
			     .ours = WORLD_PORT,
			     .seq = how & 0x40 ? 0xfffffff0u : 0x2000,
			     .window = 65535 };
	t.sport = fl->theirs;
	t.dport = fl->ours;
	if (feed_rarely(f, 8))
		fl->window = feed_u8(f);
	t.window = fl->window;
	t.seq = fl->seq++;
	if (fl == w->flows) {
		w->heard_n = 0;
		w->heard_what = HEARD_START;
		w->b.in_n = 0;
		speak_init(&w->speaker);
	}
	raw_tcp(&w->raw, &t);
	world_run(w);
	flow_send(w, fl, RAW_ACK, NULL, 0);
	world_run(w);
}

void flow_end(struct world *w, struct flow *fl, struct feed *f)
{
	static const uint8_t flags[] = { RAW_ACK, RAW_FIN | RAW_ACK, RAW_RST, RAW_RST | RAW_ACK };
	unsigned which = feed_below(f, COUNT(flags));

	flow_send(w, fl, flags[which], NULL, 0);
	fl->seq += which == 1;
	world_run(w);
}

/* Octets at an offset of what comes next. */
static void send_part(struct world *w, size_t from, size_t to)
{
	struct flow later = w->flows[0];

	later.seq += (uint32_t)from;
	flow_send(w, &later, RAW_ACK | RAW_PSH, w->b.in + from, to - from);
}

static void send_crumbs(struct world *w, size_t n, bool backwards)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = backwards ? n - 1 - i : i;

		send_part(w, at, at + 1);
		if (i % 16 == 15)
			raw_run(&w->raw);
	}
}

void flow_stream(struct world *w, struct feed *f)
{
	struct bed *b = &w->b;
	size_t n = b->in_n, cut;
	uint8_t how = feed_u8(f);

	if (!w->flows[0].used || !n)
		return;
	if (n > 1400)
		n = 1400;
	if (how >= 240 && n > 150)
		n = 150;
	cut = how < 128 ? 0 : feed_length(f, (uint32_t)n);
	if (how >= 240) {
		send_crumbs(w, n, how & 1);
	} else if (how < 128 || cut == 0 || cut == n) {
		send_part(w, 0, n);
	} else if (how < 192) { /* the wrong way round */
		send_part(w, cut, n);
		send_part(w, 0, cut);
	} else { /* overlapping */
		send_part(w, 0, cut);
		send_part(w, cut / 2, n);
		if (how & 1)
			send_part(w, 0, n);
	}
	w->flows[0].seq += (uint32_t)n;
	memmove(b->in, b->in + n, b->in_n - n);
	b->in_n -= n;
	world_run(w);
}

void flow_other(struct world *w, struct flow *fl, struct feed *f)
{
	uint8_t out[SPEAK_MAX + 64];
	struct uw_stats stats = { 0 };
	struct mpa_tx tx = { .crc = w->other->c.qp.mrx.crc, .stats = &stats };
	size_t n = speak_ulpdu(&w->other_speaker, &w->b, f, mpa_tx_ulpdu(out));

	n = mpa_tx_finish(&tx, out, n);
	for (size_t at = 0, part; at < n; at += part) {
		part = n - at < 1400 ? n - at : 1400;
		flow_send(w, fl, RAW_ACK | RAW_PSH, out + at, part);
		fl->seq += (uint32_t)part;
	}
	world_run(w);
}

size_t flow_start_frame(struct feed *f, bool reply, uint8_t *out)
{
	uint8_t bits = feed_u8(f), pd[MPA_PD_MAX];
	struct mpa_start s = { .reply = reply,
			       .crc = bits & 1,
			       .markers = (bits & 6) == 6,
			       .rev = bits & 8 ? 1 : 2,
			       .p2p = bits & 16,
			       .rtr = bits >> 5,
			       .ird = feed_u8(f),
			       .ord = feed_u8(f),
			       .pd = { pd, feed_length(f, 508) } };

	s.enhanced = s.rev == 2;
	if (feed_rarely(f, 16))
		s.reject = true;
	if (feed_rarely(f, 16))
		s.ird = s.ord = MPA_RD_NO_NEGO;
	feed_fill(f, pd, s.pd.n);
	return mpa_start_encode(&s, out);
}

void flow_establish(struct world *w, struct feed *f)
{
	bool active = feed_bool(f);
	uint8_t out[MPA_START_MAX];
	struct flow *fl = &w->flows[0];
	struct slot *s;
	size_t n;

	if (active) {
		fl->used = false;
		world_connect(w, f);
		world_run(w);
		if (!fl->used)
			return;
		if (feed_rarely(f, 8))
			fl->window = feed_u8(f);
		flow_send(w, fl, RAW_SYN | RAW_ACK, NULL, 0);
		fl->seq++;
	} else {
		flow_syn(w, fl, f);
	}
	world_run(w);
	n = flow_start_frame(f, active, out);
	bed_arrive(&w->b, out, n);
	flow_stream(w, &(struct feed){ NULL, 0 });
	if (!active && (s = world_requested(w)))
		world_answer(s, f, feed_rarely(f, 16) ? NULL : w->qp);
	world_run(w);
	w->b.agreed.crc = w->qp->c.qp.mrx.crc;
	w->b.agreed.rx_markers = w->qp->c.qp.mrx.markers;
}
