/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/lo.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/be.h"
#include "base/sum.h"
#include "io/fds.h"

enum { ETHER = 14, IP4_LEN = 20, PROTOCOL = ETHER + 9, FROM = ETHER + 12, TO = ETHER + 16 };
enum { SUM = 16 }; /* in the TCP header */

void lo_open(struct lo *lo)
{
	lo->fd = fds_keep(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
}

void lo_close(struct lo *lo)
{
	fds_close(lo->fd);
	lo->fd = -1;
}

/* NULL: no TCP over IPv4 with its ports in the first n octets. */
static const uint8_t *tcp_of(const uint8_t *frame, size_t n)
{
	size_t at;

	if (n < ETHER + IP4_LEN || uw_be16(frame + 12) != 0x0800 || frame[PROTOCOL] != IPPROTO_TCP)
		return NULL;
	at = ETHER + (frame[ETHER] & 15u) * 4;
	return n < at + 20 ? NULL : frame + at;
}

void lo_learn(struct lo *lo, const uint8_t *frame, size_t n)
{
	static const uint8_t none[6];
	const uint8_t *tcp = tcp_of(frame, n);
	unsigned port;

	if (!tcp)
		return;
	port = uw_be16(tcp);
	if (!memcmp(frame, none, sizeof(none)))
		lo->kernels[port / 64] |= (uint64_t)1 << port % 64;
	else
		lo->kernels[port / 64] &= ~((uint64_t)1 << port % 64);
}

bool lo_is_kernels(const struct lo *lo, const struct io_frame *f)
{
	const uint8_t *tcp = lo->fd < 0 ? NULL : tcp_of(f->data, f->len);
	unsigned port = tcp ? uw_be16(tcp + 2) : 0;

	return tcp && lo->kernels[port / 64] >> port % 64 & 1;
}

/* The packet in one piece, its octets behind the Ethernet header. */
static uint32_t gather(const struct io_frame *f, uint8_t *to)
{
	uint32_t n = 0;

	for (; f; f = f->next) {
		memcpy(to + n, f->data, f->len);
		n += f->len;
	}
	return n;
}

/* RFC 9293 §3.1; the kernel looks at it, since nobody tells it that nothing was in between. n:
 * octets of the frame; the one behind it is set to 0. */
static void complete_sum(uint8_t *frame, uint32_t n)
{
	uint32_t at = ETHER + (frame[ETHER] & 15u) * 4, len = n - at;
	uint32_t sum = uw_sum_add(IPPROTO_TCP + len, frame + FROM, 8);
	uint8_t *tcp = frame + at;

	uw_put16(tcp + SUM, 0);
	frame[n] = 0;
	uw_put16(tcp + SUM, (uint16_t)~uw_sum_fold(uw_sum_add(sum, tcp, (len + 1) & ~1u)));
}

int lo_send(const struct lo *lo, const struct io_frame *f, uint8_t *scratch)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	uint32_t n = gather(f, scratch);

	if (f->marks & IO_FRAME_SUM)
		complete_sum(scratch, n);
	memcpy(&to.sin_addr, scratch + TO, 4);
	return sendto(lo->fd, scratch + ETHER, n - ETHER, MSG_DONTWAIT, (void *)&to, sizeof(to)) < 0
		       ? errno
		       : 0;
}
