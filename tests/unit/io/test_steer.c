/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/steer.h"

#include <arpa/inet.h>
#include <string.h>

#include "io/loop/loop.h"
#include "uwtest.h"

#define N     2u
#define BURST 32u

/* A port of two queues: what `from` i sends comes on queue i, which is under link i. */
struct bed {
	struct io_link *from[N], *under[N], *link[N];
	struct steer_ports *ports;
	unsigned woken[N];
	void *arg[N];
};

static uint64_t now_us(void *arg)
{
	(void)arg;
	return 1;
}

static void wake(void *arg)
{
	++*(unsigned *)arg;
}

static void open_bed(struct bed *b)
{
	const struct loop_config cfg = { .mtu = 1500, .now_us = now_us, .max_frames = 8192 };
	struct steer_config c = { .under = b->under, .n = N, .wake = wake, .arg = b->arg };

	memset(b, 0, sizeof(*b));
	for (unsigned i = 0; i < N; i++) {
		struct io_link *pair[2];

		assert_status(loop_open_pair(&cfg, NULL, pair), UW_OK);
		b->from[i] = pair[0];
		b->under[i] = pair[1];
		b->arg[i] = &b->woken[i];
	}
	b->ports = steer_ports_new();
	assert_non_null(b->ports);
	c.ports = b->ports;
	assert_status(steer_open(&c, b->link), UW_OK);
}

/* Nothing leaked. */
static void close_bed(struct bed *b)
{
	for (unsigned i = 0; i < N; i++)
		steer_stop(b->link[i]);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(loop_frames_out(b->under[i]), 0);
		b->link[i]->ops->close(b->link[i]);
		b->from[i]->ops->close(b->from[i]);
	}
	free(b->ports);
}

static void put(struct bed *b, unsigned queue, const uint8_t *p, unsigned n)
{
	struct io_link *l = b->from[queue];
	struct io_frame *f = l->ops->alloc(l);

	assert_non_null(f);
	memcpy(f->data, p, n);
	f->len = n;
	assert_int_equal(l->ops->tx(l, &f, 1), 1);
}

/* All that a stack has got; freed. */
static unsigned take(struct bed *b, unsigned stack)
{
	struct io_frame *v[BURST];
	unsigned n, all = 0;

	while ((n = b->link[stack]->ops->rx(b->link[stack], v, BURST))) {
		all += n;
		while (n)
			io_free_chain(v[--n]);
	}
	return all;
}

/* First the one on whose queue it came looks, then the other; which has it? 2: both. */
static unsigned who_has(struct bed *b, unsigned queue, const uint8_t *p, unsigned n)
{
	unsigned got[N];

	put(b, queue, p, n);
	got[queue] = take(b, queue);
	got[1 - queue] = take(b, 1 - queue);
	assert_in_range(got[0] + got[1], 1, 2);
	return got[0] && got[1] ? 2 : got[1];
}

struct frame {
	uint8_t v[128];
	unsigned n;
};

static struct frame ip4(uint16_t port, unsigned options)
{
	struct frame f = { .n = 14 + 20 + options + 20 };

	f.v[12] = 0x08;
	f.v[14] = (uint8_t)(0x40 | (5 + options / 4));
	f.v[14 + 9] = 6;
	memcpy(f.v + 14 + 20 + options + 2, &port, 2);
	return f;
}

static struct frame ip6(uint8_t next, uint8_t first, uint16_t port)
{
	struct frame f = { .n = 14 + 40 + 20 };

	f.v[12] = 0x86;
	f.v[13] = 0xdd;
	f.v[14 + 6] = next;
	f.v[14 + 40] = first;
	if (port)
		memcpy(f.v + 14 + 40 + 2, &port, 2);
	return f;
}

static struct frame arp(uint8_t op)
{
	struct frame f = { .n = 42 };

	f.v[12] = 0x08;
	f.v[13] = 0x06;
	f.v[14 + 7] = op;
	return f;
}

static void segments_go_to_whose_port_it_is(void **state)
{
	const uint16_t port = htons(40000);
	struct bed b;

	(void)state;
	open_bed(&b);
	for (unsigned queue = 0; queue < N; queue++) {
		for (unsigned options = 0; options <= 40; options += 20) {
			struct frame f = ip4(port, options);

			steer_port(b.ports, STEER_IP4, port, STEER_ANY);
			assert_int_equal(who_has(&b, queue, f.v, f.n), queue);
			steer_port(b.ports, STEER_IP4, port, 0);
			assert_int_equal(who_has(&b, queue, f.v, f.n), 0);
			steer_port(b.ports, STEER_IP4, port, 1);
			assert_int_equal(who_has(&b, queue, f.v, f.n), 1);
		}
	}
	close_bed(&b);
}

/* A port of IPv4 says nothing of the same of IPv6. */
static void the_versions_have_ports_of_their_own(void **state)
{
	const uint16_t port = htons(40000);
	struct frame four = ip4(port, 0), six = ip6(6, 0, port);
	struct bed b;

	(void)state;
	open_bed(&b);
	steer_port(b.ports, STEER_IP4, port, 1);
	assert_int_equal(who_has(&b, 0, four.v, four.n), 1);
	assert_int_equal(who_has(&b, 0, six.v, six.n), 0);
	steer_port(b.ports, STEER_IP6, port, 1);
	steer_port(b.ports, STEER_IP4, port, 0);
	assert_int_equal(who_has(&b, 1, four.v, four.n), 0);
	assert_int_equal(who_has(&b, 0, six.v, six.n), 1);
	close_bed(&b);
}

/* RFC 826, RFC 4861 §7.2: one asks for all, one answers for all, all hear the answer. */
static void what_resolves_addresses(void **state)
{
	struct frame asks = arp(1), answers = arp(2), solicits = ip6(58, 135, 0),
		     advertises = ip6(58, 136, 0), echo = ip6(58, 128, 0), udp = ip6(17, 0, 0);
	struct bed b;

	(void)state;
	open_bed(&b);
	for (unsigned queue = 0; queue < N; queue++) {
		assert_int_equal(who_has(&b, queue, asks.v, asks.n), 0);
		assert_int_equal(who_has(&b, queue, solicits.v, solicits.n), 0);
		assert_int_equal(who_has(&b, queue, echo.v, echo.n), 0);
		assert_int_equal(who_has(&b, queue, udp.v, udp.n), 0);
		assert_int_equal(who_has(&b, queue, answers.v, answers.n), 2);
		assert_int_equal(who_has(&b, queue, advertises.v, advertises.n), 2);
	}
	close_bed(&b);
}

/* Whatever is cut short is one stack's, to be refused there; a fragment the first's. */
static void cut_short_it_is_still_somebodys(void **state)
{
	const uint16_t port = htons(40000);
	const struct frame whole[] = { ip4(port, 0), ip4(port, 40), ip6(6, 0, port),
				       ip6(58, 136, 0), arp(2) };
	struct frame fragment = ip4(port, 0);
	struct bed b;

	(void)state;
	open_bed(&b);
	steer_port(b.ports, STEER_IP4, port, 1);
	for (unsigned i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		for (unsigned n = 0; n <= whole[i].n; n++)
			assert_in_range(who_has(&b, n % 2, whole[i].v, n), 0, 2);
	}
	fragment.v[14 + 6] = 0x20; /* more follow */
	assert_int_equal(who_has(&b, 1, fragment.v, fragment.n), 0);
	close_bed(&b);
}

static void who_gets_one_is_woken_and_has_it_pending(void **state)
{
	const uint16_t port = htons(40000);
	struct frame f = ip4(port, 0);
	struct io_frame *v[BURST];
	struct bed b;

	(void)state;
	open_bed(&b);
	steer_port(b.ports, STEER_IP4, port, 1);
	assert_false(b.link[1]->ops->pending(b.link[1]));
	put(&b, 0, f.v, f.n);
	assert_true(b.link[0]->ops->pending(b.link[0]));
	assert_int_equal(b.link[0]->ops->rx(b.link[0], v, BURST), 0);
	assert_int_equal(b.woken[1], 1);
	assert_int_equal(b.woken[0], 0);
	assert_int_equal(b.link[0]->stats.handed, 1);
	assert_true(b.link[1]->ops->pending(b.link[1]));
	assert_int_equal(take(&b, 1), 1);
	assert_false(b.link[1]->ops->pending(b.link[1]));
	close_bed(&b);
}

/* One that does not look holds up nobody, and what it does not take is counted. */
static void a_stack_that_does_not_look_loses_frames(void **state)
{
	const uint16_t port = htons(40000);
	struct frame f = ip4(port, 0);
	uint64_t lost;
	struct bed b;

	(void)state;
	open_bed(&b);
	steer_port(b.ports, STEER_IP4, port, 1);
	for (unsigned i = 0; i < 3000; i++) {
		put(&b, 0, f.v, f.n);
		assert_int_equal(take(&b, 0), 0);
	}
	lost = b.link[0]->stats.rx_drops;
	assert_in_range(lost, 1, 2999);
	assert_int_equal(b.link[0]->stats.handed + lost, 3000);
	assert_int_equal(take(&b, 1), 3000 - lost);
	put(&b, 0, f.v, f.n); /* and one that is dropped when all ends */
	assert_int_equal(take(&b, 0), 0);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_go_to_whose_port_it_is),
		cmocka_unit_test(the_versions_have_ports_of_their_own),
		cmocka_unit_test(what_resolves_addresses),
		cmocka_unit_test(cut_short_it_is_still_somebodys),
		cmocka_unit_test(who_gets_one_is_woken_and_has_it_pending),
		cmocka_unit_test(a_stack_that_does_not_look_loses_frames),
	};

	return cmocka_run_group_tests_name("steer", tests, NULL, NULL);
}
