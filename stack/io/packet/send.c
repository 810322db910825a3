/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames to the packet socket: segments of one flow as one frame that the kernel cuts. */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/be.h"
#include "io/packet/link.h"
#include "io/packet/segments.h"

#define MACS	    12u
#define ETHER	    14u
#define IP6_LEN	    40u
#define PARTS	    (4 + 2 * SEGMENTS_MAX)
#define REFUSED_MAX 16u /* merged frames in a row: this device takes none */

/* One call of sendmsg. */
struct message {
	struct virtio_net_hdr vnet;
	uint8_t head[SEGMENT_HEADERS];
	struct iovec part[PARTS];
	unsigned n;
};

static void add(struct message *m, const void *p, size_t n)
{
	m->part[m->n++] = (struct iovec){ (void *)(uintptr_t)p, n };
}

static void begin(struct message *m, const struct virtio_net_hdr *vnet)
{
	m->vnet = *vnet;
	m->n = 0;
	add(m, &m->vnet, sizeof(m->vnet));
}

/* False: too many buffers for one call. */
static bool add_frame(struct message *m, const struct io_frame *f, size_t skip)
{
	for (; f; f = f->next) {
		if (m->n == PARTS)
			return false;
		add(m, f->data + skip, f->len - skip);
		skip = 0;
	}
	return true;
}

/* The headers at p, and between MACs and type the link's tag (IEEE 802.1Q). The frame itself stays
 * as it is: TCP may send it again. */
static void add_headers(struct message *m, const struct packet_link *p, const uint8_t *h, size_t n)
{
	if (p->tag_len) {
		add(m, h, MACS);
		add(m, p->tag, p->tag_len);
		h += MACS;
		n -= MACS;
		if (m->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			m->vnet.csum_start = (uint16_t)(m->vnet.csum_start + p->tag_len);
		if (m->vnet.hdr_len)
			m->vnet.hdr_len = (uint16_t)(m->vnet.hdr_len + p->tag_len);
	}
	add(m, h, n);
}

static bool fill_single(struct message *m, const struct packet_link *p, struct io_frame *f)
{
	struct virtio_net_hdr vnet = { 0 };

	if (f->marks & IO_FRAME_SUM)
		segment_ask_sum(f, &vnet);
	begin(m, &vnet);
	add_headers(m, p, f->data, f->len);
	return add_frame(m, f->next, 0);
}

/* Piece i of a frame that the kernel does not cut. */
static bool fill_piece(struct message *m, const struct packet_link *p, const struct io_frame *f,
		       unsigned i)
{
	struct virtio_net_hdr vnet = { 0 };
	struct uw_span payload;
	unsigned headers = segment_part(f, i, 1, m->head, &vnet, &payload);

	if (!headers)
		return false;
	begin(m, &vnet);
	add_headers(m, p, m->head, headers);
	add(m, payload.p, payload.n);
	return true;
}

static bool fill_run(struct message *m, const struct packet_link *p, struct io_frame *const *v,
		     unsigned n)
{
	struct virtio_net_hdr vnet = { 0 };
	unsigned headers = segments_head(v, n, m->head, &vnet);
	bool fits = true;

	if (!headers)
		return false;
	begin(m, &vnet);
	add_headers(m, p, m->head, headers);
	for (unsigned i = 0; i < n && fits; i++)
		fits = add_frame(m, v[i], headers);
	return fits;
}

/* To another process of this host, by the shared address (io_ops.is_ours) or one of its own. */
static bool is_local(const struct packet_link *p, const struct io_frame *f)
{
	return p->local.fd >= 0 && !memcmp(f->data, p->l.mac, sizeof(p->l.mac));
}

static int socket_to(const struct packet_link *p, const struct io_frame *f)
{
	return is_local(p, f) ? p->local.fd : p->wire.fd;
}

/* 0 or an errno. */
static int send_message(const struct packet_link *p, struct message *m, const struct io_frame *f)
{
	struct msghdr h = { .msg_iov = m->part, .msg_iovlen = m->n };

	return sendmsg(socket_to(p, f), &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* ---- frames of one buffer ---------------------------------------------------------------- */

/* The virtio-net header goes into the headroom in front of the frame, so that header and frame are
 * one piece of memory: send() costs less than sendmsg(). */
static bool has_headroom(const struct packet_link *p, const struct io_frame *f)
{
	return !p->tag_len && !f->next &&
	       (size_t)(f->data - f->buf) >= sizeof(struct virtio_net_hdr);
}

/* 0 or an errno. */
static int send_with_header(const struct packet_link *p, const struct io_frame *f,
			    const struct virtio_net_hdr *vnet)
{
	uint8_t *at = f->data - sizeof(*vnet);

	memcpy(at, vnet, sizeof(*vnet));
	return send(socket_to(p, f), at, sizeof(*vnet) + f->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
		       ? errno
		       : 0;
}

static int send_one_buffer(const struct packet_link *p, struct io_frame *f)
{
	struct virtio_net_hdr vnet = { 0 };

	if (f->marks & IO_FRAME_SUM)
		segment_ask_sum(f, &vnet);
	return send_with_header(p, f, &vnet);
}

/* A long segment, for the kernel to cut. */
static int send_whole(struct packet_link *p, struct io_frame *f)
{
	struct virtio_net_hdr vnet = { 0 };
	struct message m;

	segment_ask_cut(f, &vnet);
	if (has_headroom(p, f))
		return send_with_header(p, f, &vnet);
	begin(&m, &vnet);
	add_headers(&m, p, f->data, f->len);
	return send_message(p, &m, f);
}

/* ---- frames one by one --------------------------------------------------------------------- */

/* To one of the kernel's. */
static int send_to_kernel(struct packet_link *p, const struct io_frame *f)
{
	struct io_frame *room = frames_take(&p->frames.large, &p->l);
	int err;

	if (!room)
		return ENOBUFS;
	err = lo_send(&p->lo, f, room->data);
	frames_free(room);
	return err;
}

static bool is_arp(const uint8_t *h)
{
	return uw_be16(h + 2 * 6) == 0x0806;
}

/* To a multicast group (RFC 1112 §6.4, RFC 2464 §7), or to ask for a neighbour: processes of this
 * host may be among those that are meant, too. */
static bool is_to_many(const struct packet_link *p, const struct io_frame *f)
{
	const uint8_t *h = f->data;

	if (p->local.fd < 0 || !(h[0] & 1))
		return false;
	if (is_arp(h))
		return true;
	if (f->len <= ETHER + IP6_LEN)
		return false;
	return h[0] == 0x01 ||
	       (h[0] == 0x33 &&
		(h[ETHER + 6] == IPPROTO_UDP ||
		 (h[ETHER + 6] == IPPROTO_ICMPV6 && h[ETHER + IP6_LEN] == ND_NEIGHBOR_SOLICIT)));
}

/* What no member hears is lost, as on a wire. */
static void copy_to_local(const struct packet_link *p, struct message *m)
{
	struct msghdr h = { .msg_iov = m->part, .msg_iovlen = m->n };
	ssize_t unused = sendmsg(p->local.fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)unused;
}

static int send_one(struct packet_link *p, struct io_frame *f)
{
	struct message m;
	int err;

	if (is_local(p, f) && lo_is_kernels(&p->lo, f))
		return send_to_kernel(p, f);
	if (has_headroom(p, f) && !is_to_many(p, f))
		return send_one_buffer(p, f);
	err = fill_single(&m, p, f) ? send_message(p, &m, f) : EMSGSIZE;
	if (!err && is_to_many(p, f))
		copy_to_local(p, &m);
	return err;
}

static void count(struct packet_link *p, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		for (const struct io_frame *b = v[i]; b; b = b->next)
			p->l.stats.tx_bytes += b->len;
		io_free_chain(v[i]);
	}
	p->l.stats.tx_frames += n;
}

static void lose(struct packet_link *p, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		io_free_chain(v[i]);
	p->l.stats.tx_drops += n;
}

/* False: the socket has no room now, and the frame stays the caller's. What the kernel refuses for
 * another reason (a queue that is full, an interface that went down) is lost as on a wire. */
static bool send_single(struct packet_link *p, struct io_frame **v)
{
	int err = send_one(p, *v);

	if (err == EAGAIN)
		return false;
	if (err)
		lose(p, v, 1);
	else
		count(p, v, 1);
	return true;
}

/* The queueing discipline has dropped it, or there is no memory: it is lost as on a wire. Says
 * nothing of what the device takes; pieces would find no more room, and TCP is to slow down. */
static bool is_dropped(int err)
{
	return err == ENOBUFS;
}

/* An interface that is down takes nothing, merged or not. */
static void refused(struct packet_link *p, int err)
{
	if (err != ENETDOWN && ++p->refused == REFUSED_MAX)
		p->merges = false;
}

/* Returns how many of the n went, n >= 2. */
static unsigned send_run(struct packet_link *p, struct io_frame **v, unsigned n)
{
	struct message m;
	int err = fill_run(&m, p, v, n) ? send_message(p, &m, *v) : EMSGSIZE;
	unsigned sent = 0;

	if (err == EAGAIN)
		return 0;
	if (!err) {
		p->refused = 0;
		p->l.stats.tx_merged += n;
		p->l.stats.tx_chains++;
		count(p, v, n);
		return n;
	}
	if (is_dropped(err)) {
		lose(p, v, n);
		return n;
	}
	refused(p, err);
	while (sent < n && send_single(p, v + sent))
		sent++;
	p->l.stats.tx_unmerged += sent;
	return sent;
}

/* A long segment is gone; without `sent` nothing of it went. */
static void count_long(struct packet_link *p, struct io_frame **v, bool sent)
{
	p->l.stats.tx_bytes += sent ? (*v)->len : 0;
	io_free_chain(*v);
}

/* What the kernel does not take is lost as on a wire. False: it has no room now, nothing went, and
 * the frame stays the caller's. */
static bool send_pieces(struct packet_link *p, struct io_frame **v, unsigned n)
{
	struct message m;
	unsigned i = 0;
	int err = 0;

	while (i < n && !err) {
		err = fill_piece(&m, p, *v, i) ? send_message(p, &m, *v) : EMSGSIZE;
		i += !err;
	}
	if (!i && err == EAGAIN)
		return false;
	p->l.stats.tx_unmerged += i;
	p->l.stats.tx_frames += i;
	p->l.stats.tx_drops += n - i;
	count_long(p, v, i > 0);
	return true;
}

/* A long segment of n pieces. False: the socket has no room now. */
static bool send_long(struct packet_link *p, struct io_frame **v, unsigned n)
{
	int err = p->merges ? send_whole(p, *v) : EMSGSIZE;

	if (err == EAGAIN)
		return false;
	if (is_dropped(err)) {
		p->l.stats.tx_drops += n;
		count_long(p, v, false);
		return true;
	}
	if (err) {
		refused(p, err);
		return send_pieces(p, v, n);
	}
	p->refused = 0;
	p->l.stats.tx_merged += n;
	p->l.stats.tx_frames += n;
	p->l.stats.tx_chains++;
	count_long(p, v, true);
	return true;
}

static bool may_merge(const struct packet_link *p, const struct io_frame *f)
{
	return p->merges && !(is_local(p, f) && lo_is_kernels(&p->lo, f));
}

unsigned packet_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct packet_link *p = packet_link_of(l);
	unsigned sent = 0;

	while (sent < n) {
		unsigned pieces = segment_pieces(v[sent]), run = 1, gone;

		if (pieces > 1) {
			gone = send_long(p, v + sent, pieces);
		} else {
			run = may_merge(p, v[sent]) ? segments_run(v + sent, n - sent) : 1;
			gone = run > 1 ? send_run(p, v + sent, run) : send_single(p, v + sent);
		}
		sent += gone;
		if (gone < run)
			break;
	}
	l->stats.tx_full += sent < n;
	return sent;
}
