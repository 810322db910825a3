/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that find each other over memif, exchange frames and part again. */
#include <arpa/inet.h>
#include <signal.h>

#include "io_dpdk/node.h"

#include "io/memif/fabric.h"

static int setup(void **state)
{
	*state = board_new();
	return 0;
}

static int teardown(void **state)
{
	board_free(*state);
	return 0;
}

/* --- two and three processes --- */

static const unsigned lengths[] = { 22, 60, 64, 127, 1514, 4096, 9000, 9014 };

static void send_all(struct node *n, unsigned to)
{
	for (unsigned i = 0; i < COUNT(lengths); i++)
		for (unsigned parts = 1; parts <= 3; parts++)
			CHECK(node_send(n, to, lengths[i], i * 4 + parts, parts));
}

static void receive_all(struct node *n, unsigned from)
{
	for (unsigned i = 0; i < COUNT(lengths); i++)
		for (unsigned parts = 1; parts <= 3; parts++)
			CHECK(node_receive(n, from, WAIT_MS) == (int)(i * 4 + parts));
}

/* Many rounds, so that every descriptor of the ring carries long and short frames in turn. */
static int pair(struct node *n, int me)
{
	unsigned peer = me == 2 ? 3 : 2;

	node_open_ok(n, (unsigned)me);
	CHECK(n->l->flags == (IO_P2P | IO_RINGS | IO_WAITS | IO_INTACT) && n->l->mtu == 9000 &&
	      n->l->bps > 0);
	if (me == 3) {
		board_step(n->board, 1);
	} else {
		CHECK(board_wait(n->board, 1));
		uint32_t addr = host(peer);

		CHECK(node_way(n, &addr, 0, 0) == UW_MORE); /* would have to wait */
		CHECK(node_resolve(n, peer) == UW_OK);
		CHECK(node_resolve(n, peer) == UW_OK);
		CHECK(node_way(n, &addr, 0, 0) == UW_OK);
	}
	for (unsigned round = 0; round < 50; round++) {
		if (me == 2)
			send_all(n, peer);
		receive_all(n, peer);
		if (me == 3)
			send_all(n, peer);
	}
	CHECK(n->l->stats.rx_frames == 50 * 3 * COUNT(lengths));
	CHECK(n->l->stats.tx_frames == n->l->stats.rx_frames);
	CHECK(n->l->stats.tx_bytes == n->l->stats.rx_bytes);
	/* Three of the lengths are lent in one part, the octets of the others are copied. */
	CHECK(n->l->stats.tx_lent == 50 * 3);
	CHECK(n->l->stats.tx_drops == 0 && n->l->stats.rx_drops == 0);
	node_close(n);
	return 0;
}

static void two_join(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, pair, 2), c = spawn(b, pair, 3);

	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

static void all_ready(struct board *b, int slot, int count)
{
	uint64_t end = ms_now() + WAIT_MS;

	atomic_fetch_add(&b->count[slot], 1);
	while (atomic_load(&b->count[slot]) < count && ms_now() < end)
		ms_sleep(1);
	CHECK(atomic_load(&b->count[slot]) >= count);
}

static int one_of_three(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	all_ready(n->board, 0, 3);
	/* The lower half of each pair waits to be called. */
	for (int peer = 2; peer < me; peer++)
		CHECK(node_resolve(n, (unsigned)peer) == UW_OK);
	all_ready(n->board, 1, 3);
	for (int peer = 2; peer <= 4; peer++)
		for (int i = 0; i < 100 && peer != me; i++)
			CHECK(node_send(n, (unsigned)peer, 22 + (unsigned)i * 50,
					(unsigned)(me * 1000 + i), 1));
	/* In order from each, in any order between them. */
	int next[5] = { 0 };
	uint64_t end = ms_now() + WAIT_MS;
	for (int got = 0; got < 200 && ms_now() < end;)
		for (int peer = 2; peer <= 4; peer++) {
			int seed = peer == me ? -1 : node_receive(n, (unsigned)peer, 0);

			CHECK(seed < 0 || seed == peer * 1000 + next[peer]);
			next[peer] += seed >= 0;
			got += seed >= 0;
		}
	for (int peer = 2; peer <= 4; peer++)
		CHECK(next[peer] == (peer == me ? 0 : 100));
	all_ready(n->board, 2, 3);
	node_close(n);
	return 0;
}

static void three_join(void **state)
{
	struct board *b = *state;
	pid_t pid[3];

	for (int i = 0; i < 3; i++)
		pid[i] = spawn(b, one_of_three, 2 + i);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reap(pid[i], 2 * WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* Several peers' frames in one burst are sorted, and a prefix of the burst is taken. */
static int mixed_burst(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	all_ready(n->board, 0, 3);
	if (me != 2) {
		CHECK(board_wait(n->board, 1));
		for (int i = 0; i < 8; i++)
			CHECK(node_receive(n, 2, WAIT_MS) == i * 2 + me - 3);
		CHECK(node_receive(n, 2, 20) == -1);
		all_ready(n->board, 1, 3);
		node_close(n);
		return 0;
	}
	CHECK(node_resolve(n, 3) == UW_OK && node_resolve(n, 4) == UW_OK);
	struct io_frame *v[17];
	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < COUNT(v); i++) {
		unsigned len = 22;

		v[i] = n->l->ops->alloc(n->l);
		io_mac_of(host(i == 16 ? 77 : 3 + i % 2), v[i]->data); /* 77: nobody */
		memcpy(v[i]->data + 6, n->l->mac, 6);
		memcpy(v[i]->data + 12, "\x88\xb5", 2);
		memcpy(v[i]->data + 14, &i, 4);
		memcpy(v[i]->data + 18, &len, 4);
		v[i]->len = len;
	}
	CHECK(n->l->ops->tx(n->l, v, COUNT(v)) == COUNT(v));
	CHECK(n->l->stats.tx_frames == 16 && n->l->stats.tx_drops == 1);
	pthread_mutex_unlock(&n->lock);
	board_step(n->board, 1);
	all_ready(n->board, 1, 3);
	node_close(n);
	return 0;
}

static void a_burst_for_two(void **state)
{
	struct board *b = *state;
	pid_t pid[3];

	for (int i = 0; i < 3; i++)
		pid[i] = spawn(b, mixed_burst, 2 + i);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reap(pid[i], 2 * WAIT_MS), 0);
}

/* --- both at once --- */

static unsigned pairs(const struct node *n)
{
	const struct fabric *f = ((const struct fabric_link *)n->l)->f;
	unsigned count = 0;

	for (unsigned i = 0; i < PEER_MAX; i++)
		count += f->peer[i].pair != NULL;
	return count;
}

static int cross(struct node *n, int me)
{
	unsigned peer = me == 2 ? 3 : 2;

	for (int round = 0; round < 20; round++) {
		node_open_ok(n, (unsigned)me);
		all_ready(n->board, round * 2 % NODE_MAX, 2 * (round / 20 + 1));
		CHECK(node_resolve(n, peer) == UW_OK);
		CHECK(node_send(n, peer, 100, (unsigned)round, 1));
		CHECK(node_receive(n, peer, WAIT_MS) == round);
		CHECK(pairs(n) == 1);
		pthread_mutex_lock(&n->lock);
		CHECK(((struct fabric_link *)n->l)->lanes.count == 1);
		pthread_mutex_unlock(&n->lock);
		all_ready(n->board, round * 2 + 1, 2);
		node_close(n);
	}
	return 0;
}

static void both_call_at_once(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, cross, 2), c = spawn(b, cross, 3);

	assert_int_equal(reap(a, 3 * WAIT_MS), 0);
	assert_int_equal(reap(c, 3 * WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- nobody there --- */

static int lonely(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	uint64_t start = ms_now();
	CHECK(node_resolve(n, 9) == UW_E_UNREACHABLE);
	uint32_t outside = htonl(0x0a000001);
	CHECK(node_way(n, &outside, 0, 1000) == UW_E_UNREACHABLE);
	CHECK(ms_now() - start < 100);
	CHECK(node_resolve(n, (unsigned)me) == UW_OK); /* itself needs nothing */
	CHECK(!n->l->ops->pending(n->l));
	node_close(n);
	return 0;
}

static void nobody_is_unreachable(void **state)
{
	struct board *b = *state;

	assert_int_equal(reap(spawn(b, lonely, 2), WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- IPv6 --- */

static uw_status way6(struct node *n, const char *to, uint16_t port, const char *found)
{
	struct uw_ip a, want;

	CHECK(inet_pton(AF_INET6, to, a.b) == 1 && inet_pton(AF_INET6, found, want.b) == 1);
	uw_status st = n->l->ops->resolve(n->l, &a, port, WAIT_MS);
	CHECK(st || uw_ip_eq(&a, &want));
	return st;
}

/* The first is called by whatever ends as its IPv4 address does, and found by a port. */
static int called6(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(n->l->ops->claim_port(n->l, htons(18515), IO_V4) == UW_OK);
	CHECK(way6(n, "::1", htons(18515), "fd75:7761:7270::127.0.0.2") == UW_OK);
	all_ready(n->board, 0, 2);
	CHECK(node_receive(n, 3, WAIT_MS) == 1);
	CHECK(board_wait(n->board, 1));
	node_close(n);
	return 0;
}

static int caller6(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	all_ready(n->board, 0, 2);
	CHECK(way6(n, "fd75:7761:7270::127.0.0.2", 0, "fd75:7761:7270::127.0.0.2") == UW_OK);
	CHECK(way6(n, "fe80::7577:127.0.0.2", 0, "fe80::7577:127.0.0.2") == UW_OK);
	CHECK(way6(n, "::", htons(18515), "fd75:7761:7270::127.0.0.2") == UW_OK);
	CHECK(way6(n, "::1", htons(18516), "::") == UW_E_REFUSED);
	CHECK(way6(n, "fd75:7761:7270::127.0.0.9", 0, "::") == UW_E_UNREACHABLE);
	CHECK(way6(n, "fd00::127.0.0.2", 0, "::") == UW_E_UNREACHABLE); /* not our network */
	CHECK(way6(n, "fe80::127.0.0.3", 0, "::") == UW_E_UNREACHABLE); /* ends as we do */
	CHECK(way6(n, "fd75:7761:7270::10.0.0.2", 0, "::") == UW_E_UNREACHABLE);
	CHECK(node_send(n, 2, 60, 1, 1));
	board_step(n->board, 1);
	node_close(n);
	return 0;
}

static void processes_are_found_by_ip6(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, called6, 2), c = spawn(b, caller6, 3);

	assert_int_equal(reap(c, 3 * WAIT_MS), 0);
	assert_int_equal(reap(a, 3 * WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- sizes --- */

static int sized(struct node *n, int me)
{
	unsigned peer = me == 2 ? 3 : 2;

	CHECK(node_open(n, (unsigned)me, me == 2 ? 65280 : 1500) == UW_OK);
	all_ready(n->board, 0, 2);
	CHECK(node_resolve(n, peer) == UW_OK);
	CHECK(node_send(n, peer, 1514, 1, 1));
	if (me == 2) { /* longer than the peer takes: dropped here */
		CHECK(node_send(n, peer, 1515, 2, 1));
		CHECK(node_send(n, peer, 65294, 3, 1));
		CHECK(n->l->stats.tx_drops == 2);
	}
	CHECK(node_send(n, peer, 60, 4, 1));
	CHECK(node_receive(n, peer, WAIT_MS) == 1);
	CHECK(node_receive(n, peer, WAIT_MS) == 4);
	all_ready(n->board, 1, 2);
	node_close(n);
	return 0;
}

static void unequal_mtus(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, sized, 2), c = spawn(b, sized, 3);

	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
}

static int large(struct node *n, int me)
{
	unsigned peer = me == 2 ? 3 : 2;

	CHECK(node_open(n, (unsigned)me, 65280) == UW_OK);
	all_ready(n->board, 0, 2);
	CHECK(node_resolve(n, peer) == UW_OK);
	for (unsigned i = 0; i < 300; i++) {
		CHECK(node_send(n, peer, 65294 - i % 3, i, 1 + i % 4));
		CHECK(node_receive(n, peer, WAIT_MS) == (int)i);
	}
	all_ready(n->board, 1, 2);
	node_close(n);
	return 0;
}

static void the_largest_frames(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, large, 2), c = spawn(b, large, 3);

	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
}

/* --- buffers --- */

static int buffers(struct node *n, int me)
{
	static struct io_frame *v[1 << 14];
	unsigned got = 0;

	node_open_ok(n, (unsigned)me);
	pthread_mutex_lock(&n->lock);
	while (got < COUNT(v) && (v[got] = n->l->ops->alloc(n->l)))
		got++;
	CHECK(got >= 1024 && got < COUNT(v));
	CHECK(n->l->stats.no_frame == 1);
	n->l->ops->ref(v[0]);
	CHECK(n->l->ops->refs(v[0]) == 2);
	n->l->ops->free(v[0]);
	CHECK(n->l->ops->refs(v[0]) == 1);
	CHECK(!n->l->ops->alloc(n->l));
	pthread_mutex_unlock(&n->lock);

	/* With none left to send, frames are still received. */
	board_step(n->board, 1);
	CHECK(node_receive(n, 3, WAIT_MS) == 7);
	pthread_mutex_lock(&n->lock);
	while (got)
		n->l->ops->free(v[--got]);
	pthread_mutex_unlock(&n->lock);
	CHECK(node_send(n, 3, 60, 8, 1));
	CHECK(board_wait(n->board, 2));
	node_close(n);
	/* All came back, so the memory serves again. */
	node_open_ok(n, (unsigned)me);
	node_close(n);
	return 0;
}

static int sends_seven(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(board_wait(n->board, 1));
	CHECK(node_resolve(n, 2) == UW_OK);
	CHECK(node_send(n, 2, 60, 7, 1));
	CHECK(node_receive(n, 2, WAIT_MS) == 8);
	board_step(n->board, 2);
	node_close(n);
	return 0;
}

static void buffers_run_out(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, buffers, 2), c = spawn(b, sends_seven, 3);

	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
}

/* A frame that is still referenced after tx is intact and can be sent again. */
static int again(struct node *n, int me)
{
	unsigned peer = me == 2 ? 3 : 2, len = 22;
	uint32_t seed = 5;

	node_open_ok(n, (unsigned)me);
	all_ready(n->board, 0, 2);
	CHECK(node_resolve(n, peer) == UW_OK);
	pthread_mutex_lock(&n->lock);
	struct io_frame *f = n->l->ops->alloc(n->l);
	io_mac_of(host(peer), f->data);
	memcpy(f->data + 6, n->l->mac, 6);
	memcpy(f->data + 12, "\x88\xb5", 2);
	memcpy(f->data + 14, &seed, 4);
	memcpy(f->data + 18, &len, 4);
	f->len = len;
	for (int i = 0; i < 3; i++) {
		n->l->ops->ref(f);
		CHECK(n->l->ops->tx(n->l, &f, 1) == 1);
	}
	CHECK(n->l->ops->refs(f) == 1); /* memif copies: back at once */
	n->l->ops->free(f);
	pthread_mutex_unlock(&n->lock);
	for (int i = 0; i < 3; i++)
		CHECK(node_receive(n, peer, WAIT_MS) == 5);
	all_ready(n->board, 1, 2);
	node_close(n);
	return 0;
}

static void frames_are_sent_again(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, again, 2), c = spawn(b, again, 3);

	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
}

/* --- memory that is lent --- */

enum { LENT = 40, LENT_LEN = 8000 };

/* It is busy while the peer sends, closes and opens again, and reads then. */
static int reads_late(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(node_receive(n, 2, WAIT_MS) == 0);
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	for (int i = 1; i <= LENT; i++)
		CHECK(node_receive(n, 2, WAIT_MS) == i);
	board_step(n->board, 4);
	node_close(n);
	return 0;
}

/* All frames that a link can have, written over. */
static void write_all(struct node *n)
{
	static struct io_frame *v[1 << 14];
	unsigned got = 0;

	pthread_mutex_lock(&n->lock);
	while (got < COUNT(v) && (v[got] = n->l->ops->alloc(n->l)))
		memset(v[got++]->data, 0xee, LENT_LEN);
	while (got)
		n->l->ops->free(v[--got]);
	pthread_mutex_unlock(&n->lock);
}

static int lends_and_closes(struct node *n, int me)
{
	CHECK(board_wait(n->board, 1));
	node_open_ok(n, (unsigned)me);
	CHECK(node_resolve(n, 3) == UW_OK);
	CHECK(node_send(n, 3, LENT_LEN, 0, 1));
	CHECK(board_wait(n->board, 2));
	for (unsigned i = 1; i <= LENT; i++)
		CHECK(node_send(n, 3, LENT_LEN, i, 1));
	CHECK(n->l->stats.tx_lent == LENT + 1);
	node_close(n);
	node_open_ok(n, 4);
	write_all(n);
	board_step(n->board, 3);
	CHECK(board_wait(n->board, 4));
	node_close(n);
	return 0;
}

static void what_a_closed_link_lent_stays(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, reads_late, 3), c = spawn(b, lends_and_closes, 2);

	assert_int_equal(reap(a, 2 * WAIT_MS), 0);
	assert_int_equal(reap(c, 2 * WAIT_MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_join, setup, teardown),
		cmocka_unit_test_setup_teardown(three_join, setup, teardown),
		cmocka_unit_test_setup_teardown(a_burst_for_two, setup, teardown),
		cmocka_unit_test_setup_teardown(both_call_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_is_unreachable, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_are_found_by_ip6, setup, teardown),
		cmocka_unit_test_setup_teardown(unequal_mtus, setup, teardown),
		cmocka_unit_test_setup_teardown(the_largest_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(buffers_run_out, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_are_sent_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_closed_link_lent_stays, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
