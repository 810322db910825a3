/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of a uwarpd, in a thread of its own, with a port and a socket that are made up. */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "io/shm.h"
#include "listen.h"
#include "server.h"
#include "uwtest.h"

static struct uplink port;
static struct sockaddr_un at; /* of the socket, which has no name in any folder */
static socklen_t at_len;

struct bed {
	struct server s;
	pthread_t thread;
	volatile bool ended;
};

static bool no_send(struct uplink *p, const struct uplink_out *f)
{
	(void)p;
	(void)f;
	return true;
}

static bool no_frame(struct uplink *p, struct uplink_in *f)
{
	(void)p;
	(void)f;
	return false;
}

static void no_close(struct uplink *p)
{
	(void)p;
}

static const struct uplink_ops ops = { .send = no_send, .receive = no_frame, .close = no_close };

struct uplink *uplink_open(const struct options *o)
{
	(void)o;
	return &port;
}

int listen_open(const struct options *o, bool *inherited)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)o;
	*inherited = true;
	at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	at_len = sizeof(at);
	if (bind(fd, (void *)&at, sizeof(at.sun_family)) || getsockname(fd, (void *)&at, &at_len) ||
	    listen(fd, 256))
		return -1;
	return fd;
}

static void on_signal(int sig)
{
	(void)sig;
}

static int set_up(void **state)
{
	struct sigaction wakes = { .sa_handler = on_signal };
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	sigaction(SIGUSR1, &wakes, NULL);
	port = (struct uplink){ .ops = &ops, .addr = 1, .mtu = 1500, .own = true, .fd = -1 };
	b->s.o.link = "none";
	b->s.o.max_clients = b->s.o.max_per_user = 256;
	b->s.o.max_ports = 64;
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	server_close(&((struct bed *)*state)->s);
	free(*state);
	return 0;
}

static void *run(void *arg)
{
	struct bed *b = arg;

	server_run(&b->s, &b->ended);
	return NULL;
}

static void start(struct bed *b)
{
	assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
}

/* A signal that comes before it sleeps is lost. */
static void stop(struct bed *b)
{
	struct timespec until;

	b->ended = true;
	do {
		pthread_kill(b->thread, SIGUSR1);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 5000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(b->thread, NULL, &until));
}

/* ---- the port ------------------------------------------------------------------------------ */

/* As a packet socket does whose interface went down: the error stays until somebody asks for it. */
static int socket_with_an_error(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(to);

	assert_int_equal(bind(fd, (void *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(fd, (void *)&to, &n), 0);
	close(fd); /* nobody has that port now */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (void *)&to, sizeof(to)) || send(fd, "", 1, 0) != 1) {
		close(fd);
		skip(); /* lo is down */
	}
	return fd;
}

static void an_error_of_the_port_ends_one_sleep(void **state)
{
	struct bed *b = *state;
	const struct timespec a_while = { .tv_nsec = 50000000 };

	port.fd = socket_with_an_error();
	assert_true(server_open(&b->s));
	start(b);
	nanosleep(&a_while, NULL);
	stop(b);
	assert_true(b->s.sleeps < 10);
	close(port.fd);
}

/* ---- clients ------------------------------------------------------------------------------- */

static int connect_to_it(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (void *)&at, at_len), 0);
	return fd;
}

static void say_hello(int fd)
{
	struct switch_msg m = switch_msg_of(SWITCH_HELLO);
	int bell;
	void *page = shm_make("doorbell", LANE_PAGE, false, &bell);

	assert_non_null(page);
	assert_int_equal(switch_send(fd, &m, &bell, 1), 0);
	shm_unmap(page, LANE_PAGE);
	close(bell);
}

/* Type of what it is answered; 0: it is hung up on, or waits too long. */
static unsigned hear(int fd, struct switch_msg *m)
{
	struct switch_fds fds;

	if (switch_await(fd, 5000, m, &fds) != 1)
		return 0;
	switch_fds_close(&fds);
	return m->type;
}

/* More than may connect and say nothing; the uwarpd had no CPU meanwhile. */
static void many_may_come_at_once(void **state)
{
	struct bed *b = *state;
	struct switch_msg m;
	int fd[64];

	assert_true(server_open(&b->s));
	for (unsigned i = 0; i < 64; i++)
		say_hello(fd[i] = connect_to_it());
	start(b);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(hear(fd[i], &m), SWITCH_WELCOME);
	stop(b);
	for (unsigned i = 0; i < 64; i++)
		close(fd[i]);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	TEST(an_error_of_the_port_ends_one_sleep),
	TEST(many_may_come_at_once),
};

UWTEST_MAIN(tests)
