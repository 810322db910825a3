/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rate.h"

#include <arpa/inet.h>

#include "decimal_comma.h"
#include "io/loop/loop.h"
#include "uwtest.h"

#define FRAME 1226u /* with its 24 octets of overhead: 10,000 bits */

struct net {
	uint64_t now_ns;
	struct io_link *a, *b, *limited; /* in front of a */
};

static uint64_t now_ns(void *arg)
{
	return ((struct net *)arg)->now_ns;
}

static uint64_t now_us(void *arg)
{
	return now_ns(arg) / 1000;
}

static void open_net_of(struct net *n, uint64_t bps)
{
	const struct loop_config cfg = { .mtu = 1500,
					 .addr = { htonl(0x0a000001), htonl(0x0a000002) },
					 .mask = htonl(0xff000000),
					 .now_us = now_us,
					 .arg = n };
	struct io_link *pair[2];

	n->now_ns = 1000000;
	assert_status(loop_open_pair(&cfg, NULL, pair), UW_OK);
	n->a = pair[0];
	n->b = pair[1];
	assert_status(rate_open(n->a, bps, now_ns, n, &n->limited), UW_OK);
}

/* 1 Gb/s: a frame takes 10 us. */
static void open_net(struct net *n)
{
	open_net_of(n, 1000000000);
}

static unsigned offer(struct net *n, unsigned count)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < count; i++) {
		struct io_frame *f = n->limited->ops->alloc(n->limited);

		f->len = FRAME;
		if (n->limited->ops->tx(n->limited, &f, 1))
			taken++;
		else
			n->limited->ops->free(f);
	}
	return taken;
}

static unsigned arrived_by(struct net *n, uint64_t ns)
{
	struct io_frame *v[8];
	unsigned total = 0, got;

	n->now_ns = 1000000 + ns;
	assert_int_equal(n->limited->ops->rx(n->limited, v, 8), 0);
	while ((got = n->b->ops->rx(n->b, v, 8))) {
		for (unsigned i = 0; i < got; i++)
			n->b->ops->free(v[i]);
		total += got;
	}
	return total;
}

static void close_net(struct net *n)
{
	n->limited->ops->close(n->limited);
	n->b->ops->close(n->b);
}

static void a_frame_leaves_with_its_last_bit(void **state)
{
	struct net n;

	(void)state;
	open_net(&n);
	assert_int_equal(offer(&n, 3), 3);
	assert_true(n.limited->ops->pending(n.limited));
	assert_int_equal(arrived_by(&n, 9999), 0);
	assert_int_equal(arrived_by(&n, 10000), 1);
	assert_int_equal(arrived_by(&n, 19999), 0);
	assert_int_equal(arrived_by(&n, 30000), 2);
	assert_false(n.limited->ops->pending(n.limited));
	close_net(&n);
}

static unsigned tidied;

static void count_tidy(struct io_link *l)
{
	(void)l;
	tidied++;
}

static void no_close(struct io_link *l)
{
	(void)l;
}

static void the_link_behind_is_tidied_up(void **state)
{
	const struct io_ops tidy = { .name = "tidy", .tidy = count_tidy, .close = no_close };
	struct io_link under = { .ops = &tidy }, *limited;
	struct net n;

	(void)state;
	open_net(&n);
	assert_null(n.limited->ops->tidy);
	assert_status(rate_open(&under, 1000000000, now_ns, &n, &limited), UW_OK);
	limited->ops->tidy(limited);
	assert_int_equal(tidied, 1);
	limited->ops->close(limited);
	close_net(&n);
}

/* The stack may sleep until shortly before a frame's time. */
static void a_frame_that_waits_long_is_due_and_not_pending(void **state)
{
	struct net n;

	(void)state;
	open_net(&n);
	assert_true(n.limited->ops->due_ns(n.limited) == UINT64_MAX);
	assert_int_equal(offer(&n, 1), 1);
	assert_true(n.limited->ops->due_ns(n.limited) == n.now_ns + 10000);
	assert_true(n.limited->ops->pending(n.limited));
	n.now_ns -= 500000;
	assert_false(n.limited->ops->pending(n.limited));
	assert_int_equal(arrived_by(&n, 10000), 1);
	assert_true(n.limited->ops->due_ns(n.limited) == UINT64_MAX);
	close_net(&n);
}

static void on_wake(void *arg, const struct io_ring *ring, uint32_t was)
{
	assert_int_equal(was, IO_ASLEEP);
	assert_non_null(ring->word);
	++*(unsigned *)arg;
}

/* Nobody else rings for a frame that begins to wait. */
static void a_sleeping_stack_is_woken_for_a_frame_that_waits(void **state)
{
	_Atomic uint32_t bell = IO_ASLEEP;
	unsigned wakes = 0;
	struct net n;

	(void)state;
	open_net(&n);
	n.a->doorbell = &bell;
	n.limited->env.wake = on_wake;
	n.limited->env.arg = &wakes;
	assert_int_equal(offer(&n, 1), 1);
	assert_int_equal(wakes, 1);
	assert_true(atomic_load(&bell) != IO_ASLEEP);
	/* awake, or one waits already: it is known */
	atomic_store(&bell, IO_ASLEEP);
	assert_int_equal(offer(&n, 1), 1);
	assert_int_equal(wakes, 1);
	assert_int_equal(arrived_by(&n, 20000), 2);
	n.limited->env.wake = NULL;
	n.a->doorbell = NULL;
	close_net(&n);
}

static void an_idle_port_saves_nothing_up(void **state)
{
	struct net n;

	(void)state;
	open_net(&n);
	assert_int_equal(arrived_by(&n, 1000000), 0);
	assert_int_equal(offer(&n, 2), 2);
	assert_int_equal(arrived_by(&n, 1010000), 1);
	assert_int_equal(arrived_by(&n, 1020000), 1);
	close_net(&n);
}

static void a_full_queue_takes_no_more_and_loses_nothing(void **state)
{
	struct net n;
	unsigned taken;

	(void)state;
	open_net(&n);
	taken = offer(&n, 1000);
	assert_in_range(taken, 64, 999);
	assert_true(n.limited->stats.tx_full > 0);
	assert_int_equal(arrived_by(&n, 10000000), taken);
	assert_int_equal(loop_frames_out(n.a), 0);
	close_net(&n);
}

/* 10 Mb/s: a frame takes 1 ms, and 5 ms of them may wait. A frame that takes longer goes alone. */
static void a_queue_is_as_long_as_its_time(void **state)
{
	struct net n;

	(void)state;
	open_net_of(&n, 10000000);
	assert_int_equal(offer(&n, 100), 5);
	assert_true(n.limited->stats.tx_full > 0);
	assert_int_equal(arrived_by(&n, 999999), 0);
	assert_int_equal(offer(&n, 1), 1);
	assert_int_equal(offer(&n, 1), 0);
	assert_int_equal(arrived_by(&n, 10000000), 6);
	close_net(&n);
	open_net_of(&n, 1000000);
	assert_int_equal(offer(&n, 100), 1);
	close_net(&n);
}

static void what_still_waits_is_given_back_at_the_end(void **state)
{
	struct net n;

	(void)state;
	open_net(&n);
	assert_int_equal(offer(&n, 5), 5);
	close_net(&n); /* the leak check of the sanitizers looks on */
}

static void a_rate_is_a_number_with_a_unit(void **state)
{
	static const char *const bad[] = { "",	  "G",	   "10g", "10GG", "-1G", "0",
					   "999", "2000G", " 1G", "nan",  "9e99" };
	uint64_t bps = 0;

	(void)state;
	assert_true(rate_parse("10G", &bps));
	assert_int_equal(bps, 10000000000u);
	assert_true(rate_parse("2.5G", &bps));
	assert_int_equal(bps, 2500000000u);
	assert_true(rate_parse("1000000", &bps));
	assert_int_equal(bps, 1000000);
	for (unsigned i = 0; i < COUNT(bad); i++)
		assert_false(rate_parse(bad[i], &bps));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_leaves_with_its_last_bit),
		cmocka_unit_test(a_frame_that_waits_long_is_due_and_not_pending),
		cmocka_unit_test(a_sleeping_stack_is_woken_for_a_frame_that_waits),
		cmocka_unit_test(the_link_behind_is_tidied_up),
		cmocka_unit_test(an_idle_port_saves_nothing_up),
		cmocka_unit_test(a_full_queue_takes_no_more_and_loses_nothing),
		cmocka_unit_test(a_queue_is_as_long_as_its_time),
		cmocka_unit_test(what_still_waits_is_given_back_at_the_end),
		cmocka_unit_test(a_rate_is_a_number_with_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
