/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive window that peers on a network are told (RFC 9293 §3.8.6, RFC 7323 §2). */
#include "bed.h"

#include "io/rx_budget.h"
#include "loss/rx_window.h"

#define OCTETS 1000u
#define SCALE  7u
#define MOST   (4u << 20)

static struct bed_peer p;

static int up(void **state)
{
	(void)state;
	bed_open_network();
	bed.scaled = true;
	return 0;
}

static int up_between(void **state)
{
	(void)state;
	bed_open();
	bed.scaled = true;
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	assert_int_equal(rx_budget.promised, 0);
	return 0;
}

static uint32_t window(void)
{
	return (uint32_t)bed_last(p.port, 0)->window << SCALE;
}

static void send_some(unsigned n, uint64_t us_each)
{
	for (unsigned i = 0; i < n; i++) {
		bed.now_us += us_each;
		bed_data(&p, 0, OCTETS);
		p.seq += OCTETS;
	}
}

static void it_begins_small(void **state)
{
	(void)state;
	p = bed_connect(40000);
	send_some(2, 1);
	assert_int_equal(window(), RX_WINDOW_FIRST);
}

/* Another process of this machine gets all there is at once: it shares the budget anyway. */
static void between_processes_it_is_whole(void **state)
{
	(void)state;
	p = bed_connect(40000);
	send_some(2, 1);
	assert_int_equal(p.user->got, 2 * OCTETS);
	assert_true(window() > RX_WINDOW_FIRST);
}

/* 100 MB/s: what comes in 10 ms, twice. */
static void it_follows_what_the_user_takes(void **state)
{
	uint32_t before = 0;

	(void)state;
	p = bed_connect(40000);
	for (unsigned i = 0; i < 20; i++) {
		send_some(500, 10);
		assert_true(window() >= before); /* SHOULD-14 */
		before = window();
	}
	assert_in_range(window(), 1800000, 2200000);
	assert_in_range(rx_budget.promised, 1800000 - RX_WINDOW_FIRST, 2200000 - RX_WINDOW_FIRST);
}

static void a_slow_one_keeps_what_it_has(void **state)
{
	(void)state;
	p = bed_connect(40000);
	send_some(4000, 50);
	assert_int_equal(window(), RX_WINDOW_FIRST);
}

/* A user that takes nothing is sent no more than the window; it hears at once of what is free. */
static void who_takes_nothing_gets_a_window(void **state)
{
	(void)state;
	bed.pause = true;
	p = bed_connect(40000);
	send_some(RX_WINDOW_FIRST / OCTETS, 1);
	assert_in_range(window(), 0, 2 * OCTETS);
	p.user->pause = false;
	llp_raw.resume(p.user->c);
	bed_flush();
	assert_true(window() >= RX_WINDOW_FIRST - OCTETS);
	assert_int_equal(p.user->got, RX_WINDOW_FIRST / OCTETS * OCTETS);
}

/* The share of each is an eighth of what is not promised yet. */
static void many_share_what_there_is(void **state)
{
	uint32_t first = 0, last = 0;

	(void)state;
	for (uint16_t i = 0; i < 40; i++) {
		p = bed_connect((uint16_t)(40000 + i));
		for (unsigned k = 0; k < 8; k++)
			send_some(window() / OCTETS, 4);
		first = first ? first : window();
		last = window();
	}
	assert_in_range(first, MOST - MOST / 16, MOST);
	assert_in_range(last, RX_WINDOW_FIRST, MOST / 2);
	assert_true(rx_budget.promised <= RX_COPIED_MAX);
}

/* A step takes an eighth of what is not promised yet, so there is some for whoever asks next. */
static void a_step_leaves_some(void **state)
{
	const uint32_t left = 1u << 20;
	uint32_t before;

	(void)state;
	p = bed_connect(40000);
	rx_budget_promise(RX_COPIED_MAX - left);
	send_some(1, 4);
	for (unsigned i = 0; i < 6000; i++) {
		before = window();
		send_some(1, 4);
		if (window() > before)
			assert_in_range(window() - before, 0, left / 8 + OCTETS);
	}
	assert_true(window() > RX_WINDOW_FIRST + left / 8);
	rx_budget_promise(left - RX_COPIED_MAX);
}

/* lwIP's window is the most that there is; no more is promised. */
static void no_more_is_promised_than_there_is(void **state)
{
	(void)state;
	p = bed_connect(40000);
	for (unsigned i = 0; i < 40; i++)
		send_some(window() / OCTETS, 2);
	assert_in_range(window(), MOST - MOST / 16, MOST);
	assert_in_range(rx_budget.promised, 0, MOST - RX_WINDOW_FIRST);
}

/* lwIP resets a connection whose window is not what it began with (RFC 1122 §4.2.2.13). */
static void it_closes_with_a_fin(void **state)
{
	(void)state;
	p = bed_connect(40000);
	send_some(2000, 2);
	llp_raw.close(p.user->c);
	p.user->c = NULL;
	bed_flush();
	assert_int_equal(bed_last(p.port, 0)->flags & 5, 1);
	assert_int_equal(rx_budget.promised, 0);
}

/* Without scaling 64 KiB are all. */
static void an_unscaled_one_stays(void **state)
{
	(void)state;
	bed.scaled = false;
	p = bed_connect(40000);
	send_some(500, 2);
	assert_int_equal(bed_last(p.port, 0)->window, 65535);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(it_begins_small),
	cmocka_unit_test_setup_teardown(between_processes_it_is_whole, up_between, down),
	TEST(it_follows_what_the_user_takes),
	TEST(a_slow_one_keeps_what_it_has),
	TEST(who_takes_nothing_gets_a_window),
	TEST(many_share_what_there_is),
	TEST(a_step_leaves_some),
	TEST(no_more_is_promised_than_there_is),
	TEST(it_closes_with_a_fin),
	TEST(an_unscaled_one_stays),
};

UWTEST_MAIN(tests)
