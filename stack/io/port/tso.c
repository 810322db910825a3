/* SPDX-License-Identifier: BSD-3-Clause */
#include "tso.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>

enum { IP4_LEN = 20, IP6_LEN = 40, TCP_LEN = 20, HEAD_MAX = FRAME_ETHER + IP6_LEN + 60 };
/* What one IP header can say: the limit that every port keeps. */
enum { IP_MAX = UINT16_MAX };

/* --- what a port can do --- */

uint64_t tso_offloads(const struct rte_eth_dev_info *info)
{
	const uint64_t need = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS |
			      RTE_ETH_TX_OFFLOAD_TCP_CKSUM;

	if ((info->tx_offload_capa & need) != need)
		return 0;
	return need | (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
}

static bool driver_is(const struct rte_eth_dev_info *info, const char *name)
{
	return info->driver_name && !strncmp(info->driver_name, name, strlen(name));
}

bool tso_uncut(const struct rte_eth_dev_info *info)
{
	return driver_is(info, "net_virtio");
}

const char *tso_read(struct tso *t, const struct rte_eth_dev_info *info, unsigned mtu,
		     uint32_t frame_max)
{
	const struct rte_eth_desc_lim *lim = &info->tx_desc_lim;
	bool tap = driver_is(info, "net_tap");

	*t = (struct tso){ .ip6 = true, .frame_max = frame_max };
	t->ip4_sum = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	t->seg_max = lim->nb_seg_max ? lim->nb_seg_max : UINT16_MAX;
	t->frame_segs = lim->nb_mtu_seg_max ? lim->nb_mtu_seg_max : UINT16_MAX;
	if (!(info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_TSO))
		return "its driver does not cut TCP segments";
	if (!tso_offloads(info))
		return "its driver takes no TCP checksums, or no frames of several buffers";
	/* tap cuts with librte_gso: no IPv6, which it would lose, and the Ethernet header counts.
	 */
	t->ip6 = !tap;
	if (tap && frame_max > mtu)
		return "tap counts the Ethernet header as part of its MTU: ask for 14 octets less";
	return NULL;
}

/* --- segments --- */

struct seg {
	const uint8_t *h; /* the Ethernet header */
	unsigned l3, l4, head;
	uint32_t payload;
};

static bool is_ip6(const uint8_t *h)
{
	return h[12] == 0x86;
}

static struct rte_ipv4_hdr *ip4_of(const uint8_t *h)
{
	return (struct rte_ipv4_hdr *)(uintptr_t)(h + FRAME_ETHER);
}

static struct rte_ipv6_hdr *ip6_of(const uint8_t *h)
{
	return (struct rte_ipv6_hdr *)(uintptr_t)(h + FRAME_ETHER);
}

static struct rte_tcp_hdr *tcp_of(const struct seg *s, const uint8_t *h)
{
	return (struct rte_tcp_hdr *)(uintptr_t)(h + FRAME_ETHER + s->l3);
}

/* Octets of the IP packet; 0: not TCP, a fragment, or it has options. */
static uint32_t read_ip4(const uint8_t *h, uint32_t len)
{
	const struct rte_ipv4_hdr *ip = ip4_of(h);

	if (len < FRAME_ETHER + IP4_LEN + TCP_LEN || ip->version_ihl != 0x45 ||
	    ip->next_proto_id != IPPROTO_TCP || ip->fragment_offset & ~htons(RTE_IPV4_HDR_DF_FLAG))
		return 0;
	return ntohs(ip->total_length);
}

static uint32_t read_ip6(const uint8_t *h, uint32_t len)
{
	const struct rte_ipv6_hdr *ip = ip6_of(h);

	if (len < FRAME_ETHER + IP6_LEN + TCP_LEN || h[FRAME_ETHER] >> 4 != 6 ||
	    ip->proto != IPPROTO_TCP)
		return 0;
	return IP6_LEN + ntohs(ip->payload_len);
}

/* False: none that can be part of a chain. Its headers and the first of its payload must lie in its
 * first buffer, and behind the packet nothing. */
static bool seg_read(const struct tso *t, const struct io_frame *f, struct seg *s)
{
	uint32_t ip = 0, len = frame_len(f);
	const uint8_t *h = f->data;

	if (f->len < FRAME_ETHER || len > t->frame_max)
		return false;
	if (h[12] == 0x08 && !h[13])
		ip = read_ip4(h, f->len);
	else if (t->ip6 && h[12] == 0x86 && h[13] == 0xdd)
		ip = read_ip6(h, f->len);
	if (!ip || FRAME_ETHER + ip != len)
		return false;
	s->h = h;
	s->l3 = is_ip6(h) ? IP6_LEN : IP4_LEN;
	s->l4 = (unsigned)(tcp_of(s, h)->data_off >> 4) * 4;
	s->head = FRAME_ETHER + s->l3 + s->l4;
	if (s->l4 < TCP_LEN || f->len <= s->head)
		return false;
	s->payload = len - s->head;
	/* What stands for more than octets in order goes alone: SYN, FIN, RST, URG, ECE, CWR. */
	return (tcp_of(s, h)->tcp_flags & ~RTE_TCP_PSH_FLAG) == RTE_TCP_ACK_FLAG;
}

static bool pushes(const struct seg *s)
{
	return tcp_of(s, s->h)->tcp_flags & RTE_TCP_PSH_FLAG;
}

/* Are b's headers those that the port gives the segment number i of a chain that begins with a?
 * Checksums it computes; PSH it leaves to the last. */
static bool is_next(const struct seg *a, const struct seg *b, unsigned i)
{
	uint8_t h[HEAD_MAX];
	struct rte_tcp_hdr *tcp;

	if (b->head != a->head || b->l3 != a->l3 || b->payload > a->payload)
		return false;
	memcpy(h, a->h, a->head);
	tcp = tcp_of(a, h);
	tcp->sent_seq = htonl(ntohl(tcp->sent_seq) + i * a->payload);
	tcp->tcp_flags |= tcp_of(b, b->h)->tcp_flags & RTE_TCP_PSH_FLAG;
	tcp->cksum = tcp_of(b, b->h)->cksum;
	if (is_ip6(h)) {
		ip6_of(h)->payload_len = htons((uint16_t)(b->l4 + b->payload));
	} else {
		struct rte_ipv4_hdr *ip = ip4_of(h);

		ip->total_length = htons((uint16_t)(b->l3 + b->l4 + b->payload));
		ip->packet_id = htons((uint16_t)(ntohs(ip->packet_id) + i));
		ip->hdr_checksum = ip4_of(b->h)->hdr_checksum;
	}
	return !memcmp(h, b->h, a->head);
}

static unsigned buffers(const struct io_frame *f)
{
	unsigned n = 0;

	for (; f; f = f->next)
		n++;
	return n;
}

unsigned tso_run(const struct tso *t, struct io_frame *const *v, unsigned n)
{
	unsigned k, segs;
	uint32_t octets;
	struct seg a, b;

	if (!t->on || n < 2 || !seg_read(t, v[0], &a) || buffers(v[0]) >= t->frame_segs)
		return 1;
	b = a;
	segs = 1 + buffers(v[0]);
	octets = a.head - FRAME_ETHER + a.payload;
	/* After a shorter one, or one with PSH, nothing comes. */
	for (k = 1; k < n && b.payload == a.payload && !pushes(&b); k++) {
		if (!seg_read(t, v[k], &b) || !is_next(&a, &b, k))
			break;
		segs += buffers(v[k]);
		octets += b.payload;
		if (segs > t->seg_max || octets > IP_MAX || buffers(v[k]) >= t->frame_segs)
			break;
	}
	return k;
}

/* --- chains --- */

/* The whole chain's header: checksums are what the port wants to start from. */
static void finish_head(const struct tso *t, struct rte_mbuf *m, const struct seg *a)
{
	uint8_t *h = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_tcp_hdr *tcp = tcp_of(a, h);

	m->l2_len = FRAME_ETHER;
	m->l3_len = a->l3;
	m->l4_len = a->l4;
	m->tso_segsz = (uint16_t)a->payload;
	m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
	if (is_ip6(h)) {
		m->ol_flags |= RTE_MBUF_F_TX_IPV6;
		ip6_of(h)->payload_len = htons((uint16_t)(m->pkt_len - FRAME_ETHER - a->l3));
		tcp->cksum = rte_ipv6_phdr_cksum(ip6_of(h), m->ol_flags);
	} else {
		m->ol_flags |= RTE_MBUF_F_TX_IPV4;
		ip4_of(h)->total_length = htons((uint16_t)(m->pkt_len - FRAME_ETHER));
		ip4_of(h)->hdr_checksum = 0;
		if (t->ip4_sum)
			m->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
		else
			ip4_of(h)->hdr_checksum = rte_ipv4_cksum(ip4_of(h));
		tcp->cksum = rte_ipv4_phdr_cksum(ip4_of(h), m->ol_flags);
	}
}

struct rte_mbuf *tso_merge(const struct tso *t, struct io_frame *const *v, unsigned n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(t->mp), *tail = m;
	struct seg a, b;

	if (!m || !seg_read(t, v[0], &a) || !seg_read(t, v[n - 1], &b)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->data_len = (uint16_t)a.head;
	m->pkt_len = a.head;
	memcpy(rte_pktmbuf_mtod(m, void *), a.h, a.head);
	tcp_of(&a, rte_pktmbuf_mtod(m, uint8_t *))->tcp_flags = tcp_of(&b, b.h)->tcp_flags;
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *part = frame_to_mbuf(v[i], frame_len(v[i]));

		part->data_off = (uint16_t)(part->data_off + a.head);
		part->data_len = (uint16_t)(part->data_len - a.head);
		m->pkt_len += part->pkt_len - a.head;
		m->nb_segs = (uint16_t)(m->nb_segs + part->nb_segs);
		tail->next = part;
		tail = rte_pktmbuf_lastseg(part);
	}
	finish_head(t, m, &a);
	return m;
}

void tso_undo(struct rte_mbuf *chain)
{
	rte_pktmbuf_free_seg(chain);
}
