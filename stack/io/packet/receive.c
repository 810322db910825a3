/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from the packet socket: those that fit in a slot of its ring from there, longer ones,
 * which came merged, as they are out of its queue, several with each call. */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/be.h"
#include "io/addr.h"
#include "io/packet/filter.h"
#include "io/packet/link.h"

#define VNET	     ((uint32_t)sizeof(struct virtio_net_hdr))
#define AT_ONCE	     4u		  /* merged frames with one call: what the caches hold */
#define BURST_OCTETS (256u << 10) /* then what came is used up before more is fetched */

static bool is_shared6(const struct packet_link *p, const uint8_t *to)
{
	struct uw_ip ip;

	memcpy(ip.b, to, sizeof(ip.b));
	return io_has(&p->l, &ip);
}

/* As below, of IPv6. Neighbours ask the kernel, unless they are of this host, and what they answer
 * is for both. */
static bool is_ours6(const struct packet_link *p, const uint8_t *h, size_t len)
{
	uint16_t port;

	if (len < 14 + 40 + 4)
		return false;
	if (h[20] == IPPROTO_ICMPV6)
		return h[54] == ICMP6_DST_UNREACH || h[54] == ICMP6_PACKET_TOO_BIG ||
		       h[54] == ND_NEIGHBOR_SOLICIT || h[54] == ND_NEIGHBOR_ADVERT;
	memcpy(&port, h + 56, sizeof(port));
	if (h[20] == IPPROTO_TCP)
		return held_ports_has(&p->ports6, port) && is_shared6(p, h + 38);
	return h[20] == IPPROTO_UDP && port == htons(ROCE_PORT);
}

/* A segment to a port that is not held is the kernel's: nobody here may answer it. Of other packets
 * only those of RoCEv2 are ours. */
static bool is_ours(const struct packet_link *p, const uint8_t *h, size_t len)
{
	size_t l4;
	uint16_t port;

	if (p->l.flags & IO_SHARED6 && len >= 14 && uw_be16(h + 12) == 0x86dd)
		return is_ours6(p, h, len);
	if (!(p->l.flags & IO_SHARED) || len < 14 + 20 || uw_be16(h + 12) != 0x0800)
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

static uint32_t marks_at(const uint8_t *frame)
{
	struct virtio_net_hdr vnet;

	memcpy(&vnet, frame - VNET, VNET);
	return marks_of(&vnet);
}

/* A small frame, if that is enough: a few octets should not hold 64 KiB. NULL: no memory now. */
static struct io_frame *room_for(struct packet_link *p, uint32_t len)
{
	bool small = len <= p->frames.small.room - FRAMES_HEADROOM;

	return frames_take(small ? &p->frames.small : &p->frames.large, &p->l);
}

/* ---- frames in their slots ------------------------------------------------------------------- */

/* False: no memory, and it stays where it is. *f NULL: it is not wanted. */
static bool take_slot(struct packet_link *p, const struct rx_slot *s, struct io_frame **f)
{
	*f = NULL;
	p->l.stats.rx_drops += s->lost;
	if (s->lost || !is_ours(p, s->frame, s->len))
		return true;
	*f = room_for(p, s->len);
	if (!*f)
		return false;
	memcpy((*f)->data, s->frame, s->len);
	(*f)->len = s->len;
	(*f)->marks = marks_at(s->frame);
	return true;
}

/* ---- frames in the socket's queue ------------------------------------------------------------ */

struct call {
	struct mmsghdr m[AT_ONCE];
	struct iovec part[AT_ONCE];
	struct io_frame *f[AT_ONCE];
	unsigned n;
};

static void lay_out(struct call *c, struct io_frame *f)
{
	/* The socket writes the virtio-net header right in front of the frame. */
	c->part[c->n] = (struct iovec){ f->data - VNET, f->buf + f->room - f->data + VNET };
	c->m[c->n].msg_hdr = (struct msghdr){ .msg_iov = &c->part[c->n], .msg_iovlen = 1 };
	c->f[c->n++] = f;
}

/* Room for those that come next in the queue, n at most. */
static void prepare(struct packet_link *p, const struct rx_ring *r, struct call *c, unsigned n)
{
	struct rx_slot s;
	struct io_frame *f;

	c->n = 0;
	while (c->n < n && c->n < AT_ONCE && rx_ring_look(r, c->n, &s) && s.queued &&
	       s.len <= FRAMES_LARGE) {
		f = room_for(p, s.len);
		if (!f)
			return;
		lay_out(c, f);
	}
}

/* Frame i, of which got octets came with the virtio-net header; NULL: it is not wanted. */
static struct io_frame *look_at(struct packet_link *p, const struct call *c, unsigned i, size_t got)
{
	struct io_frame *f = c->f[i];
	bool whole = got > VNET && got <= c->part[i].iov_len;

	p->l.stats.rx_drops += !whole;
	if (!whole || !is_ours(p, f->data, got - VNET)) {
		frames_free(f);
		return NULL;
	}
	f->len = (uint32_t)(got - VNET);
	f->marks = marks_at(f->data);
	return f;
}

/* How many slots the answer of the socket settles. A slot whose frame is not in the queue would
 * stop the link for ever; the socket tells an error of its own (ENETDOWN) once, and the frames are
 * there. */
static unsigned settled(struct packet_link *p, int came)
{
	if (came >= 0 || errno != EAGAIN)
		return came > 0 ? (unsigned)came : 0;
	p->l.stats.rx_drops++;
	return 1;
}

/* As recvmmsg; for a frame alone recv() costs less. */
static int fetch(int fd, struct call *c)
{
	const int how = MSG_DONTWAIT | MSG_TRUNC;
	ssize_t got;

	if (c->n > 1)
		return recvmmsg(fd, c->m, c->n, how, NULL);
	got = recv(fd, c->part[0].iov_base, c->part[0].iov_len, how);
	c->m[0].msg_len = got < 0 ? 0 : (unsigned)got;
	return got < 0 ? -1 : 1;
}

/* Up to *n of the frames that are queued next; *n: how many came and are wanted. False: none came.
 */
static bool receive_queued(struct packet_link *p, struct packet_socket *s, struct io_frame **v,
			   unsigned *n)
{
	struct call c;
	unsigned at = 0, done;
	int came;

	prepare(p, &s->ring, &c, *n);
	*n = 0;
	if (!c.n)
		return false;
	came = fetch(s->fd, &c);
	done = settled(p, came);
	for (unsigned i = 0; i < c.n; i++) {
		if ((int)i >= came)
			frames_free(c.f[i]);
		else if ((v[at] = look_at(p, &c, i, c.m[i].msg_len)))
			at++;
	}
	rx_ring_give_back(&s->ring, done);
	*n = at;
	return done;
}

/* ---- frames that no IP packet is as long as -------------------------------------------------- */

/* It is taken out of the queue, and its pieces are what comes next. False: it is not wanted, which
 * ends the burst, since it took long; or there is no memory, and it stays where it is. */
static bool receive_big(struct packet_link *p, struct packet_socket *s)
{
	size_t room;
	uint8_t *to = big_tcp_room(&s->big, &room);
	ssize_t got = to ? recv(s->fd, to, room, MSG_DONTWAIT) : 0;
	unsigned done = to ? settled(p, got < 0 ? -1 : 1) : 0;

	rx_ring_give_back(&s->ring, done);
	if (got <= 0)
		return done;
	if (!big_tcp_begin(&s->big, (size_t)got)) {
		p->l.stats.rx_drops++;
		return false;
	}
	if (!is_ours(p, s->big.frame, s->big.headers))
		big_tcp_give_up(&s->big);
	p->l.stats.rx_big += big_tcp_any(&s->big);
	return big_tcp_any(&s->big);
}

/* NULL: no memory now. */
static struct io_frame *next_piece(struct packet_link *p, struct packet_socket *s)
{
	struct io_frame *f = frames_take(&p->frames.large, &p->l);

	if (!f)
		return NULL;
	f->len = big_tcp_next(&s->big, f->data);
	f->marks = IO_FRAME_SUM_GOOD;
	return f;
}

/* ---- a burst --------------------------------------------------------------------------------- */

/* Frames for which the kernel had no slot. */
static void count_gap(struct packet_link *p, int fd)
{
	struct tpacket_stats st;
	socklen_t n = sizeof(st);

	if (!getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &st, &n))
		p->l.stats.rx_drops += st.tp_drops;
}

/* What comes next, *n frames at most; *n: how many are wanted. False: nothing more now. */
static bool receive_next(struct packet_link *p, struct packet_socket *s, struct io_frame **v,
			 unsigned *n)
{
	unsigned most = *n;
	struct rx_slot slot;
	bool more;

	*n = 0;
	if (big_tcp_any(&s->big)) {
		*v = next_piece(p, s);
		*n = *v ? 1 : 0;
		return *v;
	}
	if (!rx_ring_look(&s->ring, 0, &slot))
		return false;
	if (slot.gap)
		count_gap(p, s->fd);
	if (slot.queued && slot.len > FRAMES_LARGE)
		return receive_big(p, s);
	if (slot.queued) {
		*n = most;
		return receive_queued(p, s, v, n);
	}
	more = take_slot(p, &slot, v);
	*n = more && *v ? 1 : 0;
	rx_ring_give_back(&s->ring, more);
	return more;
}

/* From one of the sockets; returns how many. */
static unsigned receive_some(struct packet_link *p, struct packet_socket *s, struct io_frame **v,
			     unsigned n)
{
	uint64_t octets = 0;
	unsigned got = 0, some;
	bool more = true;

	while (more && got < n && octets < BURST_OCTETS) {
		some = n - got;
		more = receive_next(p, s, v + got, &some);
		for (unsigned i = 0; i < some; i++)
			octets += v[got++]->len;
	}
	p->l.stats.rx_frames += got;
	p->l.stats.rx_bytes += octets;
	return got;
}

/* Neither socket keeps the other one waiting. */
unsigned packet_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct packet_link *p = packet_link_of(l);
	unsigned share = packet_socket_any(&p->local) ? (n + 1) / 2 : n;
	unsigned got = receive_some(p, &p->wire, v, share), end;

	end = got + receive_some(p, &p->local, v + got, n - got);
	for (unsigned i = got; i < end; i++)
		lo_learn(&p->lo, v[i]->data, v[i]->len);
	return end;
}
