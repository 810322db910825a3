/* SPDX-License-Identifier: BSD-3-Clause */
/* Start-up frames and streams into TCP: turns, their order, and what waits for room. */
#include "world.h"

#define TURN  16u /* segments, then others have their turn */
#define ROUND 16u /* connections of the list in one round */
#define N     4u

struct bench {
	struct world *w;
	struct world_qp *q[ROUND + N];
	struct conn *c[ROUND + N];
	unsigned n;
};

/* Each Write fills a segment. */
static struct bench *open_bench(unsigned n)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->w = world_open(1);
	b->n = n;
	for (unsigned i = 0; i < n; i++) {
		b->q[i] = world_qp(b->w, 2 + i, NULL);
		b->c[i] = world_streaming(b->w, 0, b->q[i]);
		b->c[i]->llp->room_octets = 64;
	}
	return b;
}

static void close_bench(struct bench *b)
{
	for (unsigned i = 0; i < b->n; i++)
		world_qp_free(b->q[i]);
	world_close(b->w);
	free(b);
}

static void post(struct bench *b, unsigned i, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		world_post_write(b->q[i], k, 32);
}

static void round_of(struct bench *b)
{
	stack_transmit(world_stack(b->w, 0), LLP_ACKS_ALL);
}

static bool listed(const struct bench *b, const struct conn *c)
{
	const struct conn *p = b->w->stack[0].s.tx_first;

	while (p && p != c)
		p = p->tx_next;
	assert_int_equal(p != NULL, c->in_tx_list);
	return p;
}

/* ---- turns -------------------------------------------------------------------------------- */

static void a_turn_has_so_many_segments(void **state)
{
	struct bench *b = open_bench(1);

	(void)state;
	post(b, 0, 2 * TURN + 3);
	conn_qp_transmit(&b->q[0]->c);
	assert_int_equal(b->c[0]->llp->segments, TURN);
	assert_true(listed(b, b->c[0]));
	round_of(b);
	assert_int_equal(b->c[0]->llp->segments, 2 * TURN);
	round_of(b);
	assert_int_equal(b->c[0]->llp->segments, 2 * TURN + 3);
	assert_false(listed(b, b->c[0]));
	assert_null(b->w->stack[0].s.tx_last);
	close_bench(b);
}

/* Each connection once in a round, in the order in which they came. */
static void turns_go_round(void **state)
{
	struct bench *b = open_bench(N);

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		post(b, N - 1 - i, 3 * TURN);
		conn_qp_transmit(&b->q[N - 1 - i]->c);
	}
	round_of(b);
	assert_int_equal(fake_llp.n_order, 2 * N * TURN);
	for (unsigned i = 0; i < fake_llp.n_order; i++)
		assert_ptr_equal(fake_llp.order[i], b->c[N - 1 - i / TURN % N]->llp);
	close_bench(b);
}

static void a_round_has_so_many_connections(void **state)
{
	struct bench *b = open_bench(ROUND + N);

	(void)state;
	for (unsigned i = 0; i < ROUND + N; i++) {
		post(b, i, 1);
		conn_send_soon(b->c[i]);
		conn_send_soon(b->c[i]); /* once */
	}
	round_of(b);
	for (unsigned i = 0; i < ROUND + N; i++)
		assert_int_equal(b->c[i]->llp->segments, i < ROUND);
	assert_ptr_equal(b->w->stack[0].s.tx_first, b->c[ROUND]);
	round_of(b);
	assert_null(b->w->stack[0].s.tx_first);
	close_bench(b);
}

/* Many came up while the link is behind: a round asks a few of them, not each one, and in turn. */
static void a_round_asks_so_many_that_wait(void **state)
{
	struct world *w = world_open(1);
	struct conn *c[ROUND + N];
	const uint8_t frame[10] = { 0 };

	(void)state;
	for (unsigned i = 0; i < ROUND + N; i++) {
		c[i] = conn_create(world_stack(w, 0), CONN_INITIATOR);
		c[i]->llp = fake_llp_conn(c[i]);
		c[i]->llp->room = 0;
		assert_status(conn_send_frame(c[i], frame, sizeof(frame)), UW_OK);
	}
	fake_llp.begins = 0;
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	assert_int_equal(fake_llp.begins, ROUND);
	for (unsigned i = 0; i < ROUND + N; i++)
		c[i]->llp->room = 1;
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	assert_int_equal(c[ROUND]->llp->n_sent, sizeof(frame)); /* those of before come later */
	assert_int_equal(c[ROUND - 1]->llp->n_sent, 0);
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	for (unsigned i = 0; i < ROUND + N; i++)
		assert_int_equal(c[i]->llp->n_sent, sizeof(frame));
	world_close(w);
}

static void without_room_it_waits(void **state)
{
	struct bench *b = open_bench(2);

	(void)state;
	b->c[0]->llp->room = 1;
	post(b, 0, 3);
	post(b, 1, 3);
	conn_qp_transmit(&b->q[0]->c);
	conn_qp_transmit(&b->q[1]->c);
	assert_int_equal(b->c[0]->llp->segments, 1);
	assert_int_equal(b->c[1]->llp->segments, 3); /* the others go on */
	assert_true(listed(b, b->c[0]));
	round_of(b);
	assert_int_equal(b->c[0]->llp->segments, 1);
	assert_true(listed(b, b->c[0]));
	b->c[0]->llp->room = 10;
	conn_llp_user.writable(b->c[0]);
	round_of(b);
	assert_int_equal(b->c[0]->llp->segments, 3);
	close_bench(b);
}

/* At the head, in the middle, at the end of the list. */
static void who_ends_leaves_the_list(void **state)
{
	static const unsigned gone[] = { 1, 3, 0, 2 };
	struct bench *b = open_bench(N);
	struct stack *s = world_stack(b->w, 0);

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		conn_send_soon(b->c[i]);
		conn_complete_soon(b->c[i]);
	}
	for (unsigned i = 0; i < N; i++) {
		unsigned n = 0;

		conn_free(b->c[gone[i]]);
		for (const struct conn *c = s->tx_first; c; c = c->tx_next) {
			n++;
			if (!c->tx_next)
				assert_ptr_equal(s->tx_last, c);
		}
		assert_int_equal(n, N - 1 - i);
		n = 0;
		for (const struct conn *c = s->acked_list; c; c = c->acked_next)
			n++;
		assert_int_equal(n, N - 1 - i);
	}
	assert_null(s->tx_last);
	close_bench(b);
}

/* ---- start-up frames --------------------------------------------------------------------------
 */

static void a_frame_is_sent_in_pieces(void **state)
{
	struct world *w = world_open(1);
	struct conn *c = conn_create(world_stack(w, 0), CONN_INITIATOR);
	uint8_t frame[100];

	(void)state;
	for (unsigned i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)i;
	c->llp = fake_llp_conn(c);
	c->llp->room_octets = 30;
	c->llp->room = 2;
	assert_status(conn_send_frame(c, frame, sizeof(frame)), UW_OK);
	assert_int_equal(c->llp->n_sent, 60);
	assert_int_equal(c->unsent_len, 40);
	assert_true(c->in_tx_list);
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	assert_int_equal(c->llp->n_sent, 60);
	assert_true(c->in_tx_list);
	c->llp->room = 1;
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	assert_int_equal(c->llp->n_sent, 90);
	c->llp->room = 1;
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	assert_int_equal(c->llp->n_sent, sizeof(frame));
	assert_memory_equal(c->llp->sent, frame, sizeof(frame));
	assert_null(c->unsent);
	assert_false(c->in_tx_list);
	world_close(w);
}

/* Nothing of the stream overtakes the rest of the Reply. */
static void the_stream_waits_behind_the_frame(void **state)
{
	struct bench *b = open_bench(1);
	struct conn *c = b->c[0];
	uint8_t frame[100];

	(void)state;
	memset(frame, 0xee, sizeof(frame));
	c->llp->room = 1;
	assert_status(conn_send_frame(c, frame, sizeof(frame)), UW_OK);
	post(b, 0, 2);
	conn_qp_transmit(&b->q[0]->c);
	conn_send_stream(c);
	assert_int_equal(c->llp->n_sent, 64);
	c->llp->room = 2;
	round_of(b);
	assert_memory_equal(c->llp->sent, frame, sizeof(frame));
	assert_int_equal(c->llp->segments, 3);
	assert_true(c->llp->n_sent > sizeof(frame));
	close_bench(b);
}

/* The connection ended, and with it what was still to be said. */
static void an_end_drops_the_rest(void **state)
{
	struct world *w = world_open(1);
	struct conn *c = conn_create(world_stack(w, 0), CONN_INITIATOR);
	struct llp_conn *llp = fake_llp_conn(c);
	const uint8_t frame[10] = { 0 };

	(void)state;
	c->llp = llp;
	llp->room = 0;
	assert_status(conn_send_frame(c, frame, sizeof(frame)), UW_OK);
	conn_end(c);
	assert_null(c->unsent);
	assert_true(llp->closed);
	stack_transmit(world_stack(w, 0), LLP_ACKS_ALL);
	assert_int_equal(llp->n_sent, 0);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_has_so_many_segments),
		cmocka_unit_test(turns_go_round),
		cmocka_unit_test(a_round_has_so_many_connections),
		cmocka_unit_test(a_round_asks_so_many_that_wait),
		cmocka_unit_test(without_room_it_waits),
		cmocka_unit_test(who_ends_leaves_the_list),
		cmocka_unit_test(a_frame_is_sent_in_pieces),
		cmocka_unit_test(the_stream_waits_behind_the_frame),
		cmocka_unit_test(an_end_drops_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
