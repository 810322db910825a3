/* SPDX-License-Identifier: BSD-3-Clause */
/* The address that uwarp-run chose is one of an interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

static uint32_t v4(const struct sockaddr *sa)
{
	assert_non_null(sa);
	assert_int_equal(sa->sa_family, AF_INET);
	return ((const struct sockaddr_in *)sa)->sin_addr.s_addr;
}

/* How many entries the list has; *own is the last of our name. */
static unsigned find(const struct ifaddrs *list, const struct ifaddrs **own)
{
	unsigned n = 0;

	for (*own = NULL; list; list = list->ifa_next, n++) {
		if (!strcmp(list->ifa_name, "uwarp0"))
			*own = list;
	}
	return n;
}

static void usable_and_last(void **state)
{
	const struct ifaddrs *own;
	struct ifaddrs *list;

	(void)state;
	setenv("UWARP_IP", "10.77.0.5/24", 1);
	setenv("UWARP_LINK", "af_packet:x", 1);
	assert_int_equal(getifaddrs(&list), 0);
	find(list, &own);
	assert_non_null(own);
	assert_null(own->ifa_next);
	assert_int_equal(v4(own->ifa_addr), inet_addr("10.77.0.5"));
	assert_int_equal(v4(own->ifa_netmask), inet_addr("255.255.255.0"));
	assert_int_equal(v4(own->ifa_broadaddr), inet_addr("10.77.0.255"));
	assert_int_equal(own->ifa_flags & (IFF_UP | IFF_BROADCAST | IFF_LOOPBACK),
			 IFF_UP | IFF_BROADCAST);
	freeifaddrs(list);
	unsetenv("UWARP_LINK");
}

static void is6(const struct sockaddr *sa, const char *text)
{
	struct in6_addr want;

	assert_int_equal(inet_pton(AF_INET6, text, &want), 1);
	assert_int_equal(sa->sa_family, AF_INET6);
	assert_memory_equal(&((const struct sockaddr_in6 *)sa)->sin6_addr, &want, sizeof(want));
}

/* Those that uwarp-run chose in their order, then the one that a process has besides. */
static void of_both_versions(void **state)
{
	struct ifaddrs *list, *own;

	(void)state;
	setenv("UWARP_IP", "127.0.0.5/8,fd00::7f00:5/60", 1);
	assert_int_equal(getifaddrs(&list), 0);
	for (own = list; strcmp(own->ifa_name, "uwarp0"); own = own->ifa_next)
		;
	assert_int_equal(v4(own->ifa_addr), inet_addr("127.0.0.5"));
	own = own->ifa_next;
	is6(own->ifa_addr, "fd00::127.0.0.5");
	is6(own->ifa_netmask, "ffff:ffff:ffff:fff0::");
	assert_null(own->ifa_broadaddr);
	own = own->ifa_next;
	is6(own->ifa_addr, "fd75:7761:7270::127.0.0.5");
	is6(own->ifa_netmask, "ffff:ffff:ffff:ffff::");
	assert_null(own->ifa_next);
	freeifaddrs(list);
	setenv("UWARP_LINK", "af_packet:x", 1);
	assert_int_equal(getifaddrs(&list), 0);
	for (own = list; own->ifa_next; own = own->ifa_next)
		;
	is6(own->ifa_addr, "fd00::127.0.0.5");
	freeifaddrs(list);
	unsetenv("UWARP_LINK");
}

static void only_with_an_address(void **state)
{
	static const char *const none[] = {
		"",	   "here",    "127.0.0.2", "127.0.0.2/0", "127.0.0.2/33",
		"1.2.3/8", "fd00::1", "fd00::1/0", "fd00::1/129", "fd00::1/64x",
	};
	const struct ifaddrs *own;
	struct ifaddrs *list;
	unsigned n;

	(void)state;
	setenv("UWARP_IP", "127.0.0.2/8", 1);
	assert_int_equal(getifaddrs(&list), 0);
	n = find(list, &own) - 1; /* it has two */
	freeifaddrs(list);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		setenv("UWARP_IP", none[i], 1);
		assert_int_equal(getifaddrs(&list), 0);
		assert_int_equal(find(list, &own), n - 1);
		assert_null(own);
		freeifaddrs(list);
	}
	freeifaddrs(NULL);
}

static const struct ifaddrs *first(const struct ifaddrs *list)
{
	while (strcmp(list->ifa_name, "uwarp0") != 0)
		list = list->ifa_next;
	return list;
}

/* The engine is asked once the program has opened the device. */
static void as_the_device_has_it(void **state)
{
	const struct ifaddrs *own;
	struct ifaddrs *list;
	int fd;

	(void)state;
	setenv("UWARP_IP", "127.0.0.2/8", 1);
	setenv("UWARP_IP_AUTO", "1", 1);
	assert_int_equal(getifaddrs(&list), 0);
	own = first(list);
	assert_int_equal(v4(own->ifa_addr), inet_addr("127.0.0.2"));
	freeifaddrs(list);
	fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(getifaddrs(&list), 0);
	own = first(list);
	assert_int_equal(v4(own->ifa_addr), inet_addr("127.7.0.1"));
	assert_int_equal(v4(own->ifa_netmask), inet_addr("255.0.0.0"));
	freeifaddrs(list);
	setenv("UWARP_IP_AUTO", "", 1);
	assert_int_equal(getifaddrs(&list), 0);
	assert_int_equal(v4(first(list)->ifa_addr), inet_addr("127.0.0.2"));
	freeifaddrs(list);
	close(fd);
	unsetenv("UWARP_IP_AUTO");
}

/* uwarp-run --env prints it so where an earlier one has set it. */
static void an_empty_mtu_is_none(void **state)
{
	struct ifaddrs *list;

	(void)state;
	setenv("UWARP_IP", "127.0.0.2/8", 1);
	setenv("UWARP_MTU", "", 1);
	assert_int_equal(getifaddrs(&list), 0);
	assert_non_null(first(list)->ifa_next);
	is6(first(list)->ifa_next->ifa_addr, "fd75:7761:7270::127.0.0.2");
	freeifaddrs(list);
	unsetenv("UWARP_MTU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usable_and_last),	cmocka_unit_test(of_both_versions),
		cmocka_unit_test(only_with_an_address), cmocka_unit_test(as_the_device_has_it),
		cmocka_unit_test(an_empty_mtu_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
