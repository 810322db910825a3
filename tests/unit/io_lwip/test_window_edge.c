/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments at the edge of the receive window: RFC 9293 §3.10.7.4. None of them fails an assertion
 * of lwIP, and one that fails does not end the program (doc/adr/0020). */
#include "bed.h"

#include "arch/cc.h"

#define WINDOW 65535u

static int up(void **state)
{
	(void)state;
	bed_open();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* RFC 9293 §3.10.7.4: "trimmed to the window". */
static void out_of_order_and_longer_than_the_window(void **state)
{
	struct bed_peer p = bed_connect(40000);

	(void)state;
	for (unsigned k = 44; k; k--)
		bed_data(&p, k * BED_MSS, BED_MSS);
	bed_data(&p, 0, BED_MSS);
	assert_int_equal(p.user->got, WINDOW);
	assert_int_equal(bed.stats.tcp_assertions, 0);
	assert_false(p.user->closed);
	/* The rest is sent again and arrives. */
	p.seq += WINDOW;
	bed_data(&p, 0, 45 * BED_MSS - WINDOW);
	assert_int_equal(p.user->got, 45 * BED_MSS);
}

/* The FIN of such a segment is cut off with what it follows. */
static void a_fin_behind_the_window_comes_again(void **state)
{
	struct bed_peer p = bed_connect(40000);

	(void)state;
	bed_segment(&p, WINDOW - 10, 10, ACK | FIN);
	for (unsigned k = 44; k; k--)
		bed_data(&p, (k - 1) * BED_MSS, BED_MSS);
	bed_data(&p, 44 * BED_MSS, WINDOW - 10 - 44 * BED_MSS);
	assert_int_equal(p.user->got, WINDOW);
	assert_false(p.user->closed);
	p.seq += WINDOW;
	bed_segment(&p, 0, 0, ACK | FIN);
	assert_true(p.user->closed);
	assert_status(p.user->why, UW_OK);
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

/* Any order, overlap and flags around the edge. */
static void whatever_comes_around_the_edge(void **state)
{
	struct prng r = { 1 };

	(void)state;
	for (unsigned run = 0; run < 200; run++) {
		struct bed_peer p = bed_connect((uint16_t)(20000 + run));

		for (unsigned i = 0; i < 100 && p.user->c; i++) {
			bool edge = prng_below(&r, 4);
			uint32_t at = edge ? WINDOW - 3000 + prng_below(&r, 6000)
					   : 1 + prng_below(&r, 3000);
			uint8_t flags = ACK;

			if (edge && !prng_below(&r, 8))
				flags |= FIN;
			if (!prng_below(&r, 8))
				flags |= SYN;

			bed_segment(&p, at, prng_below(&r, BED_MSS), flags);
		}
		for (unsigned k = 0; k < 48 && p.user->c; k++)
			bed_data(&p, k * BED_MSS, BED_MSS);
		assert_in_range(p.user->got, WINDOW - 10000, 48 * BED_MSS);
	}
	assert_int_equal(bed.stats.tcp_assertions, 0);
}

/* An assertion is counted, and the connection whose segment led to it ends. */
static void a_failed_assertion_ends_the_connection(void **state)
{
	struct bed_peer p = bed_connect(40000), q = bed_connect(40001);

	(void)state;
	uw_lwip_assertion_failed("planted by a test", __FILE__, __LINE__);
	bed_segment(&p, 0, 0, ACK); /* not the fast path's: a repeated ACK */
	assert_true(p.user->closed);
	assert_status(p.user->why, UW_E_LLP_CLOSED);
	assert_int_equal(bed.stats.tcp_assertions, 1);
	bed_data(&q, 0, 100);
	assert_int_equal(q.user->got, 100);
	assert_false(q.user->closed);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(out_of_order_and_longer_than_the_window),
	TEST(a_fin_behind_the_window_comes_again),
	TEST(whatever_comes_around_the_edge),
	TEST(a_failed_assertion_ends_the_connection),
};

UWTEST_MAIN(tests)
