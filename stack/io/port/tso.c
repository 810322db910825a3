/* SPDX-License-Identifier: BSD-3-Clause */
#include "tso.h"

#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "io/segment.h"

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

static struct rte_ipv4_hdr *ip4_of(const uint8_t *h)
{
	return (struct rte_ipv4_hdr *)(uintptr_t)(h + FRAME_ETHER);
}

static struct rte_ipv6_hdr *ip6_of(const uint8_t *h)
{
	return (struct rte_ipv6_hdr *)(uintptr_t)(h + FRAME_ETHER);
}

static struct rte_tcp_hdr *tcp_of(const struct segment *s, const uint8_t *h)
{
	return (struct rte_tcp_hdr *)(uintptr_t)(h + FRAME_ETHER + s->ip);
}

/* False: it cannot be part of a chain. The first of its payload must lie in its first buffer. */
static bool read_part(const struct tso *t, const struct io_frame *f, struct segment *s)
{
	return segment_read(f, s) && segment_is_plain(s) && f->len > s->headers &&
	       s->headers + s->payload <= t->frame_max && (t->ip6 || !s->ip6);
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
	struct segment a, b;

	if (!t->on || n < 2 || !read_part(t, v[0], &a) || buffers(v[0]) >= t->frame_segs)
		return 1;
	b = a;
	segs = 1 + buffers(v[0]);
	octets = a.headers - FRAME_ETHER + a.payload;
	/* After a shorter one, or one with PSH, nothing comes. */
	for (k = 1; k < n && b.payload == a.payload && !segment_pushes(&b); k++) {
		if (!read_part(t, v[k], &b) || !segment_follows(&a, &b, k))
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
static void finish_head(const struct tso *t, struct rte_mbuf *m, const struct segment *a)
{
	uint8_t *h = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_tcp_hdr *tcp = tcp_of(a, h);

	segment_put_length(a, h, m->pkt_len - a->headers);
	m->l2_len = FRAME_ETHER;
	m->l3_len = a->ip;
	m->l4_len = a->headers - FRAME_ETHER - a->ip;
	m->tso_segsz = (uint16_t)a->payload;
	m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
	if (a->ip6) {
		m->ol_flags |= RTE_MBUF_F_TX_IPV6;
		tcp->cksum = rte_ipv6_phdr_cksum(ip6_of(h), m->ol_flags);
	} else {
		m->ol_flags |= RTE_MBUF_F_TX_IPV4;
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
	struct segment a, b;

	if (!m || !read_part(t, v[0], &a) || !read_part(t, v[n - 1], &b)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	m->data_len = (uint16_t)a.headers;
	m->pkt_len = a.headers;
	memcpy(rte_pktmbuf_mtod(m, void *), a.frame, a.headers);
	tcp_of(&a, rte_pktmbuf_mtod(m, uint8_t *))->tcp_flags = tcp_of(&b, b.frame)->tcp_flags;
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *part = frame_to_mbuf(v[i], frame_len(v[i]));

		part->data_off = (uint16_t)(part->data_off + a.headers);
		part->data_len = (uint16_t)(part->data_len - a.headers);
		m->pkt_len += part->pkt_len - a.headers;
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
