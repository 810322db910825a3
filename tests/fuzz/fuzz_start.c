/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA start-up frames: any octets through mpa_start_decode; frames that are written are read back
 * the same; and what two policies make of each other's frames fits on both sides. RFC 5044 §7.1,
 * RFC 6581 §9.
 */
#include "fuzz.h"
#include "mpa/handshake.h"

/* ---- octets ------------------------------------------------------------------------------ */

static void same(const struct mpa_start *a, const struct mpa_start *b)
{
	CHECK(a->reply == b->reply && a->markers == b->markers && a->crc == b->crc);
	CHECK(a->reject == b->reject && a->enhanced == b->enhanced && a->rev == b->rev);
	if (a->enhanced)
		CHECK(a->p2p == b->p2p && a->rtr == b->rtr && a->ird == b->ird && a->ord == b->ord);
	CHECK(a->pd.n == b->pd.n && (!a->pd.n || !memcmp(a->pd.p, b->pd.p, a->pd.n)));
}

/* Write it and read it back, whole and cut off at any octet. */
static void round_trip(const struct mpa_start *s, size_t cut)
{
	uint8_t out[MPA_START_MAX], *exact;
	size_t n = mpa_start_encode(s, out), used;
	struct mpa_start back;

	CHECK(n <= MPA_START_MAX);
	exact = fuzz_copy(out, n);
	CHECK(!mpa_start_decode((struct uw_span){ exact, n }, &back, &used) && used == n);
	same(s, &back);
	free(exact);
	cut %= n;
	exact = fuzz_copy(out, cut);
	CHECK(mpa_start_decode((struct uw_span){ exact, cut }, &back, &used) == UW_MORE && !used);
	free(exact);
}

static void anything(const uint8_t *data, size_t size)
{
	uint8_t *in = fuzz_copy(data, size);
	struct mpa_start s;
	size_t used;
	uw_status st = mpa_start_decode((struct uw_span){ in, size }, &s, &used);

	CHECK(st == UW_OK || st == UW_MORE || st == UW_E_MPA_FRAME);
	CHECK(used <= size && (st == UW_OK) == (used != 0));
	if (!st) {
		CHECK(s.pd.n <= MPA_PD_MAX && s.pd.p >= in && s.pd.p + s.pd.n == in + used);
		CHECK(s.ird <= MPA_RD_NO_NEGO && s.ord <= MPA_RD_NO_NEGO);
		round_trip(&s, size);
	}
	free(in);
}

/* ---- two sides --------------------------------------------------------------------------- */

static struct mpa_policy policy(struct feed *f)
{
	uint8_t bits = feed_u8(f);

	return (struct mpa_policy){ .rev = 1 + (bits & 1),
				    .rev_max = bits & 2 ? 2 : 1,
				    .crc = bits & 4,
				    .rx_markers = bits & 8,
				    .p2p = bits & 16,
				    .rtr = 1 + feed_below(f, 7),
				    .ird_max = (uint16_t)(1 + feed_length(f, MPA_RD_MAX - 1)),
				    .ord_max = (uint16_t)(1 + feed_length(f, MPA_RD_MAX - 1)) };
}

static uint16_t want(struct feed *f)
{
	return (uint16_t)feed_length(f, MPA_RD_NO_NEGO);
}

static void check_common(const struct mpa_policy *p, const struct mpa_agreed *a)
{
	CHECK(a->crc || !p->crc);
	CHECK(a->rx_markers == p->rx_markers);
	CHECK(!(a->rtr & (a->rtr - 1)) && !(a->rtr & ~p->rtr));
	CHECK(a->p2p || !a->rtr);
	CHECK(a->ird <= p->ird_max);
	CHECK(a->ord <= p->ord_max || a->ord == 1); /* a Read RTR needs one */
}

/* Both have agreed: each side's view has to be the other's. */
static void check_both(const struct mpa_agreed *i, const struct mpa_agreed *r, bool enhanced)
{
	CHECK(i->crc == r->crc && i->rev == r->rev);
	CHECK(i->tx_markers == r->rx_markers && i->rx_markers == r->tx_markers);
	CHECK(i->p2p == r->p2p && i->rtr == r->rtr);
	if (!enhanced)
		return;
	CHECK(i->ord <= r->ird || (i->ord == 1 && i->rtr == MPA_RTR_READ));
	CHECK(r->ord <= i->ird);
}

static struct mpa_start over_the_wire(const struct mpa_start *s, uint8_t *octets)
{
	size_t n = mpa_start_encode(s, octets), used;
	struct mpa_start got;

	CHECK(!mpa_start_decode((struct uw_span){ octets, n }, &got, &used) && used == n);
	return got;
}

static void two_sides(struct feed *f)
{
	const struct mpa_policy pi = policy(f), pr = policy(f);
	uint8_t a[MPA_START_MAX], b[MPA_START_MAX];
	struct mpa_start req, rep, got;
	struct mpa_agreed i, r;
	uw_status st;

	mpa_request_make(&pi, want(f), want(f), &req);
	got = over_the_wire(&req, a);
	st = mpa_request_check(&pr, &got);
	CHECK(st == (pi.rev > pr.rev_max ? UW_E_MPA_REVISION : UW_OK));
	if (st)
		return;
	if (feed_rarely(f, 8)) {
		mpa_reject_make(&pr, &got, &rep);
		got = over_the_wire(&rep, b);
		CHECK(mpa_reply_check(&pi, &req, &got, &i) == UW_E_REJECTED);
		return;
	}
	mpa_reply_make(&pr, &got, want(f), want(f), &rep, &r);
	check_common(&pr, &r);
	got = over_the_wire(&rep, b);
	st = mpa_reply_check(&pi, &req, &got, &i);
	CHECK(st == UW_OK || st == UW_E_MPA_IRD || st == UW_E_MPA_RTR);
	/* The responder's ORD was made to fit our IRD; kinds in common or not is their policies'.
	 */
	CHECK(st != UW_E_MPA_IRD);
	CHECK((st == UW_E_MPA_RTR) == (req.enhanced && req.p2p && !(pi.rtr & pr.rtr)));
	if (st)
		return;
	check_common(&pi, &i);
	check_both(&i, &r, req.enhanced);
}

/* A frame of any content that is well-formed, against a policy. */
static struct mpa_start frame(struct feed *f, uint8_t *pd)
{
	uint8_t bits = feed_u8(f);
	struct mpa_start s = { .reply = bits & 1,
			       .markers = bits & 2,
			       .crc = bits & 4,
			       .reject = (bits & 8) && (bits & 1),
			       .rev = feed_u8(f) & 3,
			       .pd = { pd, feed_length(f, MPA_PD_MAX - 4) } };

	s.enhanced = s.rev >= 2 && (bits & 16);
	if (s.enhanced) {
		s.p2p = bits & 32;
		s.rtr = s.p2p ? feed_below(f, 8) : 0;
		s.ird = want(f);
		s.ord = want(f);
	}
	feed_fill(f, pd, s.pd.n);
	return s;
}

static void hostile_peer(struct feed *f)
{
	const struct mpa_policy p = policy(f);
	uint8_t pd[MPA_PD_MAX];
	struct mpa_start peer = frame(f, pd), ours;
	struct mpa_agreed a;
	uw_status st;

	round_trip(&peer, feed_u8(f));
	if (peer.reply) {
		mpa_request_make(&p, want(f), want(f), &ours);
		st = mpa_reply_check(&p, &ours, &peer, &a);
		if (st)
			return;
		check_common(&p, &a);
		if (peer.enhanced && peer.ird != MPA_RD_NO_NEGO)
			CHECK(a.ord <= peer.ird || (a.ord == 1 && a.rtr == MPA_RTR_READ));
		if (peer.enhanced && peer.ord != MPA_RD_NO_NEGO)
			CHECK(peer.ord <= a.ird);
		return;
	}
	if (mpa_request_check(&p, &peer))
		return;
	mpa_reply_make(&p, &peer, want(f), want(f), &ours, &a);
	check_common(&p, &a);
	ours.pd = peer.pd;
	round_trip(&ours, feed_u8(f));
	CHECK(ours.reply && ours.rev == peer.rev && ours.enhanced == peer.enhanced);
	if (peer.enhanced && peer.ird != MPA_RD_NO_NEGO)
		CHECK(a.ord <= peer.ird);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	anything(data, size);
	two_sides(&f);
	hostile_peer(&f);
	return 0;
}
