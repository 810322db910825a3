/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/cq.h"
#include "qp/rq.h"
#include "qp/sq.h"

#include "uwtest.h"

#define RING 8

struct box {
	struct cq cq;
	struct cqe ring[RING], bigger[4 * RING];
	unsigned notified, errors;
};

static void notify(void *ctx)
{
	((struct box *)ctx)->notified++;
}

static void error(void *ctx)
{
	((struct box *)ctx)->errors++;
}

static void box_init(struct box *b, uint32_t depth)
{
	memset(b, 0, sizeof(*b));
	b->cq = (struct cq){ .ring = b->ring,
			     .mask = RING - 1,
			     .depth = depth,
			     .notify = notify,
			     .error = error,
			     .ctx = b };
}

static bool push_of(struct box *b, uint64_t id, uint32_t status, uint32_t qp, bool solicited)
{
	struct cqe *e = cq_begin(&b->cq);

	if (!e)
		return false;
	e->wc = (struct uw_wc){ .wr_id = id, .status = status, .qp_num = qp };
	cq_end_received(&b->cq, e, NULL, solicited);
	return true;
}

static bool push(struct box *b, uint64_t id)
{
	return push_of(b, id, UW_WC_SUCCESS, 1, false);
}

static void expect(struct box *b, uint64_t id)
{
	struct uw_wc wc;

	assert_int_equal(cq_take(&b->cq, 1, &wc, NULL), 1);
	assert_int_equal(wc.wr_id, id);
}

/* ---- order and capacity ------------------------------------------------------------------ */

static void completions_come_in_order(void **state)
{
	struct box b;
	struct uw_wc wc[RING];

	(void)state;
	box_init(&b, RING);
	assert_int_equal(cq_take(&b.cq, RING, wc, NULL), 0);
	for (uint64_t id = 0; id < 5; id++)
		assert_true(push(&b, id));
	assert_int_equal(cq_count(&b.cq), 5);
	assert_int_equal(cq_take(&b.cq, 3, wc, NULL), 3);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[2].wr_id, 2);
	assert_int_equal(cq_take(&b.cq, 0, wc, NULL), 0);
	assert_int_equal(cq_take(&b.cq, RING, wc, NULL), 2);
	assert_int_equal(wc[1].wr_id, 4);
}

/* Many times around the ring, and over the end of the 32-bit counters. */
static void the_ring_goes_round(void **state)
{
	struct box b;
	struct prng r = { 23 };
	uint64_t in = 0, out = 0;

	(void)state;
	box_init(&b, RING);
	atomic_store(&b.cq.head, UINT32_MAX - 100);
	atomic_store(&b.cq.tail, UINT32_MAX - 100);
	for (unsigned i = 0; i < 1000; i++) {
		struct uw_wc wc[RING];
		unsigned n = prng_below(&r, RING + 1);

		while (in - out < n)
			assert_true(push(&b, in++));
		n = cq_take(&b.cq, prng_below(&r, RING + 1), wc, NULL);
		for (unsigned k = 0; k < n; k++)
			assert_int_equal(wc[k].wr_id, out++);
		assert_int_equal(cq_count(&b.cq), in - out);
	}
}

/* RFC 5042 §6.4.6: what does not fit is lost and told once; what is there stays. */
static void an_overflow_is_told_once(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, 3);
	for (uint64_t id = 0; id < 3; id++)
		assert_true(push(&b, id));
	assert_int_equal(b.errors, 0);
	assert_false(atomic_load(&b.cq.overflown));
	assert_false(push(&b, 3));
	assert_false(push(&b, 4));
	assert_int_equal(b.errors, 1);
	assert_true(atomic_load(&b.cq.overflown));
	for (uint64_t id = 0; id < 3; id++)
		expect(&b, id);
	assert_int_equal(cq_count(&b.cq), 0);
}

static void an_overflow_needs_no_callback(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, 1);
	b.cq.error = NULL;
	assert_true(push(&b, 0));
	assert_false(push(&b, 1));
	assert_true(atomic_load(&b.cq.overflown));
}

/* ---- arming ------------------------------------------------------------------------------ */

static void an_unarmed_queue_does_not_notify(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, RING);
	assert_true(push_of(&b, 0, UW_WC_FATAL_ERR, 1, true));
	assert_int_equal(b.notified, 0);
	b.cq.notify = NULL;
	assert_true(push(&b, 1));
}

static void one_arming_notifies_once(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, RING);
	cq_arm(&b.cq, CQ_ANY);
	assert_int_equal(b.notified, 0);
	assert_true(push(&b, 0));
	assert_true(push(&b, 1));
	assert_int_equal(b.notified, 1);
	cq_arm(&b.cq, CQ_ANY);
	cq_arm(&b.cq, CQ_ANY);
	assert_int_equal(b.notified, 1);
	assert_true(push(&b, 2));
	assert_true(push(&b, 3));
	assert_int_equal(b.notified, 2);
}

/* Solicited only: a solicited completion or a failed one. */
static void solicited_only_waits_for_such(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, RING);
	cq_arm(&b.cq, CQ_SOLICITED);
	assert_true(push(&b, 0));
	assert_int_equal(b.notified, 0);
	assert_true(push_of(&b, 1, UW_WC_SUCCESS, 1, true));
	assert_int_equal(b.notified, 1);
	assert_true(push_of(&b, 2, UW_WC_SUCCESS, 1, true));
	assert_int_equal(b.notified, 1);
	cq_arm(&b.cq, CQ_SOLICITED);
	assert_true(push(&b, 3));
	assert_int_equal(b.notified, 1);
	assert_true(push_of(&b, 4, UW_WC_WR_FLUSH_ERR, 1, false));
	assert_int_equal(b.notified, 2);
}

/* "Any" is not weakened by a later "solicited only", and makes it stronger. */
static void any_is_the_stronger(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, RING);
	cq_arm(&b.cq, CQ_ANY);
	cq_arm(&b.cq, CQ_SOLICITED);
	assert_true(push(&b, 0));
	assert_int_equal(b.notified, 1);
	cq_arm(&b.cq, CQ_SOLICITED);
	cq_arm(&b.cq, CQ_ANY);
	assert_true(push(&b, 1));
	assert_int_equal(b.notified, 2);
	/* both are used up */
	assert_true(push_of(&b, 2, UW_WC_SUCCESS, 1, true));
	assert_int_equal(b.notified, 2);
}

/* ---- forget and move --------------------------------------------------------------------- */

static void a_qp_that_goes_takes_its_completions_along(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, RING);
	for (uint64_t id = 0; id < 6; id++) /* so that the ring is passed */
		assert_true(push(&b, id));
	for (uint64_t id = 0; id < 6; id++)
		expect(&b, id);
	for (uint64_t id = 10; id < 18; id++)
		assert_true(push_of(&b, id, UW_WC_SUCCESS, id % 3, false));
	cq_forget(&b.cq, 1);
	assert_int_equal(cq_count(&b.cq), 5);
	for (uint64_t id = 10; id < 18; id++) {
		if (id % 3 != 1)
			expect(&b, id);
	}
	assert_int_equal(cq_count(&b.cq), 0);
	assert_true(push(&b, 30));
	cq_forget(&b.cq, 2);
	expect(&b, 30);
}

static bool push_received(struct box *b, struct rq *rq, uint32_t qp_num)
{
	struct cqe *e = cq_begin(&b->cq);

	if (!e)
		return false;
	e->wc = (struct uw_wc){ .qp_num = qp_num };
	cq_end_received(&b->cq, e, rq, false);
	return true;
}

/* ... and the places of its receives. */
static void what_is_forgotten_is_free(void **state)
{
	struct rq rq = { .depth = 4 };
	struct box b;

	(void)state;
	box_init(&b, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_true(push_received(&b, &rq, 7));
	assert_int_equal(rq.freed, 0);
	assert_false(push_received(&b, &rq, 7));
	cq_forget(&b.cq, 7);
	assert_int_equal(rq.freed, 2);
}

/* ---- slots -------------------------------------------------------------------------------- */

static void push_sent(struct box *b, struct sq *sq, uint64_t id, uint32_t upto)
{
	struct cqe *e = cq_begin(&b->cq);

	assert_non_null(e);
	e->wc = (struct uw_wc){ .wr_id = id };
	cq_end_sent(&b->cq, e, sq, upto);
}

/* The linker puts this in front of sq_polled(). Behind it another thread, which knows of free slots
 * from the moment they are free, posts into them and has that completed at once. */
void __real_sq_polled(struct sq *sq, uint32_t upto, uint32_t n);
void __wrap_sq_polled(struct sq *sq, uint32_t upto, uint32_t n);

static struct box *hasty;

void __wrap_sq_polled(struct sq *sq, uint32_t upto, uint32_t n)
{
	__real_sq_polled(sq, upto, n);
	for (; n--; upto++)
		push_sent(hasty, sq, 100 + upto, upto + RING);
}

/* A CQ as deep as its queues cannot overflow: its places are free before their slots are. */
static void places_are_free_before_slots(void **state)
{
	struct sq sq = { .depth = RING }, other = { .depth = RING };
	struct rq rq = { .depth = RING };
	struct uw_wc wc[RING];
	struct box b;

	(void)state;
	box_init(&b, RING);
	hasty = &b;
	for (uint32_t i = 0; i < 3; i++)
		push_sent(&b, &sq, i, i + 1);
	assert_true(push_received(&b, &rq, 1));
	push_sent(&b, &other, 4, 1);
	push_sent(&b, &sq, 5, 4);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(push_received(&b, &rq, 1));
	assert_int_equal(cq_take(&b.cq, RING, wc, NULL), RING);
	assert_int_equal(b.errors, 0);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(wc[i].wr_id, i == 3 ? 0 : i);
	assert_int_equal(rq.freed, 3);
	assert_int_equal(sq.freed, 4);
	assert_int_equal(sq.polled, 4);
	assert_int_equal(other.freed, 1);
	assert_int_equal(cq_count(&b.cq), 5); /* the other thread's */
	hasty = NULL;
}

static void moving_keeps_what_is_there(void **state)
{
	struct box b;

	(void)state;
	box_init(&b, RING);
	for (uint64_t id = 0; id < 5; id++)
		assert_true(push(&b, id));
	for (uint64_t id = 0; id < 5; id++)
		expect(&b, id);
	for (uint64_t id = 5; id < 13; id++)
		assert_true(push(&b, id));
	cq_move(&b.cq, b.bigger, 4 * RING - 1, 20);
	memset(b.ring, 0xff, sizeof(b.ring));
	assert_int_equal(cq_count(&b.cq), 8);
	for (uint64_t id = 13; id < 25; id++)
		assert_true(push(&b, id));
	assert_false(push(&b, 25));
	for (uint64_t id = 5; id < 25; id++)
		expect(&b, id);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(completions_come_in_order),
	cmocka_unit_test(the_ring_goes_round),
	cmocka_unit_test(an_overflow_is_told_once),
	cmocka_unit_test(an_overflow_needs_no_callback),
	cmocka_unit_test(an_unarmed_queue_does_not_notify),
	cmocka_unit_test(one_arming_notifies_once),
	cmocka_unit_test(solicited_only_waits_for_such),
	cmocka_unit_test(any_is_the_stronger),
	cmocka_unit_test(a_qp_that_goes_takes_its_completions_along),
	cmocka_unit_test(what_is_forgotten_is_free),
	cmocka_unit_test(places_are_free_before_slots),
	cmocka_unit_test(moving_keeps_what_is_there),
};

UWTEST_MAIN(tests)
