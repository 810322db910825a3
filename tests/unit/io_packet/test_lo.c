/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ports of a shared address are the kernel's, as frames over lo say. */
#include "io/packet/lo.h"

#include "made.h"

enum { ADDRESS = 4, FROM = 14 + 12, TO = FROM + ADDRESS, FROM6 = 14 + 8, TO6 = FROM6 + 16 };

/* A frame of MACs of nothing, as the kernel's are; to_itself: from its destination. */
static uint32_t make(uint8_t *h, bool ip6, uint16_t from, uint16_t to, bool to_itself)
{
	const struct made m = { .ip6 = ip6, .src_port = from, .dst_port = to, .flags = ACK };
	uint32_t n = made_octets(&m, h);

	if (to_itself)
		memcpy(h + (ip6 ? FROM6 : FROM), h + (ip6 ? TO6 : TO), ip6 ? 16 : ADDRESS);
	return n;
}

static bool is_kernels(const struct lo *lo, bool ip6, uint16_t port, bool to_itself)
{
	uint8_t h[128];
	struct io_frame f = { .data = h };

	f.len = make(h, ip6, 7, port, to_itself);
	return lo_is_kernels(lo, &f);
}

static void a_port_from_the_address_to_itself_is_the_kernels(void **state)
{
	static struct lo lo; /* both sockets are there */
	uint8_t h[128];
	uint32_t n;

	(void)state;
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		assert_false(is_kernels(&lo, ip6, 9, true));
		lo_learn(&lo, h, make(h, ip6, 9, 7, true));
		assert_true(is_kernels(&lo, ip6, 9, true));
		assert_false(is_kernels(&lo, ip6, 10, true));
		n = make(h, ip6, 9, 7, true);
		memset(h, 2, 6); /* a process with uwarp has the port now */
		lo_learn(&lo, h, n);
		assert_false(is_kernels(&lo, ip6, 9, true));
	}
}

/* Any program of the host may send from a port that a process with an address of its own has. */
static void ports_of_other_addresses_are_not(void **state)
{
	static struct lo lo;
	uint8_t h[128];

	(void)state;
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		lo_learn(&lo, h, make(h, ip6, 9, 7, false));
		assert_false(is_kernels(&lo, ip6, 9, true));
		lo_learn(&lo, h, make(h, ip6, 9, 7, true));
		assert_false(is_kernels(&lo, ip6, 9, false));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_from_the_address_to_itself_is_the_kernels),
		cmocka_unit_test(ports_of_other_addresses_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
