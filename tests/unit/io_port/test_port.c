/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of other kinds than memif: kernel interfaces of two network namespaces that the test
 * makes, and DPDK's own virtual devices. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#include "io_dpdk/node.h"

static int setup(void **state)
{
	*state = board_new();
	return 0;
}

static int teardown(void **state)
{
	board_free(*state);
	return 0;
}

/* --- two namespaces with a cable between them --- */

struct kind {
	const char *link; /* up to the interface */
	unsigned mtu;
};

static const struct kind kinds[] = { { "af_packet", 1500 },
				     { "af_packet", 9000 },
				     { "af_xdp", 1500 } };

static bool lay_cable(pid_t other, unsigned mtu)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link add uw0 mtu %u type veth peer name uw1 mtu %u netns %d && "
		 "ip link set uw0 up && nsenter -t %d -n ip link set uw1 up",
		 mtu, mtu, (int)other, (int)other);
	return run(command);
}

static uw_status open_end(struct node *n, const struct kind *k, int end)
{
	char link[64];
	struct dpdk_config cfg = { .link = link,
				   .addr = htonl(0x0a000001u + (unsigned)end),
				   .mask = htonl(0xffffff00u),
				   .addr_fd = -1 };

	snprintf(link, sizeof(link), "%s:uw%d", k->link, end);
	return node_open_with(n, &cfg);
}

static void exchange(struct node *n, int end)
{
	unsigned frame = n->l->mtu + 14;
	const unsigned lengths[] = { 60, 61, 64, 513, 1514, frame - 1, frame };

	memcpy(&n->board->word[2 + end], n->l->mac, 6);
	atomic_fetch_add(&n->board->count[0], 1);
	while (atomic_load(&n->board->count[0]) < 2)
		ms_sleep(1);
	memcpy(n->peer_mac, &n->board->word[2 + !end], 6);
	n->by_mac = true;
	for (unsigned i = 0; i < 300; i++) {
		unsigned len = lengths[i % COUNT(lengths)];

		if (end == 0)
			CHECK(node_send(n, 0, len, i, 1 + i % 3));
		CHECK(node_receive(n, 0, WAIT_MS) == (int)i);
		if (end == 1)
			CHECK(node_send(n, 0, len, i, 1 + i % 3));
	}
	CHECK(n->l->stats.tx_frames == 300 && n->l->stats.tx_drops == 0);
	CHECK(node_send(n, 0, frame + 1, 1, 1) && n->l->stats.tx_drops == 1);
	CHECK(n->l->ops->pending(n->l)); /* who knows */
}

/* How many of the kernel's users have uw0 receive all frames; 1 if it is by the flag. */
static bool promiscuity(unsigned n)
{
	char command[128];

	snprintf(command, sizeof(command), "ip -d link show uw0 | grep -q 'promiscuity %u '", n);
	return run(command);
}

static int far_end(struct node *n, int arg)
{
	if (unshare(CLONE_NEWNET))
		return SKIPPED;
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	uw_status st = open_end(n, &kinds[arg], 1);
	if (st)
		return SKIPPED;
	exchange(n, 1);
	node_close(n);
	CHECK(board_wait(n->board, 3)); /* with this namespace its end of the cable would go */
	return 0;
}

static int near_end(struct node *n, int arg)
{
	const struct kind *k = &kinds[arg];

	if (!own_namespace())
		return SKIPPED;
	pid_t far = spawn(n->board, far_end, arg);
	CHECK(board_wait(n->board, 1));
	if (!lay_cable(far, k->mtu)) {
		kill(far, SIGKILL);
		return SKIPPED;
	}
	board_step(n->board, 2);
	uw_status st = open_end(n, k, 0);
	if (st == UW_E_PERM || (st && strcmp(k->link, "af_packet"))) {
		kill(far, SIGKILL);
		return SKIPPED;
	}
	CHECK(st == UW_OK);
	CHECK(n->l->mtu == k->mtu && n->l->flags == IO_NEIGHBOURS && n->l->bps > 0);
	CHECK(promiscuity(1));
	exchange(n, 0);
	node_close(n);
	CHECK(promiscuity(0));
	/* A second time in the same process, which DPDK's XDP driver is not made for. */
	if (strcmp(k->link, "af_xdp")) {
		CHECK(run("ip link set uw0 promisc on")); /* as somebody wants it: so it stays */
		CHECK(open_end(n, k, 0) == UW_OK);
		CHECK(promiscuity(2));
		node_close(n);
		CHECK(promiscuity(1));
	}
	board_step(n->board, 3);
	return reap(far, WAIT_MS);
}

static void over_a_cable(struct board *b, int arg)
{
	int rc = reap(spawn(b, near_end, arg), 3 * WAIT_MS);

	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, 0);
}

static void packet_socket(void **state)
{
	over_a_cable(*state, 0);
}

static void packet_socket_jumbo(void **state)
{
	over_a_cable(*state, 1);
}

static void xdp_socket(void **state)
{
	over_a_cable(*state, 2);
}

static int opens_and_stays(struct node *n, int arg)
{
	CHECK(open_end(n, &kinds[arg], 0) == UW_OK);
	board_step(n->board, 1);
	ms_sleep(2 * WAIT_MS);
	return 0;
}

/* The interface is as it was when a process that used it was killed, whoever else uses it. */
static int kills_one(struct node *n, int arg)
{
	if (!own_namespace() || !run("ip link add uw0 type veth peer name uw1 && "
				     "ip link set uw0 up && ip link set uw1 up"))
		return SKIPPED;
	pid_t other = spawn(n->board, opens_and_stays, arg);
	CHECK(board_wait(n->board, 1));
	CHECK(promiscuity(1));
	CHECK(open_end(n, &kinds[arg], 0) == UW_OK);
	CHECK(promiscuity(2));
	kill(other, SIGKILL);
	CHECK(reap(other, WAIT_MS) == 1000 + SIGKILL);
	CHECK(promiscuity(1));
	node_close(n);
	CHECK(promiscuity(0));
	return 0;
}

static void an_interface_after_a_kill(void **state)
{
	int rc = reap(spawn(*state, kills_one, 0), 3 * WAIT_MS);

	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, 0);
}

/* Both ends in one namespace, and with interface numbers for which DPDK gives both ports the
 * same fan-out group. */
static int far_neighbour(struct node *n, int arg)
{
	board_step(n->board, 1);
	CHECK(board_wait(n->board, 2));
	CHECK(open_end(n, &kinds[arg], 1) == UW_OK);
	exchange(n, 1);
	node_close(n);
	return 0;
}

static int near_neighbour(struct node *n, int arg)
{
	char command[256];
	int index = 1 << 14;

	if (!own_namespace())
		return SKIPPED;
	pid_t far = spawn(n->board, far_neighbour, arg);
	CHECK(board_wait(n->board, 1));
	snprintf(command, sizeof(command),
		 "ip link add uw0 index %d mtu 1500 type veth peer name uw1 index %d mtu 1500 && "
		 "ip link set uw0 up && ip link set uw1 up",
		 index, (index ^ (int)getpid() ^ (int)far) & 0xffff);
	if (!run(command)) {
		kill(far, SIGKILL);
		return SKIPPED;
	}
	board_step(n->board, 2);
	CHECK(open_end(n, &kinds[arg], 0) == UW_OK);
	exchange(n, 0);
	node_close(n);
	return reap(far, WAIT_MS);
}

static void packet_sockets_side_by_side(void **state)
{
	int rc = reap(spawn(*state, near_neighbour, 0), 3 * WAIT_MS);

	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, 0);
}

/* --- DPDK's own --- */

static int through_null(struct node *n, int arg)
{
	struct dpdk_config cfg = { .link = "net_null0,size=60,no-rx=1",
				   .addr = htonl(0x0a000001u),
				   .mask = htonl(0xffffff00u),
				   .addr_fd = -1 };

	(void)arg;
	CHECK(node_open_with(n, &cfg) == UW_OK);
	n->by_mac = true;
	for (unsigned i = 0; i < 10000; i++) /* more than there are buffers */
		CHECK(node_send(n, 0, 1514, i, 2));
	CHECK(n->l->stats.tx_frames == 10000 && n->l->stats.no_frame == 0);
	CHECK(node_receive(n, 0, 10) == -1);
	CHECK(n->l->ops->resolve == NULL && n->l->ops->claim_port == NULL);
	node_close(n);
	return 0;
}

static void devargs(void **state)
{
	assert_int_equal(reap(spawn(*state, through_null, 0), WAIT_MS), 0);
}

/* --- mistakes --- */

struct attempt {
	struct node *n;
	struct dpdk_config cfg;
	uw_status st;
};

static void try_open(void *arg)
{
	struct attempt *a = arg;

	a->st = node_open_with(a->n, &a->cfg);
}

static bool fails(struct node *n, const char *link, unsigned mtu, uw_status want, const char *text)
{
	struct attempt a = { .n = n };
	char said[512];

	a.cfg = (struct dpdk_config){ .link = link,
				      .addr = htonl(0x0a000001u),
				      .mask = htonl(0xffffff00u),
				      .mtu = mtu,
				      .addr_fd = -1 };
	capture_stderr(try_open, &a, said, sizeof(said));
	bool ok = a.st == want && strncmp(said, "uwarp: ", 7) == 0 && strstr(said, text) &&
		  strchr(said, '\n') == said + strlen(said) - 1;
	if (!ok)
		fprintf(stderr, "%s: status %d, said: %s", link, (int)a.st, said);
	return ok;
}

static int mistakes(struct node *n, int arg)
{
	(void)arg;
	CHECK(fails(n, "af_packet:nosuch0", 0, UW_E_NO_LINK, "no interface nosuch0"));
	CHECK(fails(n, "af_packet:", 0, UW_E_INVAL, "names no device"));
	CHECK(fails(n, "af_packet:lo", 20, UW_E_INVAL, "MTU of 20"));
	CHECK(fails(n, "net_nosuch0", 0, UW_E_NO_LINK, "no driver of DPDK for link net_nosuch0"));
	CHECK(fails(n, "pci:0000:00:1f.7", 0, UW_E_NO_LINK, "PCI"));
	CHECK(fails(n, "", 0, UW_E_INVAL, "unknown link"));
	if (own_namespace()) { /* with nothing in it but a loopback that is down */
		CHECK(fails(n, "af_packet:lo", 0, UW_E_NO_LINK, "is down"));
		CHECK(run("ip link set lo mtu 1400 up"));
		CHECK(fails(n, "af_packet:lo", 1500, UW_E_INVAL, "has an MTU of 1400"));
		CHECK(run("ip link set lo mtu 9000"));
		CHECK(fails(n, "af_xdp:lo", 0, UW_E_INVAL, "takes up to"));
	}
	/* After which a good one opens. */
	return through_null(n, 0);
}

static void mistakes_are_named(void **state)
{
	assert_int_equal(reap(spawn(*state, mistakes, 0), WAIT_MS), 0);
}

/* DPDK's driver would take no frame any more after the first that is too long. */
static int jumbo_tap(struct node *n, int arg)
{
	(void)arg;
	if (access("/dev/net/tun", R_OK | W_OK) || !own_namespace())
		return SKIPPED;
	CHECK(fails(n, "net_tap0", 9000, UW_E_INVAL,
		    "an MTU of 9000 does not fit link net_tap0: it takes up to"));
	return 0;
}

static void more_than_a_tap_takes(void **state)
{
	int rc = reap(spawn(*state, jumbo_tap, 0), WAIT_MS);

	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, 0);
}

static int no_such_pci(struct node *n, int arg)
{
	(void)arg;
	CHECK(fails(n, "pci:0000:7f:1f.7", 0, UW_E_NO_LINK, "there is no PCI device 0000:7f:1f.7"));
	return 0;
}

static void a_pci_device_that_is_not_there(void **state)
{
	assert_int_equal(reap(spawn(*state, no_such_pci, 0), WAIT_MS), 0);
}

/* The interface's own address is used when none is given. */
static int takes_kernels(struct node *n, int arg)
{
	struct dpdk_config cfg = { .link = "af_packet:lo", .addr_fd = -1 };

	(void)arg;
	if (!own_namespace() || !run("ip link set lo up && ip addr flush dev lo && "
				     "ip addr add 10.9.8.7/24 dev lo"))
		return SKIPPED;
	CHECK(node_open_with(n, &cfg) == UW_OK);
	CHECK(n->l->addr == htonl(0x0a090807) && n->l->mask == htonl(0xffffff00));
	node_close(n);
	return 0;
}

static void the_interfaces_address(void **state)
{
	int rc = reap(spawn(*state, takes_kernels, 0), WAIT_MS);

	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(packet_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(packet_socket_jumbo, setup, teardown),
		cmocka_unit_test_setup_teardown(packet_sockets_side_by_side, setup, teardown),
		cmocka_unit_test_setup_teardown(xdp_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(an_interface_after_a_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(devargs, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(more_than_a_tap_takes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pci_device_that_is_not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(the_interfaces_address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
