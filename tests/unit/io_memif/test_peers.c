/* SPDX-License-Identifier: BSD-3-Clause */
/* How peers leave, die, come back, sleep and hang. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "io_dpdk/node.h"

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

static void drop(struct node *n, struct io_frame *f)
{
	while (f) {
		struct io_frame *next = f->next;

		n->l->ops->free(f);
		f = next;
	}
}

/* For a datagram. */
static bool has_room_behind(struct node *n, uint32_t addr, unsigned frames)
{
	struct uw_ip ip = uw_ip_v4(addr);

	pthread_mutex_lock(&n->lock);
	bool room = n->l->ops->has_room(n->l, &ip, frames);
	pthread_mutex_unlock(&n->lock);
	return room;
}

static bool has_room_at(struct node *n, uint32_t addr)
{
	return has_room_behind(n, addr, 0);
}

static bool has_room(struct node *n, unsigned to)
{
	return has_room_at(n, host(to));
}

/* --- leaving --- */

enum { LAST_WORDS = 100 };

/* Says much and closes at once: all of it must arrive before the news that it is gone. */
static int leaver(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(board_wait(n->board, 1));
	CHECK(node_resolve(n, 2) == UW_OK);
	for (int i = 0; i < LAST_WORDS; i++)
		CHECK(node_send(n, 2, 1514, (unsigned)i, 1));
	node_close(n);
	return 0;
}

static int listener(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	for (int i = 0; i < LAST_WORDS; i++) {
		CHECK(node_receive(n, 3, WAIT_MS) == i);
		CHECK(n->downs == 0);
		if (i == LAST_WORDS / 2) /* it has left by now */
			ms_sleep(100);
		CHECK(has_room(n, 3)); /* what is sent to it is lost */
	}
	uint64_t start = ms_now();
	while (n->downs == 0 && ms_now() - start < 1000)
		CHECK(node_receive(n, 3, 1) == -1); /* an engine polls on */
	CHECK(n->downs == 1 && n->down[0] == host(3));
	CHECK(node_resolve(n, 3) == UW_E_UNREACHABLE);
	CHECK(node_send(n, 3, 60, 1, 1)); /* taken and dropped */
	CHECK(n->l->stats.tx_drops == 1);
	node_close(n);
	return 0;
}

static void last_words_arrive(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, listener, 2), c = spawn(b, leaver, 3);

	assert_int_equal(reap(c, WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* A peer that nobody polls for does not hold up the one that leaves. */
static int unpolled(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(node_wait_down(n, 3, WAIT_MS));
	node_close(n);
	return 0;
}

static void leaving_is_bounded(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, unpolled, 2), c = spawn(b, leaver, 3);

	assert_int_equal(reap(c, WAIT_MS), 0); /* node_close checks the time */
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- dying --- */

enum { CALLS = 0, IS_CALLED = 1 };

/* Killed while it sends and receives as fast as it can. */
static int mortal(struct node *n, int role)
{
	node_open_ok(n, 3);
	CHECK(n->l->ops->claim_port(n->l, htons(4000), IO_V4) == UW_OK);
	if (role == CALLS)
		CHECK(node_resolve(n, 2) == UW_OK);
	atomic_fetch_add(&n->board->count[0], 1);
	for (unsigned i = 0;; i++) {
		node_send(n, 2, 9000, i, 1);
		node_receive(n, 2, 0);
	}
}

static unsigned frames_free(struct node *n)
{
	static struct io_frame *v[1 << 14];
	unsigned got = 0, all;

	pthread_mutex_lock(&n->lock);
	while (got < COUNT(v) && (v[got] = n->l->ops->alloc(n->l)))
		got++;
	for (all = got; got; got--)
		n->l->ops->free(v[got - 1]);
	pthread_mutex_unlock(&n->lock);
	return all;
}

/* Both ways at full speed with one process at .3 after another, none of which says good-bye. */
static int survivor(struct node *n, int rounds)
{
	unsigned fds = 0, frames;
	uint64_t took = 0;

	node_open_ok(n, 2);
	frames = frames_free(n);
	board_step(n->board, 1);
	for (int i = 0; i < rounds; i++) {
		uint64_t end = ms_now() + WAIT_MS;

		while (atomic_load(&n->board->count[0]) <= i && ms_now() < end)
			ms_sleep(1);
		if (i % 2 == IS_CALLED)
			CHECK(node_resolve(n, 3) == UW_OK);
		board_step(n->board, 2 * i + 2);
		while ((int)n->downs <= i && ms_now() < end) {
			node_send(n, 3, 9000, 1, 2);
			took += node_receive(n, 3, 0) >= 0;
		}
		CHECK((int)n->downs == i + 1 && n->down[i] == host(3));
		uw_status st = node_resolve(n, 3);
		CHECK(st == UW_E_UNREACHABLE);
		if (i == 1) /* a port of each kind was made: from here on nothing may grow */
			fds = fds_open();
		board_step(n->board, 2 * i + 3);
	}
	CHECK(took > 0);
	CHECK(rounds < 2 || fds_open() == fds);
	CHECK(frames_free(n) == frames);
	board_step(n->board, 10000);
	CHECK(board_wait(n->board, 10001));
	node_close(n);
	return 0;
}

/* UWARP_TEST_KILLS asks for more of them. */
static void killed_peers_are_mourned(void **state)
{
	struct board *b = *state;
	const char *more = getenv("UWARP_TEST_KILLS");
	int kills = more ? atoi(more) : 12;
	pid_t a = spawn(b, survivor, kills);

	assert_true(kills < DOWN_MAX);
	assert_true(board_wait(b, 1));
	for (int i = 0; i < kills; i++) {
		pid_t c = spawn(b, mortal, i % 2);

		assert_true(board_wait(b, 2 * i + 2));
		ms_sleep((unsigned)i % 7);
		kill(c, SIGKILL);
		assert_int_equal(reap(c, WAIT_MS), 1000 + SIGKILL);
		assert_true(board_wait(b, 2 * i + 3));
	}
	/* What the dead left was swept by the one that lives: only its own files are there. */
	assert_true(board_wait(b, 10000));
	for (uint64_t end = ms_now() + WAIT_MS; files_left(b) != 2 && ms_now() < end;)
		ms_sleep(50);
	assert_int_equal(files_left(b), 2);
	board_step(b, 10001);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* Killed at any moment of a join, from either side. */
static int newcomer(struct node *n, int role)
{
	node_open_ok(n, 3);
	atomic_fetch_add(&n->board->count[0], 1);
	if (role == IS_CALLED)
		pause();
	while (atomic_load(&n->board->step) < 2) {
		node_resolve(n, 2);
		node_send(n, 2, 1514, 1, 1);
	}
	return 0;
}

static int welcomer(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	while (atomic_load(&n->board->step) < 2) {
		uint32_t addr = host(3);

		if (n->board->word[1])
			node_way(n, &addr, 0, 20);
		for (int i = 0; i < 50; i++)
			node_receive(n, 3, 0);
	}
	/* After all that a friend is as welcome as the first, behind what the dead sent last. */
	uint64_t end = ms_now() + WAIT_MS;
	while (node_receive(n, 4, WAIT_MS) != 44) {
		CHECK(ms_now() < end);
		node_receive(n, 3, 0);
	}
	node_close(n);
	return 0;
}

static int friend(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(node_resolve(n, 2) == UW_OK);
	CHECK(node_send(n, 2, 60, 44, 1));
	node_close(n);
	return 0;
}

static void killed_while_they_join(void **state)
{
	struct board *b = *state;
	const char *more = getenv("UWARP_TEST_KILLS");
	int kills = more ? atoi(more) : 30;
	pid_t a = spawn(b, welcomer, 2);

	assert_true(board_wait(b, 1));
	for (int i = 0; i < kills; i++) {
		int role = i % 2;
		uint64_t end = ms_now() + WAIT_MS;

		b->word[1] = (uint64_t)role;
		pid_t c = spawn(b, newcomer, role);
		while (atomic_load(&b->count[0]) <= i && ms_now() < end)
			sched_yield();
		usleep((unsigned)(i * 7919 % 4000));
		kill(c, SIGKILL);
		assert_int_equal(reap(c, WAIT_MS), 1000 + SIGKILL);
	}
	board_step(b, 2);
	assert_int_equal(reap(spawn(b, friend, 4), WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- a forked child that lives on --- */

static int forker(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(n->l->ops->claim_port(n->l, htons(4001), IO_V4) == UW_OK);
	CHECK(node_resolve(n, 2) == UW_OK);
	pid_t child = fork();
	if (child == 0) {
		uint32_t addr = host(2);

		/* The parent's link is not the child's, and cannot be harmed by it. */
		CHECK(node_way(n, &addr, 0, 100) == UW_E_STATE);
		n->l->ops->close(n->l);
		CHECK(node_open(n, 0, 0) != UW_OK);
		pause();
		_exit(0);
	}
	n->board->word[0] = (uint64_t)child;
	ms_sleep(50);
	CHECK(node_send(n, 2, 60, 5, 1));
	CHECK(board_wait(n->board, 2));
	kill(getpid(), SIGKILL);
	return 1;
}

static int forkers_peer(struct node *n, int me)
{
	uint32_t addr;

	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(node_receive(n, 3, WAIT_MS) == 5);
	board_step(n->board, 2);
	CHECK(node_wait_down(n, 3, 1000));
	addr = htonl(INADDR_LOOPBACK);
	CHECK(node_way(n, &addr, htons(4001), 1000) == UW_E_REFUSED);
	board_step(n->board, 3);
	CHECK(board_wait(n->board, 4));
	CHECK(node_receive(n, 3, WAIT_MS) == 6);
	node_close(n);
	return 0;
}

static int successor(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(n->l->ops->claim_port(n->l, htons(4001), IO_V4) == UW_OK);
	CHECK(node_resolve(n, 2) == UW_OK);
	CHECK(node_send(n, 2, 60, 6, 1));
	node_close(n);
	return 0;
}

static void forked_children_hold_nothing(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, forkers_peer, 2);

	assert_true(board_wait(b, 1));
	pid_t c = spawn(b, forker, 3);
	assert_int_equal(reap(c, WAIT_MS), 1000 + SIGKILL);
	assert_true(board_wait(b, 3));
	assert_int_equal(kill((pid_t)b->word[0], 0), 0); /* the child is alive all along */
	board_step(b, 4);
	assert_int_equal(reap(spawn(b, successor, 3), WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
	kill((pid_t)b->word[0], SIGKILL);
	assert_int_equal(files_left(b), 0);
}

/* --- sleeping --- */

/* As an engine sleeps: say so, look once more, wait until rung. */
static bool engine_sleeps(struct node *n, unsigned ms)
{
	_Atomic uint32_t *bell = n->l->doorbell;
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	atomic_store_explicit(bell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	pthread_mutex_lock(&n->lock);
	bool more = n->l->ops->pending(n->l);
	pthread_mutex_unlock(&n->lock);
	if (!more)
		syscall(SYS_futex, bell, FUTEX_WAIT, IO_ASLEEP, &t, NULL, 0);
	return atomic_exchange(bell, IO_AWAKE) != IO_ASLEEP || more;
}

enum { WAKE_UPS = 200 };

static int sleeper(struct node *n, int me)
{
	int next = 0;

	node_open_ok(n, (unsigned)me);
	CHECK(node_resolve(n, 2) == UW_OK);
	board_step(n->board, 2);
	while (next < WAKE_UPS) {
		struct io_frame *v[32];
		int before = next;

		CHECK(engine_sleeps(n, 5000)); /* false: nobody rang */
		pthread_mutex_lock(&n->lock);
		unsigned got = n->l->ops->rx(n->l, v, 32);
		for (unsigned i = 0; i < got; i++) {
			uint32_t seed;

			memcpy(&seed, v[i]->data + 14, 4);
			CHECK((int)seed == next++);
			drop(n, v[i]);
		}
		pthread_mutex_unlock(&n->lock);
		if (next > before)
			CHECK(node_send(n, 2, 60, (unsigned)next - 1, 1));
	}
	node_close(n);
	return 0;
}

static int waker(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	for (int i = 0; i < WAKE_UPS; i++) {
		if (i % 10 == 0)
			ms_sleep(3); /* deep asleep by now */
		CHECK(node_send(n, 3, 60, (unsigned)i, 1));
		CHECK(node_receive(n, 3, WAIT_MS) == i);
	}
	CHECK(n->l->stats.rings >= WAKE_UPS / 10);
	CHECK(node_wait_down(n, 3, WAIT_MS));
	node_close(n);
	return 0;
}

static void the_doorbell_wakes(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, waker, 2);

	assert_true(board_wait(b, 1));
	pid_t c = spawn(b, sleeper, 3);
	assert_int_equal(reap(c, 2 * WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
}

/* pending() takes nothing away. */
static int peeker(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&n->lock);
		CHECK(n->l->ops->pending(n->l));
		pthread_mutex_unlock(&n->lock);
	}
	for (int i = 0; i < 50; i++)
		CHECK(node_receive(n, 3, WAIT_MS) == i);
	pthread_mutex_lock(&n->lock);
	CHECK(!n->l->ops->pending(n->l));
	pthread_mutex_unlock(&n->lock);
	board_step(n->board, 3);
	node_close(n);
	return 0;
}

static int peekers_peer(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(node_resolve(n, 2) == UW_OK);
	for (int i = 0; i < 50; i++)
		CHECK(node_send(n, 2, 60, (unsigned)i, 1));
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	node_close(n);
	return 0;
}

static void pending_takes_nothing(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, peeker, 2);

	assert_true(board_wait(b, 1));
	pid_t c = spawn(b, peekers_peer, 3);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
}

/* --- hanging --- */

static int hangs(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	atomic_fetch_add(&n->board->count[0], 1);
	while (atomic_load(&n->board->step) < 3) /* stopped meanwhile; nobody polls either */
		ms_sleep(1);
	/* What was dropped is gone, but the lane works. */
	int seed = node_receive(n, 2, WAIT_MS);
	CHECK(seed == 0);
	while (seed >= 0 && seed != 99999)
		seed = node_receive(n, 2, WAIT_MS);
	CHECK(seed == 99999);
	board_step(n->board, 4);
	node_close(n);
	return 0;
}

static int lively(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	atomic_fetch_add(&n->board->count[0], 1);
	for (int i = 0; i < 200; i++)
		CHECK(node_receive(n, 2, WAIT_MS) == i);
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 4));
	node_close(n);
	return 0;
}

static int sends_to_both(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	while (atomic_load(&n->board->count[0]) < 2)
		ms_sleep(1);
	CHECK(node_resolve(n, 3) == UW_OK && node_resolve(n, 4) == UW_OK);
	board_step(n->board, 1);
	stop((pid_t)n->board->word[0]);
	uint64_t end = ms_now() + WAIT_MS;
	unsigned refused = 0;
	for (unsigned i = 0; i < 200; i++) {
		/* As an engine does that keeps order: what was refused is offered again first. */
		for (unsigned burst = 0; burst < 5; burst++)
			while (!node_send(n, 3, 9000, i * 5 + burst, 1) && ms_now() < end)
				refused++;
		CHECK(node_send(n, 4, 1000, i, 1));
	}
	CHECK(ms_now() < end - WAIT_MS + 1000);
	CHECK(board_wait(n->board, 2));
	CHECK(refused > 0 && n->l->stats.tx_full > 0); /* at first it was believed to come back */
	CHECK(n->l->stats.tx_drops > 0);
	kill((pid_t)n->board->word[0], SIGCONT);
	board_step(n->board, 3);
	while (atomic_load(&n->board->step) < 4 && ms_now() < end + WAIT_MS) {
		node_send(n, 3, 60, 99999, 1);
		CHECK(node_receive(n, 3, 1) == -1);
	}
	node_close(n);
	return 0;
}

static void a_hung_peer_holds_up_nobody(void **state)
{
	struct board *b = *state;
	pid_t hung = spawn(b, hangs, 3), alive = spawn(b, lively, 4);

	b->word[0] = (uint64_t)hung;
	pid_t a = spawn(b, sends_to_both, 2);
	assert_int_equal(reap(a, 2 * WAIT_MS), 0);
	assert_int_equal(reap(alive, WAIT_MS), 0);
	assert_int_equal(reap(hung, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* Nobody sends a datagram again: it waits for room, longer than TCP's frames do. Returns how many
 * were sent, numbered from `first` on. */
static unsigned fill(struct node *n, unsigned to, unsigned first)
{
	unsigned i = first;

	while (has_room(n, to))
		CHECK(node_send(n, to, 1000, i++, 1));
	return i - first;
}

enum { LATE_MS = 1500 };

static int sends_datagrams(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(board_wait(n->board, 1));
	CHECK(node_resolve(n, 3) == UW_OK);
	unsigned sent = fill(n, 3, 0);
	CHECK(sent > 0 && n->l->stats.tx_drops == 0);
	CHECK(!has_room_at(n, htonl(0xef010203))); /* a group waits, too */
	/* Who did not look itself does not know how long it was. */
	CHECK(node_send(n, 3, 1000, sent, 1));
	ms_sleep(LATE_MS);
	CHECK(!has_room(n, 3) && n->l->stats.tx_drops == 0);
	for (uint64_t end = ms_now() + LATE_MS + 500; ms_now() < end; ms_sleep(1))
		CHECK(!has_room(n, 3));
	/* One of TCP's that waited is given up before. */
	CHECK(node_receive(n, 3, 1) == -1 && n->l->stats.tx_drops == 1);
	n->board->word[1] = sent;
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	CHECK(fill(n, 3, sent) == sent && n->l->stats.tx_drops == 1);
	/* That peer takes nothing, for good: from then on all is lost. */
	uint64_t start = ms_now();
	for (unsigned looks = 0; !has_room(n, 3) && looks < WAIT_MS; looks++)
		ms_sleep(1);
	CHECK(ms_now() - start >= LATE_MS && has_room(n, 3));
	CHECK(node_send(n, 3, 1000, 0, 1) && n->l->stats.tx_drops == 2);
	board_step(n->board, 4);
	node_close(n);
	return 0;
}

static int receives_late(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	for (unsigned i = 0; i < n->board->word[1]; i++)
		CHECK(node_receive(n, 2, WAIT_MS) == (int)i);
	CHECK(node_receive(n, 2, 1) == -1);
	board_step(n->board, 3);
	CHECK(board_wait(n->board, 4));
	node_close(n);
	return 0;
}

static void datagrams_wait_for_longer(void **state)
{
	struct board *b = *state;
	pid_t late = spawn(b, receives_late, 3), a = spawn(b, sends_datagrams, 2);

	assert_int_equal(reap(a, 2 * WAIT_MS), 0);
	assert_int_equal(reap(late, WAIT_MS), 0);
}

/* As TCP with many connections: whatever the link takes. Returns how many datagrams would have had
 * room meanwhile. */
static unsigned among_more(struct node *n, unsigned rounds)
{
	static unsigned next;
	unsigned got = 0;

	for (unsigned i = 0; i < rounds; i++) {
		while (node_send(n, 3, 1000, next, 1))
			next++;
		got += has_room(n, 3);
	}
	return got;
}

enum { AMONG = 300, BEHIND_MAX = 32, FOR_OTHERS = 500 };

/* Frames that wait for room, which go on and on, do not keep datagrams back; but few are in the
 * link where the peer takes nothing any more. */
static int sends_among_more(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	CHECK(board_wait(n->board, 1));
	CHECK(node_resolve(n, 3) == UW_OK);
	CHECK(has_room_behind(n, host(3), FOR_OTHERS));
	for (uint64_t end = ms_now() + WAIT_MS; ms_now() < end && n->board->word[1] < AMONG;)
		n->board->word[1] += among_more(n, 100);
	CHECK(n->board->word[1] >= AMONG);
	stop((pid_t)n->board->word[0]);
	CHECK(among_more(n, 1000) <= BEHIND_MAX);
	CHECK(!has_room(n, 3) && has_room_at(n, htonl(0xef010203))); /* a group loses its copy */
	kill((pid_t)n->board->word[0], SIGCONT);
	board_step(n->board, 2);
	node_close(n);
	return 0;
}

static int receives_slowly(struct node *n, int me)
{
	int next = 0, got;

	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	while (atomic_load(&n->board->step) < 2) {
		got = node_receive(n, 2, 0);
		CHECK(got < 0 || got == next++); /* those that waited were not overtaken */
		usleep(20);
	}
	while (node_receive(n, 2, 10) >= 0)
		;
	node_close(n);
	return 0;
}

static void datagrams_have_their_turn(void **state)
{
	struct board *b = *state;
	pid_t slow = spawn(b, receives_slowly, 3), a;

	b->word[0] = (uint64_t)slow;
	a = spawn(b, sends_among_more, 2);
	assert_int_equal(reap(a, 2 * WAIT_MS), 0);
	assert_int_equal(reap(slow, WAIT_MS), 0);
}

/* A process that is stopped answers no call; the caller does not wait for ever. */
static int calls_stopped(struct node *n, int me)
{
	uint32_t addr = host(3);

	node_open_ok(n, (unsigned)me);
	stop((pid_t)n->board->word[0]);
	uint64_t start = ms_now();
	CHECK(node_way(n, &addr, 0, 300) == UW_E_TIMEOUT);
	CHECK(ms_now() - start >= 300 && ms_now() - start < 1000);
	kill((pid_t)n->board->word[0], SIGCONT);
	CHECK(node_resolve(n, 3) == UW_OK);
	CHECK(node_send(n, 3, 60, 3, 1));
	CHECK(board_wait(n->board, 2));
	node_close(n);
	return 0;
}

static int is_stopped(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	board_step(n->board, 1);
	CHECK(node_receive(n, 2, WAIT_MS) == 3);
	board_step(n->board, 2);
	node_close(n);
	return 0;
}

static void a_stopped_peer_times_out(void **state)
{
	struct board *b = *state;
	pid_t stopped = spawn(b, is_stopped, 3);

	b->word[0] = (uint64_t)stopped;
	assert_true(board_wait(b, 1));
	assert_int_equal(reap(spawn(b, calls_stopped, 2), WAIT_MS), 0);
	assert_int_equal(reap(stopped, WAIT_MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(last_words_arrive, setup, teardown),
		cmocka_unit_test_setup_teardown(leaving_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_peers_are_mourned, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_while_they_join, setup, teardown),
		cmocka_unit_test_setup_teardown(forked_children_hold_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(the_doorbell_wakes, setup, teardown),
		cmocka_unit_test_setup_teardown(pending_takes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hung_peer_holds_up_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(datagrams_wait_for_longer, setup, teardown),
		cmocka_unit_test_setup_teardown(datagrams_have_their_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stopped_peer_times_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
