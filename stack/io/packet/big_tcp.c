/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/big_tcp.h"

#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>

#include "base/be.h"
#include "base/sum.h"

/* What Linux merges at most (GSO_MAX_SIZE), headers and option included. */
#define FRAME_MAX (8u * 65535u + 256u)
#define ROOM	  (VNET + FRAME_MAX)
#define VNET	  sizeof(struct virtio_net_hdr)

enum { ETHER = 14, IP4_LEN = 20, IP6_LEN = 40, TCP_LEN = 20 };
/* Field offsets, from the IP header and from the TCP header. */
enum { IP4_TOTAL = 2, IP4_FRAGMENT = 6, IP4_PROTOCOL = 9, IP4_SUM = 10 };
enum { IP6_PAYLOAD = 4, IP6_NEXT = 6 };
enum { TCP_SEQ = 4, TCP_OFFSET = 12, TCP_FLAGS = 13 };
enum { FLAG_FIN = 0x01, FLAG_PSH = 0x08, FLAG_CWR = 0x80 };
/* Of an extension header that has a jumbo payload option alone (RFC 2675 §2). */
enum { JUMBO = 8 };

uint8_t *big_tcp_room(struct big_tcp *b, size_t *room)
{
	int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p = b->memory;

	if (!p) {
		p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, kind, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		b->memory = p;
	}
	b->frame = NULL;
	*room = ROOM;
	return p;
}

void big_tcp_close(struct big_tcp *b)
{
	if (b->memory)
		munmap(b->memory, ROOM);
	*b = (struct big_tcp){ 0 };
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Where the TCP header begins; 0: there is none. */
static uint32_t tcp_of_ip4(const uint8_t *h)
{
	const uint8_t *ip = h + ETHER;
	uint32_t len = (ip[0] & 15u) * 4;

	if (ip[0] >> 4 != 4 || len < IP4_LEN || ip[IP4_PROTOCOL] != IPPROTO_TCP ||
	    uw_be16(ip + IP4_FRAGMENT) & 0x3fff)
		return 0;
	return ETHER + len;
}

/* The option goes: it tells the length that pieces have in their header. */
static uint32_t tcp_of_ip6(struct big_tcp *b)
{
	uint8_t *ip = b->frame + ETHER;

	if (ip[IP6_NEXT] == IPPROTO_HOPOPTS && ip[IP6_LEN] == IPPROTO_TCP && !ip[IP6_LEN + 1]) {
		memmove(b->frame + JUMBO, b->frame, ETHER + IP6_LEN);
		b->frame += JUMBO;
		ip += JUMBO;
		ip[IP6_NEXT] = IPPROTO_TCP;
	}
	return ip[0] >> 4 == 6 && ip[IP6_NEXT] == IPPROTO_TCP ? ETHER + IP6_LEN : 0;
}

/* Any option of any header lies within what is that long. */
static bool is_long(size_t n)
{
	return n > BIG_TCP_PIECE && n <= FRAME_MAX;
}

static bool read_headers(struct big_tcp *b)
{
	uint16_t type = uw_be16(b->frame + 12);

	b->ip6 = type == 0x86dd;
	b->tcp = b->ip6 ? tcp_of_ip6(b) : type == 0x0800 ? tcp_of_ip4(b->frame) : 0;
	if (!b->tcp)
		return false;
	b->headers = b->tcp + (uint32_t)(b->frame[b->tcp + TCP_OFFSET] >> 4) * 4;
	return b->headers >= b->tcp + TCP_LEN;
}

/* Whole segments go into a piece, for who counts them by their length. */
static bool begin(struct big_tcp *b, const struct virtio_net_hdr *vnet, const uint8_t *end)
{
	const uint8_t good = VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;

	if (!(vnet->flags & good) || !read_headers(b) || !vnet->gso_size)
		return false;
	b->payload = (uint32_t)(end - b->frame) - b->headers;
	b->step = (BIG_TCP_PIECE - b->headers) / vnet->gso_size * vnet->gso_size;
	b->done = 0;
	return b->step;
}

bool big_tcp_begin(struct big_tcp *b, size_t n)
{
	struct virtio_net_hdr vnet;

	if (n < VNET || !is_long(n - VNET))
		return false;
	memcpy(&vnet, b->memory, VNET);
	b->frame = b->memory + VNET;
	if (begin(b, &vnet, b->memory + n))
		return true;
	b->frame = NULL;
	return false;
}

/* ---- cutting --------------------------------------------------------------------------------- */

bool big_tcp_any(const struct big_tcp *b)
{
	return b->frame;
}

void big_tcp_give_up(struct big_tcp *b)
{
	b->frame = NULL;
}

static void set_length(const struct big_tcp *b, uint8_t *h, uint32_t octets)
{
	uint8_t *ip = h + ETHER;

	if (b->ip6) {
		uw_put16(ip + IP6_PAYLOAD, (uint16_t)(octets - ETHER - IP6_LEN));
		return;
	}
	uw_put16(ip + IP4_TOTAL, (uint16_t)(octets - ETHER));
	uw_put16(ip + IP4_SUM, 0);
	uw_put16(ip + IP4_SUM, (uint16_t)~uw_sum_fold(uw_sum_add(0, ip, b->tcp - ETHER)));
}

/* As a cut by the kernel: FIN and PSH are the last one's (RFC 9293 §3.1), CWR the first one's
 * (RFC 3168 §6.1.2). */
static void set_place(const struct big_tcp *b, uint8_t *tcp, uint32_t n)
{
	uw_put32(tcp + TCP_SEQ, uw_be32(tcp + TCP_SEQ) + b->done);
	if (b->done + n < b->payload)
		tcp[TCP_FLAGS] &= (uint8_t) ~(FLAG_FIN | FLAG_PSH);
	if (b->done)
		tcp[TCP_FLAGS] &= (uint8_t)~FLAG_CWR;
}

uint32_t big_tcp_next(struct big_tcp *b, uint8_t *to)
{
	uint32_t left = b->payload - b->done, n = left < b->step ? left : b->step;

	memcpy(to, b->frame, b->headers);
	memcpy(to + b->headers, b->frame + b->headers + b->done, n);
	set_length(b, to, b->headers + n);
	set_place(b, to + b->tcp, n);
	b->done += n;
	if (b->done == b->payload)
		b->frame = NULL;
	return b->headers + n;
}
