/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that write nonsense into shared memory, and callers that want too much. Each time a victim
 * at .2 goes on exchanging frames with an honest process at .3.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "fake.h"

enum { DONE = 100, ENOUGH = 200, HOSTILE = 9 };

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

/* --- the victim and its honest peer --- */

/* Sends each frame of .3 back until all is done, and something to the hostile one now and then. */
static int victim(struct node *n, int sends)
{
	node_open_ok(n, 2);
	board_step(n->board, 1);
	while (atomic_load(&n->board->step) < DONE) {
		int seed = node_receive(n, 3, 1);

		if (seed >= 0)
			CHECK(node_send(n, 3, 60, (unsigned)seed, 1));
		pthread_mutex_lock(&n->lock);
		if (n->early) /* one of the hostile peer's: any octets may be in it */
			n->l->ops->free(n->early);
		n->early = NULL;
		pthread_mutex_unlock(&n->lock);
		if (sends)
			node_send(n, HOSTILE, 9014, 1, 1);
		atomic_store(&n->board->count[1], (int)n->downs);
	}
	n->board->word[1] = n->l->stats.peer_faults;
	node_close(n);
	return 0;
}

static int honest(struct node *n, int rounds)
{
	node_open_ok(n, 3);
	CHECK(node_resolve(n, 2) == UW_OK);
	for (int i = 0; i < rounds || atomic_load(&n->board->step) < DONE - 1; i++) {
		CHECK(node_send(n, 2, 60, (unsigned)i, 1));
		CHECK(node_receive(n, 2, WAIT_MS) == i);
		atomic_fetch_add(&n->board->count[0], 1);
	}
	node_close(n);
	return 0;
}

/* Both before and after the deed the honest peer is served. */
static void served(struct board *b)
{
	int from = atomic_load(&b->count[0]);
	uint64_t end = ms_now() + WAIT_MS;

	while (atomic_load(&b->count[0]) < from + ENOUGH && ms_now() < end)
		ms_sleep(1);
	CHECK(atomic_load(&b->count[0]) >= from + ENOUGH);
}

/* --- nonsense in shared memory --- */

static void put(struct fake *k, unsigned i, uint32_t turn, uint32_t len)
{
	struct ring_slot *s = fake_slot(k, i);

	atomic_store(&s->len, len);
	atomic_store(&s->turn, turn);
	fake_ring(k);
}

static void too_long(struct fake *k)
{
	put(k, 0, 1, 9015);
}

static void far_too_long(struct fake *k)
{
	put(k, 0, 1, UINT32_MAX);
}

static void too_short(struct fake *k)
{
	put(k, 0, 1, 13);
}

static void taken_beyond(struct fake *k)
{
	atomic_store(k->reader.taken, 0x40000000u);
}

static void second_is_bad(struct fake *k)
{
	put(k, 0, 1, 60);
	put(k, 1, 2, 0);
}

/* A frame whose octets behind the head begin at `at` of what it lends. */
static void put_rest(struct fake *k, uint32_t len, uint32_t at)
{
	atomic_store(&fake_slot(k, 0)->rest, at + 1);
	put(k, 0, 1, len);
}

static void rest_ends_behind(struct fake *k)
{
	put_rest(k, 9014, FAKE_LENDS - (9014 - RING_HEAD) + 1);
}

static void rest_begins_behind(struct fake *k)
{
	put_rest(k, RING_HEAD + 1, FAKE_LENDS);
}

static void rest_wraps(struct fake *k)
{
	put_rest(k, 9014, UINT32_MAX - 1);
}

static void rest_of_nothing(struct fake *k)
{
	put_rest(k, RING_HEAD, 0);
}

static void (*const faults[])(struct fake *k) = {
	too_long,	  far_too_long,	      too_short,  taken_beyond,	   second_is_bad,
	rest_ends_behind, rest_begins_behind, rest_wraps, rest_of_nothing,
};

static int hostile(struct node *n, int fault)
{
	struct fake k;

	CHECK(board_wait(n->board, 1));
	served(n->board);
	fake_join(&k, n->board, host(HOSTILE));
	served(n->board);
	faults[fault](&k);
	CHECK(fake_hung_up(&k, WAIT_MS));
	served(n->board);
	fake_leave(&k);
	/* It may come back, and is served like anybody else. */
	fake_join(&k, n->board, host(HOSTILE));
	served(n->board);
	fake_leave(&k);
	board_step(n->board, DONE - 1);
	return 0;
}

static void end_all(struct board *b, pid_t v, pid_t h)
{
	assert_int_equal(reap(h, 2 * WAIT_MS), 0);
	board_step(b, DONE);
	assert_int_equal(reap(v, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

static void a_fault_ends_that_lane(void **state)
{
	for (unsigned i = 0; i < COUNT(faults); i++) {
		struct board *b = i ? board_new() : *state;
		pid_t v = spawn(b, victim, 1);

		assert_true(board_wait(b, 1));
		pid_t h = spawn(b, honest, ENOUGH), k = spawn(b, hostile, (int)i);
		assert_int_equal(reap(k, 4 * WAIT_MS), 0);
		end_all(b, v, h);
		assert_int_equal(b->word[1], 1);
		assert_true(atomic_load(&b->count[1]) >= 1); /* peer_down was called */
		if (i)
			board_free(b);
	}
}

/* Any octets anywhere in its region, while the victim reads it and sends to it. */
static int scribbler(struct node *n, int rounds)
{
	unsigned rng = 12345, joins = 0;
	uint64_t end = ms_now() + 3000;

	CHECK(board_wait(n->board, 1));
	while (joins < (unsigned)rounds && ms_now() < end) {
		struct fake k;

		fake_join(&k, n->board, host(HOSTILE));
		for (unsigned i = 0; i < 3000; i++) {
			rng = rng * 1103515245u + 12345u;
			size_t at = (rng >> 2) % (joins % 2 ? k.ours.size / 4 : 8192) & ~3u;
			uint32_t what = i % 3 == 0 ? rng : i % 3 == 1 ? i % 300 : rng % 9100;

			memcpy(k.ours.base + at, &what, 4);
			put(&k, i % 7, i % 7 + 1 + (i % 5 == 0 ? rng : 0), what);
		}
		served(n->board);
		fake_leave(&k);
		joins++;
	}
	CHECK(joins >= 4);
	board_step(n->board, DONE - 1);
	return 0;
}

static void scribbling_harms_only_the_scribbler(void **state)
{
	struct board *b = *state;
	pid_t v = spawn(b, victim, 1);

	assert_true(board_wait(b, 1));
	pid_t h = spawn(b, honest, ENOUGH), k = spawn(b, scribbler, 30);
	assert_int_equal(reap(k, 4 * WAIT_MS), 0);
	end_all(b, v, h);
}

/* --- regions --- */

static int region_of(size_t size, int seals)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	CHECK(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

/* Memory of frames to send that is not as it should be. */
static void not_lent(struct board *b, uint32_t lends, int lent_fd)
{
	struct fake k;
	unsigned why;

	CHECK(fake_call(&k, b, host(HOSTILE), &why));
	k.lends = lends;
	k.lent_fd = lent_fd;
	CHECK(!fake_ready(&k, k.ours.fd));
	if (lent_fd >= 0)
		close(lent_fd);
	fake_leave(&k);
}

static void refused(struct board *b, int fd)
{
	struct fake k;
	unsigned why;

	CHECK(fake_call(&k, b, host(HOSTILE), &why));
	CHECK(!fake_ready(&k, fd));
	if (fd >= 0)
		close(fd);
	fake_leave(&k);
}

/* What could be made shorter under our feet, or is too short already, is not used. */
static int bad_regions(struct node *n, int arg)
{
	struct fake k;
	unsigned why;

	(void)arg;
	CHECK(board_wait(n->board, 1));
	CHECK(fake_call(&k, n->board, host(HOSTILE), &why));
	size_t size = k.ours.size;
	/* What we got cannot be mapped for writing. */
	CHECK(k.theirs.base &&
	      mprotect((void *)(uintptr_t)k.theirs.base, k.theirs.size, PROT_READ | PROT_WRITE));
	fake_leave(&k);
	refused(n->board, region_of(size, 0));
	refused(n->board, region_of(size, F_SEAL_GROW));
	refused(n->board, region_of(size - 4096, F_SEAL_SHRINK));
	refused(n->board, open("/dev/zero", O_RDWR | O_CLOEXEC));
	refused(n->board, -1);
	not_lent(n->board, 8192, region_of(8192, 0));
	not_lent(n->board, 8192, region_of(4096, F_SEAL_SHRINK));
	not_lent(n->board, 8192, -1);
	not_lent(n->board, 0, region_of(4096, F_SEAL_SHRINK));
	not_lent(n->board, RING_LENT_MAX + 4096, region_of(RING_LENT_MAX + 4096, F_SEAL_SHRINK));
	served(n->board);
	board_step(n->board, DONE - 1);
	return 0;
}

static void only_sealed_regions(void **state)
{
	struct board *b = *state;
	pid_t v = spawn(b, victim, 0);

	assert_true(board_wait(b, 1));
	pid_t h = spawn(b, honest, ENOUGH), k = spawn(b, bad_regions, 0);
	assert_int_equal(reap(k, 4 * WAIT_MS), 0);
	end_all(b, v, h);
}

/* --- too many --- */

enum { PEERS = 256, MORE = 40 };

static void room_for_descriptors(void)
{
	struct rlimit r = { .rlim_cur = 4096, .rlim_max = 4096 };

	setrlimit(RLIMIT_NOFILE, &r);
}

static struct fake fakes[PEERS + MORE];

/* First callers that never say READY, more than there are entries; then silent ones; then as many
 * real peers as there can be. An honest one gets in each time but the last. */
static int crowd(struct node *n, int arg)
{
	int silent[MORE];
	unsigned why;

	(void)arg;
	room_for_descriptors();
	CHECK(board_wait(n->board, 1));
	for (unsigned i = 0; i < PEERS + MORE; i++)
		CHECK(fake_call(&fakes[i], n->board, htonl(0x7f010001 + i), &why));
	for (unsigned i = 0; i < MORE; i++)
		silent[i] = fake_connect(n->board);
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	for (unsigned i = 0; i < PEERS + MORE; i++)
		fake_leave(&fakes[i]);
	for (unsigned i = 0; i < MORE; i++)
		close(silent[i]);

	for (unsigned i = 0; i < PEERS; i++)
		fake_join(&fakes[i], n->board, htonl(0x7f010001 + i));
	CHECK(!fake_call(&fakes[PEERS], n->board, host(77), &why) && why == MSG_FULL);
	board_step(n->board, 4);
	CHECK(board_wait(n->board, 5));
	fake_leave(&fakes[0]);
	board_step(n->board, 6);
	CHECK(board_wait(n->board, 7));
	return 0;
}

static void resolve_two(void *arg)
{
	CHECK(node_resolve(arg, 2) == UW_E_NOMEM);
}

static int in_a_crowd(struct node *n, int arg)
{
	char said[512];

	(void)arg;
	node_open_ok(n, 4);
	CHECK(board_wait(n->board, 2));
	uint64_t start = ms_now();
	CHECK(node_resolve(n, 2) == UW_OK);
	CHECK(ms_now() - start < 1000);
	node_close(n);
	board_step(n->board, 3);
	node_open_ok(n, 4);
	CHECK(board_wait(n->board, 4));
	capture_stderr(resolve_two, n, said, sizeof(said));
	CHECK(strstr(said, "has 256 memif peers already"));
	capture_stderr(resolve_two, n, said, sizeof(said));
	CHECK(!*said); /* once a minute */
	board_step(n->board, 5);
	CHECK(board_wait(n->board, 6));
	uint64_t end = ms_now() + WAIT_MS;
	while (node_resolve(n, 2) != UW_OK)
		CHECK(ms_now() < end);
	board_step(n->board, 7);
	node_close(n);
	return 0;
}

static int popular(struct node *n, int arg)
{
	(void)arg;
	room_for_descriptors();
	node_open_ok(n, 2);
	board_step(n->board, 1);
	while (atomic_load(&n->board->step) < 7)
		node_receive(n, 4, 1);
	node_close(n);
	return 0;
}

static void a_crowd_blocks_nobody(void **state)
{
	struct board *b = *state;
	pid_t v = spawn(b, popular, 0);

	assert_true(board_wait(b, 1));
	pid_t h = spawn(b, in_a_crowd, 0), k = spawn(b, crowd, 0);
	assert_int_equal(reap(h, 4 * WAIT_MS), 0);
	assert_int_equal(reap(k, WAIT_MS), 0);
	assert_int_equal(reap(v, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- no descriptors --- */

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The limit that there was. */
#define TRIES 5 /* a thread of ours may have had one for a moment */

static struct rlimit use_up_descriptors(void)
{
	struct rlimit r, few;

	CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0);
	few = (struct rlimit){ .rlim_cur = 64, .rlim_max = r.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	for (unsigned i = 0; i < TRIES; i++) {
		while (dup(0) >= 0)
			;
		ms_sleep(10);
	}
	return r;
}

/* It neither spins while a caller waits nor lets it wait without a word. */
static int no_fds(struct node *n, int arg)
{
	(void)arg;
	node_open_ok(n, 2);
	struct rlimit r = use_up_descriptors();
	uint64_t cpu = cpu_ms();
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	ms_sleep(300);
	CHECK(cpu_ms() - cpu < 150);
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
	board_step(n->board, 3);
	CHECK(node_receive(n, 3, WAIT_MS) == 33);
	node_close(n);
	return 0;
}

static int wants_in(struct node *n, int arg)
{
	char said[512];

	(void)arg;
	node_open_ok(n, 3);
	CHECK(board_wait(n->board, 1));
	capture_stderr(resolve_two, n, said, sizeof(said));
	CHECK(strstr(said, "has no file descriptor left for us"));
	int waits = fake_connect(n->board); /* it has to look at this one again and again */
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	CHECK(node_resolve(n, 2) == UW_OK);
	CHECK(node_send(n, 2, 60, 33, 1));
	close(waits);
	node_close(n);
	return 0;
}

static void both_end_well(struct board *b, int (*one)(struct node *, int),
			  int (*other)(struct node *, int))
{
	pid_t v = spawn(b, one, 0), p = spawn(b, other, 0);

	assert_int_equal(reap(p, 2 * WAIT_MS), 0);
	assert_int_equal(reap(v, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

static void without_descriptors(void **state)
{
	both_end_well(*state, no_fds, wants_in);
}

/* The last ones are taken between HELLO and READY, whose descriptors are lost then. */
static int no_fds_for_ready(struct node *n, int arg)
{
	(void)arg;
	node_open_ok(n, 2);
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	struct rlimit r = use_up_descriptors();
	board_step(n->board, 3);
	CHECK(board_wait(n->board, 4));
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
	node_close(n);
	return 0;
}

static int says_ready(struct node *n, int arg)
{
	struct fake k;
	unsigned why;

	(void)arg;
	CHECK(board_wait(n->board, 1));
	CHECK(fake_call(&k, n->board, host(HOSTILE), &why));
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	CHECK(!fake_ready(&k, k.ours.fd));
	CHECK(k.why == MSG_NO_FDS);
	CHECK(fake_hung_up(&k, WAIT_MS));
	fake_leave(&k);
	board_step(n->board, 4);
	return 0;
}

static void descriptors_of_ready_are_lost(void **state)
{
	both_end_well(*state, no_fds_for_ready, says_ready);
}

/* --- a peer that hung, and is back --- */

static unsigned take_all(struct fake *k)
{
	unsigned n = 0;

	for (; ring_look(&k->reader); n++)
		ring_step(&k->reader);
	ring_tell(&k->reader);
	return n;
}

/* Frames wait for a peer that is late again just as if it had never hung. */
static int hung_once(struct node *n, int arg)
{
	uint64_t end = ms_now() + WAIT_MS, drops;
	unsigned waits;
	struct fake k;

	(void)arg;
	node_open_ok(n, 2);
	fake_join(&k, n->board, host(HOSTILE));
	CHECK(node_resolve(n, HOSTILE) == UW_OK);
	while (!n->l->stats.tx_drops && ms_now() < end)
		node_send(n, HOSTILE, 60, 1, 1);
	CHECK(n->l->stats.tx_drops);
	waits = take_all(&k);
	CHECK(node_send(n, HOSTILE, 60, 2, 1));
	CHECK(take_all(&k) == 1);
	drops = n->l->stats.tx_drops;
	for (unsigned i = 0; i < waits + 10; i++)
		CHECK(node_send(n, HOSTILE, 60, 3, 1));
	CHECK(take_all(&k) == waits);
	CHECK(node_send(n, HOSTILE, 60, 4, 1));
	CHECK(take_all(&k) == 11 && n->l->stats.tx_drops == drops);
	node_close(n);
	fake_leave(&k);
	return 0;
}

static void a_peer_that_is_back_is_waited_for(void **state)
{
	assert_int_equal(reap(spawn(*state, hung_once, 0), WAIT_MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fault_ends_that_lane, setup, teardown),
		cmocka_unit_test_setup_teardown(scribbling_harms_only_the_scribbler, setup,
						teardown),
		cmocka_unit_test_setup_teardown(only_sealed_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crowd_blocks_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(without_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_of_ready_are_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_is_back_is_waited_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
