/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter in a kernel: attached to one end of a socket pair, it sees what is sent as a frame. */
#include "io/packet/filter.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/be.h"
#include "made.h"

struct place {
	int end[2];
	uint8_t f[256];
	uint32_t n;
};

static int up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	const struct made m = { .src_port = 7, .dst_port = 4000, .flags = ACK, .payload = 9 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, p->end), 0);
	p->n = made_octets(&m, p->f);
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	close(p->end[0]);
	close(p->end[1]);
	free(p);
	return 0;
}

static void attach(const struct place *p, const struct filter_ask *a)
{
	struct sock_filter code[FILTER_MAX];
	struct sock_fprog prog = { (unsigned short)filter_make(a, code), code };

	assert_true(prog.len <= FILTER_MAX);
	assert_int_equal(setsockopt(p->end[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)),
			 0);
}

static bool passes(const struct place *p)
{
	uint8_t got[256];

	/* a filter that drops all makes send() fail or the message vanish */
	send(p->end[0], p->f, p->n, MSG_DONTWAIT);
	return recv(p->end[1], got, sizeof(got), MSG_DONTWAIT) == (ssize_t)p->n;
}

static void an_address_of_our_own(void **state)
{
	struct place *p = *state;
	const struct filter_ask a = { .addr = MADE_HOST(2) };

	attach(p, &a);
	assert_true(passes(p));
	p->f[14 + 9] = IPPROTO_ICMP;
	assert_true(passes(p));
	p->f[14 + 9] = IPPROTO_UDP;
	assert_false(passes(p));
	p->f[14 + 9] = IPPROTO_TCP;
	p->f[14 + 6] = 0x20; /* more fragments */
	assert_false(passes(p));
	p->f[14 + 6] = 0;
	p->f[14 + 19]++; /* to 10.9.0.3 */
	assert_false(passes(p));
}

/* doc/adr/0032: RoCEv2 passes, whoever else has the address; other UDP does not. */
static void packets_of_rocev2(void **state)
{
	struct place *p = *state;
	struct filter_ask a = { .addr = MADE_HOST(2) };

	for (int shared = 0; shared < 2; shared++) {
		a.shared = shared;
		attach(p, &a);
		p->f[14 + 9] = IPPROTO_UDP;
		uw_put16(p->f + 36, 4791);
		assert_true(passes(p));
		p->f[14] = 0x46; /* options */
		assert_false(passes(p));
		p->f[14] = 0x45;
		p->f[14 + 6] = 0x40; /* DF, as all of them have it */
		assert_true(passes(p));
		p->f[14 + 6] = 0;
		uw_put16(p->f + 36, 4790);
		assert_false(passes(p));
	}
}

/* To groups of IPv6 (RFC 4291 §2.7) as soon as there is a member; nothing else goes to them. */
static void packets_to_groups_of_ip6(void **state)
{
	struct place *p = *state;
	struct filter_ask a = { .addr = MADE_HOST(2) };

	for (int groups = 0; groups < 2; groups++) {
		a.groups6 = groups;
		attach(p, &a);
		memset(p->f, 0, sizeof(p->f));
		p->n = 80;
		uw_put16(p->f + 12, 0x86dd);
		p->f[20] = IPPROTO_UDP;
		p->f[38] = 0xff;
		p->f[53] = 7;
		uw_put16(p->f + 56, 4791);
		assert_int_equal(passes(p), groups);
		uw_put16(p->f + 56, 4790);
		assert_false(passes(p));
		uw_put16(p->f + 56, 4791);
		p->f[38] = 0xfd;
		assert_false(passes(p));
		p->f[38] = 0xff;
		p->f[20] = IPPROTO_TCP;
		assert_false(passes(p));
	}
}

static void arp_for(struct place *p, uint16_t op)
{
	memset(p->f, 0, sizeof(p->f));
	uw_put16(p->f + 12, 0x0806);
	uw_put16(p->f + 20, op);
	uw_put32(p->f + 38, 0x0a090002);
	p->n = 60;
}

/* Requests for an address that the kernel has are the kernel's to answer. */
static void address_resolution(void **state)
{
	struct place *p = *state;
	struct filter_ask a = { .addr = MADE_HOST(2) };

	for (int shared = 0; shared < 2; shared++) {
		a.shared = shared;
		attach(p, &a);
		arp_for(p, 1);
		assert_int_equal(passes(p), !shared);
		arp_for(p, 2);
		assert_true(passes(p));
		p->f[41]++;
		assert_false(passes(p));
	}
}

static void a_shared_address_by_ports(void **state)
{
	struct place *p = *state;
	uint16_t ports[FILTER_PORTS];
	struct filter_ask a = { .addr = MADE_HOST(2), .shared = true, .ports = { ports, 0 } };

	attach(p, &a);
	assert_false(passes(p)); /* there is none yet */
	for (unsigned n = 1; n <= FILTER_PORTS; n += FILTER_PORTS - 1) {
		for (unsigned i = 0; i < n; i++)
			ports[i] = htons((uint16_t)(5000 + i));
		ports[n - 1] = htons(4000);
		a.ports.n = n;
		attach(p, &a);
		assert_true(passes(p));
		uw_put16(p->f + 36, 4001);
		assert_false(passes(p));
		uw_put16(p->f + 36, 4000);
		p->f[14 + 9] = IPPROTO_ICMP;
		assert_false(passes(p));
		p->f[14 + 9] = IPPROTO_TCP;
	}
	a.ports.n = FILTER_PORTS + 1; /* all TCP comes, to be looked at by the link */
	attach(p, &a);
	uw_put16(p->f + 36, 4001);
	assert_true(passes(p));
}

/* RFC 4291 §2.7.1: a neighbour asks at ff02::1:ffXX:XXXX. */
static void ip6(void **state)
{
	struct place *p = *state;
	const struct made m = { .ip6 = true, .dst_port = 1, .flags = ACK };
	const struct uw_net own = { .ip = { .b = { 0xfd, 9, [15] = 2 } }, .bits = 64 };
	const struct filter_ask a = { .ip6 = &own, .n_ip6 = 1 };

	p->n = made_octets(&m, p->f);
	attach(p, &a);
	assert_true(passes(p));
	p->f[20] = 17; /* UDP */
	assert_false(passes(p));
	p->f[20] = IPPROTO_ICMPV6;
	assert_true(passes(p));
	p->f[50] = 0xff;
	assert_true(passes(p));
	p->f[53]++;
	assert_false(passes(p));
}

static void icmp6(struct place *p, uint8_t type)
{
	p->f[20] = IPPROTO_ICMPV6;
	p->f[54] = type;
}

/* What neighbours ask is the kernel's to answer; what they answer, and errors, are for both. */
static void a_shared_ip6_address_by_ports(void **state)
{
	struct place *p = *state;
	const struct made m = { .ip6 = true, .dst_port = 4000, .flags = ACK };
	const struct uw_net own[] = { { { { 0xfe, 0x80, [15] = 7 } }, 64 },
				      { { { 0xfd, 9, [15] = 2 } }, 64 } };
	uint16_t ports[FILTER_PORTS];
	struct filter_ask a = { .addr = MADE_HOST(2),
				.shared = true,
				.ports = { ports, 0 },
				.ip6 = own,
				.n_ip6 = 2,
				.shared6 = true,
				.ports6 = { ports, 0 } };

	p->n = made_octets(&m, p->f);
	attach(p, &a);
	assert_false(passes(p));
	for (unsigned i = 0; i < FILTER_PORTS; i++)
		ports[i] = htons((uint16_t)(3937 + i));
	a.ports.n = FILTER_PORTS; /* IPv4's count for IPv4 alone; the last one is 4000 */
	attach(p, &a);
	assert_false(passes(p));
	a.ports6.n = FILTER_PORTS;
	attach(p, &a);
	assert_true(passes(p));
	uw_put16(p->f + 56, 4001);
	assert_false(passes(p));
	icmp6(p, 136);
	assert_true(passes(p));
	icmp6(p, 2);
	assert_true(passes(p));
	icmp6(p, 1);
	assert_true(passes(p));
	icmp6(p, 135);
	assert_false(passes(p));
	icmp6(p, 128);
	assert_false(passes(p));
	p->f[53]++; /* to fd09::3 */
	icmp6(p, 136);
	assert_false(passes(p));
}

static void what_is_neither(void **state)
{
	struct place *p = *state;
	const struct filter_ask a = { .addr = MADE_HOST(2) };

	attach(p, &a);
	uw_put16(p->f + 12, 0x88cc);
	assert_false(passes(p));
	p->n = 10; /* a load beyond the end drops */
	assert_false(passes(p));
}

/* IEEE 802.1Q: with a VLAN nothing passes that has no tag; a socket pair has none. */
static void a_vlan(void **state)
{
	struct place *p = *state;
	struct filter_ask a = { .addr = MADE_HOST(2), .vlan = 7 };

	attach(p, &a);
	assert_false(passes(p));
	a.vlan = 0;
	attach(p, &a);
	assert_true(passes(p));
}

/* On lo: what processes of the same interface send. Nobody but they answers there, and a process
 * hears its own probe. */
static void between_processes(void **state)
{
	struct place *p = *state;
	struct filter_ask a = { .addr = MADE_HOST(2), .local = true, .mac = { 2, 1, 2, 3, 4, 5 } };

	for (int shared = 0; shared < 2; shared++) {
		a.shared = shared;
		attach(p, &a);
		arp_for(p, 1);
		uw_put32(p->f + 28, 0x0a090003);
		p->f[6] = 4;
		assert_false(passes(p)); /* from another interface */
		memcpy(p->f + 6, a.mac, 6);
		assert_true(passes(p));
		uw_put32(p->f + 28, 0);
		assert_false(passes(p));
		uw_put32(p->f + 28, 0x0a090002);
		assert_false(passes(p));
	}
}

/* RFC 4862 §5.4.3: a probe comes from the unspecified address. */
static void between_processes_by_ip6(void **state)
{
	struct place *p = *state;
	const struct made m = { .ip6 = true, .dst_port = 1, .flags = ACK };
	const struct uw_net own[] = { { { { 0xfe, 0x80, [15] = 7 } }, 64 },
				      { { { 0xfd, 9, [15] = 2 } }, 64 } };
	struct filter_ask a = {
		.ip6 = own, .n_ip6 = 2, .local = true, .mac = { 2, 1, 2, 3, 4, 5 }
	};

	p->n = made_octets(&m, p->f);
	memcpy(p->f + 6, a.mac, 6);
	for (int shared = 0; shared < 2; shared++) {
		a.shared6 = shared;
		attach(p, &a);
		icmp6(p, 135);
		memset(p->f + 38, 0, 16);
		memcpy(p->f + 38, "\xff\x02", 2);
		p->f[50] = 0xff;
		p->f[53] = 2;
		assert_true(passes(p));
		p->f[53] = 7;
		assert_true(passes(p));
		p->f[53] = 8;
		assert_false(passes(p));
		p->f[53] = 2;
		memset(p->f + 22, 0, 16);
		assert_false(passes(p));
		p->f[22] = 0xfd;
		memset(p->f + 6, 0, 6); /* the kernel's */
		assert_int_equal(passes(p), shared);
		memcpy(p->f + 6, a.mac, 6);
	}
}

/* The longest program has jumps that reach. */
static void all_at_once(void **state)
{
	struct place *p = *state;
	uint16_t ports[FILTER_PORTS] = { 0 };
	struct uw_net own[IO_IP6_MAX] = { 0 };
	struct filter_ask a = { .addr = MADE_HOST(2),
				.shared = true,
				.vlan = 7,
				.groups = true,
				.groups6 = true,
				.ports = { ports, FILTER_PORTS },
				.ip6 = own,
				.n_ip6 = IO_IP6_MAX,
				.shared6 = true,
				.ports6 = { ports, FILTER_PORTS } };

	attach(p, &a);
	a.local = true;
	attach(p, &a);
}

/* RFC 5227 §2.4: whoever says that our address is his, to whomever. */
static void another_host_with_our_address(void **state)
{
	struct place *p = *state;
	struct filter_ask a = { .addr = MADE_HOST(2) };

	for (int shared = 0; shared < 2; shared++) {
		a.shared = shared;
		attach(p, &a);
		arp_for(p, 2);
		uw_put32(p->f + 38, 0); /* answers our probe */
		assert_false(passes(p));
		uw_put32(p->f + 28, 0x0a090002);
		assert_int_equal(passes(p), !shared);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_address_of_our_own, up, down),
		cmocka_unit_test_setup_teardown(packets_of_rocev2, up, down),
		cmocka_unit_test_setup_teardown(packets_to_groups_of_ip6, up, down),
		cmocka_unit_test_setup_teardown(address_resolution, up, down),
		cmocka_unit_test_setup_teardown(a_shared_address_by_ports, up, down),
		cmocka_unit_test_setup_teardown(a_vlan, up, down),
		cmocka_unit_test_setup_teardown(another_host_with_our_address, up, down),
		cmocka_unit_test_setup_teardown(between_processes, up, down),
		cmocka_unit_test_setup_teardown(between_processes_by_ip6, up, down),
		cmocka_unit_test_setup_teardown(all_at_once, up, down),
		cmocka_unit_test_setup_teardown(ip6, up, down),
		cmocka_unit_test_setup_teardown(a_shared_ip6_address_by_ports, up, down),
		cmocka_unit_test_setup_teardown(what_is_neither, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
