/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames longer than an IP packet: cut in memory, and as the kernel brings them over veth. */
#include "io/packet/big_tcp.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/be.h"
#include "io/packet/packet.h"
#include "made.h"

enum {
	VNET = sizeof(struct virtio_net_hdr),
	MSS = 1448,
	HEAD4 = 14 + 20 + 20,
	HEAD6 = 14 + 40 + 20,
	/* whole segments in the longest frame */
	STEP = (65535 - HEAD6) / MSS * MSS,
	LONG = 2 * STEP + 5000,
	OCTETS_MAX = VNET + HEAD6 + 8 + LONG,
	JUMBO = 8,
	WAIT_MS = 2000
};

static struct virtio_net_hdr vnet_for(bool ip6)
{
	return (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = ip6 ? VIRTIO_NET_HDR_GSO_TCPV6
							: VIRTIO_NET_HDR_GSO_TCPV4,
					.hdr_len = ip6 ? HEAD6 : HEAD4,
					.gso_size = MSS,
					.csum_start = ip6 ? HEAD6 - 20 : HEAD4 - 20,
					.csum_offset = 16 };
}

static struct made made_of(bool ip6, uint32_t payload)
{
	return (struct made){ .ip6 = ip6,
			      .src_mac = { 2, 0, 0, 0, 0, 1 },
			      .dst_mac = { 2, 0, 0, 0, 0, 2 },
			      .src_port = 5,
			      .dst_port = 6,
			      .seq = 0xffff0000,
			      .flags = ACK | PSH | FIN | CWR,
			      .payload = payload };
}

/* As the kernel gives it: its IP header has no length. Returns its octets with the kernel's header.
 */
static uint32_t make(const struct made *m, uint8_t *out)
{
	const struct virtio_net_hdr vnet = vnet_for(m->ip6);
	uint32_t n = made_octets(m, out + VNET);

	memcpy(out, &vnet, VNET);
	uw_put16(out + VNET + (m->ip6 ? 18 : 16), 0);
	return VNET + n;
}

/* The jumbo payload option of RFC 2675, as Linux has put it there. */
static uint32_t add_option(uint8_t *out, uint32_t n)
{
	uint8_t *ip = out + VNET + 14, *option = ip + 40;

	memmove(option + JUMBO, option, n - VNET - 14 - 40);
	ip[6] = 0;
	memcpy(option, ((uint8_t[]){ 6, 0, 0xc2, 4 }), 4);
	uw_put32(option + 4, n - VNET - 14 - 40 + JUMBO);
	return n + JUMBO;
}

static bool begin(struct big_tcp *b, const uint8_t *octets, uint32_t n)
{
	size_t room;
	uint8_t *to = big_tcp_room(b, &room);

	assert_non_null(to);
	assert_true(n <= room);
	memcpy(to, octets, n);
	return big_tcp_begin(b, n);
}

/* All but the TCP checksum is what the segments of *m would be. */
static void assert_piece(const uint8_t *got, uint32_t n, const struct made *m, uint32_t at,
			 uint32_t payload)
{
	static uint8_t want[BIG_TCP_PIECE];
	uint32_t sum = m->ip6 ? HEAD6 - 4 : HEAD4 - 4;
	struct made part = *m;

	part.seq += at;
	part.payload = payload;
	part.flags = at + payload < m->payload ? m->flags & (uint8_t) ~(FIN | PSH) : m->flags;
	part.flags = at ? part.flags & (uint8_t)~CWR : part.flags;
	assert_int_equal(n, made_octets(&part, want));
	memcpy(want + sum, got + sum, 2);
	assert_memory_equal(got, want, n);
}

static void assert_cut(const uint8_t *octets, uint32_t n, const struct made *m)
{
	static uint8_t piece[BIG_TCP_PIECE];
	struct big_tcp b = { 0 };

	assert_false(big_tcp_any(&b));
	assert_true(begin(&b, octets, n));
	for (uint32_t at = 0, most = m->payload; at < m->payload; at += STEP) {
		uint32_t payload = most - at < STEP ? most - at : STEP;

		assert_true(big_tcp_any(&b));
		assert_piece(piece, big_tcp_next(&b, piece), m, at, payload);
	}
	assert_false(big_tcp_any(&b));
	big_tcp_close(&b);
	assert_false(big_tcp_any(&b));
}

static void pieces_are_segments_again(void **state)
{
	static uint8_t octets[OCTETS_MAX];

	(void)state;
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		const struct made m = made_of(ip6, LONG), even = made_of(ip6, 2 * STEP);

		assert_cut(octets, make(&m, octets), &m);
		assert_cut(octets, make(&even, octets), &even);
	}
}

static void a_jumbo_payload_option_goes(void **state)
{
	static uint8_t octets[OCTETS_MAX];
	const struct made m = made_of(true, LONG);

	(void)state;
	assert_cut(octets, add_option(octets, make(&m, octets)), &m);
}

/* Whatever a header says of lengths, what comes of the n octets is all of them, in pieces that fit.
 */
static void assert_whole(struct big_tcp *b, uint32_t n)
{
	static uint8_t piece[BIG_TCP_PIECE];
	uint32_t payload = 0;

	while (big_tcp_any(b)) {
		uint32_t len = big_tcp_next(b, piece);

		assert_in_range(len, b->headers + 1, BIG_TCP_PIECE);
		payload += len - b->headers;
	}
	assert_int_equal(VNET + b->headers + payload, n);
}

struct change {
	const char *what;
	uint32_t at;
	uint8_t octet;
};

/* No octet of a header is believed. */
static void what_is_no_merged_tcp_is_refused(void **state)
{
	static uint8_t octets[OCTETS_MAX];
	const struct change four[] = {
		{ "no checksum", 0, 0 },
		{ "a type", VNET + 12, 0x77 },
		{ "a version", VNET + 14, 0x55 },
		{ "a short header", VNET + 14, 0x44 },
		{ "options of the length of nothing", VNET + 14, 0x4f },
		{ "a fragment", VNET + 20, 0x20 },
		{ "UDP", VNET + 23, 17 },
		{ "a short TCP header", VNET + HEAD4 - 8, 0x40 },
	};
	const struct change six[] = {
		{ "a version", VNET + 14, 0x40 },
		{ "another header", VNET + 20, 43 },
		{ "options in front", VNET + 20, 0 },
	};
	struct big_tcp b = { 0 };
	uint8_t was;

	(void)state;
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		const struct change *c = ip6 ? six : four;
		const struct made m = made_of(ip6, LONG);
		uint32_t n = make(&m, octets);

		for (unsigned i = 0; i < (ip6 ? 3 : 8); i++) {
			was = octets[c[i].at];
			octets[c[i].at] = c[i].octet;
			if (i != 4) /* what lies there may look like a header */
				assert_false(begin(&b, octets, n));
			else if (begin(&b, octets, n))
				assert_whole(&b, n);
			octets[c[i].at] = was;
		}
		assert_true(begin(&b, octets, n));
		assert_false(begin(&b, octets, VNET + BIG_TCP_PIECE));
		assert_false(begin(&b, octets, VNET - 1));
		assert_false(big_tcp_any(&b));
	}
	big_tcp_close(&b);
}

/* ---- the kernel's ---------------------------------------------------------------------------- */

static int sender_on(const char *name)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = 0,
				 .sll_ifindex = (int)if_nametoindex(name) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;

	assert_true(fd >= 0);
	assert_false(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)));
	assert_false(bind(fd, (void *)&a, sizeof(a)));
	return fd;
}

/* By IPv6: of IPv4 older versions of ip do not know the limit. */
static struct io_link *link_on_uw1(void)
{
	const struct uw_net two = { .ip.b = { 0xfd, 9, [15] = 2 }, .bits = 64 };
	const struct packet_config cfg = { .interface = "uw1",
					   .addr = MADE_HOST(2),
					   .mask = htonl(0xffffff00),
					   .ip6 = &two,
					   .n_ip6 = 1 };
	const struct io_env env = { 0 };
	struct io_link *l;

	assert_true(made_run("ip link add uw0 type veth peer name uw1 && "
			     "sysctl -w net.ipv6.conf.uw0.disable_ipv6=1 && "
			     "sysctl -w net.ipv6.conf.uw1.disable_ipv6=1"));
	if (!made_run("ip link set uw0 gso_max_size 200000")) /* before Linux 5.19 */
		skip();
	assert_true(made_run("ip link set uw0 up && ip link set uw1 up && "
			     "for i in $(seq 200); do "
			     "ip link show uw0 | grep -q 'state UP' && exit 0; sleep 0.01; done; "
			     "exit 1"));
	assert_status(packet_link_open(&cfg, &env, &l), UW_OK);
	return l;
}

static struct io_frame *receive(struct io_link *l)
{
	struct io_frame *f;

	for (unsigned ms = 0; ms < WAIT_MS; ms++) {
		if (!l->ops->rx(l, &f, 1))
			poll(NULL, 0, 1);
		else if (f->len > HEAD6 && f->data[20] == IPPROTO_TCP)
			return f;
		else
			io_free_chain(f);
	}
	return NULL;
}

/* One frame for each call of rx, so the link keeps the rest, and says so. */
static void a_link_hears_all_of_it(void **state)
{
	static uint8_t octets[OCTETS_MAX];
	struct io_link *l = link_on_uw1();
	struct made m = made_of(true, LONG);
	int fd = sender_on("uw0");
	uint32_t n;

	(void)state;
	memcpy(m.dst_mac, l->mac, 6);
	n = make(&m, octets);
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(send(fd, octets, n, 0), n);
		for (uint32_t at = 0; at < LONG; at += STEP) {
			struct io_frame *f = receive(l);

			assert_non_null(f);
			assert_int_equal(f->marks, IO_FRAME_SUM_GOOD);
			assert_piece(f->data, f->len, &m, at, LONG - at < STEP ? LONG - at : STEP);
			assert_true(l->ops->pending(l) == (at + STEP < LONG));
			io_free_chain(f);
		}
	}
	assert_int_equal(l->stats.rx_big, 3);
	assert_int_equal(l->stats.rx_drops, 0);
	l->ops->close(l);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(pieces_are_segments_again),
		cmocka_unit_test(a_jumbo_payload_option_goes),
		cmocka_unit_test(what_is_no_merged_tcp_is_refused),
	};
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_link_hears_all_of_it) };
	int failed = cmocka_run_group_tests(pure, NULL, NULL);

	if (failed || !made_ready())
		return failed;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
