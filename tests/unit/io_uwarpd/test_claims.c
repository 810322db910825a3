/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and QPs of a uwarpd, which is this test: what it hears of those that are released, also
 * when it is a new one; and what is said if that refuses the link. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/fds.h"
#include "io/shm.h"
#include "io/uwarpd/link.h"
#include "uwtest.h"

/* More RELEASEs than the socket has room for, with its usual size. */
enum { MANY = 600, FIRST = 20000, WAIT_MS = 5000 };

struct bed {
	struct uwarpd_link u;
	int daemon; /* the uwarpd's end of the connection */
	char folder[SWITCH_PATH_MAX - 8];
};

static void no_lock(void *arg)
{
	(void)arg;
}

static int up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	pthread_condattr_t attr;
	int p[2];

	assert_non_null(b);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	b->daemon = p[1];
	b->u.l.flags = IO_SHARED;
	b->u.l.addr = htonl(0x0a000001);
	b->u.l.env.lock = b->u.l.env.unlock = no_lock;
	b->u.pid = getpid();
	b->u.peer.fd = fds_keep(p[0]);
	b->u.peer.ring_fd = b->u.bell_fd = -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b->u.wake), 0);
	b->u.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->u.users = calloc(UWARPD_PORTS, sizeof(*b->u.users));
	assert_non_null(b->u.users);
	b->u.connected = true;
	pthread_mutex_init(&b->u.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->u.answered, &attr);
	pthread_condattr_destroy(&attr);
	*state = b;
	return 0;
}

static int down(void **state)
{
	struct bed *b = *state;

	session_stop(&b->u);
	close(b->u.stop_fd);
	close(b->u.wake[0]);
	close(b->u.wake[1]);
	fds_close(b->u.bell_fd);
	shm_unmap(b->u.bell, CONDUIT_PAGE);
	close(b->daemon);
	free(b->u.users);
	free(b->u.qps);
	free(b);
	return 0;
}

static void have(struct bed *b, unsigned n)
{
	b->u.qps = calloc(n, sizeof(*b->u.qps));
	assert_non_null(b->u.qps);
	b->u.n_qps = b->u.qps_room = n;
	for (unsigned i = 0; i < n; i++) {
		b->u.users[FIRST + i] = 1;
		b->u.qps[i] = 100 + i;
	}
}

static uint16_t port_of(unsigned i)
{
	return htons((uint16_t)(FIRST + i));
}

static struct switch_msg hear(const struct bed *b)
{
	struct switch_msg m;
	struct switch_fds fds;

	assert_int_equal(switch_await(b->daemon, WAIT_MS, &m, &fds), 1);
	switch_fds_close(&fds);
	return m;
}

static void nothing_is_said(const struct bed *b)
{
	struct switch_msg m;
	struct switch_fds fds;

	assert_int_equal(switch_receive(b->daemon, &m, &fds), -EAGAIN);
}

static void the_uwarpd_hears_of_all_that_are_released_at_once(void **state)
{
	struct bed *b = *state;
	bool port[MANY] = { 0 }, qp[MANY] = { 0 };

	have(b, MANY);
	assert_status(session_start(&b->u), UW_OK);
	for (unsigned i = 0; i < MANY; i++)
		uwarpd_release(&b->u.l, port_of(i), IO_V4);
	for (unsigned i = 0; i < MANY; i++)
		uwarpd_release_qp(&b->u.l, 100 + i);
	for (unsigned i = 0; i < 2 * MANY; i++) {
		struct switch_msg m = hear(b);
		bool *once =
			m.type == SWITCH_RELEASE ? &port[ntohs(m.port) - FIRST] : &qp[m.qpn - 100];

		assert_true(m.type == SWITCH_RELEASE || m.type == SWITCH_RELEASE_QP);
		assert_false(*once);
		*once = true;
	}
	nothing_is_said(b);
	pthread_mutex_lock(&b->u.lock);
	assert_int_equal(b->u.n_qps, 0);
	pthread_mutex_unlock(&b->u.lock);
}

/* Nobody pays here: the thread does not run. */
static void what_is_owed_is_ours_without_a_question(void **state)
{
	struct bed *b = *state;

	have(b, MANY);
	for (unsigned i = 0; i < MANY; i++)
		uwarpd_release(&b->u.l, port_of(i), IO_V4);
	uwarpd_release_qp(&b->u.l, 100);
	assert_false(uwarpd_is_ours(&b->u.l, port_of(MANY - 1), IO_V4));
	assert_status(uwarpd_claim(&b->u.l, port_of(MANY - 1), IO_V4), UW_OK);
	assert_status(uwarpd_claim_qp(&b->u.l, 100), UW_OK);
	assert_true(uwarpd_is_ours(&b->u.l, port_of(MANY - 1), IO_V4));
	while (b->u.owes) {
		struct switch_msg m = hear(b);

		assert_int_equal(m.type, SWITCH_RELEASE);
		assert_true(m.port != port_of(MANY - 1));
		claims_pay(&b->u);
	}
	assert_int_equal(b->u.n_qps, MANY);
}

/* The uwarpd: everything is granted. */
static void *grant(void *arg)
{
	struct bed *b = arg;
	struct switch_msg m;

	do {
		m = hear(b);
	} while (m.type != SWITCH_CLAIM);
	m.type = SWITCH_ANSWER_TO;
	m.why = SWITCH_GRANTED;
	switch_send(b->daemon, &m, NULL, 0);
	return NULL;
}

static void a_claim_waits_for_room(void **state)
{
	struct bed *b = *state;
	pthread_t daemon;

	have(b, MANY);
	assert_status(session_start(&b->u), UW_OK);
	for (unsigned i = 0; i < MANY; i++)
		uwarpd_release(&b->u.l, port_of(i), IO_V4);
	assert_int_equal(pthread_create(&daemon, NULL, grant, b), 0);
	assert_status(uwarpd_claim(&b->u.l, htons(7000), IO_V4), UW_OK);
	pthread_join(daemon, NULL);
}

/* ---- a new uwarpd -------------------------------------------------------------------------- */

static int listen_for_it(struct bed *b)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *tmp = getenv("TMPDIR");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(b->folder, sizeof(b->folder), "%s/claims-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(b->folder));
	snprintf(b->u.path, sizeof(b->u.path), "%s/s", b->folder);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", b->u.path);
	assert_int_equal(bind(fd, (void *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void close_listener(struct bed *b, int listener)
{
	close(listener);
	unlink(b->u.path);
	rmdir(b->folder);
}

/* The uwarpd that it knew has ended. The thread joins the next one. */
static void start_alone(struct bed *b)
{
	fds_close(b->u.peer.fd);
	b->u.peer.fd = -1;
	close(b->daemon);
	b->u.bell = shm_make("bell", CONDUIT_PAGE, SHM_WRITABLE, &b->u.bell_fd);
	b->u.bell_fd = fds_keep(b->u.bell_fd);
	assert_status(session_start(&b->u), UW_OK);
	pthread_mutex_lock(&b->u.lock);
	b->u.connected = false; /* nobody has looked yet */
	pthread_mutex_unlock(&b->u.lock);
}

/* As far as READY. */
static void let_join(struct bed *b, int listener)
{
	struct switch_msg m = switch_msg_of(SWITCH_WELCOME);
	int fd[3] = { -1, eventfd(0, EFD_CLOEXEC), -1 };
	void *bell = shm_make("bell", CONDUIT_PAGE, SHM_READ_ONLY, &fd[2]);
	struct conduit conduit;

	assert_non_null(bell);
	assert_status(conduit_make(&conduit, &fd[0]), UW_OK);
	b->daemon = accept(listener, NULL, NULL);
	assert_true(b->daemon >= 0);
	assert_int_equal(hear(b).type, SWITCH_HELLO);
	m.addr = b->u.l.addr;
	assert_int_equal(switch_send(b->daemon, &m, fd, 3), 0);
	assert_int_equal(hear(b).type, SWITCH_READY);
	m = switch_msg_of(SWITCH_READY);
	assert_int_equal(switch_send(b->daemon, &m, NULL, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	conduit_free(&conduit);
	shm_unmap(bell, CONDUIT_PAGE);
}

static void expect_claim(struct bed *b, unsigned i)
{
	struct switch_msg m = hear(b);

	if (m.type == SWITCH_CLAIM)
		assert_int_equal(m.port, port_of(i));
	else
		assert_int_equal(m.qpn, 100 + i);
	m.type = SWITCH_ANSWER_TO;
	m.why = SWITCH_GRANTED;
	assert_int_equal(switch_send(b->daemon, &m, NULL, 0), 0);
}

/* The first port and the last QP have been renewed when they are released, the others have not. */
static void what_is_released_while_it_is_renewed_is_told(void **state)
{
	struct bed *b = *state;
	int listener = listen_for_it(b);
	struct switch_msg m;

	have(b, 3);
	start_alone(b);
	let_join(b, listener);
	expect_claim(b, 0);
	m = hear(b); /* it asks for the second one */
	assert_int_equal(m.port, port_of(1));
	uwarpd_release(&b->u.l, port_of(0), IO_V4);
	uwarpd_release(&b->u.l, port_of(2), IO_V4);
	m.type = SWITCH_ANSWER_TO;
	assert_int_equal(switch_send(b->daemon, &m, NULL, 0), 0);
	expect_claim(b, 2); /* a QP: the third port is not renewed */
	m = hear(b);
	assert_int_equal(m.qpn, 101);
	uwarpd_release_qp(&b->u.l, 102);
	uwarpd_release_qp(&b->u.l, 100);
	m.type = SWITCH_ANSWER_TO;
	assert_int_equal(switch_send(b->daemon, &m, NULL, 0), 0);
	m = hear(b);
	assert_int_equal(m.type, SWITCH_RELEASE);
	assert_int_equal(m.port, port_of(0));
	m = hear(b);
	assert_int_equal(m.type, SWITCH_RELEASE_QP);
	assert_int_equal(m.qpn, 102);
	assert_true(uwarpd_is_ours(&b->u.l, port_of(1), IO_V4));
	nothing_is_said(b);
	close_listener(b, listener);
}

static void refuse(struct bed *b, int listener, enum switch_msg_why why)
{
	struct switch_msg m = switch_msg_of(SWITCH_REFUSE);

	b->daemon = accept(listener, NULL, NULL);
	assert_true(b->daemon >= 0);
	assert_int_equal(hear(b).type, SWITCH_HELLO);
	m.why = (uint8_t)why;
	assert_int_equal(switch_send(b->daemon, &m, NULL, 0), 0);
	close(b->daemon);
	b->daemon = -1;
}

/* It tries again and again, and a program that got no answer ever after would be a riddle. */
static void a_refusal_is_said_once_for_each_reason(void **state)
{
	struct bed *b = *state;
	int listener = listen_for_it(b), was = dup(STDERR_FILENO), p[2];
	char said[1000] = "";

	assert_int_equal(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	dup2(p[1], STDERR_FILENO);
	start_alone(b);
	refuse(b, listener, SWITCH_LIMIT);
	refuse(b, listener, SWITCH_LIMIT);
	refuse(b, listener, SWITCH_NO_RIGHT);
	refuse(b, listener, SWITCH_NO_RIGHT);
	b->daemon = accept(listener, NULL, NULL); /* it has heard of all of these */
	dup2(was, STDERR_FILENO);
	assert_true(read(p[0], said, sizeof(said) - 1) > 0);
	assert_non_null(strstr(said, "as many clients"));
	assert_null(strstr(strstr(said, "as many clients") + 1, "as many clients"));
	assert_non_null(strstr(said, "--allow"));
	assert_null(strstr(strstr(said, "--allow") + 1, "--allow"));
	close(was);
	close(p[0]);
	close(p[1]);
	close_listener(b, listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_uwarpd_hears_of_all_that_are_released_at_once),
		TEST(what_is_owed_is_ours_without_a_question),
		TEST(a_claim_waits_for_room),
		TEST(what_is_released_while_it_is_renewed_is_told),
		TEST(a_refusal_is_said_once_for_each_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
