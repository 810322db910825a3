/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's answers about the loopback of a network namespace of our own. */
#include "io/route/kernel.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static bool isolated;

static int sh(const char *command)
{
	return system(command); /* NOLINT(cert-env33-c): words of this file */
}

static void need_namespace(void)
{
	if (!isolated)
		skip();
}

static bool reaches(struct route_watch *w, const char *four, bool expected)
{
	struct route_kernel k;
	unsigned a, b, c, d;
	struct uw_ip to;
	bool has;

	assert_int_equal(sscanf(four, "%u.%u.%u.%u", &a, &b, &c, &d), 4);
	to = uw_ip_v4(htobe32(a << 24 | b << 16 | c << 8 | d));
	assert_true(route_watch_read(w, &k));
	has = route_find(&k.routes, &to);
	route_clear(&k.routes);
	return has == expected;
}

static void no_such_interface(void **state)
{
	struct route_watch w;

	(void)state;
	assert_int_equal(route_watch_open(&w, "no-such"), UW_E_NO_LINK);
}

static void routes_and_addresses(void **state)
{
	struct route_kernel k;
	struct route_watch w;

	(void)state;
	need_namespace();
	assert_int_equal(
		sh("ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 "
		   "mtu 1400 up && "
		   "ip address add 10.9.0.1/24 dev d0 && ip route add 10.8.0.0/16 via 10.9.0.254"),
		0);
	assert_int_equal(route_watch_open(&w, "d0"), UW_OK);
	assert_true(route_watch_read(&w, &k));
	assert_int_equal(k.mtu, 1400);
	assert_true(k.up);
	assert_int_equal(k.n_addr, 1);
	route_clear(&k.routes);
	assert_true(reaches(&w, "10.8.1.1", true));
	assert_true(reaches(&w, "10.9.0.7", true));
	assert_true(reaches(&w, "10.7.0.7", false));
	route_watch_close(&w);
}

/* An emulator of Linux may refuse the question. */
static bool tells_of_neighbours(void)
{
	struct {
		struct nlmsghdr h;
		struct ndmsg m;
	} q = { .h = { .nlmsg_len = sizeof(q),
		       .nlmsg_type = RTM_GETNEIGH,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.m = { .ndm_family = AF_INET } };
	union {
		struct nlmsghdr h;
		uint8_t octets[4096];
	} a;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	bool told = send(fd, &q, sizeof(q), 0) > 0 && recv(fd, &a, sizeof(a), 0) > 0 &&
		    a.h.nlmsg_type != NLMSG_ERROR;

	close(fd);
	return told;
}

/* As the administrator has fixed it; and when it is taken back that is heard. */
static void fixed_neighbours(void **state)
{
	const struct uw_ip four = uw_ip_v4(htobe32(0x0a090009));
	struct route_kernel k;
	struct route_watch w;

	(void)state;
	need_namespace();
	if (!tells_of_neighbours())
		skip();
	assert_int_equal(route_watch_open(&w, "d0"), UW_OK);
	assert_int_equal(
		sh("ip neighbour add 10.9.0.9 lladdr 02:00:00:00:00:07 dev d0 nud permanent; "
		   "ip neighbour add 10.9.0.8 lladdr 02:00:00:00:00:08 dev d0 nud reachable"),
		0);
	assert_int_equal(route_watch_wait(&w, -1), ROUTE_NEWS);
	assert_true(route_watch_read(&w, &k));
	assert_int_equal(k.routes.n_near, 1);
	assert_int_equal(route_mac(&k.routes, &four)[5], 7);
	route_clear(&k.routes);
	assert_int_equal(sh("ip neighbour del 10.9.0.9 dev d0"), 0);
	assert_int_equal(route_watch_wait(&w, -1), ROUTE_NEWS);
	assert_true(route_watch_read(&w, &k));
	assert_int_equal(k.routes.n_near, 0);
	route_clear(&k.routes);
	route_watch_close(&w);
}

static void *stop(void *arg)
{
	usleep(1000);
	route_watch_stop(arg);
	return NULL;
}

static void changes_are_heard(void **state)
{
	struct route_watch w;
	pthread_t t;

	(void)state;
	need_namespace();
	assert_int_equal(route_watch_open(&w, "d0"), UW_OK);
	assert_int_equal(sh("ip route add default via 10.9.0.253"), 0);
	assert_int_equal(route_watch_wait(&w, -1), ROUTE_NEWS);
	assert_true(reaches(&w, "10.7.0.7", true));
	assert_int_equal(route_watch_wait(&w, 1), ROUTE_QUIET);
	assert_int_equal(pthread_create(&t, NULL, stop, &w), 0);
	assert_int_equal(route_watch_wait(&w, -1), ROUTE_STOPPED);
	pthread_join(t, NULL);
	route_watch_close(&w);
}

/* The MTU changes every 2 ms, until it is said to be enough, or for 3 s. */
struct churn {
	_Atomic bool enough, ended;
};

static void *change_on(void *arg)
{
	struct churn *c = arg;
	struct ifreq r = { .ifr_name = "d0" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned i = 0; i < 1500 && !c->enough; i++) {
		r.ifr_mtu = i % 2 ? 1400 : 1401;
		ioctl(fd, SIOCSIFMTU, &r);
		usleep(2000);
	}
	c->ended = true;
	close(fd);
	return NULL;
}

/* As on a router whose routes change all the time. */
static void changes_without_an_end_are_heard(void **state)
{
	struct churn c = { 0 };
	struct route_watch w;
	pthread_t t;

	(void)state;
	need_namespace();
	assert_int_equal(route_watch_open(&w, "d0"), UW_OK);
	assert_int_equal(pthread_create(&t, NULL, change_on, &c), 0);
	assert_int_equal(route_watch_wait(&w, -1), ROUTE_NEWS);
	assert_false(c.ended);
	c.enough = true;
	pthread_join(t, NULL);
	route_watch_close(&w);
}

/* Not a question that fails: there is no such interface any more. */
static void an_interface_that_is_deleted(void **state)
{
	struct route_kernel k;
	struct route_watch w;

	(void)state;
	need_namespace();
	assert_int_equal(sh("ip link add gone0 type veth peer name gone1"), 0);
	assert_int_equal(route_watch_open(&w, "gone0"), UW_OK);
	assert_true(route_watch_read(&w, &k));
	assert_true(k.there);
	route_clear(&k.routes);
	assert_int_equal(sh("ip link del gone0"), 0);
	assert_int_equal(route_watch_wait(&w, -1), ROUTE_NEWS);
	assert_true(route_watch_read(&w, &k));
	assert_false(k.there);
	route_clear(&k.routes);
	route_watch_close(&w);
}

/* A connection of the program that has ended, where our sockets were until it closed them. */
static void what_the_program_has_taken_is_left_alone(void **state)
{
	struct route_watch w = { .ask = -1, .bell = -1 };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	w.hear = pair[0];
	assert_int_equal(route_watch_wait(&w, 2000), ROUTE_STOPPED);
	route_watch_stop(&w);
	route_watch_close(&w);
	assert_int_equal(close(pair[0]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_such_interface),
		cmocka_unit_test(routes_and_addresses),
		cmocka_unit_test(changes_are_heard),
		cmocka_unit_test(fixed_neighbours),
		cmocka_unit_test(changes_without_an_end_are_heard),
		cmocka_unit_test(an_interface_that_is_deleted),
		cmocka_unit_test(what_the_program_has_taken_is_left_alone),
	};

	isolated = !unshare(CLONE_NEWNET) && !sh("ip link set lo up");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
