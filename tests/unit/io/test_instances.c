/* SPDX-License-Identifier: BSD-3-Clause */
/* Several instances of the raw transport in one process, on cables that have the same addresses,
 * ports and numbers: what one does, the others do not see. */
#include <arpa/inet.h>
#include <pthread.h>

#include "io/llp.h"
#include "io/loop/loop.h"
#include "uwtest.h"

#define PORT  7471
#define STEPS 20000u /* of 50 us */
#define MANY  300000u

/* One end of a cable, on an instance of its own. */
struct end {
	const struct llp_ops *ops;
	struct io_link *l;
	uint64_t now_us;
	uint32_t number;
	struct uw_stats stats;
	struct llp_listener *ls;
	struct llp_conn *c;
	unsigned up, down;
	uint8_t seed; /* of what it sends */
	size_t sent, want, got;
	bool wrong;
};

struct cable {
	struct end a, b;
};

static uint64_t now_us(void *arg)
{
	return ((struct end *)arg)->now_us;
}

static uint32_t next_number(void *arg)
{
	return ((struct end *)arg)->number += 12345;
}

static void on_wake(void *arg)
{
	(void)arg;
}

static uint8_t octet(uint8_t seed, size_t at)
{
	return (uint8_t)(seed + at * 7 + (at >> 9));
}

static void fill(struct end *e)
{
	size_t room;
	uint8_t *p;

	while (e->sent < e->want && (p = e->ops->tx_begin(e->c, &room))) {
		size_t n = room < e->want - e->sent ? room : e->want - e->sent;

		for (size_t i = 0; i < n; i++)
			p[i] = octet(e->seed, e->sent + i);
		e->ops->tx_commit(e->c, n);
		e->sent += n;
	}
	e->ops->tx_flush(e->c);
}

static void on_up(void *ctx)
{
	((struct end *)ctx)->up++;
}

static void *on_accept(void *ctx, struct llp_conn *c)
{
	struct end *e = ctx;

	e->c = c;
	e->up++;
	return e;
}

/* Both ends know what a sends. */
static size_t on_rx(void *ctx, struct uw_rope in)
{
	struct end *e = ctx;

	for (size_t at = 0; at < in.len; at++) {
		struct uw_span one = uw_rope_head(uw_rope_sub(in, at, 1));

		e->wrong |= one.p[0] != octet(e->seed, e->got++);
	}
	return in.len;
}

static void on_room(void *ctx)
{
	fill(ctx);
}

static void on_closed(void *ctx, uw_status why)
{
	struct end *e = ctx;

	e->down++;
	if (why)
		e->c = NULL;
}

static const struct llp_user user = { .connected = on_up,
				      .accepted = on_accept,
				      .rx = on_rx,
				      .writable = on_room,
				      .closed = on_closed };

static void turn(struct end *e)
{
	struct io_frame *v[8];
	unsigned n;

	while ((n = e->l->ops->rx(e->l, v, COUNT(v)))) {
		for (unsigned i = 0; i < n; i++)
			e->ops->input(e->l, v[i]);
	}
	e->ops->acks(LLP_ACKS_ALL);
	e->ops->timers();
	e->ops->flush_links();
	e->now_us += 50;
}

static void both(struct cable *c)
{
	turn(&c->a);
	turn(&c->b);
}

static bool run_until(struct cable *c, const size_t *what, size_t reaches)
{
	for (unsigned i = 0; i < STEPS && *what < reaches; i++)
		both(c);
	return *what >= reaches;
}

static void open_end(struct end *e, unsigned instance)
{
	struct llp_config cfg = { .user = &user,
				  .now_us = now_us,
				  .random = next_number,
				  .wake = on_wake,
				  .arg = e,
				  .stats = &e->stats };

	e->ops = llp_raw_instance(instance);
	assert_non_null(e->ops);
	assert_status(e->ops->init(&cfg), UW_OK);
	e->ops->add_link(e->l);
}

/* a on that instance, b on the next. */
static void open_cable(struct cable *c, unsigned instance, uint8_t seed)
{
	const struct loop_config lc = { .mtu = 1500,
					.addr = { htonl(0x0a000001), htonl(0x0a000002) },
					.mask = htonl(0xffffff00),
					.now_us = now_us,
					.arg = &c->a,
					.delay_us = 100 };
	const struct llp_place at = { .addr = uw_ip_v4(lc.addr[1]), .port = htons(PORT) };
	struct io_link *l[2];

	memset(c, 0, sizeof(*c));
	assert_status(loop_open_pair(&lc, NULL, l), UW_OK);
	c->a.l = l[0];
	c->b.l = l[1];
	c->a.seed = c->b.seed = seed;
	c->a.now_us = c->b.now_us = 1000000;
	open_end(&c->a, instance);
	open_end(&c->b, instance + 1);
	assert_status(c->b.ops->listen(c->b.l, &at, 8, &c->b, &c->b.ls), UW_OK);
}

static void start_connect(struct cable *c)
{
	const struct llp_addrs a = { .local = uw_ip_v4(c->a.l->addr),
				     .remote = uw_ip_v4(c->b.l->addr),
				     .lport = htons(40000),
				     .rport = htons(PORT) };

	assert_status(c->a.ops->connect(c->a.l, &a, &c->a, &c->a.c), UW_OK);
}

static void drop(struct end *e)
{
	if (e->c)
		e->ops->abort(e->c);
	e->c = NULL;
	if (e->ls)
		e->ops->unlisten(e->ls);
	e->ls = NULL;
}

static void close_end(struct end *e)
{
	e->ops->remove_link(e->l);
	assert_int_equal(loop_frames_out(e->l), 0);
}

static void close_cable(struct cable *c)
{
	drop(&c->a);
	drop(&c->b);
	for (unsigned i = 0; i < 100; i++) /* RSTs arrive, acknowledged frames come back */
		both(c);
	close_end(&c->a);
	close_end(&c->b);
	c->a.l->ops->close(c->a.l);
	c->b.l->ops->close(c->b.l);
}

static bool is_up(struct cable *c)
{
	for (unsigned i = 0; i < STEPS && (!c->a.up || !c->b.up); i++)
		both(c);
	return c->a.up == 1 && c->b.up == 1;
}

static void each_has_its_own_connections(void **state)
{
	struct cable one, two;

	(void)state;
	open_cable(&one, 0, 3);
	open_cable(&two, 2, 101);
	start_connect(&one);
	start_connect(&two);
	for (unsigned i = 0; i < 100; i++) { /* both are under way at once */
		turn(&one.a);
		turn(&two.a);
		turn(&two.b);
		turn(&one.b);
	}
	assert_true(is_up(&one) && is_up(&two));
	one.a.want = two.a.want = MANY;
	fill(&one.a);
	fill(&two.a);
	assert_true(run_until(&one, &one.b.got, MANY));
	/* The other's clock has stood still, and what it has to send has waited. */
	assert_true(two.b.got < MANY);
	one.a.ops->abort(one.a.c);
	one.a.c = NULL;
	assert_true(run_until(&two, &two.b.got, MANY));
	for (unsigned i = 0; i < 20; i++)
		both(&one);
	assert_int_equal(one.b.down, 1);
	assert_int_equal(two.a.down + two.b.down, 0);
	assert_false(one.b.wrong || two.b.wrong);
	assert_int_equal(one.b.got, MANY);
	assert_int_equal(two.b.got, MANY);
	close_cable(&one);
	close_cable(&two);
}

static void a_listener_of_one_is_none_of_the_others(void **state)
{
	struct cable c;

	(void)state;
	open_cable(&c, 4, 1);
	c.b.ops->unlisten(c.b.ls);
	c.b.ls = NULL;
	/* The instance beside it listens on that port, which is nothing to b. */
	const struct llp_place at = { .addr = uw_ip_v4(0), .port = htons(PORT) };

	assert_status(c.a.ops->listen(c.a.l, &at, 8, &c.a, &c.a.ls), UW_OK);
	start_connect(&c);
	for (unsigned i = 0; i < 100; i++)
		both(&c);
	assert_int_equal(c.a.up, 0);
	assert_int_equal(c.a.down, 1);
	close_cable(&c);
}

static void *a_cable_alone(void *arg)
{
	struct cable *c = arg;

	start_connect(c);
	if (!is_up(c))
		return NULL;
	c->a.want = 10 * MANY;
	fill(&c->a);
	return run_until(c, &c->b.got, 10 * MANY) && !c->b.wrong ? c : NULL;
}

static void in_threads_at_once(void **state)
{
	struct cable c[LLP_RAW_INSTANCES / 2];
	pthread_t t[COUNT(c)];

	(void)state;
	for (unsigned i = 0; i < COUNT(c); i++)
		open_cable(&c[i], 2 * i, (uint8_t)(50 * i));
	for (unsigned i = 0; i < COUNT(c); i++)
		assert_int_equal(pthread_create(&t[i], NULL, a_cable_alone, &c[i]), 0);
	for (unsigned i = 0; i < COUNT(c); i++) {
		void *ok;

		assert_int_equal(pthread_join(t[i], &ok), 0);
		assert_ptr_equal(ok, &c[i]);
	}
	for (unsigned i = 0; i < COUNT(c); i++)
		close_cable(&c[i]);
}

static void there_are_so_many_and_no_more(void **state)
{
	(void)state;
	assert_ptr_equal(llp_raw_instance(0), &llp_raw);
	for (unsigned i = 0; i < LLP_RAW_INSTANCES; i++) {
		assert_non_null(llp_raw_instance(i));
		for (unsigned k = 0; k < i; k++) {
			assert_ptr_not_equal(llp_raw_instance(i), llp_raw_instance(k));
			assert_ptr_not_equal(llp_raw_instance(i)->input,
					     llp_raw_instance(k)->input);
		}
	}
	assert_null(llp_raw_instance(LLP_RAW_INSTANCES));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(there_are_so_many_and_no_more),
	cmocka_unit_test(each_has_its_own_connections),
	cmocka_unit_test(a_listener_of_one_is_none_of_the_others),
	cmocka_unit_test(in_threads_at_once),
};

UWTEST_MAIN(tests)
