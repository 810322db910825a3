/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_tx_around: segments around payload that stays where it is (doc/adr/0011). */
#include "node.h"
#include "qp/qp.h"
#include "uwtest.h"

static struct node a, b;

static uw_status give(struct node *n, const void *p, size_t size)
{
	const struct uw_span one = { p, size };
	size_t used;
	uw_status st = qp_rx(&n->qp, uw_rope_of(&one), &used);

	assert_int_equal(used, size);
	return st;
}

/* One segment of qp_tx_around, put together. */
static size_t around(struct node *n, uint8_t *out, struct qp_ref *r)
{
	uint8_t part[2000];
	size_t used = qp_tx_around(&n->qp, part, sizeof(part), r);

	if (!r->octets.n) {
		memcpy(out, part, used);
		return used;
	}
	memcpy(out, part, r->at);
	memcpy(out + r->at, r->octets.p, r->octets.n);
	memcpy(out + r->at + r->octets.n, part + r->at, used - r->at);
	return used + r->octets.n;
}

/* Segments of a large Write refer to its memory, but for the last, which is short. */
static void a_large_write_stays_where_it_is(void **state)
{
	struct node_opts o = { .confirmed = true };
	const struct mpa_agreed agreed = node_agreed();
	unsigned referred = 0, copied = 0;
	uint8_t seg[4000];
	struct qp_ref r;
	struct prng rng = { 26 };
	size_t n;

	(void)state;
	node_init(&a, 1, &o);
	node_init(&b, 2, NULL);
	prng_fill(&rng, a.m, sizeof(a.m));
	nodes_start(&a, &b, &agreed);
	node_post(&a, 0, node_wr_to(&a, UW_WR_RDMA_WRITE, 100, 16384, &b, 200));
	while ((n = around(&a, seg, &r))) {
		if (r.octets.n) {
			assert_in_range(r.octets.p - a.m, 100, 100 + 16384 - 1);
			referred++;
		} else {
			copied++;
		}
		assert_status(give(&b, seg, n), UW_OK);
	}
	assert_memory_equal(b.m + 200, a.m + 100, 16384);
	assert_int_equal(referred, 8);
	assert_int_equal(copied, 1);
	assert_int_equal(a.stats.payload_tx_bytes, 16384);
	assert_in_range(a.stats.payload_tx_copied, 1, 1023);
	node_post(&a, 0, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 16383, &b, 0));
	assert_true(around(&a, seg, &r));
	assert_int_equal(r.octets.n, 0);
}

static unsigned let_gone;

static void note_let_go(struct qp *qp)
{
	(void)qp;
	let_gone++;
	assert_int_equal(cq_count(&a.scq), 0); /* before the program hears of anything */
}

static void memory_is_let_go_before_requests_are_flushed(void **state)
{
	const struct mpa_agreed agreed = node_agreed();
	uint8_t seg[4000];
	struct qp_ref r;

	(void)state;
	node_init(&a, 1, NULL);
	node_init(&b, 2, NULL);
	nodes_start(&a, &b, &agreed);
	a.qp.let_go = note_let_go;
	let_gone = 0;
	node_post(&a, 0, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 20000, &b, 0));
	assert_true(around(&a, seg, &r));
	assert_true(r.octets.n);
	qp_fail(&a.qp, UW_E_LLP_CLOSED);
	assert_int_equal(let_gone, 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_large_write_stays_where_it_is),
	cmocka_unit_test(memory_is_let_go_before_requests_are_flushed),
};

UWTEST_MAIN(tests)
