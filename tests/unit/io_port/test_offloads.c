/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a port's offloads, VLAN tags, and how a port is specified. */
#include "io_dpdk/node.h"

#include <rte_log.h>

#include "io/dpdk/eal.h"
#include "io/port/offloads.h"
#include "io/port/spec.h"
#include "io/port/vlan.h"

enum { ROOM = 1536, FRAMES = 64, ETHER = 14, TAG = 4, VIRTIO = 12 };

static void in_a_child(node_fn fn)
{
	struct board *b = board_new();

	assert_int_equal(reap(spawn(b, fn, 0), WAIT_MS), 0);
	board_free(b);
}

static void a_line_for_a_port(void **state)
{
	struct rte_eth_dev_info info = { .driver_name = "net_e1000_igb",
					 .max_rx_queues = 8,
					 .max_tx_queues = 16 };
	struct offloads_used u = { .mtu = 1500, .queues = 2, .rx_csum = true, .tso = true };
	char text[192], small[40];

	(void)state;
	offloads_text(text, sizeof(text), &info, &u);
	assert_string_equal(text,
			    "net_e1000_igb, MTU 1500, 2 of 8 queues; in use: rx-checksum, tso; "
			    "not in use: tx-checksum, segments, rss, vlan");
	offloads_text(small, sizeof(small), &info, &u);
	assert_memory_equal(small, text, sizeof(small) - 1);
	assert_int_equal(small[sizeof(small) - 1], 0);
	u = (struct offloads_used){ 0 };
	offloads_text(text, sizeof(text), &info, &u);
	assert_null(strstr(text, "; in use"));
}

static void who_does_tags(void **state)
{
	struct rte_eth_dev_info info = { .driver_name = "net_ixgbe",
					 .rx_offload_capa = RTE_ETH_RX_OFFLOAD_VLAN_STRIP,
					 .tx_offload_capa = RTE_ETH_TX_OFFLOAD_VLAN_INSERT };

	(void)state;
	assert_true(vlan_offered(&info));
	info.driver_name = "net_virtio";
	assert_false(vlan_offered(&info));
	info.driver_name = NULL;
	info.rx_offload_capa = 0;
	assert_false(vlan_offered(&info));
}

static void the_largest_mtu(void **state)
{
	struct rte_eth_dev_info info = { .max_rx_pktlen = 9234, .max_mtu = UINT16_MAX };

	(void)state;
	assert_int_equal(ethdev_mtu_max(&info), 9216);
	info.max_mtu = 1600;
	assert_int_equal(ethdev_mtu_max(&info), 1600);
	info.max_rx_pktlen = 0; /* unknown */
	assert_int_equal(ethdev_mtu_max(&info), 1600);
	info.max_mtu = 0;
	assert_int_equal(ethdev_mtu_max(&info), UINT16_MAX);
	info = (struct rte_eth_dev_info){ .driver_name = "net_tap", .max_rx_pktlen = UINT16_MAX };
	assert_int_equal(ethdev_mtu_max(&info), 1504);
}

static struct rte_mbuf *received(struct rte_mempool *mp, bool tagged, uint16_t tci)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);

	CHECK(m);
	m->ol_flags |= tagged ? RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED : 0;
	m->vlan_tci = tci;
	return m;
}

static int tags(struct node *n, int arg)
{
	static struct frame_pools pools = { .nrx = FRAMES, .ntx = FRAMES };
	static struct io_link l;
	struct eal_need need = { .bytes = frame_pools_bytes(FRAMES, FRAMES, ROOM) };
	struct rte_mbuf *m[5], *first, *last;
	uint64_t drops = 0;

	(void)n;
	(void)arg;
	CHECK(eal_start(&need) == UW_OK);
	CHECK(frame_pools_open(&pools, &l, ROOM) == UW_OK);
	unsigned before = rte_mempool_avail_count(pools.rx);
	m[0] = first = received(pools.rx, true, 7);
	m[1] = received(pools.rx, false, 7);
	m[2] = received(pools.rx, true, 8);
	m[3] = received(pools.rx, false, 0);
	m[4] = last = received(pools.rx, true, 0xe007); /* of a high priority */
	CHECK(vlan_keep(7, m, 5, &drops) == 2 && drops == 3);
	CHECK(m[0] == first && m[1] == last);
	CHECK(rte_mempool_avail_count(pools.rx) == before - 2);
	vlan_tag(first, 9);
	CHECK(first->ol_flags & RTE_MBUF_F_TX_VLAN && first->vlan_tci == 9);
	return 0;
}

static void frames_of_other_networks_are_dropped(void **state)
{
	(void)state;
	in_a_child(tags);
}

static bool specify(const char *device, unsigned mtu, struct port_spec *s)
{
	struct dpdk_config cfg = { .link = device, .mtu = mtu };

	*s = (struct port_spec){ .kind = PORT_DEVARGS, .device = device, .queues = 1 };
	return spec_fill(s, &cfg) == UW_OK;
}

/* virtio puts a header of its own in front of a frame, and refuses buffers that have no room for
 * both: an MTU of 9000 was such a one. */
static void a_buffer_holds_what_a_driver_adds(void **state)
{
	struct port_spec s;

	(void)state;
	for (unsigned mtu = 68; mtu <= 16000; mtu++) {
		assert_true(specify("net_null0", mtu, &s));
		assert_true(s.room >= mtu + ETHER + TAG + VIRTIO);
	}
}

/* What nobody asked for is lowered, also in what the device is told. */
static void an_mtu_that_the_device_takes(void **state)
{
	struct port_spec card = { .kind = PORT_PCI, .mtu = 1500, .set_mtu = 1500 };
	struct port_spec face = { .kind = PORT_AF_PACKET, .mtu = 9000 };
	struct port_spec s = card;

	(void)state;
	assert_true(spec_fit_mtu(&s, 9000) && s.mtu == 1500 && s.set_mtu == 1500);
	assert_true(spec_fit_mtu(&s, 1450) && s.mtu == 1450 && s.set_mtu == 1450);
	s = card;
	s.mtu_asked = true;
	assert_false(spec_fit_mtu(&s, 1450));
	assert_true(spec_fit_mtu(&s, 1500) && s.mtu == 1500);
	/* Of a virtual device nothing is set. */
	assert_true(specify("net_null0", 0, &s));
	assert_true(spec_fit_mtu(&s, 1450) && s.mtu == 1450 && s.set_mtu == 0);
	assert_true(specify("net_null0", 1500, &s));
	assert_false(spec_fit_mtu(&s, 1450));
	/* An interface's is the kernel's, whatever its driver says. */
	assert_true(spec_fit_mtu(&face, 1500) && face.mtu == 9000);
}

static void the_tag_is_taken_out_of_the_arguments(void **state)
{
	static const struct {
		const char *in, *args;
		unsigned vlan;
	} good[] = {
		{ "0000:7f:1f.7", "", 0 },
		{ "0000:7f:1f.7,vlan=1", "", 1 },
		{ "0000:7f:1f.7,vlan=4094,a=1", "a=1", 4094 },
		{ "0000:7f:1f.7,a=1,vlan=20", "a=1", 20 },
		{ "0000:7f:1f.7,a=1,vlan=20,b", "a=1,b", 20 },
		{ "0000:7f:1f.7,myvlan=3", "myvlan=3", 0 },
		{ "7f:1f.7,vlan=3", "", 3 }, /* DPDK knows it by its whole name only */
	};
	static const char *const bad[] = {
		"0000:7f:1f.7,vlan=0",	"0000:7f:1f.7,vlan=4095", "0000:7f:1f.7,vlan=",
		"0000:7f:1f.7,vlan=5x", "0000:7f:1f.7,vlan=-1",	  "0000:7f:1f.7,vlan=99999999999999"
	};
	struct dpdk_config cfg = { .link = "pci" };

	(void)state;
	for (unsigned i = 0; i < COUNT(good); i++) {
		struct port_spec s = { .kind = PORT_PCI, .device = good[i].in, .queues = 1 };

		assert_int_equal(spec_fill(&s, &cfg), UW_E_NO_LINK); /* there is none */
		assert_string_equal(s.name, "0000:7f:1f.7");
		assert_string_equal(s.args, good[i].args);
		assert_int_equal(s.vlan, good[i].vlan);
	}
	for (unsigned i = 0; i < COUNT(bad); i++) {
		struct port_spec s = { .kind = PORT_PCI, .device = bad[i], .queues = 1 };

		assert_int_equal(spec_fill(&s, &cfg), UW_E_INVAL);
	}
}

/* What DPDK chats about in a verbose process is not why it failed. */
static int chat(struct node *n, int arg)
{
	struct eal_need need = { .bytes = 1 << 20, .verbose = true };
	char why[256];

	(void)n;
	(void)arg;
	CHECK(eal_start(&need) == UW_OK);
	eal_forget();
	RTE_LOG(INFO, EAL, "a driver was found\n");
	RTE_LOG(ERR, EAL, "it has no memory\n");
	RTE_LOG(ERR, EAL, "so it fails\n");
	eal_said(why, sizeof(why));
	CHECK(!strcmp(why, "EAL: it has no memory"));
	return 0;
}

static void only_errors_are_reasons(void **state)
{
	(void)state;
	in_a_child(chat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_for_a_port),
		cmocka_unit_test(who_does_tags),
		cmocka_unit_test(the_largest_mtu),
		cmocka_unit_test(frames_of_other_networks_are_dropped),
		cmocka_unit_test(a_buffer_holds_what_a_driver_adds),
		cmocka_unit_test(an_mtu_that_the_device_takes),
		cmocka_unit_test(the_tag_is_taken_out_of_the_arguments),
		cmocka_unit_test(only_errors_are_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
