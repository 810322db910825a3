/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpa/handshake.h"

#include "uwtest.h"

#define ALL_RTR (MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ)

static struct mpa_policy policy(void)
{
	return (struct mpa_policy){ .rev = 2,
				    .rev_max = 2,
				    .crc = true,
				    .p2p = true,
				    .rtr = ALL_RTR,
				    .ird_max = 64,
				    .ord_max = 32 };
}

static struct mpa_start request(const struct mpa_policy *p, unsigned ird, unsigned ord)
{
	struct mpa_start req;

	memset(&req, 0xff, sizeof(req));
	mpa_request_make(p, (uint16_t)ird, (uint16_t)ord, &req);
	return req;
}

struct answer {
	struct mpa_start rep;
	struct mpa_agreed agreed;
};

static struct answer answer(const struct mpa_policy *p, const struct mpa_start *req, unsigned ird,
			    unsigned ord)
{
	struct answer a;

	memset(&a, 0xff, sizeof(a));
	mpa_reply_make(p, req, (uint16_t)ird, (uint16_t)ord, &a.rep, &a.agreed);
	return a;
}

/* ---- the initiator's Request -------------------------------------------------------------- */

/* RFC 5044 §7.1.1: M and C say what this side wants; R is not for Requests. */
static void a_request_says_what_the_policy_wants(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct mpa_policy p = policy();
		struct mpa_start req;

		p.crc = i & 1;
		p.rx_markers = i & 2;
		req = request(&p, 1, 1);
		assert_false(req.reply || req.reject);
		assert_int_equal(req.crc, p.crc);
		assert_int_equal(req.markers, p.rx_markers);
		assert_int_equal(req.rev, 2);
		assert_int_equal(req.pd.n, 0);
	}
}

/* RFC 6581 §9: no enhanced feature below revision 2. */
static void revision_1_offers_nothing_enhanced(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req;

	(void)state;
	p.rev = 1;
	req = request(&p, 4, 4);
	assert_int_equal(req.rev, 1);
	assert_false(req.enhanced || req.p2p);
	assert_int_equal(req.rtr, MPA_RTR_NONE);
}

/* RFC 6581 §9.1: IRD and ORD are what the ULP asks, within what this side can hold. */
static void a_request_asks_no_more_than_the_limits(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = request(&p, 5, 6);

	(void)state;
	assert_true(req.enhanced);
	assert_int_equal(req.ird, 5);
	assert_int_equal(req.ord, 6);
	req = request(&p, 65, 33);
	assert_int_equal(req.ird, 64);
	assert_int_equal(req.ord, 32);
	req = request(&p, 0, 0);
	assert_int_equal(req.ird, 0);
	assert_int_equal(req.ord, 0);
}

/* RFC 6581 §9.2: with A every kind of RTR that this side can do; without A none. */
static void a_request_offers_every_rtr_it_can_do(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req;

	(void)state;
	for (unsigned rtr = 1; rtr < 8; rtr++) {
		p.rtr = rtr;
		req = request(&p, 1, 1);
		assert_true(req.p2p);
		assert_int_equal(req.rtr, rtr);
	}
	p.p2p = false;
	req = request(&p, 1, 1);
	assert_true(req.enhanced && !req.p2p);
	assert_int_equal(req.rtr, MPA_RTR_NONE);
}

/* ---- the responder ------------------------------------------------------------------------ */

/* RFC 5044 §7.1.1: every revision up to ours is answered, the next one not. */
static void requests_of_a_later_revision_are_refused(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = { .crc = true };

	(void)state;
	for (unsigned max = 0; max < 3; max++) {
		p.rev_max = (uint8_t)max;
		for (unsigned rev = 0; rev < 5; rev++) {
			req.rev = (uint8_t)rev;
			assert_status(mpa_request_check(&p, &req),
				      rev <= max ? UW_OK : UW_E_MPA_REVISION);
		}
	}
}

/* RFC 5044 §7.1.2: a responder takes Requests only. */
static void a_reply_is_no_request(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start rep = { .reply = true, .rev = 1 };

	(void)state;
	assert_status(mpa_request_check(&p, &rep), UW_E_MPA_FRAME);
}

/* RFC 5044 §7.1.1, RFC 6581 §9: the Reply has the Request's revision, and S answers S. */
static void the_reply_mirrors_revision_and_s(void **state)
{
	struct mpa_policy p = policy();

	(void)state;
	for (unsigned rev = 0; rev < 3; rev++) {
		for (unsigned s = 0; s < 2; s++) {
			struct mpa_start req = { .rev = (uint8_t)rev, .enhanced = s && rev == 2 };
			struct answer a = answer(&p, &req, 4, 4);

			assert_true(a.rep.reply && !a.rep.reject);
			assert_int_equal(a.rep.rev, rev);
			assert_int_equal(a.agreed.rev, rev);
			assert_int_equal(a.rep.enhanced, req.enhanced);
			assert_false(a.rep.p2p || a.agreed.p2p);
			assert_int_equal(a.rep.rtr, MPA_RTR_NONE);
		}
	}
}

/* RFC 5044 §7.1.1, §4.4: CRC is used when either asks. */
static void crc_is_on_when_either_asks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct mpa_policy mine = policy(), theirs = policy();
		struct mpa_agreed got;
		struct mpa_start req;
		struct answer a;

		mine.crc = i & 1;
		theirs.crc = i & 2;
		req = request(&mine, 1, 1);
		a = answer(&theirs, &req, 1, 1);
		assert_int_equal(a.agreed.crc, i != 0);
		assert_int_equal(a.rep.crc, i != 0);
		assert_status(mpa_reply_check(&mine, &req, &a.rep, &got), UW_OK);
		assert_int_equal(got.crc, i != 0);
	}
}

/* RFC 5044 §4.4: what the Reply says alone is enough too. */
static void crc_in_the_reply_alone_turns_it_on(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req, rep = { .reply = true, .rev = 2, .crc = true };
	struct mpa_agreed got;

	(void)state;
	p.crc = p.p2p = false;
	req = request(&p, 1, 1);
	assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_OK);
	assert_true(got.crc);
}

/* RFC 5044 §7.1.1, §4.3: the M that one side sends rules what the other one sends. */
static void markers_are_chosen_per_direction(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct mpa_policy mine = policy(), theirs = policy();
		struct mpa_agreed got;
		struct mpa_start req;
		struct answer a;

		mine.rx_markers = i & 1;
		theirs.rx_markers = i & 2;
		req = request(&mine, 1, 1);
		a = answer(&theirs, &req, 1, 1);
		assert_int_equal(a.rep.markers, theirs.rx_markers);
		assert_int_equal(a.agreed.rx_markers, theirs.rx_markers);
		assert_int_equal(a.agreed.tx_markers, mine.rx_markers);
		assert_status(mpa_reply_check(&mine, &req, &a.rep, &got), UW_OK);
		assert_int_equal(got.rx_markers, mine.rx_markers);
		assert_int_equal(got.tx_markers, theirs.rx_markers);
	}
}

/* RFC 6581 §9.1: the responder's ORD fits the initiator's IRD; its IRD is its own business. */
static void the_responders_ord_fits_the_initiators_ird(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = { .rev = 2, .enhanced = true, .ird = 3, .ord = 9 };
	struct answer a = answer(&p, &req, 5, 7);

	(void)state;
	assert_int_equal(a.rep.ord, 3);
	assert_int_equal(a.agreed.ord, 3);
	assert_int_equal(a.rep.ird, 5);
	assert_int_equal(a.agreed.ird, 5);
	req.ird = 20;
	a = answer(&p, &req, 5, 7);
	assert_int_equal(a.rep.ord, 7);
	req.ird = 0;
	a = answer(&p, &req, 5, 7);
	assert_int_equal(a.rep.ord, 0);
	assert_int_equal(a.agreed.ord, 0);
}

static void a_reply_grants_no_more_than_the_limits(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = { .rev = 2, .enhanced = true, .ird = 1000, .ord = 1000 };
	struct answer a = answer(&p, &req, 1000, 1000);

	(void)state;
	assert_int_equal(a.rep.ird, 64);
	assert_int_equal(a.rep.ord, 32);
	/* a plain Request says nothing about them */
	memset(&req, 0, sizeof(req));
	req.rev = 1;
	a = answer(&p, &req, 1000, 1000);
	assert_int_equal(a.agreed.ird, 64);
	assert_int_equal(a.agreed.ord, 32);
}

/* RFC 6581 §9.1: 0x3fff leaves our own value as it is and is answered with 0x3fff; each alone. */
static void no_negotiation_is_answered_with_itself(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = { .rev = 2, .enhanced = true, .ird = 0x3fff, .ord = 2 };
	struct answer a = answer(&p, &req, 5, 7);

	(void)state;
	assert_int_equal(a.rep.ord, 0x3fff);
	assert_int_equal(a.agreed.ord, 7);
	assert_int_equal(a.rep.ird, 5);
	req.ird = 2;
	req.ord = 0x3fff;
	a = answer(&p, &req, 5, 7);
	assert_int_equal(a.rep.ird, 0x3fff);
	assert_int_equal(a.agreed.ird, 5);
	assert_int_equal(a.rep.ord, 2);
}

/* RFC 6581 §9.2: A answers A; exactly one kind that both can do, else our own. */
static void the_reply_names_one_common_rtr(void **state)
{
	(void)state;
	for (unsigned ours = 1; ours < 8; ours++) {
		for (unsigned theirs = 1; theirs < 8; theirs++) {
			struct mpa_policy p = policy();
			struct mpa_start req = { .rev = 2,
						 .enhanced = true,
						 .p2p = true,
						 .rtr = theirs,
						 .ird = 1,
						 .ord = 1 };
			struct answer a;

			p.rtr = ours;
			a = answer(&p, &req, 1, 1);
			assert_true(a.rep.p2p && a.agreed.p2p);
			if (!(ours & theirs)) {
				assert_int_equal(a.rep.rtr, ours);
				assert_int_equal(a.agreed.rtr, MPA_RTR_NONE);
				continue;
			}
			assert_true(a.rep.rtr & ours & theirs);
			assert_int_equal(a.rep.rtr & (a.rep.rtr - 1), 0);
			assert_int_equal(a.agreed.rtr, a.rep.rtr);
		}
	}
}

/* RFC 6581 §9.2: a responder answers A even if it would not ask for it itself. */
static void a_is_answered_by_who_does_not_ask_for_it(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = {
		.rev = 2, .enhanced = true, .p2p = true, .rtr = MPA_RTR_READ, .ird = 1, .ord = 1
	};
	struct answer a;

	(void)state;
	p.p2p = false;
	a = answer(&p, &req, 1, 1);
	assert_true(a.rep.p2p);
	assert_int_equal(a.rep.rtr, MPA_RTR_READ);
}

/* RFC 6581 §9.2: a Read that opens the stream needs an IRD of one. */
static void a_read_rtr_needs_an_ird(void **state)
{
	struct mpa_policy mine = policy(), theirs = policy();
	struct mpa_agreed got;
	struct mpa_start req;
	struct answer a;

	(void)state;
	mine.rtr = MPA_RTR_READ;
	req = request(&mine, 0, 0);
	a = answer(&theirs, &req, 0, 0);
	assert_int_equal(a.rep.ird, 1);
	assert_int_equal(a.agreed.ird, 1);
	assert_status(mpa_reply_check(&mine, &req, &a.rep, &got), UW_OK);
	assert_int_equal(got.rtr, MPA_RTR_READ);
	assert_int_equal(got.ord, 1);

	/* nor does it help that the initiator leaves the numbers to themselves */
	req.ord = MPA_RD_NO_NEGO;
	a = answer(&theirs, &req, 0, 0);
	assert_int_equal(a.rep.ird, MPA_RD_NO_NEGO);
	assert_int_equal(a.agreed.ird, 1);

	/* other kinds do not */
	mine.rtr = MPA_RTR_WRITE;
	req = request(&mine, 0, 0);
	a = answer(&theirs, &req, 0, 0);
	assert_int_equal(a.agreed.ird, 0);
	assert_status(mpa_reply_check(&mine, &req, &a.rep, &got), UW_OK);
	assert_int_equal(got.ord, 0);
}

/* RFC 5044 §7.1.1: R; RFC 6581 §9.1: IRD and ORD are in a rejecting Reply too. */
static void a_rejecting_reply_has_r_and_the_limits(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req = { .rev = 2, .enhanced = true, .ird = 100, .ord = 100 }, rep;

	(void)state;
	memset(&rep, 0xff, sizeof(rep));
	mpa_reject_make(&p, &req, &rep);
	assert_true(rep.reply && rep.reject && rep.enhanced);
	assert_int_equal(rep.rev, 2);
	assert_int_equal(rep.ird, 64);
	assert_int_equal(rep.ord, 32);
	assert_int_equal(rep.pd.n, 0);
	req.enhanced = false;
	req.rev = 1;
	mpa_reject_make(&p, &req, &rep);
	assert_true(rep.reject && !rep.enhanced);
	assert_int_equal(rep.rev, 1);
}

/* ---- the initiator and the Reply ----------------------------------------------------------- */

static uw_status check(const struct mpa_start *rep, struct mpa_agreed *got)
{
	struct mpa_policy p = policy();
	struct mpa_start req = request(&p, 8, 8);

	return mpa_reply_check(&p, &req, rep, got);
}

/* RFC 5044 §7.1.2: both sides initiate. */
static void a_request_is_no_reply(void **state)
{
	struct mpa_start rep = { .rev = 2, .enhanced = true };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_E_MPA_INITIATOR);
}

/* RFC 5044 §7.1.1: R ends it, whatever else the Reply says. */
static void a_rejecting_reply_is_told_apart(void **state)
{
	struct mpa_start rep = { .reply = true, .reject = true, .rev = 2, .enhanced = true };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_E_REJECTED);
}

/* RFC 5044 §7.1.1: a Reply of a later revision than asked for is not one that we can work with. */
static void the_replys_revision_is_checked(void **state)
{
	struct mpa_start rep = { .reply = true, .rev = 3 };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_E_MPA_REVISION);
	rep.rev = 2;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.rev, 2);
}

/* RFC 6581 §9: S only answers S. A plain Reply to S means that nothing was negotiated. */
static void s_only_answers_s(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start req, rep = { .reply = true, .rev = 2, .enhanced = true };
	struct mpa_agreed got;

	(void)state;
	p.rev = 1;
	req = request(&p, 8, 8);
	req.rev = 2;
	assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_E_MPA_FRAME);

	rep.enhanced = false;
	rep.rev = 1;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.rev, 1);
	assert_false(got.p2p);
	assert_int_equal(got.rtr, MPA_RTR_NONE);
	assert_int_equal(got.ird, 8);
	assert_int_equal(got.ord, 8);
}

/* RFC 6581 §9.1: the initiator's ORD falls to the responder's IRD, never rises to it. */
static void the_initiators_ord_fits_the_responders_ird(void **state)
{
	struct mpa_start rep = { .reply = true,
				 .rev = 2,
				 .enhanced = true,
				 .p2p = true,
				 .rtr = MPA_RTR_WRITE,
				 .ird = 3,
				 .ord = 8 };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ord, 3);
	assert_int_equal(got.ird, 8);
	rep.ird = 100;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ord, 8);
	rep.ird = 0;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ord, 0);
}

/* RFC 6581 §9.1, §8: the initiator's IRD holds the responder's ORD, or the stream ends with
 * "insufficient IRD". */
static void the_initiators_ird_holds_the_responders_ord(void **state)
{
	struct mpa_start rep = { .reply = true,
				 .rev = 2,
				 .enhanced = true,
				 .p2p = true,
				 .rtr = MPA_RTR_WRITE,
				 .ird = 8,
				 .ord = 64 };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ird, 64);
	rep.ord = 65;
	assert_status(check(&rep, &got), UW_E_MPA_IRD);
	rep.ord = 1;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ird, 8);
}

/* RFC 6581 §9.1: 0x3fff in the Reply leaves the initiator's values as they are; each alone. */
static void no_negotiation_leaves_the_initiators_values(void **state)
{
	struct mpa_start rep = { .reply = true,
				 .rev = 2,
				 .enhanced = true,
				 .p2p = true,
				 .rtr = MPA_RTR_WRITE,
				 .ird = 0x3fff,
				 .ord = 0x3fff };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ird, 8);
	assert_int_equal(got.ord, 8);
	rep.ird = 2;
	assert_status(check(&rep, &got), UW_OK);
	assert_int_equal(got.ord, 2);
	assert_int_equal(got.ird, 8);
}

/* RFC 6581 §9.1, §9.2: an initiator that asked for no reads raises its ORD for the Read RTR; the
 * responder that wants one has to take it, or the stream ends with "insufficient IRD". */
static void a_read_rtr_needs_the_responders_ird(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start rep = { .reply = true,
				 .rev = 2,
				 .enhanced = true,
				 .p2p = true,
				 .rtr = MPA_RTR_READ,
				 .ird = 1 },
			 req;
	struct mpa_agreed got;

	(void)state;
	for (uint16_t ord = 0; ord < 2; ord++) {
		req = request(&p, 8, ord);
		rep.ird = 1;
		assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_OK);
		assert_int_equal(got.rtr, MPA_RTR_READ);
		assert_int_equal(got.ord, 1);
		rep.ird = 0;
		assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_E_MPA_IRD);
	}
}

/* RFC 6581 §9.2: A must be answered with A. */
static void an_unanswered_a_is_an_error(void **state)
{
	struct mpa_start rep = { .reply = true, .rev = 2, .enhanced = true, .ird = 8, .ord = 8 };
	struct mpa_agreed got;

	(void)state;
	assert_status(check(&rep, &got), UW_E_MPA_FRAME);
}

/* RFC 6581 §9.2: without A in the Request nothing in the Reply makes it peer-to-peer. */
static void a_that_was_not_asked_for_is_ignored(void **state)
{
	struct mpa_policy p = policy();
	struct mpa_start rep = { .reply = true,
				 .rev = 2,
				 .enhanced = true,
				 .p2p = true,
				 .rtr = MPA_RTR_WRITE,
				 .ird = 8,
				 .ord = 8 },
			 req;
	struct mpa_agreed got;

	(void)state;
	p.p2p = false;
	req = request(&p, 8, 8);
	assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_OK);
	assert_false(got.p2p);
	assert_int_equal(got.rtr, MPA_RTR_NONE);
}

/* RFC 6581 §9.2, §8: no kind in common ends with "no matching RTR"; otherwise one that both can. */
static void the_initiator_takes_a_common_rtr_or_ends(void **state)
{
	(void)state;
	for (unsigned ours = 1; ours < 8; ours++) {
		for (unsigned named = 0; named < 8; named++) {
			struct mpa_policy p = policy();
			struct mpa_start rep = { .reply = true,
						 .rev = 2,
						 .enhanced = true,
						 .p2p = true,
						 .rtr = named,
						 .ird = 8,
						 .ord = 8 };
			struct mpa_start req;
			struct mpa_agreed got;

			p.rtr = ours;
			req = request(&p, 8, 8);
			if (!(ours & named)) {
				assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_E_MPA_RTR);
				continue;
			}
			assert_status(mpa_reply_check(&p, &req, &rep, &got), UW_OK);
			assert_true(got.p2p);
			assert_true(got.rtr & ours & named);
			assert_int_equal(got.rtr & (got.rtr - 1), 0);
		}
	}
}

/* ---- both ---------------------------------------------------------------------------------- */

static struct mpa_policy random_policy(struct prng *r)
{
	return (struct mpa_policy){ .rev = (uint8_t)(1 + prng_below(r, 2)),
				    .rev_max = 2,
				    .crc = prng_below(r, 2),
				    .rx_markers = prng_below(r, 2),
				    .p2p = prng_below(r, 2),
				    .rtr = 1 + prng_below(r, 7),
				    .ird_max = (uint16_t)prng_below(r, 9),
				    .ord_max = (uint16_t)prng_below(r, 9) };
}

/* RFC 6581 §9.1: whatever both want, after an exchange over the wire both mean the same, no ORD is
 * above the other side's IRD, and a Read RTR has its ORD. */
static void both_sides_mean_the_same(void **state)
{
	struct prng r = { 13 };
	unsigned agreed = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct mpa_policy a = random_policy(&r), b = random_policy(&r);
		struct mpa_start req = request(&a, prng_below(&r, 12), prng_below(&r, 12)), rep;
		struct mpa_agreed x, y;
		uint8_t wire[MPA_START_MAX];
		size_t n = mpa_start_encode(&req, wire), used;

		assert_status(mpa_start_decode((struct uw_span){ wire, n }, &rep, &used), UW_OK);
		assert_status(mpa_request_check(&b, &rep), UW_OK);
		struct answer ans = answer(&b, &rep, prng_below(&r, 12), prng_below(&r, 12));

		y = ans.agreed;
		n = mpa_start_encode(&ans.rep, wire);
		assert_status(mpa_start_decode((struct uw_span){ wire, n }, &rep, &used), UW_OK);
		if (mpa_reply_check(&a, &req, &rep, &x) == UW_E_MPA_RTR) {
			assert_int_equal(a.rtr & b.rtr, 0);
			continue;
		}
		agreed++;
		assert_int_equal(x.crc, y.crc);
		assert_int_equal(x.tx_markers, y.rx_markers);
		assert_int_equal(x.rx_markers, y.tx_markers);
		assert_int_equal(x.rev, y.rev);
		assert_int_equal(x.p2p, y.p2p);
		assert_int_equal(x.rtr, y.rtr);
		if (a.rev < 2)
			continue;
		assert_true(x.ord <= y.ird);
		assert_true(y.ord <= x.ird);
		if (x.rtr == MPA_RTR_READ)
			assert_true(x.ord >= 1);
	}
	assert_true(agreed > 10000);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_request_says_what_the_policy_wants),
	cmocka_unit_test(revision_1_offers_nothing_enhanced),
	cmocka_unit_test(a_request_asks_no_more_than_the_limits),
	cmocka_unit_test(a_request_offers_every_rtr_it_can_do),
	cmocka_unit_test(requests_of_a_later_revision_are_refused),
	cmocka_unit_test(a_reply_is_no_request),
	cmocka_unit_test(the_reply_mirrors_revision_and_s),
	cmocka_unit_test(crc_is_on_when_either_asks),
	cmocka_unit_test(crc_in_the_reply_alone_turns_it_on),
	cmocka_unit_test(markers_are_chosen_per_direction),
	cmocka_unit_test(the_responders_ord_fits_the_initiators_ird),
	cmocka_unit_test(a_reply_grants_no_more_than_the_limits),
	cmocka_unit_test(no_negotiation_is_answered_with_itself),
	cmocka_unit_test(the_reply_names_one_common_rtr),
	cmocka_unit_test(a_is_answered_by_who_does_not_ask_for_it),
	cmocka_unit_test(a_read_rtr_needs_an_ird),
	cmocka_unit_test(a_rejecting_reply_has_r_and_the_limits),
	cmocka_unit_test(a_request_is_no_reply),
	cmocka_unit_test(a_rejecting_reply_is_told_apart),
	cmocka_unit_test(the_replys_revision_is_checked),
	cmocka_unit_test(s_only_answers_s),
	cmocka_unit_test(the_initiators_ord_fits_the_responders_ird),
	cmocka_unit_test(the_initiators_ird_holds_the_responders_ord),
	cmocka_unit_test(no_negotiation_leaves_the_initiators_values),
	cmocka_unit_test(a_read_rtr_needs_the_responders_ird),
	cmocka_unit_test(an_unanswered_a_is_an_error),
	cmocka_unit_test(a_that_was_not_asked_for_is_ignored),
	cmocka_unit_test(the_initiator_takes_a_common_rtr_or_ends),
	cmocka_unit_test(both_sides_mean_the_same),
};

UWTEST_MAIN(tests)
