/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/segment.h"

#include <netinet/in.h>
#include <string.h>

#include "base/be.h"

enum { ETHER = 14, IP4_LEN = 20, IP6_LEN = 40, TCP_LEN = 20 };
/* Field offsets, from the IP header and from the TCP header. */
enum { IP4_TOTAL = 2, IP4_ID = 4, IP4_FRAGMENT = 6, IP4_PROTOCOL = 9, IP4_SUM = 10 };
enum { IP6_LENGTH = 4, IP6_NEXT = 6 };
enum { TCP_SEQ = 4, TCP_OFFSET = 12, TCP_FLAGS = 13, TCP_SUM = 16 };
enum { FLAG_PSH = 0x08, FLAG_ACK = 0x10, DONT_FRAGMENT = 0x4000 };

static uint32_t frame_octets(const struct io_frame *f)
{
	uint32_t n = 0;

	for (; f; f = f->next)
		n += f->len;
	return n;
}

/* Octets of the IP packet; 0: not TCP, a fragment, or it has options. */
static uint32_t read_ip4(const uint8_t *ip, uint32_t len)
{
	if (len < IP4_LEN + TCP_LEN || ip[0] != 0x45 || ip[IP4_PROTOCOL] != IPPROTO_TCP ||
	    uw_be16(ip + IP4_FRAGMENT) & ~DONT_FRAGMENT)
		return 0;
	return uw_be16(ip + IP4_TOTAL);
}

static uint32_t read_ip6(const uint8_t *ip, uint32_t len)
{
	if (len < IP6_LEN + TCP_LEN || ip[0] >> 4 != 6 || ip[IP6_NEXT] != IPPROTO_TCP)
		return 0;
	return IP6_LEN + uw_be16(ip + IP6_LENGTH);
}

static const uint8_t *tcp_of(const struct segment *s)
{
	return s->frame + ETHER + s->ip;
}

bool segment_read(const struct io_frame *f, struct segment *s)
{
	const uint8_t *h = f->data;
	uint32_t octets = 0, tcp;

	if (f->len < ETHER)
		return false;
	s->ip6 = uw_be16(h + 12) == 0x86dd;
	if (s->ip6)
		octets = read_ip6(h + ETHER, f->len - ETHER);
	else if (uw_be16(h + 12) == 0x0800)
		octets = read_ip4(h + ETHER, f->len - ETHER);
	if (!octets || ETHER + octets != frame_octets(f))
		return false;
	s->frame = h;
	s->ip = s->ip6 ? IP6_LEN : IP4_LEN;
	tcp = (uint32_t)(tcp_of(s)[TCP_OFFSET] >> 4) * 4;
	s->headers = ETHER + s->ip + tcp;
	if (tcp < TCP_LEN || f->len < s->headers)
		return false;
	s->payload = ETHER + octets - s->headers;
	return true;
}

bool segment_is_plain(const struct segment *s)
{
	return s->payload && (tcp_of(s)[TCP_FLAGS] & ~FLAG_PSH) == FLAG_ACK;
}

bool segment_pushes(const struct segment *s)
{
	return tcp_of(s)[TCP_FLAGS] & FLAG_PSH;
}

void segment_put_length(const struct segment *s, uint8_t *h, uint32_t payload)
{
	uint32_t n = s->headers - ETHER + payload;

	if (s->ip6)
		uw_put16(h + ETHER + IP6_LENGTH, (uint16_t)(n - IP6_LEN));
	else
		uw_put16(h + ETHER + IP4_TOTAL, (uint16_t)n);
}

bool segment_follows(const struct segment *a, const struct segment *b, unsigned i)
{
	uint8_t h[SEGMENT_HEADERS], *tcp = h + ETHER + a->ip;

	if (b->headers != a->headers || b->ip != a->ip || b->payload > a->payload)
		return false;
	memcpy(h, a->frame, a->headers);
	segment_put_length(a, h, b->payload);
	if (!a->ip6) {
		uint8_t *ip = h + ETHER;

		uw_put16(ip + IP4_ID, (uint16_t)(uw_be16(ip + IP4_ID) + i));
		memcpy(ip + IP4_SUM, b->frame + ETHER + IP4_SUM, 2);
	}
	uw_put32(tcp + TCP_SEQ, uw_be32(tcp + TCP_SEQ) + i * a->payload);
	tcp[TCP_FLAGS] |= tcp_of(b)[TCP_FLAGS] & FLAG_PSH;
	memcpy(tcp + TCP_SUM, tcp_of(b) + TCP_SUM, 2);
	return !memcmp(h, b->frame, a->headers);
}
