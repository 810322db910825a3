/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start-up of a connection in both roles: octets from TCP in any pieces, the program's answer,
 * the clock and the end of TCP in any order. RFC 5044 §7.1, RFC 6581.
 */
#include "cm/cm.h"
#include "fuzz.h"

struct side {
	struct cm_conn *cm; /* a block of its own */
	struct mpa_policy policy;
	uint8_t out[MPA_START_MAX];
	size_t out_n;
	uint64_t now, deadline;
};

static struct mpa_policy policy(struct feed *f)
{
	uint8_t bits = feed_u8(f);

	return (struct mpa_policy){ .rev = 1 + (bits & 1),
				    .rev_max = 2 - (bits >> 1 & 1),
				    .crc = bits & 4,
				    .rx_markers = bits & 8,
				    .p2p = bits & 16,
				    .rtr = 1 + feed_below(f, 7),
				    .ird_max = 1 + feed_below(f, 200),
				    .ord_max = 1 + feed_below(f, 200) };
}

static struct cm_param param(struct feed *f, uint8_t *pd)
{
	struct cm_param p = { .pd = { pd, feed_length(f, 530) },
			      .ird = feed_u16(f),
			      .ord = feed_u16(f) };

	feed_fill(f, pd, p.pd.n);
	return p;
}

/* What a state promises. */
static void check(const struct side *s, enum cm_verdict v)
{
	const struct cm_conn *cm = s->cm;

	CHECK(cm->have <= sizeof(cm->frame));
	if (cm->state == CM_STREAM || cm->state == CM_ENDED)
		CHECK(!cm->deadline_us);
	switch (v) {
	case CM_REQUESTED:
	case CM_ACCEPTED:
	case CM_REJECTED:
		CHECK(cm->peer.reply == (v != CM_REQUESTED));
		CHECK(cm->peer.pd.p >= cm->frame &&
		      cm->peer.pd.p + cm->peer.pd.n <= cm->frame + cm->have);
		break;
	case CM_FAILED:
		CHECK(cm->state == CM_ENDED && cm->why > UW_MORE);
		break;
	case CM_TERMINATE:
		CHECK(cm->state == CM_STREAM && uw_status_term(cm->why).sends);
		break;
	case CM_NOTHING:
		break;
	}
}

static void open(struct side *s, struct feed *f)
{
	uint8_t pd[530];
	struct cm_param p = param(f, pd);
	size_t most = s->policy.rev >= 2 ? 508 : 512;
	uw_status st;

	if (!(feed_u8(f) & 1)) {
		cm_wait(s->cm, &s->policy);
	} else {
		st = cm_open(s->cm, &s->policy, &p, s->out, &s->out_n);
		CHECK(st == (p.pd.n > most ? UW_E_LEN : UW_OK));
		if (st) {
			p.pd.n = 0;
			CHECK(!cm_open(s->cm, &s->policy, &p, s->out, &s->out_n));
		}
	}
	s->deadline = 1 + feed_u16(f);
	cm_set_deadline(s->cm, s->deadline);
}

static enum cm_verdict receive(struct side *s, struct uw_span in, struct feed *f)
{
	enum cm_state before = s->cm->state;
	enum cm_verdict v;
	size_t used;
	struct cut c;

	cut_make(&c, in, f);
	v = cm_rx(s->cm, c.rope, &used);
	CHECK(used <= in.n);
	if (before == CM_STREAM || before == CM_ENDED || before == CM_IDLE)
		CHECK(v == CM_NOTHING && !used);
	if (v == CM_NOTHING && before != CM_STREAM && before != CM_ENDED)
		CHECK(used == in.n); /* kept in the frame */
	cut_free(&c);
	check(s, v);
	return v;
}

/* A frame that another side would send: its words from the feed, its lengths right. */
static size_t made_up(struct feed *f, uint8_t *out)
{
	uint8_t pd[MPA_PD_MAX], bits = feed_u8(f);
	struct mpa_start s = { .reply = bits & 1,
			       .markers = bits & 2,
			       .crc = bits & 4,
			       .reject = bits & 8,
			       .rev = feed_rarely(f, 8) ? feed_u8(f) : bits >> 4 & 3,
			       .p2p = bits & 64,
			       .rtr = feed_below(f, 8),
			       .ird = feed_u16(f),
			       .ord = feed_u16(f),
			       .pd = { pd, feed_length(f, MPA_PD_MAX - 4) } };
	size_t n;

	s.enhanced = bits & 128;
	feed_fill(f, pd, s.pd.n);
	n = mpa_start_encode(&s, out);
	if (feed_rarely(f, 8))
		out[feed_u16(f) % n] ^= (uint8_t)(1u << feed_below(f, 8));
	return n;
}

static void peer_speaks(struct side *s, struct feed *f)
{
	uint8_t out[MPA_START_MAX + 64];
	size_t n = made_up(f, out), at = 0;

	if (feed_rarely(f, 8)) { /* and goes on at once */
		feed_fill(f, out + n, 16);
		n += 16;
	}
	while (at < n) {
		size_t k = 1 + feed_length(f, (uint32_t)(n - at - 1));

		if (receive(s, (struct uw_span){ out + at, f->n ? k : n - at }, f) > CM_REQUESTED)
			return;
		at += f->n ? k : n - at;
	}
}

static void program_answers(struct side *s, struct feed *f)
{
	enum cm_state before = s->cm->state;
	uint8_t pd[530];
	struct cm_param p = param(f, pd);
	bool yes = feed_u8(f) & 1;
	uw_status st = (yes ? cm_accept : cm_reject)(s->cm, &p, s->out, &s->out_n);
	struct mpa_start back;
	size_t used;

	if (before != CM_WAIT_ANSWER) {
		CHECK(st && s->cm->state == before);
		return;
	}
	CHECK(st == (p.pd.n > (s->cm->peer.enhanced ? 508u : 512u) ? UW_E_LEN : UW_OK));
	if (st)
		return;
	CHECK(s->cm->state == (yes ? CM_STREAM : CM_ENDED));
	CHECK(!mpa_start_decode((struct uw_span){ s->out, s->out_n }, &back, &used));
	CHECK(used == s->out_n && back.reply && back.reject == !yes);
	CHECK(back.pd.n == p.pd.n && !memcmp(back.pd.p, pd, p.pd.n));
}

static void time_passes(struct side *s, struct feed *f)
{
	uint64_t deadline = s->cm->deadline_us;
	enum cm_verdict v;

	s->now += feed_u16(f);
	v = cm_timer(s->cm, s->now);
	CHECK((v == CM_FAILED) == (deadline && s->now >= deadline));
	check(s, v);
}

static void one(struct side *s, struct feed *f)
{
	switch (feed_below(f, 8)) {
	case 0:
		receive(s, feed_span(f, feed_length(f, 600)), f);
		break;
	case 1:
		program_answers(s, f);
		break;
	case 2:
		time_passes(s, f);
		break;
	default:
		peer_speaks(s, f);
		break;
	}
}

/* Two honest sides: they come to terms whatever their policies, or both know why not. */
static void two_sides(struct side *i, struct side *r, struct feed *f)
{
	uint8_t pd[530];
	struct cm_param p = param(f, pd);
	enum cm_verdict v;
	uw_status st;

	if (p.pd.n > 508)
		p.pd.n = 508;
	CHECK(!cm_open(i->cm, &i->policy, &p, i->out, &i->out_n));
	cm_wait(r->cm, &r->policy);
	v = receive(r, (struct uw_span){ i->out, i->out_n }, f);
	if (i->policy.rev > r->policy.rev_max) {
		CHECK(v == CM_FAILED && r->cm->why == UW_E_MPA_REVISION);
		return;
	}
	CHECK(v == CM_REQUESTED);
	st = cm_accept(r->cm, &p, r->out, &r->out_n);
	CHECK(st == UW_OK);
	v = receive(i, (struct uw_span){ r->out, r->out_n }, f);
	CHECK(v == CM_ACCEPTED || (v == CM_TERMINATE && i->cm->why == UW_E_MPA_RTR));
	if (v == CM_ACCEPTED)
		CHECK(i->cm->agreed.crc == r->cm->agreed.crc &&
		      i->cm->agreed.rtr == r->cm->agreed.rtr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct side a, b;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	a.cm = fuzz_alloc(sizeof(*a.cm));
	b.cm = fuzz_alloc(sizeof(*b.cm));
	a.policy = policy(&f);
	b.policy = policy(&f);
	if (feed_rarely(&f, 8)) {
		two_sides(&a, &b, &f);
	} else {
		open(&a, &f);
		while (f.n)
			one(&a, &f);
	}
	free(a.cm);
	free(b.cm);
	return 0;
}
