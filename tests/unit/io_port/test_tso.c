/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments that go to a port as one chain come out of it as they were. The port is DPDK's null
 * device; what it is given is cut by DPDK's own library for that (librte_gso), whose segments are
 * finished as a card would do it and must be the frames, octet for octet.
 */
#include <netinet/in.h>

#include <rte_ethdev.h>
#include <rte_gso.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "io_dpdk/node.h"

#include "io/port/burst.h"
#include "io/dpdk/eal.h"
#include "io/port/ethdev.h"

enum { ROOM = 2048, POOL = 512, BURST = 64, MSS = 1440, SEQ = -3000 /* wraps */, ID = 0xfff0 };

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

/* --- a port that cuts --- */

struct wire {
	uint8_t octets[BURST * 2][ROOM];
	uint32_t len[BURST * 2];
	unsigned n, chains;
	bool refuse;	/* chains */
	unsigned limit; /* frames that it takes in all */
	struct rte_gso_ctx gso;
};

struct bed {
	struct io_link link;
	struct frame_pools pools;
	struct sender s;
	struct wire wire;
	struct io_frame *v[BURST];
	uint8_t before[BURST][ROOM];
	unsigned n;
};

static struct bed bed;

/* What a card does with the checksum that it finds in the header: everything else is summed up on
 * top of it, and the length, which the driver was to leave out. */
static void finish_checksum(uint8_t *h, unsigned l3, uint32_t len)
{
	struct rte_tcp_hdr *tcp = (void *)(h + FRAME_ETHER + l3);
	uint32_t l4 = len - FRAME_ETHER - l3;
	uint32_t sum = rte_raw_cksum(tcp, l4) + htons((uint16_t)l4);

	tcp->cksum = (uint16_t)~__rte_raw_cksum_reduce(sum);
	if (l3 == sizeof(struct rte_ipv4_hdr)) {
		struct rte_ipv4_hdr *ip = (void *)(h + FRAME_ETHER);

		CHECK(ip->hdr_checksum == 0);
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
}

static void put_on_wire(struct wire *w, const struct rte_mbuf *m)
{
	uint8_t *at = w->octets[w->n];

	CHECK(w->n < COUNT(w->len) && m->pkt_len <= ROOM);
	w->len[w->n++] = m->pkt_len;
	for (; m; m = m->next) {
		memcpy(at, rte_pktmbuf_mtod(m, void *), m->data_len);
		at += m->data_len;
	}
}

/* librte_gso knows IPv4 only; IPv6 is cut here. */
static void cut_ip6(struct wire *w, const struct rte_mbuf *m)
{
	unsigned head = (unsigned)(m->l2_len + m->l3_len + m->l4_len), at = head, i = 0;
	uint8_t whole[UINT16_MAX];

	CHECK(m->pkt_len <= sizeof(whole) && m->data_len == head);
	for (const struct rte_mbuf *p = m; p; p = p->next) {
		memcpy(whole + (p == m ? 0 : at), rte_pktmbuf_mtod(p, void *), p->data_len);
		at += p == m ? 0 : p->data_len;
	}
	for (at = head; at < m->pkt_len; at += m->tso_segsz, i++) {
		uint32_t n = RTE_MIN((uint32_t)m->tso_segsz, m->pkt_len - at);
		uint8_t *out = w->octets[w->n];
		struct rte_ipv6_hdr *ip = (void *)(out + FRAME_ETHER);
		struct rte_tcp_hdr *tcp = (void *)(ip + 1);

		memcpy(out, whole, head);
		memcpy(out + head, whole + at, n);
		ip->payload_len = htons((uint16_t)(m->l4_len + n));
		tcp->sent_seq = htonl(ntohl(tcp->sent_seq) + i * m->tso_segsz);
		if (at + n < m->pkt_len)
			tcp->tcp_flags &= (uint8_t)~RTE_TCP_PSH_FLAG;
		w->len[w->n++] = head + n;
		finish_checksum(out, m->l3_len, head + n);
	}
}

static void cut(struct wire *w, struct rte_mbuf *m)
{
	struct rte_mbuf *out[BURST];
	unsigned l3 = m->l3_len, first = w->n;
	int n;

	w->chains++;
	rte_mbuf_sanity_check(m, 1);
	CHECK(m->l2_len == FRAME_ETHER && m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM);
	if (m->ol_flags & RTE_MBUF_F_TX_IPV6) {
		cut_ip6(w, m);
		return;
	}
	CHECK(m->ol_flags & RTE_MBUF_F_TX_IPV4);
	if (!(m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM)) {
		struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, void *, FRAME_ETHER);
		uint16_t sum = ip->hdr_checksum;

		/* As a virtio device wants it: a header that is right as a whole. */
		CHECK(!bed.s.tso.ip4_sum);
		ip->hdr_checksum = 0;
		CHECK(sum == rte_ipv4_cksum(ip));
		m->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM; /* librte_gso insists */
	}
	w->gso.gso_size = (uint16_t)(m->tso_segsz + m->l2_len + m->l3_len + m->l4_len);
	n = rte_gso_segment(m, &w->gso, out, BURST);
	CHECK(n > 1);
	for (int i = 0; i < n; i++)
		put_on_wire(w, out[i]);
	rte_pktmbuf_free_bulk(out, (unsigned)n);
	while (first < w->n) {
		finish_checksum(w->octets[first], l3, w->len[first]);
		first++;
	}
}

static uint16_t on_tx(uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, void *arg)
{
	struct wire *w = arg;

	(void)port;
	(void)queue;
	for (uint16_t i = 0; i < n; i++) {
		bool chain = m[i]->ol_flags & RTE_MBUF_F_TX_TCP_SEG;

		if (w->n >= w->limit || (chain && w->refuse))
			return i;
		if (chain)
			cut(w, m[i]);
		else
			put_on_wire(w, m[i]);
	}
	return n;
}

static struct rte_mempool *gso_pool(const char *name, unsigned room)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create(name, POOL, 0, 0, (uint16_t)room, -1);

	CHECK(mp);
	return mp;
}

static void bed_open(void)
{
	static const struct io_ops ops = { .free = frame_free };
	struct ethdev_plug plug = { .bus = "vdev", .name = "net_null0", .args = "no-rx=1" };
	const struct ethdev_setup how = { .rx = &bed.pools.rx, .queues = 1, .tso = true };
	struct eal_need need = { .bytes = 4 * frame_pools_bytes(POOL, POOL, ROOM) };

	bed.link.ops = &ops;
	bed.pools = (struct frame_pools){ .nrx = POOL, .ntx = POOL };
	CHECK(eal_start(&need) == UW_OK);
	CHECK(frame_pools_open(&bed.pools, &bed.link, ROOM) == UW_OK);
	CHECK(ethdev_plug(&plug) == 0 && ethdev_start(plug.port, &how) == 0);
	CHECK(rte_eth_add_tx_callback(plug.port, 0, on_tx, &bed.wire));
	bed.wire.limit = UINT32_MAX;
	bed.wire.gso = (struct rte_gso_ctx){ .direct_pool = gso_pool("direct", 256),
					     .indirect_pool = gso_pool("indirect", 0),
					     .gso_types = RTE_ETH_TX_OFFLOAD_TCP_TSO };
	bed.s = (struct sender){ .port = plug.port,
				 .chains = true,
				 .frame_max = 1514,
				 .mp = bed.pools.tx,
				 .stats = &bed.link.stats,
				 .tso = { .on = true,
					  .ip6 = true,
					  .ip4_sum = true,
					  .frame_max = 1514,
					  .seg_max = UINT16_MAX,
					  .frame_segs = UINT16_MAX,
					  .mp = bed.pools.tx } };
}

/* --- segments --- */

struct shape {
	bool ip6;
	unsigned options; /* octets */
	unsigned parts;	  /* buffers of each */
	uint32_t payload, last;
};

static unsigned head_of(const struct shape *s)
{
	return (unsigned)(FRAME_ETHER + (s->ip6 ? 40 : 20) + 20) + s->options;
}

static void checksums(uint8_t *h)
{
	struct rte_ipv4_hdr *four = (void *)(h + FRAME_ETHER);
	struct rte_ipv6_hdr *six = (void *)(h + FRAME_ETHER);
	bool ip6 = h[12] == 0x86;
	struct rte_tcp_hdr *tcp = ip6 ? (void *)(six + 1) : (void *)(four + 1);

	tcp->cksum = 0;
	if (ip6) {
		tcp->cksum = rte_ipv6_udptcp_cksum(six, tcp);
		return;
	}
	four->hdr_checksum = 0;
	four->hdr_checksum = rte_ipv4_cksum(four);
	tcp->cksum = rte_ipv4_udptcp_cksum(four, tcp);
}

static void fill_ip(const struct shape *s, uint8_t *h, unsigned i, uint32_t payload)
{
	uint16_t l4 = (uint16_t)(20 + s->options + payload);

	memset(h, 0x42, 12);
	if (s->ip6) {
		struct rte_ipv6_hdr *ip = (void *)(h + FRAME_ETHER);

		memcpy(h + 12, "\x86\xdd\x60\x00\x00\x00", 6);
		ip->payload_len = htons(l4);
		ip->proto = IPPROTO_TCP;
		ip->hop_limits = 255;
		memset(h + FRAME_ETHER + 8, 0xfd, 32);
	} else {
		struct rte_ipv4_hdr *ip = (void *)(h + FRAME_ETHER);

		memcpy(h + 12, "\x08\x00\x45\x00", 4);
		ip->total_length = htons((uint16_t)(20 + l4));
		ip->packet_id = htons((uint16_t)(ID + i)); /* wraps, too */
		ip->time_to_live = 255;
		ip->next_proto_id = IPPROTO_TCP;
		ip->src_addr = htonl(0x0a4d0001);
		ip->dst_addr = htonl(0x0a4d0002);
	}
}

static void fill_tcp(const struct shape *s, uint8_t *at, unsigned i, bool last)
{
	struct rte_tcp_hdr *tcp = (void *)at;

	tcp->src_port = htons(18515);
	tcp->dst_port = htons(40000);
	tcp->sent_seq = htonl((uint32_t)SEQ + i * s->payload);
	tcp->recv_ack = htonl(77);
	tcp->rx_win = htons(8192);
	tcp->data_off = (uint8_t)((20 + s->options) / 4 << 4);
	tcp->tcp_flags = RTE_TCP_ACK_FLAG | (last ? RTE_TCP_PSH_FLAG : 0);
	for (unsigned k = 0; k < s->options; k++)
		at[20 + k] = (uint8_t)(k + 1);
}

/* As TCP hands it on: headers in front of the payload, which further buffers may go on with. */
static struct io_frame *to_frame(const struct shape *s, const uint8_t *octets, uint32_t len)
{
	struct io_frame *head = NULL, **link = &head;
	unsigned parts = s->parts ? s->parts : 1;
	uint32_t at = 0;

	for (unsigned i = 0; i < parts; i++) {
		uint32_t n = i + 1 == parts ? len - at : RTE_MAX(len / parts, head_of(s) + 1);
		struct io_frame *f = frame_alloc(bed.pools.tx);

		CHECK(f && n);
		f->data -= i ? 0 : head_of(s) - 20;
		f->len = n;
		memcpy(f->data, octets + at, n);
		frame_ref(f); /* TCP keeps it */
		*link = f;
		link = &f->next;
		at += n;
	}
	return head;
}

static void change(struct io_frame *f, unsigned at, uint8_t bits)
{
	uint8_t whole[ROOM];
	uint32_t n = 0;

	f->data[at] ^= bits;
	for (const struct io_frame *b = f; b; b = b->next) {
		memcpy(whole + n, b->data, b->len);
		n += b->len;
	}
	checksums(whole);
	memcpy(f->data, whole, f->len);
}

static void remember(void)
{
	for (unsigned i = 0; i < bed.n; i++) {
		uint32_t n = 0;

		for (struct io_frame *f = bed.v[i]; f; f = f->next) {
			memcpy(bed.before[i] + n, f->data, f->len);
			n += f->len;
		}
	}
}

static void make(const struct shape *s, unsigned n)
{
	bed.n = n;
	for (unsigned i = 0; i < n; i++) {
		bool last = i + 1 == n;
		uint32_t payload = last && s->last ? s->last : s->payload;
		uint32_t len = head_of(s) + payload;
		uint8_t octets[ROOM] = { 0 };

		fill_ip(s, octets, i, payload);
		fill_tcp(s, octets + head_of(s) - 20 - s->options, i, last);
		for (uint32_t k = head_of(s); k < len; k++)
			octets[k] = (uint8_t)(k * 7 + i);
		checksums(octets);
		bed.v[i] = to_frame(s, octets, len);
	}
	remember();
}

/* What came out is what was put in, frame for frame, from `from` on. */
static void check_wire(unsigned from)
{
	CHECK(bed.wire.n == bed.n - from);
	for (unsigned i = from; i < bed.n; i++) {
		uint32_t len = frame_len(bed.v[i]);

		CHECK(bed.wire.len[i - from] == len);
		CHECK(!memcmp(bed.wire.octets[i - from], bed.before[i], len));
	}
	bed.wire.n = 0;
}

/* TCP's frames are as they were, and nobody else holds them. */
static void check_kept(void)
{
	for (unsigned i = 0; i < bed.n; i++) {
		uint32_t at = 0;

		for (struct io_frame *f = bed.v[i]; f; f = f->next) {
			CHECK(frame_refs(f) == 1);
			CHECK(!memcmp(f->data, bed.before[i] + at, f->len));
			at += f->len;
		}
	}
}

static void hold(struct io_frame *f)
{
	for (; f; f = f->next)
		frame_ref(f);
}

static void drop(void)
{
	for (unsigned i = 0; i < bed.n; i++)
		io_free_chain(bed.v[i]);
	CHECK(rte_mempool_full(bed.pools.tx));
	memset(&bed.link.stats, 0, sizeof(bed.link.stats));
	bed.wire.n = bed.wire.chains = 0;
}

/* --- what must hold --- */

static void goes_as(const struct shape *s, unsigned n, unsigned chains, unsigned merged)
{
	make(s, n);
	CHECK(burst_send(&bed.s, bed.v, n) == n);
	CHECK(bed.wire.chains == chains && bed.link.stats.tx_chains == chains);
	CHECK(bed.link.stats.tx_merged == merged && bed.link.stats.tx_frames == n);
	check_wire(0);
	check_kept();
	drop();
}

static int whole(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	bed_open();
	for (unsigned ip6 = 0; ip6 < 2; ip6++) {
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS }, 2, 1, 2);
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS }, 30, 1, 30);
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS, .last = 1 }, 7, 1, 7);
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS - 12, .options = 12 }, 7, 1, 7);
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS, .parts = 3 }, 9, 1, 9);
		goes_as(&(struct shape){ .ip6 = ip6, .payload = 1 }, 3, 1, 3);
		/* More than a burst. */
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS }, 50, 2, 50);
		/* One alone is no chain. */
		goes_as(&(struct shape){ .ip6 = ip6, .payload = MSS }, 1, 0, 0);
	}
	bed.s.tso.ip4_sum = false;
	goes_as(&(struct shape){ .payload = MSS }, 9, 1, 9);
	goes_as(&(struct shape){ .payload = MSS, .last = 1 }, 7, 1, 7);
	return 0;
}

/* Where the frames differ in what the port does not make again: octet of the header, bits. */
static const struct {
	const char *what;
	unsigned at;
	uint8_t bits;
	bool ip6;
} differences[] = {
	{ "destination MAC", 0, 1, false },
	{ "source MAC", 11, 1, false },
	{ "type of service", 15, 8, false },
	{ "IP id", 19, 0x40, false },
	{ "don't fragment", 20, 0x40, false },
	{ "more fragments", 20, 0x20, false },
	{ "time to live", 22, 1, false },
	{ "protocol", 23, 1, false },
	{ "source address", 29, 1, false },
	{ "destination address", 33, 1, false },
	{ "source port", 35, 1, false },
	{ "destination port", 37, 1, false },
	{ "sequence number", 41, 1, false },
	{ "acknowledgement", 45, 1, false },
	{ "reserved bits", 46, 2, false },
	{ "FIN", 47, 1, false },
	{ "SYN", 47, 2, false },
	{ "RST", 47, 4, false },
	{ "no ACK", 47, 0x10, false },
	{ "URG", 47, 0x20, false },
	{ "ECE", 47, 0x40, false },
	{ "CWR", 47, 0x80, false },
	{ "window", 49, 1, false },
	{ "urgent pointer", 53, 1, false },
	{ "an option", 60, 1, false },
	{ "traffic class", 15, 0x10, true },
	{ "flow label", 17, 1, true },
	{ "next header", 20, 1, true },
	{ "hop limit", 21, 1, true },
	{ "IPv6 source", 37, 1, true },
	{ "IPv6 destination", 53, 1, true },
	{ "window over IPv6", 69, 1, true },
};

/* The third of five is another: two go before it, and two or all three of the rest. */
static int differing(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	bed_open();
	for (unsigned i = 0; i < COUNT(differences); i++) {
		struct shape s = { .ip6 = differences[i].ip6, .options = 12, .payload = 1000 };

		make(&s, 5);
		change(bed.v[2], differences[i].at, differences[i].bits);
		remember();
		CHECK(burst_send(&bed.s, bed.v, 5) == 5);
		if (bed.wire.chains != 2 || bed.link.stats.tx_merged != 4)
			fprintf(stderr, "%s: %u chains\n", differences[i].what, bed.wire.chains);
		CHECK(bed.wire.chains == 2 && bed.link.stats.tx_merged == 4);
		check_wire(0);
		check_kept();
		drop();
	}
	return 0;
}

/* PSH ends a chain, and so does a shorter segment; a longer one is none of it. */
static int ending(struct node *n, int arg)
{
	const struct shape s = { .payload = 1000, .last = 1001 };

	(void)n;
	(void)arg;
	bed_open();
	make(&s, 5);
	change(bed.v[1], 47, RTE_TCP_PSH_FLAG);
	remember();
	CHECK(burst_send(&bed.s, bed.v, 5) == 5);
	CHECK(bed.wire.chains == 2 && bed.link.stats.tx_merged == 4);
	check_wire(0);
	drop();
	/* Two rows of equal ones, the second shorter: the first of them ends the chain. */
	make(&(struct shape){ .payload = 1000, .last = 500 }, 3);
	struct io_frame *two[] = { bed.v[1], bed.v[2] };
	CHECK(tso_run(&bed.s.tso, bed.v, 3) == 3);
	CHECK(tso_run(&bed.s.tso, two, 2) == 2);
	bed.v[0]->len--; /* what its header says is not there */
	CHECK(tso_run(&bed.s.tso, bed.v, 3) == 1);
	bed.v[0]->len++;
	bed.v[1]->len++;
	CHECK(tso_run(&bed.s.tso, bed.v, 3) == 1); /* padding */
	return 0;
}

static int limits(struct node *n, int arg)
{
	const struct shape s = { .payload = MSS }, three = { .payload = MSS, .parts = 3 };

	(void)n;
	(void)arg;
	bed_open();
	bed.s.tso.seg_max = 9; /* a header and eight */
	goes_as(&s, 16, 2, 16);
	goes_as(&three, 6, 3, 6);
	bed.s.tso.seg_max = UINT16_MAX;
	bed.s.tso.frame_segs = 3; /* a header and two */
	goes_as(&three, 6, 0, 0);
	goes_as(&s, 6, 1, 6);
	bed.s.tso.frame_segs = UINT16_MAX;
	bed.s.tso.frame_max = 1493;
	goes_as(&s, 6, 0, 0);
	bed.s.tso.frame_max = 1494;
	goes_as(&s, 6, 1, 6);
	bed.s.tso.ip6 = false;
	goes_as(&(struct shape){ .ip6 = true, .payload = MSS - 20 }, 6, 0, 0);
	bed.s.tso.on = false;
	goes_as(&s, 6, 0, 0);
	bed.s.tso.on = true;
	make(&s, 50); /* 64 KiB: 40 + 45 * 1440 fit */
	CHECK(tso_run(&bed.s.tso, bed.v, 50) == 45);
	return 0;
}

/* A port that takes no chain, whatever it says: the frames go all the same. */
static int refused(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	bed_open();
	make(&(struct shape){ .payload = MSS }, 20);
	bed.wire.refuse = true;
	CHECK(burst_send(&bed.s, bed.v, 20) == 20);
	CHECK(bed.wire.chains == 0 && bed.link.stats.tx_unmerged == 20 && bed.s.tso.on);
	check_wire(0);
	check_kept();
	drop();
	return 0;
}

/* Chains of five, so many, that a port refuses: for want of room, or because it cuts nothing. */
static void refuses(unsigned chains, bool room)
{
	bed.wire.refuse = true;
	bed.wire.limit = room ? UINT32_MAX : 4;
	for (unsigned i = 0; i < chains; i++) {
		make(&(struct shape){ .payload = MSS }, 5);
		CHECK(burst_send(&bed.s, bed.v, 5) == (room ? 5 : 4));
		if (!room)
			io_free_chain(bed.v[4]);
		drop();
	}
	bed.wire.refuse = false;
	bed.wire.limit = UINT32_MAX;
}

/* After some time it is not asked any more. */
static int refused_always(struct node *n, int arg)
{
	const struct shape s = { .payload = MSS };

	(void)n;
	(void)arg;
	bed_open();
	refuses(TSO_REFUSED_MAX - 1, true);
	goes_as(&s, 5, 1, 5); /* one is taken: count anew */
	refuses(TSO_REFUSED_MAX - 1, true);
	refuses(2 * TSO_REFUSED_MAX, false);
	CHECK(bed.s.tso.on);
	refuses(1, true);
	CHECK(!bed.s.tso.on);
	goes_as(&s, 5, 0, 0);
	return 0;
}

/* A full port: what it did not take is sent later, and what it took, once more. */
static int again(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	bed_open();
	make(&(struct shape){ .payload = MSS, .parts = 2 }, 40);
	bed.wire.limit = 20; /* the chain that gets there goes whole */
	CHECK(burst_send(&bed.s, bed.v, 40) == 32 && bed.link.stats.tx_full == 1);
	for (unsigned i = 0; i < 40; i++)
		CHECK(frame_refs(bed.v[i]) == (i < 32 ? 1 : 2));
	bed.wire.n = 0;
	bed.wire.limit = UINT32_MAX;
	CHECK(burst_send(&bed.s, bed.v + 32, 8) == 8);
	check_wire(32);
	check_kept();
	hold(bed.v[5]); /* a retransmission, of one alone */
	CHECK(burst_send(&bed.s, bed.v + 5, 1) == 1 && bed.wire.n == 1);
	CHECK(!memcmp(bed.wire.octets[0], bed.before[5], frame_len(bed.v[5])));
	bed.wire.n = 0;
	for (unsigned i = 0; i < 40; i++) /* and of all */
		hold(bed.v[i]);
	CHECK(burst_send(&bed.s, bed.v, 40) == 40);
	check_wire(0);
	check_kept();
	drop();
	return 0;
}

/* Without a buffer for a header they go singly. */
static int no_buffers(struct node *n, int arg)
{
	struct io_frame *taken[POOL];
	unsigned held = 0;

	(void)n;
	(void)arg;
	bed_open();
	make(&(struct shape){ .payload = MSS }, 10);
	while ((taken[held] = frame_alloc(bed.pools.tx)))
		held++;
	CHECK(burst_send(&bed.s, bed.v, 10) == 10 && bed.wire.chains == 0);
	check_wire(0);
	check_kept();
	while (held)
		frame_free(taken[--held]);
	drop();
	return 0;
}

static int what_ports_say(struct node *n, int arg)
{
	const uint64_t all = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS |
			     RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	struct rte_eth_dev_info info = { .driver_name = "net_ixgbe", .tx_offload_capa = all };
	struct tso t;

	(void)n;
	(void)arg;
	info.tx_desc_lim.nb_seg_max = 40;
	info.tx_desc_lim.nb_mtu_seg_max = 8;
	CHECK(!tso_read(&t, &info, 1500, 1514) && t.ip6 && !t.on && t.frame_max == 1514);
	CHECK(t.seg_max == 40 && t.frame_segs == 8 && tso_offloads(&info) == all);
	CHECK(!tso_uncut(&info));
	info.driver_name = "net_virtio_user";
	CHECK(tso_uncut(&info));
	info.driver_name = "net_tap";
	CHECK(!tso_read(&t, &info, 1500, 1500) && !t.ip6);
	CHECK(strstr(tso_read(&t, &info, 1500, 1501), "14 octets less"));
	CHECK(t.ip4_sum);
	info.tx_offload_capa = all & ~RTE_ETH_TX_OFFLOAD_IPV4_CKSUM; /* virtio */
	CHECK(tso_offloads(&info) == info.tx_offload_capa);
	CHECK(!tso_read(&t, &info, 1500, 1500) && !t.ip4_sum);
	for (unsigned i = 0; i < 64; i++) {
		info.tx_offload_capa = all & ~(UINT64_C(1) << i);
		if (info.tx_offload_capa != all &&
		    UINT64_C(1) << i != RTE_ETH_TX_OFFLOAD_IPV4_CKSUM)
			CHECK(!tso_offloads(&info) && tso_read(&t, &info, 1500, 1500));
	}
	return 0;
}

static void in_a_child(void **state, node_fn fn)
{
	assert_int_equal(reap(spawn(*state, fn, 0), WAIT_MS), 0);
}

static void a_chain_comes_out_as_its_frames(void **state)
{
	in_a_child(state, whole);
}

static void frames_that_differ_are_not_merged(void **state)
{
	in_a_child(state, differing);
}

static void psh_and_a_shorter_one_end_a_chain(void **state)
{
	in_a_child(state, ending);
}

static void the_ports_limits_are_kept(void **state)
{
	in_a_child(state, limits);
}

static void a_refused_chain_goes_singly(void **state)
{
	in_a_child(state, refused);
}

static void a_port_that_cuts_nothing_is_not_asked(void **state)
{
	in_a_child(state, refused_always);
}

static void what_is_not_taken_goes_later(void **state)
{
	in_a_child(state, again);
}

static void no_buffer_for_a_header(void **state)
{
	in_a_child(state, no_buffers);
}

static void what_a_port_must_offer(void **state)
{
	in_a_child(state, what_ports_say);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_chain_comes_out_as_its_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_that_differ_are_not_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(psh_and_a_shorter_one_end_a_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(the_ports_limits_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refused_chain_goes_singly, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_that_cuts_nothing_is_not_asked, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_taken_goes_later, setup, teardown),
		cmocka_unit_test_setup_teardown(no_buffer_for_a_header, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_port_must_offer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
