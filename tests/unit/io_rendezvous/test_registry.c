/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, ports and the run directory: who has what, and what is left when they are gone. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

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

/* What open says when it fails; the status in board->word[15]. */
struct attempt {
	struct node *n;
	struct dpdk_config cfg;
	uw_status st;
};

static void nothing(void *arg)
{
	(void)arg;
}

static void try_open(void *arg)
{
	struct attempt *a = arg;
	struct io_env env = { .arg = a->n, .lock = nothing, .unlock = nothing };

	a->st = dpdk_link_open(&a->cfg, &env, &a->n->l);
}

static bool fails(struct node *n, struct dpdk_config cfg, uw_status want, const char *text)
{
	struct attempt a = { .n = n, .cfg = cfg };
	char said[512];

	capture_stderr(try_open, &a, said, sizeof(said));
	if (a.st != want || strncmp(said, "uwarp: ", 7) || !strstr(said, text) ||
	    strchr(said, '\n') != said + strlen(said) - 1)
		fprintf(stderr, "status %d, not %d, said: %s", (int)a.st, (int)want, said);
	return a.st == want && strncmp(said, "uwarp: ", 7) == 0 && strstr(said, text) &&
	       strchr(said, '\n') == said + strlen(said) - 1; /* one line */
}

static struct dpdk_config config(struct node *n, unsigned h)
{
	return (struct dpdk_config){
		.link = "memif", .addr = h ? host(h) : 0, .run_dir = n->board->dir, .addr_fd = -1
	};
}

/* --- addresses --- */

static int keeps(struct node *n, int h)
{
	node_open_ok(n, (unsigned)h);
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	node_close(n);
	return 0;
}

static int takes_in_vain(struct node *n, int h)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "process %d:", (int)n->board->word[0]);
	CHECK(fails(n, config(n, (unsigned)h), UW_E_ADDR_IN_USE, pid));
	board_step(n->board, 2);
	ms_sleep(300);
	node_open_ok(n, (unsigned)h); /* free again */
	node_close(n);
	return 0;
}

static void an_address_has_one_owner(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, keeps, 2);

	b->word[0] = (uint64_t)a;
	assert_true(board_wait(b, 1));
	assert_int_equal(reap(spawn(b, takes_in_vain, 2), WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

static int takes_any(struct node *n, int want)
{
	CHECK(node_open(n, 0, 0) == UW_OK);
	CHECK(n->addr == host((unsigned)want));
	atomic_fetch_add(&n->board->count[0], 1);
	CHECK(board_wait(n->board, 1));
	node_close(n);
	return 0;
}

static void an_address_is_found(void **state)
{
	struct board *b = *state;
	pid_t pid[3];

	for (int i = 0; i < 3; i++) {
		pid[i] = spawn(b, takes_any, 2 + i);
		uint64_t end = ms_now() + WAIT_MS;
		while (atomic_load(&b->count[0]) <= i && ms_now() < end)
			ms_sleep(1);
	}
	board_step(b, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reap(pid[i], WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* The one that starts us has taken the address and hands us its lock. */
static int reserve(struct board *b, const char *addr)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/ctl", b->dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/ctl/%s.lock", b->dir, addr);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static int has_reserved(struct node *n, int fd)
{
	struct attempt a = { .n = n, .cfg = config(n, 7) };
	int other = n->board->count[1];

	CHECK(fails(n, a.cfg, UW_E_ADDR_IN_USE, "127.0.0.7 is in use"));
	a.cfg.addr_fd = fd;
	if (other) { /* a second one with the same lock */
		char pid[32];

		snprintf(pid, sizeof(pid), "process %d:", (int)n->board->word[0]);
		CHECK(fails(n, a.cfg, UW_E_ADDR_IN_USE, pid));
		a.cfg.addr_auto = true; /* nobody asked for just this one */
		try_open(&a);
		CHECK(a.st == UW_OK && n->l->addr == host(2));
		node_close(n);
		return 0;
	}
	try_open(&a);
	CHECK(a.st == UW_OK && n->l->addr == host(7));
	n->board->word[0] = (uint64_t)getpid();
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	node_close(n);
	/* Closed and opened again, as programs do. */
	try_open(&a);
	CHECK(a.st == UW_OK && n->l->addr == host(7));
	node_close(n);
	return 0;
}

static void a_reserved_address(void **state)
{
	struct board *b = *state;
	int fd = reserve(b, "127.0.0.7");
	pid_t a = spawn(b, has_reserved, fd);

	assert_true(board_wait(b, 1));
	atomic_store(&b->count[1], 1);
	assert_int_equal(reap(spawn(b, has_reserved, fd), WAIT_MS), 0);
	board_step(b, 2);
	assert_int_equal(reap(a, WAIT_MS), 0);
	close(fd);
	assert_int_equal(files_left(b), 0);
}

/* --- ports --- */

static int first_owner(struct node *n, int me)
{
	uint32_t addr = htonl(INADDR_LOOPBACK);

	node_open_ok(n, (unsigned)me);
	CHECK(node_way(n, &addr, htons(18515), 1000) == UW_E_REFUSED);
	CHECK(n->l->ops->claim_port(n->l, htons(18515), IO_V4) == UW_OK);
	CHECK(n->l->ops->claim_port(n->l, htons(18515), IO_V4) == UW_OK); /* counted */
	n->l->ops->release_port(n->l, htons(18515), IO_V4);
	CHECK(n->l->ops->claim_port(n->l, htons(1), IO_V4) == UW_OK);
	addr = htonl(INADDR_LOOPBACK);
	CHECK(node_way(n, &addr, htons(18515), 1000) == UW_OK && addr == host(2));
	board_step(n->board, 1);
	CHECK(node_receive(n, 3, WAIT_MS) == 1);
	n->l->ops->release_port(n->l, htons(18515), IO_V4);
	board_step(n->board, 2);
	CHECK(board_wait(n->board, 3));
	/* Killed with port 1 still claimed. */
	kill(getpid(), SIGKILL);
	return 1;
}

static int second_owner(struct node *n, int me)
{
	uint32_t addr = htonl(INADDR_LOOPBACK);

	node_open_ok(n, (unsigned)me);
	CHECK(board_wait(n->board, 1));
	CHECK(n->l->ops->claim_port(n->l, htons(18515), IO_V4) == UW_E_ADDR_IN_USE);
	CHECK(n->l->ops->claim_port(n->l, htons(18516), IO_V4) == UW_OK);
	CHECK(node_way(n, &addr, htons(18515), 5000) == UW_OK && addr == host(2));
	CHECK(node_send(n, 2, 60, 1, 1));
	CHECK(board_wait(n->board, 2));
	addr = htonl(INADDR_LOOPBACK);
	CHECK(node_way(n, &addr, htons(18515), 5000) == UW_E_REFUSED);
	CHECK(n->l->ops->claim_port(n->l, htons(18515), IO_V4) == UW_OK);
	CHECK(n->l->ops->claim_port(n->l, htons(1), IO_V4) == UW_E_ADDR_IN_USE);
	board_step(n->board, 3);
	CHECK(node_wait_down(n, 2, WAIT_MS));
	addr = htonl(INADDR_LOOPBACK);
	CHECK(node_way(n, &addr, htons(1), 5000) == UW_E_REFUSED);
	CHECK(n->l->ops->claim_port(n->l, htons(1), IO_V4) == UW_OK);
	addr = htonl(INADDR_ANY);
	CHECK(node_way(n, &addr, htons(1), 5000) == UW_OK && addr == host(3));
	CHECK(board_wait(n->board, 4)); /* the dead one is quite gone, and its locks */
	node_close(n);
	return 0;
}

static void a_port_has_one_owner(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, first_owner, 2), c = spawn(b, second_owner, 3);

	assert_int_equal(reap(a, WAIT_MS), 1000 + SIGKILL);
	board_step(b, 4);
	assert_int_equal(reap(c, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- the dead's files --- */

static int dies(struct node *n, int h)
{
	node_open_ok(n, (unsigned)h);
	CHECK(n->l->ops->claim_port(n->l, htons(5), IO_V4) == UW_OK);
	kill(getpid(), SIGKILL);
	return 1;
}

static int comes_later(struct node *n, int h)
{
	node_open_ok(n, (unsigned)h);
	CHECK(n->l->ops->claim_port(n->l, htons(5), IO_V4) == UW_OK);
	node_close(n);
	return 0;
}

static void stale_files_are_no_obstacle(void **state)
{
	struct board *b = *state;

	assert_int_equal(reap(spawn(b, dies, 2), WAIT_MS), 1000 + SIGKILL);
	assert_int_equal(reap(spawn(b, dies, 3), WAIT_MS), 1000 + SIGKILL);
	/* The second has swept up after the first: its socket, lock and port are there. */
	assert_int_equal(files_left(b), 3);
	assert_int_equal(reap(spawn(b, comes_later, 2), WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- a process that holds the common lock and is stopped --- */

static int holds(struct node *n, int arg)
{
	char path[128];

	(void)arg;
	snprintf(path, sizeof(path), "%s/ctl", n->board->dir);
	mkdir(path, 0700);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	return 0;
}

static int gives_up(struct node *n, int holder)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "process %d has kept", holder);
	CHECK(fails(n, config(n, 2), UW_E_TIMEOUT, pid));
	board_step(n->board, 2);
	node_open_ok(n, 2);
	node_close(n);
	return 0;
}

static void a_held_lock_is_said(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, holds, 0);

	assert_true(board_wait(b, 1));
	assert_int_equal(reap(spawn(b, gives_up, (int)a), 2 * WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

/* --- the directory and other mistakes --- */

static int mistakes(struct node *n, int arg)
{
	static const char longer[] =
		"/tmp/0123456789012345678901234567890123456789012345678901234567";
	struct dpdk_config cfg = config(n, 2);
	const char *path;
	struct stat s;

	(void)arg;
	cfg.run_dir = NULL;
	CHECK(fails(n, cfg, UW_E_INVAL, "run directory"));
	cfg.run_dir = longer;
	CHECK(fails(n, cfg, UW_E_INVAL, "longer than"));
	cfg.run_dir = "/tmp/a,b";
	CHECK(fails(n, cfg, UW_E_INVAL, "must not contain"));
	cfg.run_dir = "/proc/nowhere";
	CHECK(fails(n, cfg, UW_E_NO_LINK, "cannot make"));
	cfg.run_dir = "/dev/null";
	CHECK(fails(n, cfg, UW_E_NO_LINK, "not a directory"));
	strcat(n->board->dir, "/sub");
	path = n->board->dir;
	cfg.run_dir = path;
	CHECK(mkdir(path, 0700) == 0 && chmod(path, 0777) == 0);
	CHECK(fails(n, cfg, UW_E_PERM, "chmod"));
	CHECK(rmdir(path) == 0);
	if (geteuid() == 0) {
		CHECK(mkdir(path, 0700) == 0 && chown(path, 65534, 65534) == 0);
		CHECK(fails(n, cfg, UW_E_PERM, "belongs to user 65534"));
		CHECK(rmdir(path) == 0);
	}
	cfg.mtu = 63;
	CHECK(fails(n, cfg, UW_E_INVAL, "MTU of 63"));
	cfg.mtu = 65281;
	CHECK(fails(n, cfg, UW_E_INVAL, "MTU of 65281"));
	cfg.mtu = 0;
	cfg.link = "memiff";
	CHECK(fails(n, cfg, UW_E_INVAL, "unknown link \"memiff\""));

	/* And after all of these it opens. */
	node_open_ok(n, 2);
	CHECK(fails(n, config(n, 3), UW_E_BUSY, "has a memif link already"));
	CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0700);
	node_close(n);
	return 0;
}

static void mistakes_are_named(void **state)
{
	struct board *b = *state;
	char dir[sizeof(b->dir)];

	strcpy(dir, b->dir);
	assert_int_equal(reap(spawn(b, mistakes, 0), WAIT_MS), 0);
	strcpy(b->dir, dir);
	assert_int_equal(files_left(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_address_has_one_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(an_address_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reserved_address, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_has_one_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(stale_files_are_no_obstacle, setup, teardown),
		cmocka_unit_test_setup_teardown(a_held_lock_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_named, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
