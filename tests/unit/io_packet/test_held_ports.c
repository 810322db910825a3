/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that is held: nobody else gets it, and the kernel answers nobody there. */
#include "io/fds.h"
#include "io/packet/held_ports.h"
#include "io/packet/roce_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "made.h"

enum { PORT = 4000 };

static time_t later_s; /* than it is */

/* In place of the C library's, also for what is tested. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	t->tv_sec += later_s;
	return rc;
}

static const struct held_at loopback = { .ip = { { { [10] = 0xff, 0xff, 127, [15] = 1 } } },
					 .n = 1 };

static struct sockaddr_in at(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int up(void **state)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct held_ports p;

	assert_status(held_ports_open(&p, &loopback, &lock), UW_OK);
	*state = &p;
	return 0;
}

static int down(void **state)
{
	held_ports_close(*state);
	return 0;
}

/* What becomes of a connection within 100 ms: an errno, EINPROGRESS if nobody answers. */
static int connect_to(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;
	struct sockaddr_in a = at(port);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(err);

	if (connect(fd, (void *)&a, sizeof(a)) && errno != EINPROGRESS)
		err = errno;
	else if (!poll(&p, 1, 100))
		err = EINPROGRESS;
	else
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	close(fd);
	return err;
}

static int bind_to(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, err;
	struct sockaddr_in a = at(port);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	err = bind(fd, (void *)&a, sizeof(a)) ? errno : 0;
	close(fd);
	return err;
}

static void nobody_answers_at_a_held_port(void **state)
{
	struct held_ports *p = *state;

	assert_int_equal(connect_to(PORT), ECONNREFUSED);
	assert_status(held_ports_claim(p, htons(PORT), false), UW_OK);
	assert_true(held_ports_has(p, htons(PORT)));
	assert_int_equal(connect_to(PORT), EINPROGRESS);
	assert_int_equal(bind_to(PORT), EADDRINUSE);
	assert_int_equal(connect_to(PORT + 1), ECONNREFUSED);
}

static void another_programs_port_is_refused(void **state)
{
	struct held_ports *p = *state;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = at(PORT);

	assert_int_equal(bind(fd, (void *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_status(held_ports_claim(p, htons(PORT), false), UW_E_ADDR_IN_USE);
	assert_false(held_ports_has(p, htons(PORT)));
	close(fd);
	assert_status(held_ports_claim(p, htons(PORT), false), UW_OK);
}

static int listen_at(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct sockaddr_in a = at(port);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (void *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* What goes there is refused at once then, as where nobody has ever listened. */
static void a_port_is_nobodys_when_its_program_has_ended(void **state)
{
	struct held_ports *p = *state;
	int fd = listen_at(PORT);

	assert_false(held_ports_is_ours(p, htons(PORT)));
	close(fd);
	assert_false(held_ports_is_ours(p, htons(PORT))); /* asked once */
	held_ports_tidy(p);
	assert_true(held_ports_is_ours(p, htons(PORT)));
	fd = listen_at(PORT);
	assert_false(held_ports_is_ours(p, htons(PORT)));
	close(fd);
}

/* A connection needs no listener any more. */
static void a_connections_port_stays_its_programs(void **state)
{
	struct held_ports *p = *state;
	int ls = listen_at(PORT), one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), other;
	struct sockaddr_in a = at(PORT);

	assert_int_equal(connect(one, (void *)&a, sizeof(a)), 0);
	other = accept(ls, NULL, NULL);
	assert_true(other >= 0);
	close(ls);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(held_ports_is_ours(p, htons(PORT)));
		held_ports_tidy(p);
	}
	close(one); /* first, so that it is the one that waits */
	close(other);
}

/* A connection whose end at the port has been closed, by a server that listens no more. Returns the
 * other end. */
static int leave_at(uint16_t port)
{
	int ls = listen_at(port), one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), other;
	struct sockaddr_in a = at(port);

	assert_int_equal(connect(one, (void *)&a, sizeof(a)), 0);
	other = accept(ls, NULL, NULL);
	assert_true(other >= 0);
	close(ls);
	close(other);
	return one;
}

/* The answer to the last segment of an ended connection may be 40 ms late. */
static uw_status claim_soon(struct held_ports *p, uint16_t port)
{
	uw_status st = held_ports_claim(p, htons(port), true);

	for (unsigned i = 0; i < 1000 && st; i++) {
		usleep(1000);
		st = held_ports_claim(p, htons(port), true);
	}
	return st;
}

/* A server over the kernel's TCP is stopped and started again over uwarp. */
static void connections_that_have_ended_keep_no_named_port(void **state)
{
	enum { HALF = PORT + 200, WHOLE = PORT + 201 };
	struct held_ports *p = *state;
	int half = leave_at(HALF), whole = leave_at(WHOLE);

	close(whole);
	for (uint16_t port = HALF; port <= WHOLE; port++) {
		assert_status(held_ports_claim(p, htons(port), false), UW_E_ADDR_IN_USE);
		assert_status(claim_soon(p, port), UW_OK);
		assert_true(held_ports_is_ours(p, htons(port)));
		assert_int_equal(bind_to(port), EADDRINUSE);
	}
	close(half);
}

static void live_connections_keep_a_named_port(void **state)
{
	enum { LIVE = PORT + 202 };
	struct held_ports *p = *state;
	int ls = listen_at(LIVE), one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), other;
	struct sockaddr_in a = at(LIVE);

	assert_status(held_ports_claim(p, htons(LIVE), true), UW_E_ADDR_IN_USE);
	assert_int_equal(connect(one, (void *)&a, sizeof(a)), 0);
	other = accept(ls, NULL, NULL);
	close(ls);
	close(leave_at(LIVE));
	assert_status(held_ports_claim(p, htons(LIVE), true), UW_E_ADDR_IN_USE);
	close(other);
	close(one);
	assert_status(claim_soon(p, LIVE), UW_OK);
}

/* No descriptor can be made until the limit that this returns is set again. */
static struct rlimit forbid_descriptors(void)
{
	struct rlimit before, none;

	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	return before;
}

/* Else a process that is out of descriptors would answer its own segments with RST. */
static void a_port_stays_anothers_while_nobody_can_be_asked(void **state)
{
	struct held_ports *p = *state;
	int fd = listen_at(PORT);
	struct rlimit before;

	assert_false(held_ports_is_ours(p, htons(PORT)));
	held_ports_tidy(p);
	before = forbid_descriptors();
	assert_false(held_ports_is_ours(p, htons(PORT)));
	assert_true(held_ports_is_ours(p, htons(PORT + 1)));
	setrlimit(RLIMIT_NOFILE, &before);
	close(fd);
	held_ports_tidy(p);
	assert_true(held_ports_is_ours(p, htons(PORT)));
}

/* What is written to stderr until heard() is called. */
static int listen_to_stderr(void)
{
	int was = dup(STDERR_FILENO), to = memfd_create("stderr", MFD_CLOEXEC);

	assert_true(was >= 0 && to >= 0);
	assert_int_equal(dup2(to, STDERR_FILENO), STDERR_FILENO);
	close(to);
	return was;
}

static void heard(int was, char *out, size_t size)
{
	ssize_t n = pread(STDERR_FILENO, out, size - 1, 0);

	assert_true(n >= 0);
	out[n] = '\0';
	assert_int_equal(dup2(was, STDERR_FILENO), STDERR_FILENO);
	close(was);
}

static void want_of_a_descriptor_is_said_once(void **state)
{
	struct held_ports *p = *state;
	struct rlimit before;
	char said[512];
	int was = listen_to_stderr();

	before = forbid_descriptors();
	for (unsigned i = 0; i < 3; i++)
		assert_status(held_ports_claim(p, htons((uint16_t)(PORT + i)), false), UW_E_NO_FDS);
	setrlimit(RLIMIT_NOFILE, &before);
	heard(was, said, sizeof(said));
	assert_string_equal(said, "uwarp: no file descriptor is left to hold TCP port 4000 with "
				  "(ulimit -n): Too many open files\n");
	assert_status(held_ports_claim(p, htons(PORT), false), UW_OK);
}

static void count_changes(void *arg)
{
	++*(unsigned *)arg;
}

/* Late segments of a connection find the port held. */
static void a_port_outlives_its_last_user(void **state)
{
	struct held_ports *p = *state;
	unsigned changes = 0;
	uint16_t list[2];

	p->changed = count_changes;
	p->arg = &changes;
	for (unsigned i = 0; i < 2; i++)
		assert_status(held_ports_claim(p, htons(PORT), false), UW_OK);
	assert_int_equal(changes, 1);
	assert_int_equal(held_ports_list(p, list, 2), 1);
	assert_int_equal(list[0], htons(PORT));
	for (unsigned i = 0; i < 2; i++)
		held_ports_release(p, htons(PORT));
	held_ports_release(p, htons(PORT + 1)); /* not held: nothing */
	assert_true(held_ports_has(p, htons(PORT)));
	assert_status(held_ports_claim(p, htons(PORT), false), UW_OK);
	assert_int_equal(changes, 1);
}

/* doc/adr/0024: for 10 s, and no longer even if no port is claimed after it. */
static void and_is_given_back_in_time(void **state)
{
	struct held_ports *p = *state;
	unsigned changes = 0;

	assert_status(held_ports_claim(p, htons(PORT), false), UW_OK);
	assert_status(held_ports_claim(p, htons(PORT + 1), false), UW_OK);
	p->changed = count_changes;
	p->arg = &changes;
	held_ports_release(p, htons(PORT));
	later_s = 8;
	held_ports_tidy(p);
	assert_true(held_ports_has(p, htons(PORT)));
	assert_int_equal(changes, 0);
	later_s = 12;
	held_ports_tidy(p);
	later_s = 0;
	assert_false(held_ports_has(p, htons(PORT)));
	assert_true(held_ports_has(p, htons(PORT + 1))); /* it has its user */
	assert_int_equal(changes, 1);
	assert_int_equal(bind_to(PORT), 0);
}

static void closing_gives_all_back(void **state)
{
	struct held_ports *p = *state;

	for (uint16_t i = 0; i < 100; i++)
		assert_status(held_ports_claim(p, htons(PORT + i), false), UW_OK);
	held_ports_close(p);
	assert_int_equal(bind_to(PORT + 99), 0);
	assert_status(held_ports_open(p, &loopback, p->lock), UW_OK);
}

/* Of IPv6, where there are two addresses, one of which the interface has lost. */
static void a_port_of_ip6(void **state)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct held_at at = { .ip = { { { [15] = 1 } }, { { 0xfd, 9, [15] = 9 } } }, .n = 2 };
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons(PORT),
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct held_ports six, *four = *state;

	assert_status(held_ports_open(&six, &at, &lock), UW_OK);
	assert_status(held_ports_claim(&six, htons(PORT), false), UW_OK);
	assert_true(held_ports_has(&six, htons(PORT)));
	assert_true(bind(fd, (void *)&a, sizeof(a)) && errno == EADDRINUSE);
	assert_status(held_ports_claim(four, htons(PORT), false),
		      UW_OK); /* another version, another port */
	held_ports_close(&six);
	assert_int_equal(bind(fd, (void *)&a, sizeof(a)), 0);
	close(fd);
}

/* The only address, without which no port is of any use. */
static void without_its_address_no_port_is_held(void **state)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct held_at at = { .ip = { uw_ip_v4(MADE_HOST(9)) }, .n = 1 };
	struct held_ports p;

	(void)state;
	assert_true(made_run("ip address add 10.9.0.9/32 dev lo"));
	assert_status(held_ports_open(&p, &at, &lock), UW_OK);
	assert_true(made_run("ip address del 10.9.0.9/32 dev lo"));
	assert_status(held_ports_claim(&p, htons(PORT), false), UW_E_ADDR);
	assert_status(held_ports_status(-EACCES), UW_E_PERM);
	assert_status(held_ports_status(-EMFILE), UW_E_NO_FDS);
	held_ports_close(&p);
}

/* Descriptor 0 may be the link's, in a program that has closed its standard input. */
static void a_lost_address_costs_no_descriptor(void **state)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct held_at at = { .ip = { { { [15] = 1 } }, { { 0xfd, 9, [15] = 9 } } }, .n = 2 };
	struct held_ports six;
	int input = dup(STDIN_FILENO);

	(void)state;
	close(STDIN_FILENO);
	assert_int_equal(fds_keep(open("/dev/null", O_RDONLY | O_CLOEXEC)), 0);
	assert_status(held_ports_open(&six, &at, &lock), UW_OK);
	assert_status(held_ports_claim(&six, htons(PORT), false), UW_OK);
	held_ports_close(&six);
	assert_true(fcntl(0, F_GETFD) >= 0);
	fds_close(0);
	if (input > 0) {
		dup2(input, STDIN_FILENO);
		close(input);
	}
}

/* 0, or the errno that a second send hears: the kernel's "port unreachable" to the first. */
static int udp_to(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	struct sockaddr_in a = at(port);

	assert_int_equal(connect(fd, (void *)&a, sizeof(a)), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	err = send(fd, "x", 1, 0) < 0 ? errno : 0;
	close(fd);
	return err;
}

/* doc/adr/0032: several processes may have UD and UC QPs. */
static void nobody_answers_at_a_deaf_udp_port(void **state)
{
	struct held_ports *p = *state;
	int fd[2];

	assert_int_equal(udp_to(4791), ECONNREFUSED);
	fd[0] = held_ports_deafen_udp(&p->at, 0, htons(4791));
	fd[1] = held_ports_deafen_udp(&p->at, 0, htons(4791));
	assert_true(fd[0] >= 0 && fd[1] >= 0);
	assert_int_equal(udp_to(4791), 0);
	fds_close(fd[0]);
	assert_int_equal(udp_to(4791), 0);
	fds_close(fd[1]);
	assert_int_equal(udp_to(4791), ECONNREFUSED);
}

/* The program sees ENOMEM alone. */
static void want_of_a_descriptor_for_datagrams_names_the_limit(void **state)
{
	struct held_ports *p = *state;
	struct roce_port r = { .n = 0 };
	struct rlimit before;
	char said[512];
	int was = listen_to_stderr();

	before = forbid_descriptors();
	assert_status(roce_port_hold(&r, &p->at, NULL, "lo"), UW_E_NO_FDS);
	setrlimit(RLIMIT_NOFILE, &before);
	heard(was, said, sizeof(said));
	assert_string_equal(said, "uwarp: UDP port 4791 of lo is not to be had (Too many open "
				  "files): raise ulimit -n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_answers_at_a_held_port, up, down),
		cmocka_unit_test_setup_teardown(another_programs_port_is_refused, up, down),
		cmocka_unit_test_setup_teardown(a_port_is_nobodys_when_its_program_has_ended, up,
						down),
		cmocka_unit_test_setup_teardown(a_connections_port_stays_its_programs, up, down),
		cmocka_unit_test_setup_teardown(connections_that_have_ended_keep_no_named_port, up,
						down),
		cmocka_unit_test_setup_teardown(live_connections_keep_a_named_port, up, down),
		cmocka_unit_test_setup_teardown(a_port_stays_anothers_while_nobody_can_be_asked, up,
						down),
		cmocka_unit_test_setup_teardown(want_of_a_descriptor_is_said_once, up, down),
		cmocka_unit_test_setup_teardown(a_port_outlives_its_last_user, up, down),
		cmocka_unit_test_setup_teardown(and_is_given_back_in_time, up, down),
		cmocka_unit_test_setup_teardown(nobody_answers_at_a_deaf_udp_port, up, down),
		cmocka_unit_test_setup_teardown(want_of_a_descriptor_for_datagrams_names_the_limit,
						up, down),
		cmocka_unit_test_setup_teardown(closing_gives_all_back, up, down),
		cmocka_unit_test_setup_teardown(a_port_of_ip6, up, down),
		cmocka_unit_test_setup_teardown(without_its_address_no_port_is_held, up, down),
		cmocka_unit_test_setup_teardown(a_lost_address_costs_no_descriptor, up, down),
	};

	if (!made_namespace()) {
		print_message("no network namespace can be made here\n");
		return SKIPPED;
	}
	if (!made_socket_options()) {
		print_message("the emulator does not know the socket options of the link\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
