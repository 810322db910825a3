/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from the packet socket, merged ones as they are, several with each call. */
#include <errno.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/be.h"
#include "io/packet/filter.h"
#include "io/packet/link.h"

#define VNET	       ((uint32_t)sizeof(struct virtio_net_hdr))
#define LOCAL_TURN     32u    /* calls of rx() for one look at lo */
#define LOCAL_CALM     10000u /* looks without a frame until lo is calm */
#define MERGED_AT_ONCE 4u
#define BURST_OCTETS   (256u << 10) /* then what came is used up before more is fetched */

/* A segment to a port that is not held is the kernel's: nobody here may answer it. Of other packets
 * only those of RoCEv2 are ours. */
static bool is_ours(const struct packet_link *p, const uint8_t *h, size_t len)
{
	size_t l4;
	uint16_t port;

	if (!p->shared || len < 14 + 20 || uw_be16(h + 12) != 0x0800)
		return true;
	l4 = 14 + (h[14] & 15u) * 4;
	if (len < l4 + 4)
		return false;
	if (h[23] == IPPROTO_ICMP)
		return h[l4] == ICMP_DEST_UNREACH;
	memcpy(&port, h + l4 + 2, sizeof(port));
	return h[23] == IPPROTO_TCP ? held_ports_has(&p->ports, port)
				    : h[23] == IPPROTO_UDP && port == htons(ROCE_PORT);
}

/* NEEDS_CSUM: a local sender's or the kernel's own merging; the field holds no checksum, and
 * nothing was in between that could have done damage. DATA_VALID: the card found it right. Neither:
 * it is verified above. */
static uint32_t marks_of(const struct virtio_net_hdr *vnet)
{
	const uint8_t good = VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;

	return vnet->flags & good ? IO_FRAME_SUM_GOOD : 0;
}

/* ---- one call -------------------------------------------------------------------------------- */

static uint32_t small_room(const struct packet_link *p)
{
	return p->frames.small.room - FRAMES_HEADROOM;
}

/* The socket writes the virtio-net header right in front of the frame. Returns the parts. */
static unsigned lay_out(struct packet_link *p, unsigned i, struct iovec *part)
{
	struct io_frame *small = p->rx.small[i], *large = p->rx.large[i];
	uint32_t room = small_room(p);

	if (!small) {
		part[0] = (struct iovec){ large->data - VNET, VNET + FRAMES_LARGE };
		return 1;
	}
	part[0] = (struct iovec){ small->data - VNET, VNET + room };
	part[1] = (struct iovec){ large->data + room, FRAMES_LARGE - room };
	return 2;
}

/* How many of n places have room for a frame. */
static unsigned make_room(struct packet_link *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!p->rx.small[i])
			p->rx.small[i] = frames_take(&p->frames.small, &p->l);
		if (!p->rx.large[i])
			p->rx.large[i] = frames_take(&p->frames.large, &p->l);
		if (!p->rx.large[i])
			return i;
	}
	return n;
}

/* The frame of len octets that was written to place i, which is empty then. */
static struct io_frame *take(struct packet_link *p, unsigned i, size_t len)
{
	struct io_frame *small = p->rx.small[i], *f = p->rx.large[i];
	uint32_t room = small_room(p);

	if (small && len <= room) {
		f = small;
		p->rx.small[i] = NULL;
	} else {
		if (small)
			memcpy(f->data, small->data, room);
		p->rx.large[i] = NULL;
	}
	f->len = (uint32_t)len;
	return f;
}

/* What place i got, got octets with the virtio-net header; NULL: it is not wanted. */
static struct io_frame *look_at(struct packet_link *p, unsigned i, size_t got)
{
	struct io_frame *first = p->rx.small[i] ? p->rx.small[i] : p->rx.large[i], *f;
	struct virtio_net_hdr vnet;

	if (got <= VNET)
		return NULL;
	if (got - VNET > FRAMES_LARGE) {
		p->l.stats.rx_drops++;
		return NULL;
	}
	if (!is_ours(p, first->data, got - VNET))
		return NULL;
	memcpy(&vnet, first->data - VNET, VNET);
	f = take(p, i, got - VNET);
	f->marks = marks_of(&vnet);
	return f;
}

/* Up to n frames from one of the sockets, n <= PACKET_AT_ONCE. False: nothing more is there. */
static bool receive(struct packet_link *p, int fd, struct io_frame **v, unsigned *n)
{
	struct iovec part[PACKET_AT_ONCE][2];
	struct mmsghdr m[PACKET_AT_ONCE];
	unsigned asked = make_room(p, *n), at = 0;
	int came;

	memset(m, 0, asked * sizeof(m[0]));
	for (unsigned i = 0; i < asked; i++) {
		m[i].msg_hdr.msg_iov = part[i];
		m[i].msg_hdr.msg_iovlen = lay_out(p, i, part[i]);
	}
	*n = 0;
	came = asked ? recvmmsg(fd, m, asked, MSG_DONTWAIT | MSG_TRUNC, NULL) : 0;
	for (int i = 0; i < came; i++) {
		v[at] = look_at(p, (unsigned)i, m[i].msg_len);
		if (v[at] && fd == p->local)
			lo_learn(&p->lo, v[at]->data, v[at]->len);
		at += v[at] != NULL;
	}
	*n = at;
	return came > 0 && (unsigned)came == asked;
}

/* ---- a burst --------------------------------------------------------------------------------- */

/* Where frames come merged, a few of them are what the caches hold. */
static void learn(struct packet_link *p, uint64_t octets, unsigned frames)
{
	p->rx.ask = frames && octets / frames > small_room(p) ? MERGED_AT_ONCE : PACKET_AT_ONCE;
}

/* From one of the sockets; returns how many. */
static unsigned receive_some(struct packet_link *p, int fd, struct io_frame **v, unsigned n)
{
	uint64_t octets = 0;
	unsigned got = 0, some;
	bool more = true;

	while (more && got < n && octets < BURST_OCTETS) {
		some = p->rx.ask && p->rx.ask < n - got ? p->rx.ask : n - got;
		if (some > PACKET_AT_ONCE)
			some = PACKET_AT_ONCE;
		more = receive(p, fd, v + got, &some);
		for (unsigned i = 0; i < some; i++)
			octets += v[got++]->len;
		learn(p, octets, got);
	}
	p->l.stats.rx_frames += got;
	p->l.stats.rx_bytes += octets;
	return got;
}

/* lo is looked at each time while something comes from it, else now and then: most programs have no
 * peer there, and a system call that finds nothing is time lost. */
unsigned packet_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct packet_link *p = packet_link_of(l);
	unsigned got = receive_some(p, p->fd, v, n), local;

	if (p->local < 0 || got == n || p->local_turn-- > 0)
		return got;
	local = receive_some(p, p->local, v + got, n - got);
	if (local)
		p->local_calm = LOCAL_CALM;
	else if (p->local_calm)
		p->local_calm--;
	p->local_turn = p->local_calm ? 0 : LOCAL_TURN;
	return got + local;
}
