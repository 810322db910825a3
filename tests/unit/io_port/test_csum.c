/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP checksums that a card is asked for or has verified. */
#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "io_dpdk/node.h"

#include "io/dpdk/eal.h"
#include "io/port/csum.h"

enum { PAYLOAD = 100, ROOM = 1536, FRAMES = 64 };

static struct frame_pools pools = { .nrx = FRAMES, .ntx = FRAMES };
static struct io_link link_of_frames;

static void open_pools(void)
{
	struct eal_need need = { .bytes = frame_pools_bytes(FRAMES, FRAMES, ROOM) };

	CHECK(eal_start(&need) == UW_OK);
	CHECK(frame_pools_open(&pools, &link_of_frames, ROOM) == UW_OK);
}

/* A segment of a seeded payload, with a checksum that is not set. */
static struct rte_mbuf *segment(bool ip6, uint8_t proto)
{
	unsigned l3 = ip6 ? 40 : 20, l4 = 20 + PAYLOAD;
	struct io_frame *f = frame_alloc(pools.tx);
	uint8_t *h = f->data;

	for (unsigned i = 0; i < FRAME_ETHER + l3 + l4; i++)
		h[i] = (uint8_t)(i * 37 + 11);
	memcpy(h + 12, ip6 ? "\x86\xdd" : "\x08\x00", 2);
	if (ip6) {
		struct rte_ipv6_hdr *ip = (void *)(h + FRAME_ETHER);

		h[FRAME_ETHER] = 0x60;
		ip->payload_len = htons((uint16_t)l4);
		ip->proto = proto;
	} else {
		struct rte_ipv4_hdr *ip = (void *)(h + FRAME_ETHER);

		ip->version_ihl = 0x45;
		ip->total_length = htons((uint16_t)(l3 + l4));
		ip->next_proto_id = proto;
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
	h[FRAME_ETHER + l3 + 12] = 0x50;
	f->len = FRAME_ETHER + l3 + l4;
	return frame_to_mbuf(f, f->len);
}

/* What a card does: it sums up everything behind the IP header, the checksum that it finds there
 * included. */
static void as_a_card(struct rte_mbuf *m)
{
	uint8_t *l4 = rte_pktmbuf_mtod_offset(m, uint8_t *, m->l2_len + m->l3_len);
	uint16_t sum = rte_raw_cksum(l4, m->pkt_len - m->l2_len - m->l3_len);

	((struct rte_tcp_hdr *)(void *)l4)->cksum = (uint16_t)~sum;
}

static int sent(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	open_pools();
	/* The second time as when TCP sends the frame again. */
	for (unsigned i = 0; i < 4; i++) {
		bool ip6 = i % 2;
		struct rte_mbuf *m = segment(ip6, IPPROTO_TCP);
		void *ip = rte_pktmbuf_mtod_offset(m, void *, FRAME_ETHER);
		struct rte_tcp_hdr *tcp = (void *)((uint8_t *)ip + (ip6 ? 40 : 20));

		for (unsigned again = 0; again < 2; again++) {
			csum_ask(m);
			CHECK((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_TCP_CKSUM);
			CHECK(!(m->ol_flags & RTE_MBUF_F_TX_IPV4) == ip6);
			CHECK(!(m->ol_flags & RTE_MBUF_F_TX_IPV6) != ip6);
			CHECK(!(m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM));
			CHECK(m->l2_len == 14 && m->l3_len == (ip6 ? 40 : 20) && m->l4_len == 20);
			as_a_card(m);
			uint16_t sum = tcp->cksum;
			tcp->cksum = 0;
			CHECK(sum == (ip6 ? rte_ipv6_udptcp_cksum(ip, tcp)
					  : rte_ipv4_udptcp_cksum(ip, tcp)));
		}
		frame_free(frame_of(m));
	}
	/* Not TCP, or not all of a header: left alone. */
	struct rte_mbuf *udp = segment(false, IPPROTO_UDP), *cut = segment(true, IPPROTO_TCP);
	cut->data_len = 60;
	csum_ask(udp);
	csum_ask(cut);
	CHECK(!(udp->ol_flags & RTE_MBUF_F_TX_L4_MASK) && !(cut->ol_flags & RTE_MBUF_F_TX_L4_MASK));
	return 0;
}

static int received(struct node *n, int arg)
{
	struct rte_mbuf m;

	(void)n;
	(void)arg;
	memset(&m, 0, sizeof(m));
	CHECK(!csum_is_good(&m));
	m.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	CHECK(csum_is_good(&m));
	m.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD;
	CHECK(!csum_is_good(&m));
	m.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_NONE; /* there is none in the frame */
	CHECK(!csum_is_good(&m));
	/* A mark does not outlive its frame. */
	open_pools();
	struct io_frame *f = frame_alloc(pools.rx);
	f->marks = IO_FRAME_SUM_GOOD;
	frame_free(f);
	for (unsigned i = 0; i < FRAMES; i++)
		CHECK((f = frame_alloc(pools.rx)) && f->marks == 0);
	return 0;
}

static int asked_for(struct node *n, int arg)
{
	struct rte_eth_dev_info info = { .driver_name = "net_ixgbe",
					 .rx_offload_capa = UINT64_MAX,
					 .tx_offload_capa = UINT64_MAX };

	(void)n;
	(void)arg;
	CHECK(csum_rx_offloads(&info) == RTE_ETH_RX_OFFLOAD_TCP_CKSUM);
	CHECK(csum_tx_offloads(&info) == RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
	info.driver_name = "net_virtio";
	CHECK(csum_rx_offloads(&info) == 0);
	info.rx_offload_capa = info.tx_offload_capa = 0;
	info.driver_name = "net_ixgbe";
	CHECK(csum_rx_offloads(&info) == 0 && csum_tx_offloads(&info) == 0);
	return 0;
}

static void in_a_child(node_fn fn)
{
	struct board *b = board_new();

	assert_int_equal(reap(spawn(b, fn, 0), WAIT_MS), 0);
	board_free(b);
}

static void a_card_completes_the_sum(void **state)
{
	(void)state;
	in_a_child(sent);
}

static void only_a_good_sum_is_good(void **state)
{
	(void)state;
	in_a_child(received);
}

static void what_is_asked_for(void **state)
{
	(void)state;
	in_a_child(asked_for);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_card_completes_the_sum),
		cmocka_unit_test(only_a_good_sum_is_good),
		cmocka_unit_test(what_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
