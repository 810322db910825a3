/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that finds the way to peers of CM-less RC, while peers do not answer: each is asked in
 * turn, and the thread can be ended. Its file is part of this one, for its lock. */
#include "conn/rc/rc_resolver.c"

#include "world.h"

#define QPS    3u
#define ASKED  (2 * QPS)
#define SELF   0x0a000001u
#define FIRST  0x0a000101u /* the peers' addresses: greater, so that we connect */
#define IN_10S 10000000u

struct bench {
	struct world *w;
	struct io_ops ops;
	struct world_qp *q[QPS];
	uint32_t asked[ASKED]; /* for whose way, in this order */
	unsigned n_asked;
	bool stops; /* the process ends while the first question is asked */
};

static struct bench *bench;

/* As rc_resolver_stop does. */
static void tell_to_stop(struct rc_resolver *r)
{
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_mutex_unlock(&r->lock);
}

/* A peer that hangs: meanwhile the stack has those that have no answer try again. */
static uw_status hang(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned ms)
{
	struct stack *s = world_stack(bench->w, 0);

	(void)l;
	(void)port;
	if (bench->n_asked < ASKED)
		bench->asked[bench->n_asked] = ntohl(uw_ip_v4_be(to));
	bench->w->now_us += ms * 1000ull;
	sched_lock(&s->sched);
	if (++bench->n_asked < ASKED)
		rc_timers(s, stack_now_us(s));
	if (bench->stops || bench->n_asked >= ASKED)
		tell_to_stop(s->rc.resolver);
	sched_unlock(&s->sched);
	return UW_E_UNREACHABLE;
}

static void name_a_peer(struct world_qp *q, uint32_t addr)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(SELF) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(addr) };
	const struct uw_peer p = { .addr = (struct sockaddr *)&to,
				   .from = (struct sockaddr *)&from,
				   .qpn = 5 };

	assert_status(qp_modify(&q->c.qp, UW_QPS_INIT), UW_OK);
	assert_status(rc_name_peer(&q->c, &p), UW_OK);
	rc_ready(&q->c);
	assert_int_equal(q->c.rc->state, RC_RESOLVING);
}

/* QPs that wait for their way, the first one for longest. */
static void ask_for_all(struct bench *b)
{
	struct stack *s = world_stack(b->w, 0);

	sched_lock(&s->sched);
	for (unsigned i = 0; i < QPS; i++)
		name_a_peer(b->q[i], FIRST + i);
	sched_unlock(&s->sched);
}

static void run(struct bench *b)
{
	struct stack *s;

	bench = b;
	b->w = world_open(1);
	s = world_stack(b->w, 0);
	b->ops = *s->links[0]->ops;
	b->ops.resolve = hang;
	s->links[0]->ops = &b->ops;
	for (unsigned i = 0; i < QPS; i++)
		b->q[i] = world_qp(b->w, 2 + i, NULL);
	ask_for_all(b);
	pthread_join(s->rc.resolver->thread, NULL);
}

static void close_bench(struct bench *b)
{
	struct stack *s = world_stack(b->w, 0);

	for (unsigned i = 0; i < QPS; i++) {
		rc_forget(&b->q[i]->c);
		world_qp_free(b->q[i]);
	}
	rc_accept_stop(s);
	rc_resolver_free(s);
	world_close(b->w);
}

/* Three of them that are retried kept it busy for ever. */
static void it_ends_whatever_is_left_to_ask(void **state)
{
	struct bench b = { .stops = true };

	(void)state;
	run(&b);
	assert_int_equal(b.n_asked, 1);
	/* the timers go on until the links are gone */
	b.w->now_us += IN_10S;
	rc_timers(world_stack(b.w, 0), b.w->now_us);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(b.q[i]->c.rc->state, RC_RESOLVING);
	close_bench(&b);
}

/* Whoever is asked for again does not come before who was not asked for yet. */
static void each_is_asked_for_in_turn(void **state)
{
	struct bench b = { 0 };

	(void)state;
	run(&b);
	assert_int_equal(b.n_asked, ASKED);
	for (unsigned i = 0; i < ASKED; i++)
		assert_int_equal(b.asked[i], FIRST + i % QPS);
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_whatever_is_left_to_ask),
		cmocka_unit_test(each_is_asked_for_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
