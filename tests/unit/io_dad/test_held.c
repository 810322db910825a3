/* SPDX-License-Identifier: BSD-3-Clause */
/* An address of a process alone is one process's, whatever interfaces there are. */
#include "io/dad/held.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "uwtest.h"

#define FOUR htonl(0x0a09004d)

/* Numbers of no interface, and of no other run of this test at the same time. */
#define HERE  (0x80000000u | (uint32_t)getpid())
#define THERE (0xc0000000u | (uint32_t)getpid())

static struct io_link link_of(uint32_t addr, uint32_t flags)
{
	return (struct io_link){ .addr = addr, .flags = flags };
}

static void one_process_has_an_address(void **state)
{
	const struct io_link l = link_of(FOUR, 0);
	struct held_by who;
	struct held a, b;

	(void)state;
	assert_true(held_take(&a, &l, HERE, 0, &who));
	assert_int_equal(a.n, 1);
	assert_false(held_take(&b, &l, HERE, 0, &who));
	assert_int_equal(b.n, 0);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(uw_ip_v4_be(&who.ip), FOUR);
	/* the same one elsewhere, and in a VLAN, is another */
	assert_true(held_take(&b, &l, THERE, 0, &who));
	held_drop(&b);
	assert_true(held_take(&b, &l, HERE, 7, &who));
	held_drop(&b);
	held_drop(&a);
	assert_true(held_take(&b, &l, HERE, 0, &who));
	held_drop(&b);
}

static void the_kernels_are_nobodys(void **state)
{
	const struct io_link l = link_of(FOUR, IO_SHARED);
	struct held_by who;
	struct held a, b;

	(void)state;
	assert_true(held_take(&a, &l, HERE, 0, &who));
	assert_true(held_take(&b, &l, HERE, 0, &who));
	assert_int_equal(a.n + b.n, 0);
}

static void of_ipv6_all_but_the_link_local_one(void **state)
{
	struct io_link l = link_of(FOUR, IO_SHARED), other = link_of(0, 0);
	struct held_by who;
	struct held a, b;

	(void)state;
	l.n_ip6 = 3;
	for (unsigned i = 0; i < l.n_ip6; i++)
		l.ip6[i].ip.b[15] = (uint8_t)(i + 1);
	other.n_ip6 = 3;
	other.ip6[0] = l.ip6[0];
	other.ip6[1].ip.b[15] = 9;
	other.ip6[2] = l.ip6[2];
	assert_true(held_take(&a, &l, HERE, 0, &who));
	assert_int_equal(a.n, 2);
	assert_false(held_take(&b, &other, HERE, 0, &who));
	assert_int_equal(who.ip.b[15], 3);
	assert_int_equal(b.n, 0);
	other.n_ip6 = 2;
	assert_true(held_take(&b, &other, HERE, 0, &who)); /* 9 was given back */
	held_drop(&b);
	held_drop(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_has_an_address),
		cmocka_unit_test(the_kernels_are_nobodys),
		cmocka_unit_test(of_ipv6_all_but_the_link_local_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
