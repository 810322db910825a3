/* SPDX-License-Identifier: BSD-3-Clause */
/* memif between processes of several stacks each: who gets what, whose doorbell rings, and how
 * links end one by one. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "io_dpdk/node.h"

enum { STACKS = 4, LEN = 64, AT = 14, A = 2, B = 3 };
/* Of each stack; under way at once: less than a ring of all of them, which a slow machine might
 * leave full for longer than a link waits. */
enum { BULK = 20000, WINDOW = 32 };

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

/* A process, with a link for each of its stacks. */
struct party {
	unsigned n;
	_Atomic int *heard, *sent; /* of each stack: what came here, what came at the peer */
	struct stack {
		struct io_link *l;
		pthread_mutex_t lock;
		_Atomic unsigned downs;
		unsigned next[STACKS]; /* number expected from each of the peer's */
	} stack[STACKS];
};

/* What a frame says: who sent it. */
struct said {
	uint32_t stack, number;
};

static void on_lock(void *arg)
{
	pthread_mutex_lock(&((struct stack *)arg)->lock);
}

static void on_unlock(void *arg)
{
	pthread_mutex_unlock(&((struct stack *)arg)->lock);
}

static void on_down(void *arg, uint32_t addr)
{
	CHECK(addr == host(A) || addr == host(B));
	CHECK(pthread_mutex_trylock(&((struct stack *)arg)->lock) == EBUSY);
	atomic_fetch_add(&((struct stack *)arg)->downs, 1);
}

static struct party *open_party(const struct node *n, unsigned h, unsigned stacks)
{
	static struct party p;
	struct dpdk_config cfg = { .link = "memif",
				   .addr = host(h),
				   .mask = htonl(0xff000000),
				   .mtu = 1500,
				   .queues = stacks,
				   .run_dir = n->board->dir,
				   .addr_fd = -1 };
	struct io_env env[STACKS];
	struct io_link *l[STACKS];

	p.n = stacks;
	p.heard = &n->board->count[8 + (h == A ? STACKS : 0)];
	p.sent = &n->board->count[8 + (h == A ? 0 : STACKS)];
	for (unsigned i = 0; i < stacks; i++) {
		pthread_mutex_init(&p.stack[i].lock, NULL);
		env[i] = (struct io_env){ .arg = &p.stack[i],
					  .lock = on_lock,
					  .unlock = on_unlock,
					  .peer_down = on_down };
	}
	CHECK(dpdk_links_open(&cfg, env, l) == UW_OK);
	for (unsigned i = 0; i < stacks; i++) {
		p.stack[i].l = l[i];
		CHECK(l[i]->addr == host(h) && l[i]->doorbell);
		CHECK(i == 0 || l[i]->doorbell != l[0]->doorbell);
	}
	return &p;
}

static void reach(const struct party *p, unsigned h)
{
	struct uw_ip to = uw_ip_v4(host(h));
	struct io_link *l = p->stack[p->n - 1].l; /* any will do */

	CHECK(l->ops->resolve(l, &to, 0, WAIT_MS) == UW_OK);
}

/* False: it is full. */
static bool send_one(struct party *p, unsigned i, unsigned to, uint32_t number)
{
	struct stack *s = &p->stack[i];
	struct said said = { i, number };
	struct io_frame *f;
	bool sent;

	on_lock(s);
	f = s->l->ops->alloc(s->l);
	CHECK(f);
	memset(f->data, 0, LEN);
	io_mac_of(host(to), f->data);
	memcpy(f->data + 6, s->l->mac, 6);
	f->data[12] = 0x88;
	f->data[13] = 0xb5;
	memcpy(f->data + AT, &said, sizeof(said));
	f->len = LEN;
	sent = s->l->ops->tx(s->l, &f, 1) == 1;
	if (!sent)
		s->l->ops->free(f);
	on_unlock(s);
	return sent;
}

/* Takes in what there is, which has to be in order; how many. */
static unsigned receive(struct party *p, unsigned i)
{
	struct stack *s = &p->stack[i];
	struct io_frame *v[16];
	struct said said;
	unsigned n;

	on_lock(s);
	n = s->l->ops->rx(s->l, v, COUNT(v));
	for (unsigned k = 0; k < n; k++) {
		CHECK(v[k]->link == s->l && v[k]->len == LEN);
		memcpy(&said, v[k]->data + AT, sizeof(said));
		CHECK(said.stack < STACKS && said.number == s->next[said.stack]);
		s->next[said.stack]++;
		atomic_fetch_add(&p->heard[said.stack], 1);
		s->l->ops->free(v[k]);
	}
	on_unlock(s);
	return n;
}

static void close_all(struct party *p)
{
	for (unsigned i = 0; i < p->n; i++)
		p->stack[i].l->ops->close(p->stack[i].l);
}

static void in_step(struct board *b, int which)
{
	atomic_fetch_add(&b->count[which], 1);
	for (uint64_t end = ms_now() + WAIT_MS; atomic_load(&b->count[which]) < 2; ms_sleep(1))
		CHECK(ms_now() < end);
}

/* --- which link --- */

struct shape {
	unsigned a, b;
};

static const struct shape shapes[] = { { 1, 1 }, { 2, 2 }, { 4, 1 }, { 1, 4 }, { 3, 2 }, { 2, 3 } };

static unsigned common(const struct shape *s)
{
	return s->a < s->b ? s->a : s->b;
}

static void sleep_all(struct party *p)
{
	for (unsigned i = 0; i < p->n; i++)
		atomic_store(p->stack[i].l->doorbell, IO_ASLEEP);
}

/* Each stack says one thing. What comes is from those whose number is ours, modulo what both have.
 */
static void say_one_each(struct board *b, struct party *p, const struct shape *s, unsigned to)
{
	unsigned theirs = to == B ? s->b : s->a, c = common(s), got = 0;

	in_step(b, 0);
	sleep_all(p);
	in_step(b, 1);
	for (unsigned i = 0; i < p->n; i++)
		CHECK(send_one(p, i, to, 0));
	in_step(b, 2);
	for (unsigned i = 0; i < p->n; i++)
		CHECK((atomic_load(p->stack[i].l->doorbell) >= IO_RUNG) == (i < c));
	for (uint64_t end = ms_now() + WAIT_MS; got < theirs && ms_now() < end;) {
		for (unsigned i = 0; i < p->n; i++)
			got += receive(p, i);
	}
	for (unsigned i = 0; i < p->n; i++) {
		CHECK(!receive(p, i));
		for (unsigned k = 0; k < theirs; k++)
			CHECK(p->stack[i].next[k] == (i < c && k % c == i));
	}
	in_step(b, 3);
}

static int side_a(struct node *n, int arg)
{
	struct party *p = open_party(n, A, shapes[arg].a);

	CHECK(board_wait(n->board, 1));
	reach(p, B);
	say_one_each(n->board, p, &shapes[arg], B);
	close_all(p);
	return 0;
}

static int side_b(struct node *n, int arg)
{
	struct party *p = open_party(n, B, shapes[arg].b);

	board_step(n->board, 1);
	say_one_each(n->board, p, &shapes[arg], A);
	close_all(p);
	return 0;
}

static void each_link_has_its_stacks_queue(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(shapes); i++) {
		struct board *b = board_new();
		pid_t x = spawn(b, side_b, (int)i), y = spawn(b, side_a, (int)i);

		assert_int_equal(reap(y, 2 * WAIT_MS), 0);
		assert_int_equal(reap(x, 2 * WAIT_MS), 0);
		assert_int_equal(files_left(b), 0);
		board_free(b);
	}
}

/* --- at once --- */

struct worker {
	struct party *p;
	unsigned i, to, expected;
	pthread_t thread;
};

/* Sends all it has and takes all that it is to get. */
static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned sent = 0, got = 0;

	while (sent < BULK || got < w->expected) {
		unsigned before = sent + got;

		while (sent < BULK && (int)sent - atomic_load(&w->p->sent[w->i]) < WINDOW &&
		       send_one(w->p, w->i, w->to, sent))
			sent++;
		got += receive(w->p, w->i);
		if (before == sent + got)
			sched_yield();
	}
	return NULL;
}

static void work_all(struct party *p, const struct shape *s, unsigned to)
{
	unsigned theirs = to == B ? s->b : s->a, c = common(s);
	struct worker w[STACKS];

	for (unsigned i = 0; i < p->n; i++) {
		w[i] = (struct worker){ .p = p, .i = i, .to = to };
		for (unsigned k = 0; k < theirs; k++)
			w[i].expected += i < c && k % c == i ? BULK : 0;
		CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
	}
	for (unsigned i = 0; i < p->n; i++)
		CHECK(!pthread_join(w[i].thread, NULL));
	for (unsigned i = 0; i < p->n; i++) {
		on_lock(&p->stack[i]);
		CHECK(p->stack[i].l->stats.tx_drops == 0);
		on_unlock(&p->stack[i]);
	}
}

static int bulk_a(struct node *n, int arg)
{
	struct party *p = open_party(n, A, shapes[arg].a);

	CHECK(board_wait(n->board, 1));
	reach(p, B);
	in_step(n->board, 0);
	work_all(p, &shapes[arg], B);
	in_step(n->board, 1);
	close_all(p);
	return 0;
}

static int bulk_b(struct node *n, int arg)
{
	struct party *p = open_party(n, B, shapes[arg].b);

	board_step(n->board, 1);
	in_step(n->board, 0);
	work_all(p, &shapes[arg], A);
	in_step(n->board, 1);
	close_all(p);
	return 0;
}

static void all_stacks_at_once(void **state)
{
	(void)state;
	for (unsigned i = 1; i < COUNT(shapes); i++) {
		struct board *b = board_new();
		pid_t x = spawn(b, bulk_b, (int)i), y = spawn(b, bulk_a, (int)i);

		assert_int_equal(reap(y, 3 * WAIT_MS), 0);
		assert_int_equal(reap(x, 3 * WAIT_MS), 0);
		board_free(b);
	}
}

/* --- ends --- */

static int victim(struct node *n, int arg)
{
	struct party *p = open_party(n, B, (unsigned)arg);

	board_step(n->board, 1);
	while (p)
		receive(p, 0);
	return 0;
}

static void wait_downs(struct party *p, unsigned i)
{
	for (uint64_t end = ms_now() + WAIT_MS; !atomic_load(&p->stack[i].downs);) {
		CHECK(ms_now() < end);
		receive(p, i);
	}
}

/* One link ends early; of the others each hears that the peer is gone. */
static int survivor(struct node *n, int arg)
{
	struct party *p = open_party(n, A, 3);
	struct io_link *gone = p->stack[1].l;

	CHECK(board_wait(n->board, 1));
	reach(p, B);
	gone->ops->close(gone);
	for (unsigned i = 0; i < 100; i++)
		CHECK(send_one(p, i % 2 ? 2 : 0, B, i / 2));
	kill(arg, SIGKILL);
	wait_downs(p, 0);
	wait_downs(p, 2);
	CHECK(p->stack[1].downs == 0);
	p->stack[0].l->ops->close(p->stack[0].l);
	CHECK(p->stack[2].downs == 1);
	p->stack[2].l->ops->close(p->stack[2].l);
	/* And again: all that the first had is free. */
	p = open_party(n, A, 2);
	close_all(p);
	return 0;
}

static int end_by_end(struct node *n, int arg)
{
	pid_t v = spawn(n->board, victim, arg);
	int rc = survivor(n, (int)v);

	reap(v, WAIT_MS);
	return rc;
}

static void links_end_one_by_one(void **state)
{
	assert_int_equal(reap(spawn(*state, end_by_end, 3), 3 * WAIT_MS), 0);
}

static void also_with_a_peer_of_one_stack(void **state)
{
	assert_int_equal(reap(spawn(*state, end_by_end, 1), 3 * WAIT_MS), 0);
}

static void *close_one(void *arg)
{
	struct io_link *l = arg;

	l->ops->close(l);
	return NULL;
}

static int close_at_once(struct node *n, int arg)
{
	(void)arg;
	for (unsigned k = 0; k < 10; k++) {
		struct party *p = open_party(n, A, STACKS);
		pthread_t t[STACKS];

		for (unsigned i = 0; i < STACKS; i++)
			CHECK(!pthread_create(&t[i], NULL, close_one, p->stack[i].l));
		for (unsigned i = 0; i < STACKS; i++)
			CHECK(!pthread_join(t[i], NULL));
	}
	return 0;
}

static void links_close_at_once(void **state)
{
	assert_int_equal(reap(spawn(*state, close_at_once, 0), 3 * WAIT_MS), 0);
	assert_int_equal(files_left(*state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_link_has_its_stacks_queue),
		cmocka_unit_test(all_stacks_at_once),
		cmocka_unit_test_setup_teardown(links_end_one_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(also_with_a_peer_of_one_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(links_close_at_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
