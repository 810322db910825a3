/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports whose driver is not as most are. The port is DPDK's net_null; what is special about its
 * driver stands in between, in place of DPDK's functions (the linker's --wrap).
 */
#include <arpa/inet.h>
#include <errno.h>

#include <rte_ethdev.h>

#include "io_dpdk/node.h"

#include "io/port/ethdev.h"

enum { QUEUES = 2, TAKEN_MAX = 8192 };

/* The driver, and what it has in hand. */
static struct driver {
	unsigned rings;	 /* that each queue fills, of as many buffers as descriptors less one */
	unsigned always; /* buffers that a queue takes besides */
	unsigned starts;
	uint16_t mtu_max; /* 0: net_null's */
	int all, groups;  /* its answers when it is asked for all frames, and for all to groups */
	unsigned asked_groups;
	struct taken {
		unsigned desc;
		struct rte_mempool *pool;
		struct rte_mbuf *m[TAKEN_MAX];
		unsigned n;
	} queue[QUEUES];
} driver;

int __real_rte_eth_rx_queue_setup(uint16_t port, uint16_t q, uint16_t desc, unsigned socket,
				  const struct rte_eth_rxconf *conf, struct rte_mempool *mp);
int __wrap_rte_eth_rx_queue_setup(uint16_t port, uint16_t q, uint16_t desc, unsigned socket,
				  const struct rte_eth_rxconf *conf, struct rte_mempool *mp);
int __real_rte_eth_dev_start(uint16_t port);
int __wrap_rte_eth_dev_start(uint16_t port);
int __real_rte_eth_dev_stop(uint16_t port);
int __wrap_rte_eth_dev_stop(uint16_t port);

int __real_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);

int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	int rc = __real_rte_eth_dev_info_get(port, info);

	if (driver.mtu_max)
		info->max_mtu = driver.mtu_max;
	return rc;
}

int __real_rte_eth_promiscuous_enable(uint16_t port);
int __wrap_rte_eth_promiscuous_enable(uint16_t port);
int __wrap_rte_eth_allmulticast_enable(uint16_t port);

int __wrap_rte_eth_promiscuous_enable(uint16_t port)
{
	return driver.all ? driver.all : __real_rte_eth_promiscuous_enable(port);
}

int __wrap_rte_eth_allmulticast_enable(uint16_t port)
{
	driver.asked_groups++;
	(void)port;
	return driver.groups;
}

int __wrap_rte_eth_rx_queue_setup(uint16_t port, uint16_t q, uint16_t desc, unsigned socket,
				  const struct rte_eth_rxconf *conf, struct rte_mempool *mp)
{
	struct rte_eth_txq_info tx;

	/* DPDK 24.11's net_tap cuts segments only if the queue to send is there first. */
	CHECK(rte_eth_tx_queue_info_get(port, q, &tx) != -EINVAL);
	CHECK(q < QUEUES && driver.queue[q].n == 0);
	driver.queue[q].desc = desc;
	driver.queue[q].pool = mp;
	return __real_rte_eth_rx_queue_setup(port, q, desc, socket, conf, mp);
}

int __wrap_rte_eth_dev_start(uint16_t port)
{
	driver.starts++;
	for (unsigned i = 0; i < QUEUES; i++) {
		struct taken *t = &driver.queue[i];

		if (!t->pool)
			continue;
		t->n = driver.rings * (t->desc - 1) + driver.always;
		CHECK(t->n <= TAKEN_MAX);
		for (unsigned k = 0; k < t->n; k++)
			CHECK((t->m[k] = rte_pktmbuf_alloc(t->pool)));
	}
	return __real_rte_eth_dev_start(port);
}

int __wrap_rte_eth_dev_stop(uint16_t port)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		struct taken *t = &driver.queue[i];

		rte_pktmbuf_free_bulk(t->m, t->n);
		t->n = 0;
	}
	return __real_rte_eth_dev_stop(port);
}

static void in_a_child(node_fn fn)
{
	struct board *b = board_new();

	assert_int_equal(reap(spawn(b, fn, 0), WAIT_MS), 0);
	board_free(b);
}

/* --- opening --- */

struct attempt {
	struct dpdk_config cfg;
	struct io_link *l[QUEUES];
	uw_status st;
};

static void try_open(void *arg)
{
	struct attempt *a = arg;
	struct io_env env[QUEUES] = { 0 };

	a->st = dpdk_links_open(&a->cfg, env, a->l);
}

/* Open the port as the driver is; what was said goes to said. */
static struct attempt open_port(unsigned queues, unsigned mtu, char said[512])
{
	struct attempt a = { .cfg = { .link = "net_null0",
				      .addr = htonl(0x0a000001u),
				      .mask = htonl(0xffffff00u),
				      .mtu = mtu,
				      .queues = queues,
				      .addr_fd = -1 } };

	memset(driver.queue, 0, sizeof(driver.queue));
	driver.starts = 0;
	capture_stderr(try_open, &a, said, 512);
	return a;
}

static void close_port(const struct attempt *a)
{
	for (unsigned i = 0; i < a->cfg.queues; i++)
		a->l[i]->ops->close(a->l[i]);
}

static bool one_line(const char *said, const char *text)
{
	bool ok = strncmp(said, "uwarp: ", 7) == 0 && strstr(said, text) &&
		  strchr(said, '\n') == said + strlen(said) - 1;

	if (!ok)
		fprintf(stderr, "wanted '%s', said: %s\n", text, said);
	return ok;
}

/* --- buffers --- */

/* What connections keep must not take the last buffers from under the driver. */
static void opens_with_spare(unsigned queues, unsigned rings, unsigned desc)
{
	char said[512];

	driver.rings = rings;
	struct attempt a = open_port(queues, 0, said);
	CHECK(a.st == UW_OK && !*said);
	for (unsigned i = 0; i < queues; i++) {
		const struct taken *t = &driver.queue[i];

		CHECK(t->desc == desc && t->n == rings * (desc - 1));
		CHECK(rte_mempool_avail_count(t->pool) > ETHDEV_SPARE);
	}
	close_port(&a);
}

static int rings(struct node *n, int arg)
{
	char said[512];

	(void)n;
	(void)arg;
	opens_with_spare(1, 1, 1024);
	CHECK(driver.starts == 1);
	opens_with_spare(1, 2, 1024);
	opens_with_spare(2, 1, 1024);
	opens_with_spare(2, 2, 512); /* of 2,048 buffers it would leave 2 */
	CHECK(driver.starts == 2);
	/* With whatever it is given too few are left: the port would soon stand still. */
	driver = (struct driver){ .always = 2000 };
	struct attempt a = open_port(2, 0, said);
	CHECK(a.st == UW_E_NO_LINK && one_line(said, "cannot open link net_null0: No buffer"));
	driver.always = 0;
	opens_with_spare(2, 1, 1024);
	return 0;
}

static void a_driver_that_fills_two_rings(void **state)
{
	(void)state;
	in_a_child(rings);
}

/* --- the MTU --- */

static void opens_with_mtu(unsigned asked, unsigned mtu)
{
	char said[512];
	struct attempt a = open_port(2, asked, said);

	CHECK(a.st == UW_OK && !*said);
	CHECK(a.l[0]->mtu == mtu && a.l[1]->mtu == mtu);
	close_port(&a);
}

static int takes_1450(struct node *n, int arg)
{
	char said[512];

	(void)n;
	(void)arg;
	opens_with_mtu(9000, 9000); /* first: it needs the most memory */
	opens_with_mtu(0, 1500);
	driver.mtu_max = 9000;
	opens_with_mtu(0, 1500);
	driver.mtu_max = 1450;
	opens_with_mtu(0, 1450);
	opens_with_mtu(1450, 1450);
	opens_with_mtu(576, 576);
	struct attempt a = open_port(2, 1451, said);
	CHECK(a.st == UW_E_INVAL);
	CHECK(one_line(said, "an MTU of 1451 does not fit link net_null0: it takes up to 1450"));
	return 0;
}

static void a_driver_of_a_small_mtu(void **state)
{
	(void)state;
	in_a_child(takes_1450);
}

/* --- frames to groups --- */

static void hears(int all, int groups, unsigned asked, const char *text)
{
	char said[512];

	driver = (struct driver){ .all = all, .groups = groups };
	struct attempt a = open_port(1, 0, said);
	CHECK(a.st == UW_OK && driver.asked_groups == asked);
	CHECK(text ? one_line(said, text) : !*said);
	close_port(&a);
}

static int refuses(struct node *n, int arg)
{
	static const char text[] = "link net_null0 lets through neither all frames nor all to "
				   "groups: IPv6 and multicast may not work";

	(void)n;
	(void)arg;
	hears(0, -EPERM, 0, NULL);
	hears(-EPERM, 0, 1, NULL);
	hears(-EPERM, -EPERM, 1, text);
	hears(-ENOTSUP, -EIO, 1, text);
	hears(-ENOTSUP, -ENOTSUP, 1, NULL); /* a virtual one that keeps nothing back */
	return 0;
}

static void a_driver_that_refuses_groups(void **state)
{
	(void)state;
	in_a_child(refuses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_driver_that_fills_two_rings),
		cmocka_unit_test(a_driver_of_a_small_mtu),
		cmocka_unit_test(a_driver_that_refuses_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
