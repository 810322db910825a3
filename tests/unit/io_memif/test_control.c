/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: its messages, and callers that do not behave. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"

#include "io_dpdk/node.h"

#include "io/memif/ring.h"
#include "io/rendezvous/msg.h"
#include "io/rendezvous/registry.h"

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

/* --- messages --- */

static void a_message_and_a_descriptor(void **state)
{
	struct msg m = { .magic = MSG_MAGIC, .version = 7, .type = MSG_HELLO, .mtu = 9 }, got;
	struct msg_fds fds;
	int s[2], bell_fd;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	assert_int_equal(msg_receive(s[1], &got, &fds), -EAGAIN);
	assert_int_equal(fds.fd[0], -1);
	_Atomic uint32_t *bell = bell_make(&bell_fd);
	assert_non_null(bell);
	assert_int_equal(msg_send(s[0], &m, bell_fd, -1), 0);
	assert_int_equal(msg_await(s[1], uw_clock_ms() + 1000, &got, &fds), 1);
	assert_memory_equal(&m, &got, sizeof(m));
	assert_true(fds.fd[0] >= 0 && fcntl(fds.fd[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fds.fd[1] < 0 && !fds.lost);
	_Atomic uint32_t *theirs = bell_map(msg_fds_take(&fds, 0));
	assert_non_null(theirs);
	atomic_store(theirs, IO_ASLEEP);
	assert_int_equal(atomic_load(bell), IO_ASLEEP); /* one word in both */
	bell_unmap(theirs);
	bell_unmap(bell);
	close(bell_fd);

	uint64_t start = ms_now();
	assert_int_equal(msg_await(s[1], uw_clock_ms() + 50, &got, &fds), -ETIMEDOUT);
	assert_true(ms_now() - start >= 49);
	m.magic++;
	assert_int_equal(msg_send(s[0], &m, -1, -1), 0);
	assert_int_equal(msg_receive(s[1], &got, &fds), 0);
	assert_int_equal(send(s[0], &m, sizeof(m) - 1, 0), sizeof(m) - 1);
	assert_int_equal(msg_receive(s[1], &got, &fds), 0);
	close(s[0]);
	assert_int_equal(msg_receive(s[1], &got, &fds), 0);
	assert_true(msg_send(s[1], &m, -1, -1) < 0); /* and no SIGPIPE */
	close(s[1]);
}

/* However many come, the caller gets two at most, and none is left open behind its back. */
static void no_descriptor_leaks(void **state)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(20 * sizeof(int))];
	} c;
	struct msg m = { .magic = MSG_MAGIC, .version = MSG_VERSION, .type = MSG_HELLO }, got;
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	static const unsigned counts[] = { 1, 2, 3, 8, 20 };
	struct msg_fds fds;
	int s[2], many[20];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	for (unsigned i = 0; i < COUNT(many); i++)
		many[i] = s[0];
	unsigned before = fds_open();
	for (unsigned i = 0; i < 2 * COUNT(counts); i++) {
		unsigned n = counts[i / 2];
		struct msghdr h = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = c.room,
				    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

		memset(&c, 0, sizeof(c));
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&c.head), many, n * sizeof(int));
		m.magic = MSG_MAGIC + i % 2; /* of what is no message of ours none is kept */
		assert_int_equal(sendmsg(s[0], &h, 0), sizeof(m));
		assert_int_equal(msg_receive(s[1], &got, &fds), i % 2 == 0);
		assert_int_equal(fds_open() - before, i % 2 ? 0 : n > 2 ? 2 : n);
		msg_fds_close(&fds);
		assert_int_equal(fds_open(), before);
	}
	close(s[0]);
	close(s[1]);
}

static void only_a_sealed_page_is_a_doorbell(void **state)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_null(bell_map(fd)); /* takes the descriptor, too */
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_null(bell_map(fd));
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_null(bell_map(fd));
	assert_null(bell_map(-1));
}

/* --- callers --- */

static int knock(struct node *n)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/ctl/127.0.0.2", n->board->dir);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0);
	return fd;
}

static struct msg hello(unsigned h)
{
	return (struct msg){ .magic = MSG_MAGIC,
			     .version = MSG_VERSION,
			     .type = MSG_HELLO,
			     .addr = host(h),
			     .pid = (uint32_t)getpid(),
			     .mtu = 9000 };
}

/* The answer to one message: its type, its reason << 8, or 0 for a hang-up. */
static int answer(struct node *n, const struct msg *m, int pass)
{
	int fd = knock(n);
	struct msg_fds fds;
	struct msg got;

	CHECK(msg_send(fd, m, pass, -1) == 0);
	int rc = msg_await(fd, uw_clock_ms() + 5000, &got, &fds);
	CHECK(rc == 0 || rc == 1);
	if (rc == 1 && got.type == MSG_REFUSE) {
		struct msg more;

		CHECK(msg_await(fd, uw_clock_ms() + 5000, &more, &fds) == 0);
	}
	close(fd);
	return rc ? got.type | got.why << 8 : 0;
}

static int rascal(struct node *n, int me)
{
	struct msg m = hello((unsigned)me);
	int bell_fd, refused = MSG_REFUSE | MSG_NOT_ME << 8;

	CHECK(bell_make(&bell_fd));
	CHECK(board_wait(n->board, 1));
	close(knock(n));
	CHECK(answer(n, &m, -1) == refused); /* no doorbell */
	m.version++;
	CHECK(answer(n, &m, bell_fd) == refused);
	m = hello(2); /* its own address */
	CHECK(answer(n, &m, bell_fd) == refused);
	m = hello((unsigned)me);
	m.addr = htonl(0x0a000001); /* of another net */
	CHECK(answer(n, &m, bell_fd) == refused);
	m = hello((unsigned)me);
	m.type = MSG_READY; /* without a HELLO */
	CHECK(answer(n, &m, bell_fd) == 0);
	m.type = 99;
	CHECK(answer(n, &m, -1) == 0);
	m.magic = 0;
	CHECK(answer(n, &m, -1) == 0);

	/* READY without a region, BYE before READY, silence: none of it gets through. */
	m = hello((unsigned)me);
	static const int next[] = { MSG_READY, MSG_BYE, MSG_WELCOME };
	for (unsigned i = 0; i < COUNT(next); i++) {
		int fd = knock(n);
		struct msg_fds fds;
		struct msg got;

		CHECK(msg_send(fd, &m, bell_fd, -1) == 0);
		CHECK(msg_await(fd, uw_clock_ms() + 5000, &got, &fds) == 1);
		CHECK(got.type == MSG_WELCOME && got.addr == host(2) && got.mtu == 9000);
		CHECK(fds.fd[0] >= 0 && fds.fd[1] >= 0);
		msg_fds_close(&fds);
		got = m;
		got.type = (uint8_t)next[i];
		CHECK(msg_send(fd, &got, -1, -1) == 0);
		CHECK(msg_await(fd, uw_clock_ms() + 5000, &got, &fds) == 0);
		close(fd);
	}
	/* More visitors than there are places, who say nothing at all, do not last. */
	int silent[40];
	for (unsigned i = 0; i < COUNT(silent); i++)
		silent[i] = knock(n);
	for (unsigned i = 0; i < COUNT(silent); i++) {
		struct msg got;
		struct msg_fds fds;

		CHECK(msg_await(silent[i], uw_clock_ms() + 8000, &got, &fds) == 0);
		close(silent[i]);
	}
	board_step(n->board, 2);
	return 0;
}

static int honest(struct node *n, int me)
{
	node_open_ok(n, (unsigned)me);
	if (me == 2)
		board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	if (me == 3)
		CHECK(node_resolve(n, 2) == UW_OK && node_send(n, 2, 60, 1, 1));
	else
		CHECK(node_receive(n, 3, WAIT_MS) == 1 && n->downs == 0);
	CHECK(node_wait_down(n, me ^ 1, me == 2 ? WAIT_MS : 100) == (me == 2));
	node_close(n);
	return 0;
}

static void misbehaving_callers(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, honest, 2), c = spawn(b, rascal, 9);

	assert_int_equal(reap(c, 2 * WAIT_MS), 0);
	pid_t d = spawn(b, honest, 3);
	assert_int_equal(reap(d, WAIT_MS), 0);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_and_a_descriptor),
		cmocka_unit_test(no_descriptor_leaks),
		cmocka_unit_test(only_a_sealed_page_is_a_doorbell),
		cmocka_unit_test_setup_teardown(misbehaving_callers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
