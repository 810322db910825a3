/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from the packet socket, merged ones as they are. */
#include <errno.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/be.h"
#include "io/packet/filter.h"
#include "io/packet/link.h"

#define VNET	     ((uint32_t)sizeof(struct virtio_net_hdr))
#define LOCAL_TURN   32u	  /* calls of rx() for one look at lo */
#define LOCAL_CALM   10000u	  /* looks without a frame until lo is calm */
#define BURST_OCTETS (256u << 10) /* then what came is used up before more is fetched */

/* The socket writes the virtio-net header right in front of the frame. Returns the octets of the
 * frame, more than fit if it is too long; 0: there is none. */
static size_t receive(int fd, const struct io_frame *f, struct virtio_net_hdr *vnet)
{
	uint8_t *at = f->data - VNET;
	ssize_t got = recv(fd, at, VNET + FRAMES_LARGE, MSG_DONTWAIT | MSG_TRUNC);

	if (got <= (ssize_t)VNET)
		return 0;
	memcpy(vnet, at, VNET);
	return (size_t)got - VNET;
}

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

/* What holds a frame of the wire does not keep 64 KiB. NULL: there is no frame. */
static struct io_frame *fit(struct packet_link *p, size_t len)
{
	struct io_frame *large = p->next, *f = large;

	if (len <= p->frames.small.room - FRAMES_HEADROOM) {
		f = frames_take(&p->frames.small, &p->l);
		if (f)
			memcpy(f->data, large->data, len);
	} else {
		p->next = NULL;
	}
	if (f)
		f->len = (uint32_t)len;
	return f;
}

/* NEEDS_CSUM: a local sender's or the kernel's own merging; the field holds no checksum, and
 * nothing was in between that could have done damage. DATA_VALID: the card found it right. Neither:
 * it is verified above. */
static uint32_t marks_of(const struct virtio_net_hdr *vnet)
{
	const uint8_t good = VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;

	return vnet->flags & good ? IO_FRAME_SUM_GOOD : 0;
}

/* False: nothing more came. *out NULL: it was dropped. */
static bool receive_one(struct packet_link *p, int fd, struct io_frame **out)
{
	struct virtio_net_hdr vnet;
	size_t len;

	*out = NULL;
	if (!p->next)
		p->next = frames_take(&p->frames.large, &p->l);
	if (!p->next)
		return false;
	len = receive(fd, p->next, &vnet);
	if (!len)
		return false;
	if (len > FRAMES_LARGE) {
		p->l.stats.rx_drops++;
		return true;
	}
	if (!is_ours(p, p->next->data, len))
		return true;
	if (fd == p->local)
		lo_learn(&p->lo, p->next->data, len);
	*out = fit(p, len);
	if (!*out)
		p->l.stats.rx_drops++;
	else
		(*out)->marks = marks_of(&vnet);
	return true;
}

/* From one of the sockets; returns how many. */
static unsigned receive_some(struct packet_link *p, int fd, struct io_frame **v, unsigned n)
{
	uint64_t octets = 0;
	unsigned got = 0;

	while (got < n && octets < BURST_OCTETS && receive_one(p, fd, &v[got])) {
		if (!v[got])
			continue;
		octets += v[got++]->len;
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
