/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection's start-up, seen from either side: RFC 5044 §7.1, RFC 6581. */
#include "cm/cm.h"

#include "pieces.h"
#include "uwtest.h"
#include "vectors.h"

#define ALL_RTR (MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ)

static const struct mpa_policy standard = { .rev = 2,
					    .rev_max = 2,
					    .crc = true,
					    .p2p = true,
					    .rtr = ALL_RTR,
					    .ird_max = 64,
					    .ord_max = 64 };

struct octets {
	uint8_t p[2 * MPA_START_MAX];
	size_t n;
};

static struct uw_span text(const char *s)
{
	return (struct uw_span){ (const uint8_t *)s, strlen(s) };
}

static struct cm_param param(const char *pd, uint16_t ird, uint16_t ord)
{
	return (struct cm_param){ .pd = text(pd), .ird = ird, .ord = ord };
}

static struct octets open_with(struct cm_conn *cm, const struct mpa_policy *p, const char *pd)
{
	struct cm_param prm = param(pd, 8, 8);
	struct octets o = { .n = 0 };

	memset(cm, 0xff, sizeof(*cm));
	assert_status(cm_open(cm, p, &prm, o.p, &o.n), UW_OK);
	assert_int_equal(cm->state, CM_WAIT_REPLY);
	return o;
}

static void wait_with(struct cm_conn *cm, const struct mpa_policy *p)
{
	memset(cm, 0xff, sizeof(*cm));
	cm_wait(cm, p);
	assert_int_equal(cm->state, CM_WAIT_REQUEST);
}

/* All octets at once; the first `used` are what it took. */
static enum cm_verdict give(struct cm_conn *cm, const struct octets *o, size_t used)
{
	const struct uw_span one = { o->p, o->n };
	size_t got = 12345;
	enum cm_verdict v = cm_rx(cm, uw_rope_of(&one), &got);

	assert_int_equal(got, used);
	return v;
}

static void expect_failed(struct cm_conn *cm, const struct octets *o, uw_status why)
{
	const struct uw_span one = { o->p, o->n };
	size_t used;

	assert_int_equal(cm_rx(cm, uw_rope_of(&one), &used), CM_FAILED);
	assert_int_equal(cm->state, CM_ENDED);
	assert_status(cm->why, why);
	assert_true(used <= o->n);
}

static bool has_pd(const struct cm_conn *cm, const char *pd)
{
	return cm->peer.pd.n == strlen(pd) && !memcmp(cm->peer.pd.p, pd, strlen(pd));
}

/* A frame by hand. */
static struct octets frame(const char *kind, unsigned bits, unsigned rev, const void *pd, size_t n)
{
	struct octets o = { .n = 20 + n };

	memcpy(o.p, "MPA ID Re. Frame", 16);
	o.p[9] = (uint8_t)kind[0];
	o.p[16] = (uint8_t)bits;
	o.p[17] = (uint8_t)rev;
	o.p[18] = (uint8_t)(n >> 8);
	o.p[19] = (uint8_t)n;
	if (n)
		memcpy(o.p + 20, pd, n);
	return o;
}

/* ---- both sides -------------------------------------------------------------------------- */

/* RFC 5044 §7.1, RFC 6581 §9: Request, answer, Reply; each side has the other's private data, IRD
 * and ORD, and both have agreed on the same. */
static void two_sides_come_together(void **state)
{
	struct cm_conn i, r;
	struct octets req, rep = { .n = 0 };
	struct cm_param prm = param("welcome", 4, 5);

	(void)state;
	req = open_with(&i, &standard, "hello");
	wait_with(&r, &standard);
	assert_int_equal(give(&r, &req, req.n), CM_REQUESTED);
	assert_int_equal(r.state, CM_WAIT_ANSWER);
	assert_true(has_pd(&r, "hello"));
	assert_int_equal(r.peer.ird, 8);
	assert_int_equal(r.peer.ord, 8);
	assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
	assert_int_equal(r.state, CM_STREAM);
	assert_int_equal(give(&i, &rep, rep.n), CM_ACCEPTED);
	assert_int_equal(i.state, CM_STREAM);
	assert_true(has_pd(&i, "welcome"));
	assert_int_equal(i.peer.ird, 4);
	assert_int_equal(i.peer.ord, 5);
	assert_true(i.agreed.crc && r.agreed.crc);
	assert_true(i.agreed.p2p && r.agreed.p2p);
	assert_int_equal(i.agreed.rtr, MPA_RTR_WRITE);
	assert_int_equal(r.agreed.rtr, MPA_RTR_WRITE);
	assert_int_equal(i.agreed.ord, 4);
	assert_int_equal(i.agreed.ird, 8);
	assert_int_equal(r.agreed.ord, 5);
	assert_int_equal(r.agreed.ird, 4);
}

/* RFC 5044 §7.1.1, RFC 6581 §9: every revision that one may offer against every one that the other
 * may take. */
static void revisions_find_each_other(void **state)
{
	(void)state;
	for (unsigned rev = 1; rev < 3; rev++) {
		for (unsigned max = 0; max < 3; max++) {
			struct mpa_policy pi = standard, pr = standard;
			struct cm_param prm = param("", 4, 4);
			struct octets req, rep = { .n = 0 };
			struct cm_conn i, r;

			pi.rev = (uint8_t)rev;
			pr.rev_max = (uint8_t)max;
			req = open_with(&i, &pi, "");
			wait_with(&r, &pr);
			if (rev > max) {
				expect_failed(&r, &req, UW_E_MPA_REVISION);
				continue;
			}
			assert_int_equal(give(&r, &req, req.n), CM_REQUESTED);
			assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
			assert_int_equal(rep.n, rev == 2 ? 24 : 20);
			assert_int_equal(give(&i, &rep, rep.n), CM_ACCEPTED);
			assert_int_equal(i.agreed.rev, rev);
			assert_int_equal(r.agreed.rev, rev);
			assert_int_equal(i.agreed.p2p, rev == 2);
			assert_int_equal(i.agreed.ird, 8);
			assert_int_equal(r.agreed.ird, 4);
		}
	}
}

/* RFC 5044 §7.1.1: rejected by the program, with its private data; RFC 6581 §9.1: and its limits.
 */
static void a_rejection_carries_private_data(void **state)
{
	struct cm_conn i, r;
	struct octets req, rep = { .n = 0 };
	struct cm_param prm = param("go away", 0, 0);

	(void)state;
	req = open_with(&i, &standard, "");
	wait_with(&r, &standard);
	assert_int_equal(give(&r, &req, req.n), CM_REQUESTED);
	assert_status(cm_reject(&r, &prm, rep.p, &rep.n), UW_OK);
	assert_int_equal(r.state, CM_ENDED);
	assert_int_equal(give(&i, &rep, rep.n), CM_REJECTED);
	assert_int_equal(i.state, CM_ENDED);
	assert_status(i.why, UW_E_REJECTED);
	assert_true(i.peer.reject);
	assert_true(has_pd(&i, "go away"));
	assert_int_equal(i.peer.ird, 64);
	assert_int_equal(i.peer.ord, 8);
}

/* RFC 5044 §5: in pieces of any size, down to one octet; nothing behind the Reply is taken. */
static void frames_may_come_in_pieces(void **state)
{
	struct prng rnd = { 27 };

	(void)state;
	for (size_t step = 0; step < 60; step++) {
		struct cm_conn i, r;
		struct octets req, rep = { .n = 0 };
		struct cm_param prm = param("private data of the responder", 4, 4);
		size_t at = 0, used;
		struct pieces x;

		req = open_with(&i, &standard, "private data of the initiator");
		wait_with(&r, &standard);
		while (at < req.n) {
			size_t n = step ? step : prng_below(&rnd, 30);

			n = n > req.n - at ? req.n - at : n;
			x = pieces_random(req.p + at, n, 9, &rnd);
			assert_int_equal(cm_rx(&r, x.rope, &used),
					 at + n == req.n ? CM_REQUESTED : CM_NOTHING);
			assert_int_equal(used, n);
			at += n;
			pieces_free(&x);
		}
		assert_true(has_pd(&r, "private data of the initiator"));
		assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
		memset(rep.p + rep.n, 0x77, 30); /* FPDUs, not ours to look at */
		for (at = 0; at < rep.n; at += used) {
			size_t n = step ? step : prng_below(&rnd, 30);

			n = n > rep.n + 30 - at ? rep.n + 30 - at : n;
			x = pieces_random(rep.p + at, n, 9, &rnd);
			assert_int_equal(cm_rx(&i, x.rope, &used),
					 at + n >= rep.n ? CM_ACCEPTED : CM_NOTHING);
			assert_int_equal(used, at + n >= rep.n ? rep.n - at : n);
			pieces_free(&x);
		}
		assert_int_equal(at, rep.n);
		assert_true(has_pd(&i, "private data of the responder"));
	}
}

/* However much TCP brings at once, only the frame is taken. */
static void much_more_than_a_frame_may_come(void **state)
{
	static uint8_t wire[5000];
	struct octets rep = frame("p", 0, 1, NULL, 0);

	(void)state;
	for (size_t first = 0; first < 20; first += 5) {
		const struct uw_span head = { wire, first }, rest = { wire + first, 5000 - first };
		struct cm_conn cm;
		size_t used;

		memcpy(wire, rep.p, 20);
		memset(wire + 20, 0x77, sizeof(wire) - 20);
		open_with(&cm, &standard, "");
		assert_int_equal(cm_rx(&cm, uw_rope_of(&head), &used), CM_NOTHING);
		assert_int_equal(used, first);
		assert_int_equal(cm_rx(&cm, uw_rope_of(&rest), &used), CM_ACCEPTED);
		assert_int_equal(used, 20 - first);
		assert_int_equal(cm.have, 20);
	}
}

/* RFC 5044 §7.1.1, RFC 6581 §9: 512 octets of private data, 508 behind the enhanced word; whoever
 * has more is told before anything is sent. */
static void private_data_has_a_limit(void **state)
{
	static const uint8_t big[513];

	(void)state;
	for (unsigned rev = 1; rev < 3; rev++) {
		struct mpa_policy p = standard;
		struct cm_param prm = { .pd = { big, rev == 2 ? 509 : 513 } };
		struct octets req = { .n = 0 }, rep = { .n = 0 };
		struct cm_conn i, r;

		p.rev = (uint8_t)rev;
		assert_status(cm_open(&i, &p, &prm, req.p, &req.n), UW_E_LEN);
		prm.pd.n--;
		assert_status(cm_open(&i, &p, &prm, req.p, &req.n), UW_OK);
		assert_int_equal(req.n, MPA_START_MAX);
		wait_with(&r, &standard);
		assert_int_equal(give(&r, &req, req.n), CM_REQUESTED);
		assert_int_equal(r.peer.pd.n, prm.pd.n);
		prm.pd.n++;
		assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_E_LEN);
		assert_status(cm_reject(&r, &prm, rep.p, &rep.n), UW_E_LEN);
		prm.pd.n--;
		assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
		assert_int_equal(give(&i, &rep, MPA_START_MAX), CM_ACCEPTED);
		assert_int_equal(i.peer.pd.n, prm.pd.n);
	}
}

/* ---- the responder ----------------------------------------------------------------------- */

/* RFC 5044 §7.1.1: revision 0 is answered with 0, and revision 2 without S as RFC 5044 has it. */
static void plain_requests_get_plain_replies(void **state)
{
	static const unsigned revs[] = { 0, 1, 2 };

	(void)state;
	for (size_t i = 0; i < COUNT(revs); i++) {
		struct octets req = frame("q", MPA_BIT_C, revs[i], "pd", 2), rep = { .n = 0 };
		struct cm_param prm = param("", 4, 4);
		struct cm_conn r;

		wait_with(&r, &standard);
		assert_int_equal(give(&r, &req, req.n), CM_REQUESTED);
		assert_true(has_pd(&r, "pd"));
		assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
		assert_int_equal(rep.n, 20);
		assert_int_equal(rep.p[16], MPA_BIT_C);
		assert_int_equal(rep.p[17], revs[i]);
		assert_int_equal(r.agreed.rtr, MPA_RTR_NONE);
	}
}

/* RFC 6581 §9.1, §9.2: the word that comes back for the word that came, 0x3fff included. */
static void the_enhanced_word_is_answered(void **state)
{
	static const struct {
		uint8_t in[4], out[4];
	} rows[] = {
		{ { 0, 9, 0, 9 }, { 0, 4, 0, 5 } },
		{ { 0, 2, 0, 0 }, { 0, 4, 0, 2 } },
		{ { 0x3f, 0xff, 0, 9 }, { 0, 4, 0x3f, 0xff } },
		{ { 0, 9, 0x3f, 0xff }, { 0x3f, 0xff, 0, 5 } },
		{ { 0x3f, 0xff, 0x3f, 0xff }, { 0x3f, 0xff, 0x3f, 0xff } },
		{ { 0x40, 9, 0xc0, 9 }, { 0, 4, 0, 5 } },	/* no A: B, C, D are nothing */
		{ { 0xc0, 9, 0, 9 }, { 0xc0, 4, 0, 5 } },	/* Send */
		{ { 0x80, 9, 0x80, 9 }, { 0x80, 4, 0x80, 5 } }, /* Write */
		{ { 0x80, 9, 0x40, 9 }, { 0x80, 4, 0x40, 5 } }, /* Read */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct octets req = frame("q", MPA_BIT_S, 2, rows[i].in, 4), rep = { .n = 0 };
		struct cm_param prm = param("", 4, 5);
		struct cm_conn r;

		wait_with(&r, &standard);
		assert_int_equal(give(&r, &req, 24), CM_REQUESTED);
		assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
		assert_int_equal(rep.n, 24);
		assert_int_equal(rep.p[16], MPA_BIT_S | MPA_BIT_C);
		assert_memory_equal(rep.p + 20, rows[i].out, 4);
	}
}

/* RFC 5044 §7.1.2: nothing may follow the Request before the Reply, neither with it nor later. */
static void octets_behind_the_request_are_an_error(void **state)
{
	struct octets req = frame("q", 0, 1, NULL, 0), more = { .p = { 1 }, .n = 1 };
	struct cm_conn r;

	(void)state;
	req.n++;
	wait_with(&r, &standard);
	expect_failed(&r, &req, UW_E_MPA_FRAME);

	req.n--;
	wait_with(&r, &standard);
	assert_int_equal(give(&r, &req, 20), CM_REQUESTED);
	expect_failed(&r, &more, UW_E_MPA_FRAME);
}

/* RFC 5044 §7.1.2: the key is wrong in its first octets (a peer of another protocol). */
static void another_protocol_fails_at_once(void **state)
{
	static const char *const greetings[] = { "G", "GET / HTTP/1.1", "\x16\x03\x01",
						 "MPA ID Ref", "mpa id req frame" };

	(void)state;
	for (size_t i = 0; i < COUNT(greetings); i++) {
		struct octets o = { .n = strlen(greetings[i]) };
		struct cm_conn cm;

		memcpy(o.p, greetings[i], o.n);
		wait_with(&cm, &standard);
		expect_failed(&cm, &o, UW_E_MPA_FRAME);
		open_with(&cm, &standard, "");
		expect_failed(&cm, &o, UW_E_MPA_FRAME);
	}
}

/* RFC 5044 §7.1.1: PD_Length above 512, RFC 6581 §9: S without its word; on either side. */
static void malformed_frames_fail(void **state)
{
	static const char *const kinds[] = { "q", "p" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct octets big = frame(kinds[i], 0, 1, NULL, 0);
		struct octets cut = frame(kinds[i], MPA_BIT_S, 2, "abc", 3);
		struct cm_conn cm;

		big.p[18] = 2;
		big.p[19] = 1;
		for (unsigned k = 0; k < 2; k++) {
			if (i)
				open_with(&cm, &standard, "");
			else
				wait_with(&cm, &standard);
			expect_failed(&cm, k ? &big : &cut, UW_E_MPA_FRAME);
		}
	}
}

/* RFC 5044 §7.1.2: responder meets responder. */
static void a_responder_takes_no_reply(void **state)
{
	struct octets rep = frame("p", 0, 1, NULL, 0);
	struct cm_conn r;

	(void)state;
	wait_with(&r, &standard);
	expect_failed(&r, &rep, UW_E_MPA_FRAME);
}

static void answers_need_a_request(void **state)
{
	struct octets req = frame("q", 0, 1, NULL, 0), rep;
	struct cm_param prm = param("", 1, 1);
	struct cm_conn r, i;

	(void)state;
	wait_with(&r, &standard);
	assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_E_STATE);
	assert_status(cm_reject(&r, &prm, rep.p, &rep.n), UW_E_STATE);
	assert_int_equal(give(&r, &req, 20), CM_REQUESTED);
	assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_OK);
	assert_status(cm_accept(&r, &prm, rep.p, &rep.n), UW_E_STATE);
	assert_status(cm_reject(&r, &prm, rep.p, &rep.n), UW_E_STATE);
	open_with(&i, &standard, "");
	assert_status(cm_accept(&i, &prm, rep.p, &rep.n), UW_E_STATE);
}

/* ---- the initiator ----------------------------------------------------------------------- */

/* RFC 5044 §7.1.2: both sides initiate; each sees it in the other's Request. */
static void initiator_meets_initiator(void **state)
{
	struct cm_conn a, b;
	struct octets from_a, from_b;

	(void)state;
	from_a = open_with(&a, &standard, "");
	from_b = open_with(&b, &standard, "");
	expect_failed(&a, &from_b, UW_E_MPA_INITIATOR);
	expect_failed(&b, &from_a, UW_E_MPA_INITIATOR);
}

/* RFC 5044 §7.1.1 */
static void a_reply_of_a_later_revision_fails(void **state)
{
	struct octets rep = frame("p", 0, 3, NULL, 0);
	struct cm_conn i;

	(void)state;
	open_with(&i, &standard, "");
	expect_failed(&i, &rep, UW_E_MPA_REVISION);
}

/* RFC 6581 §9: a plain Reply to an enhanced Request: an older peer. */
static void a_plain_reply_is_accepted(void **state)
{
	struct octets rep = frame("p", MPA_BIT_C | MPA_BIT_M, 1, "pd", 2);
	struct cm_conn i;

	(void)state;
	open_with(&i, &standard, "");
	assert_int_equal(give(&i, &rep, rep.n), CM_ACCEPTED);
	assert_true(has_pd(&i, "pd"));
	assert_false(i.agreed.p2p);
	assert_true(i.agreed.tx_markers && !i.agreed.rx_markers);
	assert_int_equal(i.agreed.ird, 8);
}

/* RFC 6581 §9.1, §9.2, §8: what cannot be agreed on is told in the stream, with its code. */
static void disagreements_end_with_a_terminate(void **state)
{
	struct mpa_policy p = standard;
	struct octets ird = frame("p", MPA_BIT_S, 2, "\x80\x08\x80\x41", 4); /* ORD 65, IRD 64 */
	struct octets rtr = frame("p", MPA_BIT_S, 2, "\x80\x08\x40\x08", 4);
	struct cm_conn i;

	(void)state;
	open_with(&i, &p, "");
	assert_int_equal(give(&i, &ird, 24), CM_TERMINATE);
	assert_int_equal(i.state, CM_STREAM);
	assert_status(i.why, UW_E_MPA_IRD);
	p.rtr = MPA_RTR_WRITE;
	open_with(&i, &p, "");
	assert_int_equal(give(&i, &rtr, 24), CM_TERMINATE);
	assert_int_equal(i.state, CM_STREAM);
	assert_status(i.why, UW_E_MPA_RTR);
}

/* RFC 6581 §9.2: A has to be answered. */
static void an_unanswered_a_fails(void **state)
{
	struct octets rep = frame("p", MPA_BIT_S, 2, "\x00\x08\x80\x08", 4);
	struct cm_conn i;

	(void)state;
	open_with(&i, &standard, "");
	expect_failed(&i, &rep, UW_E_MPA_FRAME);
}

/* ---- time and loss ----------------------------------------------------------------------- */

/* RFC 5044 §7.1.2, §7.1.4: whoever does not finish in time is let go: half a Request, no Reply. */
static void the_start_up_has_a_deadline(void **state)
{
	struct octets half = { .p = "MPA ID Req", .n = 10 };
	struct cm_conn r, i;

	(void)state;
	wait_with(&r, &standard);
	cm_set_deadline(&r, 1000);
	assert_int_equal(give(&r, &half, 10), CM_NOTHING);
	assert_int_equal(cm_timer(&r, 999), CM_NOTHING);
	assert_int_equal(cm_timer(&r, 1000), CM_FAILED);
	assert_int_equal(r.state, CM_ENDED);
	assert_status(r.why, UW_E_MPA_TIMEOUT);
	assert_int_equal(cm_timer(&r, 2000), CM_NOTHING);

	open_with(&i, &standard, "");
	assert_int_equal(cm_timer(&i, UINT64_MAX), CM_NOTHING);
	cm_set_deadline(&i, 1000);
	assert_int_equal(cm_timer(&i, 5000), CM_FAILED);
	assert_status(i.why, UW_E_MPA_TIMEOUT);
}

/* The program may take its time to answer. */
static void the_program_has_no_deadline(void **state)
{
	struct octets req = frame("q", 0, 1, NULL, 0);
	struct cm_conn r;

	(void)state;
	wait_with(&r, &standard);
	cm_set_deadline(&r, 1000);
	assert_int_equal(give(&r, &req, 20), CM_REQUESTED);
	assert_int_equal(cm_timer(&r, UINT64_MAX), CM_NOTHING);
	assert_int_equal(r.state, CM_WAIT_ANSWER);
}

/* Once the outcome is known, whatever it is, the deadline is not one any more. */
static void an_outcome_ends_the_deadline(void **state)
{
	static const struct {
		unsigned bits;
		const char *word;
		enum cm_verdict v;
		enum cm_state state;
		uw_status why;
	} rows[] = {
		{ MPA_BIT_S, "\x80\x08\x80\x08", CM_ACCEPTED, CM_STREAM, UW_OK },
		{ MPA_BIT_S, "\x80\x08\x80\x41", CM_TERMINATE, CM_STREAM, UW_E_MPA_IRD },
		{ MPA_BIT_S | MPA_BIT_R, "\x80\x08\x80\x08", CM_REJECTED, CM_ENDED, UW_E_REJECTED },
		{ MPA_BIT_S, "\x00\x08\x00\x08", CM_FAILED, CM_ENDED, UW_E_MPA_FRAME },
	};

	(void)state;
	for (size_t k = 0; k < COUNT(rows); k++) {
		struct octets rep = frame("p", rows[k].bits, 2, rows[k].word, 4);
		struct cm_conn i;

		open_with(&i, &standard, "");
		cm_set_deadline(&i, 1000);
		assert_int_equal(give(&i, &rep, 24), rows[k].v);
		assert_int_equal(cm_timer(&i, 5000), CM_NOTHING);
		assert_int_equal(i.state, rows[k].state);
		assert_status(i.why, rows[k].why);
	}
}

/* No octets tell nothing; after the outcome octets are not ours. */
static void only_a_start_up_takes_octets(void **state)
{
	struct octets none = { .n = 0 }, rep = frame("p", 0, 1, NULL, 0);
	struct cm_conn cm;

	(void)state;
	wait_with(&cm, &standard);
	assert_int_equal(give(&cm, &none, 0), CM_NOTHING);
	open_with(&cm, &standard, "");
	assert_int_equal(give(&cm, &none, 0), CM_NOTHING);
	assert_int_equal(give(&cm, &rep, 20), CM_ACCEPTED);
	assert_int_equal(give(&cm, &rep, 0), CM_NOTHING);
	assert_int_equal(cm.state, CM_STREAM);
}

/* ---- captures ---------------------------------------------------------------------------- */

/* Each captured pair of Linux siw: its Request is one that we accept, and its Reply one that agrees
 * with a Request like siw's. */
static void captured_start_ups_succeed(void **state)
{
	struct vectors x = vectors_read("siw-startup.txt");
	struct mpa_policy p = standard;

	(void)state;
	for (size_t k = 0; k < x.n; k++) {
		const struct vector *v = &x.v[k];
		bool p2p = v->p[20] & 0x80;
		struct octets o = { .n = v->n }, rep = { .n = 0 };
		struct cm_param prm = param("", 1, 1);
		struct cm_conn cm;

		memcpy(o.p, v->p, v->n);
		if (vector_is(v, 1, "request")) {
			wait_with(&cm, &p);
			assert_int_equal(give(&cm, &o, o.n), CM_REQUESTED);
			assert_status(cm_accept(&cm, &prm, rep.p, &rep.n), UW_OK);
			assert_int_equal(cm.agreed.rtr, p2p ? MPA_RTR_WRITE : MPA_RTR_NONE);
		} else {
			p.p2p = p2p;
			p.crc = v->p[16] & MPA_BIT_C;
			p.ird_max = 128;
			open_with(&cm, &p, "");
			assert_int_equal(give(&cm, &o, o.n), CM_ACCEPTED);
			assert_int_equal(cm.agreed.rtr, p2p ? MPA_RTR_WRITE : MPA_RTR_NONE);
			assert_int_equal(cm.agreed.crc, p.crc);
		}
	}
	vectors_free(&x);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(two_sides_come_together),
	cmocka_unit_test(revisions_find_each_other),
	cmocka_unit_test(a_rejection_carries_private_data),
	cmocka_unit_test(frames_may_come_in_pieces),
	cmocka_unit_test(much_more_than_a_frame_may_come),
	cmocka_unit_test(private_data_has_a_limit),
	cmocka_unit_test(plain_requests_get_plain_replies),
	cmocka_unit_test(the_enhanced_word_is_answered),
	cmocka_unit_test(octets_behind_the_request_are_an_error),
	cmocka_unit_test(another_protocol_fails_at_once),
	cmocka_unit_test(malformed_frames_fail),
	cmocka_unit_test(a_responder_takes_no_reply),
	cmocka_unit_test(answers_need_a_request),
	cmocka_unit_test(initiator_meets_initiator),
	cmocka_unit_test(a_reply_of_a_later_revision_fails),
	cmocka_unit_test(a_plain_reply_is_accepted),
	cmocka_unit_test(disagreements_end_with_a_terminate),
	cmocka_unit_test(an_unanswered_a_fails),
	cmocka_unit_test(the_start_up_has_a_deadline),
	cmocka_unit_test(the_program_has_no_deadline),
	cmocka_unit_test(an_outcome_ends_the_deadline),
	cmocka_unit_test(only_a_start_up_takes_octets),
	cmocka_unit_test(captured_start_ups_succeed),
};

UWTEST_MAIN(tests)
