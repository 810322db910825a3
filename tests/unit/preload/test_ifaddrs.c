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
	assert_int_equal(getifaddrs(&list), 0);
	find(list, &own);
	assert_non_null(own);
	assert_null(own->ifa_next);
	assert_int_equal(v4(own->ifa_addr), inet_addr("10.77.0.5"));
	assert_int_equal(v4(own->ifa_netmask), inet_addr("255.255.255.0"));
	assert_int_equal(own->ifa_flags & (IFF_UP | IFF_LOOPBACK), IFF_UP);
	freeifaddrs(list);
}

static void only_with_an_address(void **state)
{
	static const char *const none[] = {
		"", "here", "127.0.0.2", "127.0.0.2/0", "127.0.0.2/33", "1.2.3/8"
	};
	const struct ifaddrs *own;
	struct ifaddrs *list;
	unsigned n;

	(void)state;
	setenv("UWARP_IP", "127.0.0.2/8", 1);
	assert_int_equal(getifaddrs(&list), 0);
	n = find(list, &own);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usable_and_last),
		cmocka_unit_test(only_with_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
