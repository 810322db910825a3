/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/segments.h"

#include <netinet/in.h>
#include <string.h>

#include "base/be.h"
#include "base/sum.h"

enum { ETHER = 14, IP4_LEN = 20 };
/* Field offsets, from the IP header and from the TCP header. */
enum { IP4_ID = 4, IP4_SUM = 10, IP4_ADDRS = 12, IP6_ADDRS = 8 };
enum { TCP_SEQ = 4, TCP_FLAGS = 13, TCP_SUM = 16 };
enum { FLAG_FIN = 0x01, FLAG_PSH = 0x08, FLAG_CWR = 0x80 };
/* What a receiver's pbuf can count, of which the Ethernet header is part. */
enum { IP_MAX = 65535 - ETHER };

/* ---- merging --------------------------------------------------------------------------------- */

unsigned segments_run(struct io_frame *const *v, unsigned n)
{
	struct segment a, b;
	uint32_t octets;
	unsigned k;

	if (n < 2 || !(v[0]->marks & IO_FRAME_SUM) || !segment_read(v[0], &a) ||
	    !segment_is_plain(&a))
		return 1;
	if (n > SEGMENTS_MAX)
		n = SEGMENTS_MAX;
	b = a;
	octets = a.headers - ETHER + a.payload;
	/* After a shorter one, or one with PSH, nothing comes. */
	for (k = 1; k < n && b.payload == a.payload && !segment_pushes(&b); k++) {
		if (!(v[k]->marks & IO_FRAME_SUM) || !segment_read(v[k], &b) ||
		    !segment_is_plain(&b) || !segment_follows(&a, &b, k))
			break;
		octets += b.payload;
		if (octets > IP_MAX)
			break;
	}
	return k;
}

/* ---- checksums ------------------------------------------------------------------------------- */

/* RFC 9293 §3.1, RFC 8200 §8.1: what the checksum starts from, not inverted, as the kernel wants it
 * (CHECKSUM_PARTIAL). tcp: octets from the TCP header on. */
static uint16_t pseudo_header(const struct segment *s, const uint8_t *h, uint32_t tcp)
{
	const uint8_t *ip = h + ETHER;
	uint32_t sum = IPPROTO_TCP + (tcp & 0xffff) + (tcp >> 16);

	return uw_sum_fold(s->ip6 ? uw_sum_add(sum, ip + IP6_ADDRS, 32)
				  : uw_sum_add(sum, ip + IP4_ADDRS, 8));
}

static void sum_ip(const struct segment *s, uint8_t *h)
{
	if (s->ip6)
		return;
	uw_put16(h + ETHER + IP4_SUM, 0);
	uw_put16(h + ETHER + IP4_SUM, (uint16_t)~uw_sum_fold(uw_sum_add(0, h + ETHER, IP4_LEN)));
}

static void ask(const struct segment *s, uint8_t *h, uint32_t payload, struct virtio_net_hdr *vnet)
{
	unsigned at = ETHER + s->ip;

	uw_put16(h + at + TCP_SUM, pseudo_header(s, h, s->headers - at + payload));
	vnet->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	vnet->csum_start = (uint16_t)at;
	vnet->csum_offset = TCP_SUM;
}

/* RFC 3168 §6.1.2: CWR is on the first segment of the cut only. */
static void ask_cut(const struct segment *s, const uint8_t *h, unsigned cut,
		    struct virtio_net_hdr *vnet)
{
	vnet->gso_type = s->ip6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	if (h[ETHER + s->ip + TCP_FLAGS] & FLAG_CWR)
		vnet->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	vnet->gso_size = (uint16_t)cut;
	vnet->hdr_len = (uint16_t)s->headers;
}

void segment_ask_sum(struct io_frame *f, struct virtio_net_hdr *vnet)
{
	struct segment s;

	if (segment_read(f, &s))
		ask(&s, f->data, s.payload, vnet);
}

void segment_ask_cut(struct io_frame *f, struct virtio_net_hdr *vnet)
{
	struct segment s;

	if (!segment_read(f, &s))
		return;
	ask(&s, f->data, s.payload, vnet);
	ask_cut(&s, f->data, f->cut, vnet);
}

unsigned segment_pieces(const struct io_frame *f)
{
	struct segment s;

	if (!f->cut || f->len <= f->cut || !segment_read(f, &s) || s.payload <= f->cut)
		return 1;
	return (s.payload + f->cut - 1) / f->cut;
}

unsigned segment_part(const struct io_frame *f, unsigned i, unsigned n, uint8_t *h,
		      struct virtio_net_hdr *vnet, struct uw_span *payload)
{
	struct segment s;
	uint32_t at = i * f->cut, octets = n * f->cut;
	uint8_t *tcp;

	if (!segment_read(f, &s) || at >= s.payload)
		return 0;
	if (octets > s.payload - at)
		octets = s.payload - at;
	*payload = (struct uw_span){ f->data + s.headers + at, octets };
	memcpy(h, f->data, s.headers);
	tcp = h + ETHER + s.ip;
	uw_put32(tcp + TCP_SEQ, uw_be32(tcp + TCP_SEQ) + at);
	if (i)
		tcp[TCP_FLAGS] &= (uint8_t)~FLAG_CWR;
	if (at + octets < s.payload)
		tcp[TCP_FLAGS] &= (uint8_t) ~(FLAG_PSH | FLAG_FIN);
	segment_put_length(&s, h, octets);
	if (!s.ip6)
		uw_put16(h + ETHER + IP4_ID, (uint16_t)(uw_be16(h + ETHER + IP4_ID) + i));
	sum_ip(&s, h);
	ask(&s, h, octets, vnet);
	if (octets > f->cut)
		ask_cut(&s, h, f->cut, vnet);
	return s.headers;
}

unsigned segments_head(struct io_frame *const *v, unsigned n, uint8_t *h,
		       struct virtio_net_hdr *vnet)
{
	struct segment a, last;
	uint32_t payload;

	/* segments_run has read them */
	if (!segment_read(v[0], &a) || !segment_read(v[n - 1], &last))
		return 0;
	payload = (n - 1) * a.payload + last.payload;
	memcpy(h, a.frame, a.headers);
	h[ETHER + a.ip + TCP_FLAGS] = last.frame[ETHER + last.ip + TCP_FLAGS];
	segment_put_length(&a, h, payload);
	sum_ip(&a, h);
	*vnet = (struct virtio_net_hdr){ .gso_type = a.ip6 ? VIRTIO_NET_HDR_GSO_TCPV6
							   : VIRTIO_NET_HDR_GSO_TCPV4,
					 .gso_size = (uint16_t)a.payload,
					 .hdr_len = (uint16_t)a.headers };
	ask(&a, h, payload, vnet);
	return a.headers;
}
