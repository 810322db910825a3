/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of a uwarpd, in a thread of its own, with a port and a socket that are made up. */
#include <netinet/in.h>
#include <pthread.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/shm.h"
#include "listen.h"
#include "server.h"
#include "uwtest.h"

static struct uplink port;
static struct sockaddr_un at; /* of the socket, which has no name in any folder */
static socklen_t at_len;
static volatile bool ended; /* set in the thread that looks at it */

struct bed {
	struct server s;
	pthread_t thread;
};

static _Atomic bool full; /* the port */
static _Atomic unsigned sent, refused;

static bool port_send(struct uplink *p, const struct uplink_out *f)
{
	(void)p;
	(void)f;
	if (full)
		refused++;
	else
		sent++;
	return !full;
}

static unsigned looks; /* for frames of the port */

static bool no_frame(struct uplink *p, struct uplink_in *f)
{
	(void)p;
	(void)f;
	looks++;
	return false;
}

static _Atomic unsigned claims;
static unsigned crowded; /* claims since whose predecessor nobody has looked for frames */

/* As one that costs a change of the host's filters. */
static enum switch_msg_why slow_claim(struct uplink *p, uint16_t port_be, enum io_versions v)
{
	static unsigned looks_before;
	uint64_t until = uw_clock_us() + 200;

	(void)p;
	(void)port_be;
	(void)v;
	while (uw_clock_us() < until)
		;
	crowded += claims && looks == looks_before;
	looks_before = looks;
	claims++;
	return SWITCH_GRANTED;
}

static void no_close(struct uplink *p)
{
	(void)p;
}

static const struct uplink_ops ops = {
	.send = port_send, .receive = no_frame, .claim = slow_claim, .close = no_close
};

static _Atomic bool long_send, long_shutdown; /* as if thousands of descriptors watched */

static void work(bool is_long)
{
	uint64_t until = wake_cost_cpu_us() + 2 * WAKE_COST_LONG_US;

	while (is_long && wake_cost_cpu_us() < until)
		;
}

/* The C library's, for the uwarpd too. */
ssize_t send(int fd, const void *what, size_t n, int flags)
{
	work(long_send);
	return sendto(fd, what, n, flags, NULL, 0);
}

int shutdown(int fd, int how)
{
	work(long_shutdown);
	return (int)syscall(SYS_shutdown, fd, how);
}

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
	ended = true;
}

static int set_up(void **state)
{
	struct sigaction wakes = { .sa_handler = on_signal };
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	ended = full = long_send = long_shutdown = false;
	sent = refused = claims = 0;
	crowded = 0;
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
	close(((struct bed *)*state)->s.listen_fd);
	free(*state);
	return 0;
}

static void *run(void *arg)
{
	struct bed *b = arg;

	server_run(&b->s, &ended);
	return NULL;
}

static void start(struct bed *b)
{
	assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
}

/* A signal that comes just before it sleeps does not wake it. */
static void stop(struct bed *b)
{
	struct timespec until;

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
	void *page = shm_make("doorbell", CONDUIT_PAGE, SHM_WRITABLE, &bell);

	assert_non_null(page);
	assert_int_equal(switch_send(fd, &m, &bell, 1), 0);
	shm_unmap(page, CONDUIT_PAGE);
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

static void say_ready(int fd)
{
	struct switch_msg m = switch_msg_of(SWITCH_READY);
	struct conduit conduit;
	int region;

	assert_status(conduit_make(&conduit, &region), UW_OK);
	assert_int_equal(switch_send(fd, &m, &region, 1), 0);
	close(region);
	conduit_free(&conduit);
}

/* Up to READY. */
static int join(void)
{
	struct switch_msg m;
	int fd = connect_to_it();

	say_hello(fd);
	assert_int_equal(hear(fd, &m), SWITCH_WELCOME);
	say_ready(fd);
	assert_int_equal(hear(fd, &m), SWITCH_READY);
	return fd;
}

/* The same, with the conduit that goes with it, and the descriptor that rings. */
static int join_with_conduit(struct conduit *conduit, int *ring)
{
	struct switch_msg m = switch_msg_of(SWITCH_READY);
	struct switch_fds fds;
	int fd = connect_to_it(), region;

	say_hello(fd);
	assert_status(conduit_make(conduit, &region), UW_OK);
	assert_int_equal(switch_send(fd, &m, &region, 1), 0);
	close(region);
	assert_int_equal(switch_await(fd, 5000, &m, &fds), 1);
	assert_int_equal(m.type, SWITCH_WELCOME);
	assert_status(conduit_attach(conduit, switch_fds_take(&fds, 0)), UW_OK);
	*ring = switch_fds_take(&fds, 1);
	switch_fds_close(&fds);
	assert_int_equal(hear(fd, &m), SWITCH_READY);
	return fd;
}

/* An ARP request of the uwarpd's own address. */
static void put_frame(struct conduit *conduit)
{
	static const uint8_t arp[60] = { [12] = 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, [28] = 1 };
	const struct conduit_meta meta = { 0 };
	uint8_t *to;

	assert_int_equal(conduit_room(&conduit->out, sizeof(arp), &to), CONDUIT_OK);
	memcpy(to, arp, sizeof(arp));
	conduit_put(&conduit->out, sizeof(arp), &meta);
}

static void until(const _Atomic unsigned *n)
{
	for (unsigned ms = 0; ms < 5000 && !*n; ms++)
		usleep(1000);
	assert_true(*n);
}

/* A full port costs no CPU: the frame goes as soon as there is room. */
static void a_frame_without_room_waits_for_it(void **state)
{
	struct bed *b = *state;
	uint8_t octets[4096] = { 0 };
	struct conduit conduit;
	unsigned before;
	int p[2], fd, ring;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p), 0);
	while (write(p[0], octets, sizeof(octets)) > 0)
		;
	port.fd = p[0];
	full = true;
	assert_true(server_open(&b->s));
	start(b);
	fd = join_with_conduit(&conduit, &ring);
	put_frame(&conduit);
	eventfd_write(ring, 1);
	until(&refused);
	usleep(20000); /* it looks a few times before it sleeps */
	before = refused;
	usleep(50000);
	assert_true(refused - before < 1000);
	full = false;
	while (read(p[1], octets, sizeof(octets)) > 0)
		;
	until(&sent);
	assert_int_equal(sent, 1);
	stop(b);
	conduit_free(&conduit);
	close(ring);
	close(fd);
	close(p[0]);
	close(p[1]);
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

/* Neither takes a descriptor in nor is left without a word. */
static void without_a_descriptor_left_it_refuses(void **state)
{
	struct bed *b = *state;
	struct rlimit was, few;
	struct switch_msg m;
	int fd[3], first, bell;
	void *page = shm_make("doorbell", CONDUIT_PAGE, SHM_WRITABLE, &bell);

	assert_non_null(page);
	shm_unmap(page, CONDUIT_PAGE);
	for (unsigned i = 0; i < COUNT(fd); i++)
		fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(server_open(&b->s));
	first = dup(0);
	close(first);
	start(b);
	while (fcntl(first + 1, F_GETFD) < 0) /* it opens two more */
		sched_yield();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = (rlim_t)first + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned i = 0; i < COUNT(fd); i++) {
		m = switch_msg_of(SWITCH_HELLO);
		assert_int_equal(connect(fd[i], (void *)&at, at_len), 0);
		assert_int_equal(switch_send(fd[i], &m, &bell, 1), 0);
		assert_int_equal(hear(fd[i], &m), SWITCH_REFUSE);
		assert_int_equal(m.why, SWITCH_NO_MEMORY);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	for (unsigned i = 0; i < COUNT(fd); i++)
		close(fd[i]);
	close(bell);
	close(join());
	stop(b);
	assert_int_equal(b->s.refused, COUNT(fd));
}

/* ---- descriptors that block when they are closed ------------------------------------------- */

/* A connection that lingers for a minute, since its other end, which is returned, reads nothing. */
static int lingering_socket(int *fd)
{
	const struct linger a_minute = { .l_onoff = 1, .l_linger = 60 };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), end;
	socklen_t n = sizeof(to);
	char octets[65536] = { 0 };

	assert_int_equal(bind(listener, (void *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(listener, (void *)&to, &n), 0);
	assert_int_equal(listen(listener, 1), 0);
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(*fd, (void *)&to, sizeof(to)))
		skip(); /* lo is down */
	end = accept(listener, NULL, NULL);
	close(listener);
	while (send(*fd, octets, sizeof(octets), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_LINGER, &a_minute, sizeof(a_minute)), 0);
	return end;
}

static void send_fds(int to, enum switch_msg_type type, const int *fds, unsigned n)
{
	struct switch_msg m = switch_msg_of(type);

	assert_int_equal(switch_send(to, &m, fds, n), 0);
}

/* Until it is read, and the descriptor is about to be closed. */
static void until_taken(int fd)
{
	int waits = 1;

	while (!ioctl(fd, SIOCOUTQ, &waits) && waits)
		sched_yield();
}

/* What is sent before the uwarpd looks. It is alone in having the socket when it closes it. */
static int send_it(int lingers)
{
	int fd = connect_to_it();

	send_fds(fd, SWITCH_CLAIM, &lingers, 1);
	return fd;
}

/* The kernel throws away what was not read before the end. */
static int leave_it_unread(int lingers)
{
	int fd = connect_to_it();

	send_fds(fd, SWITCH_READY, NULL, 0);
	send_fds(fd, SWITCH_CLAIM, &lingers, 1);
	return fd;
}

/* It lies in the wake socket, whose end the uwarpd has. */
static void wake_by_it(int lingers)
{
	int fd = connect_to_it(), p[2], hello[2];
	struct switch_msg m;
	void *page = shm_make("doorbell", CONDUIT_PAGE, SHM_WRITABLE, &hello[0]);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	send_fds(p[0], SWITCH_HELLO, &lingers, 1);
	close(lingers);
	hello[1] = p[1];
	send_fds(fd, SWITCH_HELLO, hello, 2);
	assert_int_equal(hear(fd, &m), SWITCH_WELCOME);
	shm_unmap(page, CONDUIT_PAGE);
	close(hello[0]);
	close(p[1]);
	close(p[0]);
	close(fd);
}

static void others_go_on(void)
{
	int honest = join();

	for (unsigned i = 0; i < 3; i++) {
		struct switch_msg m = switch_msg_of(SWITCH_CLAIM);

		m.port = htons((uint16_t)(7000 + i));
		assert_int_equal(switch_send(honest, &m, NULL, 0), 0);
		assert_int_equal(hear(honest, &m), SWITCH_ANSWER_TO);
		assert_int_equal(m.why, SWITCH_GRANTED);
		close(join());
	}
	close(honest);
}

static void a_stranger_stops_nobody(struct bed *b, int (*harm)(int lingers))
{
	int lingers, end = lingering_socket(&lingers), fd;

	assert_true(server_open(&b->s));
	fd = harm(lingers);
	close(lingers);
	start(b);
	until_taken(fd);
	close(fd);
	others_go_on();
	close(end); /* a reset, which ends the lingering */
	stop(b);
}

static void who_sends_a_descriptor_that_blocks_stops_nobody(void **state)
{
	a_stranger_stops_nobody(*state, send_it);
}

static void nor_who_sends_it_behind_nonsense(void **state)
{
	a_stranger_stops_nobody(*state, leave_it_unread);
}

static void nor_who_has_it_in_a_wake_socket(void **state)
{
	struct bed *b = *state;
	int lingers, end = lingering_socket(&lingers);

	assert_true(server_open(&b->s));
	start(b);
	wake_by_it(lingers);
	others_go_on();
	close(end);
	stop(b);
}

/* Its thread is in the close, and does not hear of the end: the place is free all the same. */
static void nor_does_one_that_joined_stay_behind(void **state)
{
	struct bed *b = *state;
	int lingers, end = lingering_socket(&lingers), fd;
	unsigned answer = SWITCH_REFUSE;
	struct switch_msg m;

	b->s.o.max_clients = 1;
	assert_true(server_open(&b->s));
	fd = connect_to_it();
	say_hello(fd);
	say_ready(fd);
	send_fds(fd, SWITCH_RELEASE, &lingers, 1);
	close(lingers);
	start(b);
	assert_int_equal(hear(fd, &m), SWITCH_WELCOME);
	assert_int_equal(hear(fd, &m), SWITCH_READY);
	until_taken(fd);
	close(fd);
	for (unsigned i = 0; i < 500 && answer == SWITCH_REFUSE; i++) {
		fd = connect_to_it();
		say_hello(fd);
		answer = hear(fd, &m);
		close(fd);
		usleep(10000);
	}
	assert_int_equal(answer, SWITCH_WELCOME);
	close(end);
	stop(b);
}

/* However many clients claim at a time, frames are forwarded in between. */
static void claims_do_not_crowd_frames_out(void **state)
{
	enum { CLIENTS = 16, EACH = 8 };
	struct bed *b = *state;
	int fd[CLIENTS];

	assert_true(server_open(&b->s));
	start(b);
	for (unsigned i = 0; i < CLIENTS; i++)
		fd[i] = join();
	for (unsigned k = 0; k < EACH; k++) {
		for (unsigned i = 0; i < CLIENTS; i++) {
			struct switch_msg m = switch_msg_of(SWITCH_CLAIM);

			m.port = htons((uint16_t)(2000 + k * CLIENTS + i));
			assert_int_equal(switch_send(fd[i], &m, NULL, 0), 0);
		}
	}
	for (unsigned i = 0; i < CLIENTS * EACH; i++) {
		struct switch_msg m;

		assert_int_equal(hear(fd[i % CLIENTS], &m), SWITCH_ANSWER_TO);
		assert_int_equal(m.why, SWITCH_GRANTED);
	}
	stop(b);
	assert_int_equal(claims, CLIENTS * EACH);
	assert_int_equal(crowded, 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		close(fd[i]);
}

/* ---- who costs much ------------------------------------------------------------------------ */

/* Lines that it is told. */
static unsigned ask_status(void)
{
	struct switch_msg m = switch_msg_of(SWITCH_STATUS);
	int fd = connect_to_it();
	unsigned lines = 0;
	char line[1024];

	assert_int_equal(switch_send(fd, &m, NULL, 0), 0);
	while (recv(fd, line, sizeof(line), 0) > 0)
		lines++;
	close(fd);
	return lines;
}

static bool is_left_alone(const struct bed *b)
{
	bool found = false;

	for (unsigned i = 0; i < LEFT_USERS; i++)
		found |= b->s.left_costs[i].uid == getuid() && b->s.left_costs[i].alone_us;
	return found;
}

static void who_asks_for_the_status_costs_too(void **state)
{
	struct bed *b = *state;
	int fd;

	assert_true(server_open(&b->s));
	start(b);
	fd = join();
	assert_int_equal(ask_status(), 2);
	long_send = true;
	assert_int_equal(ask_status(), 1); /* no more than one that is long */
	assert_int_equal(ask_status(), 1);
	stop(b);
	assert_true(is_left_alone(b));
	close(fd);
}

/* Those that watch the connection hear of its end, too. */
static void who_is_hung_up_on_costs_too(void **state)
{
	struct bed *b = *state;

	assert_true(server_open(&b->s));
	start(b);
	long_shutdown = true;
	ask_status();
	ask_status();
	stop(b);
	assert_true(is_left_alone(b));
}

static void who_is_turned_away_costs_too(void **state)
{
	struct bed *b = *state;
	struct client others = { 0 };
	struct switch_msg m;

	assert_true(server_open(&b->s));
	for (unsigned id = 1; id <= SWITCH_CLIENTS_MAX; id++)
		b->s.client[id] = &others;
	start(b);
	long_shutdown = true;
	for (unsigned i = 0; i < 3; i++) {
		int fd = connect_to_it();

		say_hello(fd);
		assert_int_equal(hear(fd, &m), i < 2 ? SWITCH_REFUSE : 0);
		close(fd);
	}
	stop(b);
	assert_true(is_left_alone(b));
	assert_int_equal(b->s.refused, 3);
}

/* Its programs do not keep each other out. */
static void others_of_its_user_join(void **state)
{
	struct bed *b = *state;
	uint64_t now = uw_clock_us();

	assert_true(server_open(&b->s));
	b->s.left_costs[0] = (struct left_cost){ .uid = getuid(),
						 .alone_us = now + 60 * 1000000,
						 .until_us = now + 120 * 1000000 };
	start(b);
	assert_int_equal(ask_status(), 1);
	close(join());
	stop(b);
}

static unsigned share_with(void **state, bool own, rlim_t descriptors)
{
	struct bed *b = *state;
	struct rlimit was, r;
	unsigned share;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	r = was;
	r.rlim_cur = descriptors;
	port.own = own;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	assert_true(server_open(&b->s));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	share = b->s.user_ports;
	tear_down(state);
	set_up(state);
	return share;
}

/* Others need some, too: of the ports, or where each is a socket of the kernel's as well, of the
 * descriptors. */
static void a_user_has_three_quarters_of_the_ports(void **state)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	assert_int_equal(share_with(state, true, 400), PORTS / 4 * 3);
	assert_int_equal(share_with(state, false, 400), 300);
	assert_int_equal(share_with(state, false, r.rlim_max),
			 (r.rlim_max < PORTS ? r.rlim_max : PORTS) / 4 * 3);
	assert_true(server_open(&((struct bed *)*state)->s)); /* for the end */
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	TEST(an_error_of_the_port_ends_one_sleep),
	TEST(a_frame_without_room_waits_for_it),
	TEST(many_may_come_at_once),
	TEST(without_a_descriptor_left_it_refuses),
	TEST(who_sends_a_descriptor_that_blocks_stops_nobody),
	TEST(nor_who_sends_it_behind_nonsense),
	TEST(nor_who_has_it_in_a_wake_socket),
	TEST(nor_does_one_that_joined_stay_behind),
	TEST(claims_do_not_crowd_frames_out),
	TEST(who_asks_for_the_status_costs_too),
	TEST(who_is_hung_up_on_costs_too),
	TEST(who_is_turned_away_costs_too),
	TEST(others_of_its_user_join),
	TEST(a_user_has_three_quarters_of_the_ports),
};

UWTEST_MAIN(tests)
