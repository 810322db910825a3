/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/steer.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/be.h"
#include "base/sum.h"
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
	const struct loop_config cfg = { .addr = { htonl(0x0a090001), htonl(0x0a090002) },
					 .mtu = 1500,
					 .now_us = now_us,
					 .max_frames = 8192 };
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

/* An IPv4 packet in which an ICMP error quotes what went from that port of ours (RFC 1191 §4). */
static struct frame error4(uint8_t proto, uint16_t port)
{
	struct frame f = { .n = 14 + 20 + 8 + 20 + 8 };
	uint8_t *ip = f.v + 14, *icmp = ip + 20, *quoted = icmp + 8;

	f.v[12] = 0x08;
	ip[0] = quoted[0] = 0x45;
	ip[3] = 20 + 8 + 20 + 8;
	ip[9] = 1;
	icmp[0] = 3;
	icmp[1] = 4;
	quoted[9] = proto;
	memcpy(quoted + 20, &port, 2);
	uw_put16(icmp + 2, (uint16_t)~uw_sum_fold(uw_sum_add(0, icmp, 8 + 20 + 8)));
	return f;
}

/* The same of IPv6 (RFC 4443 §3): type 1 or 2. */
static struct frame error6(uint8_t type, uint8_t proto, uint16_t port)
{
	struct frame f = ip6(58, type, 0);
	uint8_t *ip = f.v + 14, *icmp = ip + 40, *quoted = icmp + 8;
	const unsigned body = 8 + 40 + 8;

	f.n = 14 + 40 + body;
	ip[0] = quoted[0] = 0x60;
	ip[5] = (uint8_t)body;
	quoted[6] = proto;
	memcpy(quoted + 40, &port, 2);
	uw_put16(icmp + 2,
		 (uint16_t)~uw_sum_fold(uw_sum_add(uw_sum_add(body + 58, ip + 8, 32), icmp, body)));
	return f;
}

/* The host with this address asks for the MAC of another, or announces itself. */
static struct frame arp_request(uint32_t sender, uint32_t target)
{
	struct frame f = arp(1);

	memcpy(f.v + 14 + 14, &sender, 4);
	memcpy(f.v + 14 + 24, &target, 4);
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
	struct frame asks = arp_request(1, 2), answers = arp(2), solicits = ip6(58, 135, 0),
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

/* RFC 5227 §2.3: an announcement is for all, but who has our address is the first one's to answer
 * (§2.4). */
static void an_announcement_is_for_all(void **state)
{
	struct frame news, ours;
	struct bed b;

	(void)state;
	open_bed(&b);
	news = arp_request(htonl(0x0a090009), htonl(0x0a090009));
	ours = arp_request(b.link[0]->addr, b.link[0]->addr);
	for (unsigned queue = 0; queue < N; queue++) {
		assert_int_equal(who_has(&b, queue, news.v, news.n), 2);
		assert_int_equal(who_has(&b, queue, ours.v, ours.n), 0);
	}
	close_bed(&b);
}

/* RFC 1191 §3, RFC 8201 §4, RFC 1122 §4.2.3.9: who has the connection hears of it. */
static void an_icmp_error_goes_to_whose_segment_it_quotes(void **state)
{
	const uint16_t port = htons(40000), other = htons(40001);
	const struct frame f[] = { error4(6, port), error6(1, 6, port), error6(2, 6, port) };
	const struct frame udp[] = { error4(17, port), error6(1, 17, port), error6(2, 17, port) };
	struct bed b;

	(void)state;
	open_bed(&b);
	for (unsigned i = 0; i < COUNT(f); i++) {
		const enum steer_ip v = i ? STEER_IP6 : STEER_IP4;

		for (unsigned queue = 0; queue < N; queue++) {
			steer_port(b.ports, v, other, 1 - queue);
			for (uint8_t to = 0; to < N; to++) {
				steer_port(b.ports, v, port, to);
				assert_int_equal(who_has(&b, queue, f[i].v, f[i].n), to);
				assert_int_equal(who_has(&b, queue, udp[i].v, udp[i].n), 0);
			}
			steer_port(b.ports, v, port, STEER_ANY);
			assert_int_equal(who_has(&b, queue, f[i].v, f[i].n), 2);
		}
	}
	close_bed(&b);
}

/* One of them answers and counts. */
static void copies_are_marked(void **state)
{
	const struct frame f = error4(6, htons(40000));
	struct io_frame *v[N];
	struct bed b;

	(void)state;
	open_bed(&b);
	put(&b, 1, f.v, f.n);
	for (unsigned i = N; i-- > 0;)
		assert_int_equal(b.link[i]->ops->rx(b.link[i], &v[i], 1), 1);
	assert_int_equal(v[0]->marks & IO_FRAME_COPY, IO_FRAME_COPY);
	assert_int_equal(v[1]->marks & IO_FRAME_COPY, 0);
	for (unsigned i = 0; i < N; i++)
		io_free_chain(v[i]);
	close_bed(&b);
}

/* Whatever is cut short is one stack's, to be refused there; a fragment the first's. */
static void cut_short_it_is_still_somebodys(void **state)
{
	const uint16_t port = htons(40000);
	const struct frame whole[] = { ip4(port, 0),	   ip4(port, 40),    ip6(6, 0, port),
				       ip6(58, 136, 0),	   arp(2),	     error4(6, port),
				       error6(2, 6, port), arp_request(1, 1) };
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
		cmocka_unit_test(an_announcement_is_for_all),
		cmocka_unit_test(an_icmp_error_goes_to_whose_segment_it_quotes),
		cmocka_unit_test(copies_are_marked),
		cmocka_unit_test(cut_short_it_is_still_somebodys),
		cmocka_unit_test(who_gets_one_is_woken_and_has_it_pending),
		cmocka_unit_test(a_stack_that_does_not_look_loses_frames),
	};

	return cmocka_run_group_tests_name("steer", tests, NULL, NULL);
}
