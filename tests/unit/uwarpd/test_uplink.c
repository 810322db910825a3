/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a uwarpd that is an interface (uplink_packet.c): uw0 of a veth pair. What leaves it
 * comes to a packet socket on uw1. */
#include "uplink.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/be.h"
#include "made.h"

enum { MSS = 1400, PIECES = 4, WAIT_MS = 2000, FLAGS_AT = 13 };

struct place {
	struct uplink *p;
	int fd; /* on uw1 */
	uint8_t octets[65536];
};

/* Without uplink.c, which knows DPDK: no IPv6 addresses of its own. */
void uplink_own_ip6(struct uplink *p, const struct options *o)
{
	(void)p;
	(void)o;
}

static int listen_on(const char *interface)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = (int)if_nametoindex(interface) };
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_false(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)));
	assert_false(bind(fd, (const struct sockaddr *)&at, sizeof(at)));
	return fd;
}

static int up(void **state)
{
	const struct options o = { .link = "uw0", .addr = MADE_HOST(1), .mask = htonl(0xffffff00) };
	struct place *k = calloc(1, sizeof(*k));

	assert_true(made_run("ip link add uw0 type veth peer name uw1 && "
			     "ip link set uw0 up && ip link set uw1 up && "
			     "for i in $(seq 200); do "
			     "ip link show uw0 | grep -q 'state UP' && "
			     "ip link show uw1 | grep -q 'state UP' && exit 0; sleep 0.01; done; "
			     "exit 1"));
	k->fd = listen_on("uw1");
	k->p = uplink_open_packet(&o, "uw0");
	assert_non_null(k->p);
	*state = k;
	return 0;
}

static int down(void **state)
{
	struct place *k = *state;

	k->p->ops->close(k->p);
	close(k->fd);
	free(k);
	return made_run("ip link del uw0") ? 0 : -1;
}

/* A frame that is to be cut; returns where its TCP header is. */
static uint32_t send_merged(struct place *k, bool ip6, uint8_t flags)
{
	const struct made m = { .ip6 = ip6,
				.src_mac = { 2, 0, 0, 0, 0, 1 },
				.dst_mac = { 2, 0, 0, 0, 0, 2 },
				.src_port = 5,
				.dst_port = 6,
				.flags = flags,
				.payload = PIECES * MSS };
	struct uplink_out f = { .head = k->octets, .meta = { .gso_size = MSS, .sum = true } };
	uint32_t n = made_octets(&m, k->octets);

	f.tcp = 14 + (ip6 ? 40 : 20);
	f.head_len = f.tcp + 20;
	f.rest = k->octets + f.head_len;
	f.rest_len = n - f.head_len;
	assert_true(k->p->ops->send(k->p, &f));
	assert_int_equal(k->p->lost, 0);
	return f.tcp;
}

/* The next frame of TCP: its flags, and what the kernel says of it. */
static uint8_t next_flags(struct place *k, uint32_t tcp, struct virtio_net_hdr *vnet)
{
	struct pollfd on = { .fd = k->fd, .events = POLLIN };
	uint8_t in[sizeof(*vnet) + sizeof(k->octets)], *f = in + sizeof(*vnet);
	const uint8_t *protocol = f + (tcp == 14 + 40 ? 20 : 23);
	ssize_t got;

	do {
		assert_int_equal(poll(&on, 1, WAIT_MS), 1);
		got = recv(k->fd, in, sizeof(in), 0);
	} while (got < (ssize_t)(sizeof(*vnet) + tcp + 20) || *protocol != IPPROTO_TCP);
	memcpy(vnet, in, sizeof(*vnet));
	return f[tcp + FLAGS_AT];
}

/* RFC 3168 §6.1.2: CWR is on one segment. Linux's own TCP marks such a frame (SKB_GSO_TCP_ECN), so
 * that a card that would repeat CWR on each segment is not asked to cut it. */
static void the_kernel_is_told_of_cwr(void **state)
{
	static const uint8_t flags[] = { ACK, ACK | ECE, ACK | CWR };
	struct place *k = *state;

	for (unsigned i = 0; i < 2 * COUNT(flags); i++) {
		const uint8_t with = flags[i / 2];
		uint8_t gso = i & 1 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		struct virtio_net_hdr vnet;

		if (with & CWR)
			gso |= VIRTIO_NET_HDR_GSO_ECN;
		assert_int_equal(next_flags(k, send_merged(k, i & 1, with), &vnet), with);
		assert_int_equal(vnet.gso_type, gso);
		assert_int_equal(vnet.gso_size, MSS);
	}
}

static void cwr_is_on_the_first_segment_alone(void **state)
{
	struct place *k = *state;
	struct virtio_net_hdr vnet;

	if (!made_run("ethtool -K uw0 tx off"))
		skip();
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		uint32_t tcp = send_merged(k, ip6, ACK | CWR | ECE);

		for (unsigned i = 0; i < PIECES; i++) {
			uint8_t flags = next_flags(k, tcp, &vnet);

			assert_int_equal(flags, ACK | ECE | (i ? 0 : CWR));
			assert_int_equal(vnet.gso_type, VIRTIO_NET_HDR_GSO_NONE);
		}
	}
}

/* RoCEv2's port is held at the addresses that the interface still has. */
static void datagrams_go_on_without_a_lost_address(void **state)
{
	const struct options shared = { .link = "uw0" };
	struct uplink *p[2];

	(void)state;
	assert_true(made_run("ip address add 10.9.0.1/24 dev uw0 && "
			     "ip address add fd09::1/64 dev uw0 nodad"));
	for (unsigned i = 0; i < 2; i++) {
		p[i] = uplink_open_packet(&shared, "uw0");
		assert_non_null(p[i]);
	}
	assert_true(made_run("ip address del fd09::1/64 dev uw0"));
	assert_int_equal(p[0]->ops->claim_packets(p[0]), SWITCH_GRANTED);
	assert_true(made_run("ip address flush dev uw0"));
	assert_int_equal(p[1]->ops->claim_packets(p[1]), SWITCH_NO_MEMORY);
	for (unsigned i = 0; i < 2; i++)
		p[i]->ops->close(p[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_kernel_is_told_of_cwr, up, down),
		cmocka_unit_test_setup_teardown(cwr_is_on_the_first_segment_alone, up, down),
		cmocka_unit_test_setup_teardown(datagrams_go_on_without_a_lost_address, up, down),
	};

	if (!made_ready())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
