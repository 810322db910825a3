/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive window that follows what the program takes; RFC 9293 §3.8.6: it never shrinks. */
#include "loss/rx_window.h"

#include "uwtest.h"

#define FIRST RX_WINDOW_FIRST
#define MOST  (4u << 20)
#define RTT   10000u
#define STEP  1460u

static struct rx_window w;
static uint64_t now;

static int up(void **state)
{
	(void)state;
	rx_window_init(&w, FIRST);
	now = 1000000;
	return 0;
}

/* n octets within us microseconds, evenly; returns by how much it grew. */
static uint32_t take(uint32_t n, uint64_t us, uint64_t rtt_us, uint32_t most)
{
	uint32_t grown = 0, before = w.size;

	for (uint32_t at = 0; at < n; at += STEP) {
		if (rx_window_taken(&w, STEP))
			grown += rx_window_grow(&w, rtt_us, most, now + us * at / n);
	}
	now += us;
	assert_int_equal(w.size - before, grown);
	return grown;
}

/* A sender that the window limits: twice as much every few round trips, to the limit. */
static void it_doubles_for_whom_it_limits(void **state)
{
	unsigned rounds = 0;

	(void)state;
	for (; w.size < MOST && rounds < 20; rounds++)
		take(w.size, RTT, RTT, MOST);
	assert_int_equal(w.size, MOST);
	assert_in_range(rounds, 3, 10);
	take(MOST, RTT, RTT, MOST);
	assert_int_equal(w.size, MOST);
}

/* Slow start: each round trip brings twice as much, and when something is lost in it, some more
 * comes behind the hole. */
static void it_stays_ahead_of_slow_start(void **state)
{
	const uint64_t rtt = 20000;

	(void)state;
	for (uint32_t n = 10 * STEP; n < MOST / 4; n *= 2) {
		take(n, rtt, rtt, MOST);
		assert_true(w.size >= 3 * n);
	}
}

static void it_stays_for_whom_it_does_not(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		take(FIRST / 3, RTT, RTT, MOST);
	assert_int_equal(w.size, FIRST);
}

/* A burst that comes as fast as the link after a long silence is no rate. */
static void a_burst_is_no_rate(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		take(FIRST / 3, 100, RTT, MOST);
		now += 3 * RTT;
	}
	assert_int_equal(w.size, FIRST);
}

/* Nor is one that would do, before a round trip is over. */
static void a_part_of_a_round_trip_tells_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		take(FIRST, RTT / 10, RTT, MOST);
	assert_int_equal(w.size, FIRST);
}

/* On a short path the host's scheduler is what has to be bridged. */
static void a_short_round_trip_counts_as_a_time_slice(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++)
		take(100000, 1000, 100, MOST); /* 100 MB/s */
	assert_in_range(w.size, 1900000, 2100000);
	rx_window_init(&w, FIRST);
	for (unsigned i = 0; i < 200; i++)
		take(100000, 1000, UINT64_MAX, MOST); /* none known */
	assert_in_range(w.size, 1900000, 2100000);
}

static void it_never_shrinks(void **state)
{
	(void)state;
	while (w.size < MOST)
		take(w.size, RTT, RTT, MOST);
	take(1000000, 100 * RTT, RTT, FIRST);
	take(5000000, 100 * RTT, RTT, FIRST);
	assert_int_equal(w.size, MOST);
}

static void one_without_a_window_is_left_alone(void **state)
{
	(void)state;
	rx_window_init(&w, 0);
	assert_false(rx_window_taken(&w, 1000000));
}

#define TEST(fn) cmocka_unit_test_setup(fn, up)

static const struct CMUnitTest tests[] = {
	TEST(it_doubles_for_whom_it_limits),
	TEST(it_stays_ahead_of_slow_start),
	TEST(it_stays_for_whom_it_does_not),
	TEST(a_burst_is_no_rate),
	TEST(a_part_of_a_round_trip_tells_nothing),
	TEST(a_short_round_trip_counts_as_a_time_slice),
	TEST(it_never_shrinks),
	TEST(one_without_a_window_is_left_alone),
};

UWTEST_MAIN(tests)
