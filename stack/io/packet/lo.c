/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/lo.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/be.h"
#include "base/sum.h"
#include "io/fds.h"

enum { ETHER = 14, IP4_LEN = 20, IP6_LEN = 40, SUM = 16 /* in the TCP header */ };

/* Where fields are in a frame of each version of IP. */
static const struct layout {
	uint16_t type, protocol, from, to, address; /* address: octets of one */
} layout[2] = { { 0x0800, ETHER + 9, ETHER + 12, ETHER + 16, 4 },
		{ 0x86dd, ETHER + 6, ETHER + 8, ETHER + 24, 16 } };

void lo_init(struct lo *lo)
{
	lo->fd[0] = lo->fd[1] = -1;
}

void lo_open(struct lo *lo, uint32_t scope)
{
	lo->fd[0] = fds_keep(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
	lo->fd[1] = fds_keep(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
	lo->scope = scope;
}

void lo_close(struct lo *lo)
{
	fds_close(lo->fd[0]);
	fds_close(lo->fd[1]);
	lo_init(lo);
}

static unsigned version_of(const uint8_t *frame)
{
	return frame[13] == 0xdd;
}

/* Octets in front of TCP's. */
static size_t headers(const uint8_t *frame)
{
	return ETHER + (version_of(frame) ? IP6_LEN : (frame[ETHER] & 15u) * 4u);
}

/* NULL: no TCP with its ports in the first n octets. */
static const uint8_t *tcp_of(const uint8_t *frame, size_t n)
{
	const struct layout *at;

	if (n < ETHER + IP4_LEN)
		return NULL;
	at = &layout[version_of(frame)];
	if (uw_be16(frame + 12) != at->type || frame[at->protocol] != IPPROTO_TCP)
		return NULL;
	return n < headers(frame) + 20 ? NULL : frame + headers(frame);
}

/* Processes with addresses of their own use lo as well; their ports say nothing of the kernel's. */
static bool is_to_itself(const uint8_t *frame)
{
	const struct layout *at = &layout[version_of(frame)];

	return !memcmp(frame + at->from, frame + at->to, at->address);
}

void lo_learn(struct lo *lo, const uint8_t *frame, size_t n)
{
	static const uint8_t none[6];
	const uint8_t *tcp = tcp_of(frame, n);
	uint64_t *word, bit;

	if (!tcp || !is_to_itself(frame))
		return;
	word = &lo->kernels[version_of(frame)][uw_be16(tcp) / 64];
	bit = (uint64_t)1 << uw_be16(tcp) % 64;
	if (!memcmp(frame, none, sizeof(none)))
		*word |= bit;
	else
		*word &= ~bit;
}

bool lo_is_kernels(const struct lo *lo, const struct io_frame *f)
{
	const uint8_t *tcp = tcp_of(f->data, f->len);
	unsigned port = tcp ? uw_be16(tcp + 2) : 0, version = tcp ? version_of(f->data) : 0;

	return tcp && is_to_itself(f->data) && lo->fd[version] >= 0 &&
	       lo->kernels[version][port / 64] >> port % 64 & 1;
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
 * octets of the frame. */
static void complete_sum(uint8_t *frame, uint32_t n)
{
	const struct layout *at = &layout[version_of(frame)];
	uint32_t len = n - (uint32_t)headers(frame);
	uint32_t sum = uw_sum_add(IPPROTO_TCP + len, frame + at->from, 2u * at->address);
	uint8_t *tcp = frame + headers(frame);

	uw_put16(tcp + SUM, 0);
	uw_put16(tcp + SUM, (uint16_t)~uw_sum_fold(uw_sum_add(sum, tcp, len)));
}

static int send_to(int fd, const uint8_t *ip, size_t n, const void *to, socklen_t len)
{
	return sendto(fd, ip, n, MSG_DONTWAIT | MSG_NOSIGNAL, to, len) < 0 ? errno : 0;
}

int lo_send(const struct lo *lo, const struct io_frame *f, uint8_t *scratch)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_scope_id = lo->scope };
	uint32_t n = gather(f, scratch);

	if (f->marks & IO_FRAME_SUM)
		complete_sum(scratch, n);
	memcpy(&four.sin_addr, scratch + layout[0].to, sizeof(four.sin_addr));
	memcpy(&six.sin6_addr, scratch + layout[1].to, sizeof(six.sin6_addr));
	if (version_of(scratch))
		return send_to(lo->fd[1], scratch + ETHER, n - ETHER, &six, sizeof(six));
	return send_to(lo->fd[0], scratch + ETHER, n - ETHER, &four, sizeof(four));
}
