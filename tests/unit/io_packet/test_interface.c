/* SPDX-License-Identifier: BSD-3-Clause */
/* The link and what becomes of its interface: uw1, whose kernel has 10.9.0.2, fe80::b and fd09::2.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/links.h"
#include "io/packet/interface.h"
#include "io/packet/packet.h"
#include "made.h"

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int up(void **state)
{
	(void)state;
	return made_run("ip link add uw0 type veth peer name uw1 && "
			"ip link set dev uw1 addrgenmode none && "
			"ip link set uw0 up && ip link set uw1 up && "
			"ip address replace fe80::b/64 dev uw1 nodad && "
			"ip address replace fd09::2/64 dev uw1 nodad && "
			"ip address add 10.9.0.2/24 dev uw1")
		       ? 0
		       : -1;
}

static int down(void **state)
{
	(void)state;
	return made_run("ip link del uw0") ? 0 : -1;
}

static struct io_link *open_as_it_is(void)
{
	const struct packet_config cfg = { .interface = "uw1" };
	const struct io_env env = { 0 };
	struct io_link *l;

	assert_status(packet_link_open(&cfg, &env, &l), UW_OK);
	return l;
}

static struct io_link *open_it(void)
{
	struct io_link *l = open_as_it_is();

	assert_int_equal(io_shared_versions(l), IO_V4 | IO_V6);
	return l;
}

/* A frame of 65535 octets behind Ethernet's header has a length of more than 16 bits. */
static void the_largest_mtu_leaves_room_for_the_header(void **state)
{
	struct io_link *l;

	(void)state;
	assert_true(made_run("ip link set uw1 mtu 65535"));
	l = open_it();
	assert_int_equal(l->mtu, IO_MTU_MAX);
	assert_in_range(l->mtu + 14, 1, UINT16_MAX);
	l->ops->close(l);
}

/* Before the link is open programs ask how large their datagrams may be. */
static void the_size_is_foreseen(void **state)
{
	static const char *const named[] = { "uw1", "packet:uw1", "af_packet:uw1" };
	struct uw_config c = { .ip = "10.9.0.9" };
	struct io_link *l, soon;

	(void)state;
	assert_true(made_run("ip link set uw1 mtu 900"));
	l = open_as_it_is();
	for (unsigned i = 0; i < COUNT(named); i++) {
		snprintf(c.link, sizeof(c.link), "%s", named[i]);
		link_foresee(&c, &soon);
		assert_int_equal(soon.mtu, 900);
		assert_int_equal(soon.mtu, l->mtu);
		assert_int_equal(soon.bps, l->bps);
		assert_int_equal(soon.n_ip6, 0); /* RFC 8200 §5: 1280 octets at least */
	}
	c.mtu = 800;
	link_foresee(&c, &soon);
	assert_int_equal(soon.mtu, 800);
	strcpy(c.link, "packet:nosuch");
	link_foresee(&c, &soon); /* said when it is opened */
	assert_int_equal(soon.mtu, 800);
	l->ops->close(l);
}

/* As that of the interface (test_link.c) must not. */
static void the_error_of_lo_does_not_end_every_sleep(void **state)
{
	struct io_link *l = open_it();
	uint64_t began;

	(void)state;
	assert_true(l->frames_fd[1] >= 0);
	assert_true(made_run("ip link set lo down"));
	l->ops->sleep(l, 1);
	for (unsigned i = 0; i < 10; i++) { /* the kernel says a word or two on uw1 */
		began = now_us();
		l->ops->sleep(l, 20000);
		if (now_us() - began >= 20000)
			break;
	}
	assert_true(now_us() - began >= 20000);
	assert_true(made_run("ip link set lo up"));
	l->ops->close(l);
}

/* RoCEv2's port is held at the addresses that the interface still has. */
static void datagrams_go_on_without_a_lost_address(void **state)
{
	static const char *const lost[] = { "ip address del fd09::2/64 dev uw1",
					    "ip address del 10.9.0.2/24 dev uw1",
					    "ip address flush dev uw1" };
	static const uw_status what[] = { UW_OK, UW_OK, UW_E_ADDR };
	struct io_link *l;

	(void)state;
	for (unsigned i = 0; i < COUNT(lost); i++) {
		assert_int_equal(up(NULL), 0);
		l = open_it();
		assert_true(made_run(lost[i]));
		assert_status(l->ops->claim_packets(l, 1), what[i]);
		l->ops->close(l);
		assert_int_equal(down(NULL), 0);
	}
}

/* 0: right. In a namespace whose interfaces never had an address. */
static int in_a_new_namespace(void)
{
	const struct uw_ip its = uw_ip_v4(inet_addr("10.9.0.2")),
			   other = uw_ip_v4(inet_addr("10.9.0.3"));

	if (unshare(CLONE_NEWNET) || interface_kernel_has(&its, 0) ||
	    !made_run("ip link add uw0 type veth peer name uw1 && "
		      "ip address add 10.9.0.2/24 dev uw1"))
		return 1;
	return !interface_kernel_has(&its, 0) || interface_kernel_has(&other, 0);
}

/* As `ip netns add` leaves it: lo is down, and the kernel lets sockets be bound to any address. */
static void a_new_namespace_has_no_address(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(in_a_new_namespace());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_largest_mtu_leaves_room_for_the_header, up,
						down),
		cmocka_unit_test_setup_teardown(the_size_is_foreseen, up, down),
		cmocka_unit_test_setup_teardown(the_error_of_lo_does_not_end_every_sleep, up, down),
		cmocka_unit_test(datagrams_go_on_without_a_lost_address),
		cmocka_unit_test(a_new_namespace_has_no_address),
	};

	if (!made_ready())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
