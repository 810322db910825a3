/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface through a packet socket, merged frames both ways (doc/adr/0024). */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/be.h"
#include "base/log.h"
#include "io/addr.h"
#include "io/fds.h"
#include "io/packet/filter.h"
#include "io/packet/held_ports.h"
#include "io/packet/ingress.h"
#include "io/packet/interface.h"
#include "io/packet/presence.h"
#include "io/packet/roce_port.h"
#include "io/packet/big_tcp.h"
#include "io/packet/rx_ring.h"
#include "uplink.h"

#define VNET sizeof(struct virtio_net_hdr)
/* 2,072 slots: twice as many as a process with its own packet link has. */
#define RING_BLOCKS 148u
#define BPS_UNKNOWN UINT64_C(10000000000)
#define ETHER	    14u
#define TCP_SUM	    16u
#define TCP_FLAGS   13u
#define FLAG_CWR    0x80u
#define TYPE_IP6    0x86ddu

struct packet_uplink {
	struct uplink p; /* first */
	struct interface interface;
	pthread_mutex_t lock; /* of both below */
	struct held_ports held, held6;
	bool holds, holds6; /* they are open */
	struct ingress ingress;
	struct roce_port roce;
	int told[1 + IO_IP6_MAX]; /* of our addresses; -1: not */
	struct rx_ring ring;
	bool gives, waits; /* the ring's first slot is used up; its frame lies in the queue */
	uint32_t len;	   /* of that frame */
	struct big_tcp big;
	uint8_t piece[BIG_TCP_PIECE]; /* of it */
};

static struct packet_uplink *packet_uplink_of(struct uplink *p)
{
	return (struct packet_uplink *)p;
}

/* ---- frames -------------------------------------------------------------------------------- */

static struct virtio_net_hdr vnet_of(const struct uplink_out *f)
{
	struct virtio_net_hdr v = { 0 };

	if (!f->meta.sum || !f->tcp)
		return v;
	v.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	v.csum_start = (uint16_t)f->tcp;
	v.csum_offset = TCP_SUM;
	if (!f->meta.gso_size)
		return v;
	v.gso_type = uw_be16(f->head + 12) == TYPE_IP6 ? VIRTIO_NET_HDR_GSO_TCPV6
						       : VIRTIO_NET_HDR_GSO_TCPV4;
	if (f->head[f->tcp + TCP_FLAGS] & FLAG_CWR) /* RFC 3168 §6.1.2: on the first segment only */
		v.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	v.gso_size = f->meta.gso_size;
	v.hdr_len = (uint16_t)f->head_len;
	return v;
}

/* What the kernel refuses for another reason than a full socket is lost as on a wire. */
static bool packet_send(struct uplink *p, const struct uplink_out *f)
{
	struct virtio_net_hdr vnet = vnet_of(f);
	struct iovec part[] = { { &vnet, sizeof(vnet) },
				{ (void *)(uintptr_t)f->head, f->head_len },
				{ (void *)(uintptr_t)f->rest, f->rest_len } };
	struct msghdr h = { .msg_iov = part, .msg_iovlen = f->rest_len ? 3 : 2 };

	if (sendmsg(p->fd, &h, MSG_DONTWAIT) >= 0)
		return true;
	if (errno == EAGAIN)
		return false;
	p->lost++;
	return true;
}

/* The frame that waits in the queue, to `to`; NULL: away with it. Returns what recvmsg does. */
static ssize_t take_queued(struct packet_uplink *p, uint8_t *to)
{
	struct virtio_net_hdr vnet;
	struct iovec part[] = { { &vnet, VNET }, { to, p->len } };
	struct msghdr h = { .msg_iov = part, .msg_iovlen = to ? 2 : 1 };
	ssize_t got = recvmsg(p->p.fd, &h, MSG_DONTWAIT);

	/* the socket tells an error of its own (ENETDOWN) once, and the frame is there */
	if (got < 0 && errno != EAGAIN)
		got = recvmsg(p->p.fd, &h, MSG_DONTWAIT);
	p->waits = false;
	return got;
}

static bool packet_fetch(struct uplink *p, uint8_t *to)
{
	struct packet_uplink *pp = packet_uplink_of(p);
	bool whole = take_queued(pp, to) == (ssize_t)VNET + pp->len;

	p->missed += !whole;
	return whole;
}

/* The frame that waits in the queue is longer than an IP packet: its pieces are what comes next. */
static void take_big(struct packet_uplink *p)
{
	size_t room;
	uint8_t *to = big_tcp_room(&p->big, &room);
	ssize_t got = to ? recv(p->p.fd, to, room, MSG_DONTWAIT) : 0;

	/* as in take_queued */
	if (got < 0 && errno != EAGAIN)
		got = recv(p->p.fd, to, room, MSG_DONTWAIT);
	p->waits = !to;
	p->p.missed += got <= 0 || !big_tcp_begin(&p->big, (size_t)got);
}

static void next_piece(struct packet_uplink *p, struct uplink_in *f)
{
	*f = (struct uplink_in){ .octets = p->piece,
				 .len = big_tcp_next(&p->big, p->piece),
				 .meta = { .sum = true } };
}

/* The slot that was looked at last. */
static void give_back(struct packet_uplink *p)
{
	if (p->waits)
		take_queued(p, NULL);
	if (p->gives)
		rx_ring_give_back(&p->ring, 1);
	p->gives = false;
}

/* Frames for which the kernel had no slot. */
static void count_gap(struct uplink *p)
{
	struct tpacket_stats st;
	socklen_t n = sizeof(st);

	if (!getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &st, &n))
		p->missed += st.tp_drops;
}

/* False: it is lost, or comes in pieces. */
static bool look_at(struct packet_uplink *p, const struct rx_slot *s, struct uplink_in *f)
{
	const uint8_t good = VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;
	struct virtio_net_hdr vnet;

	if (s->gap)
		count_gap(&p->p);
	p->gives = true;
	p->waits = s->queued;
	p->len = s->len;
	if (s->queued && s->len > CONDUIT_FRAME_MAX) {
		take_big(p);
		return false;
	}
	if (s->lost || s->len > CONDUIT_FRAME_MAX) {
		p->p.missed++;
		return false;
	}
	memcpy(&vnet, s->frame - VNET, VNET);
	*f = (struct uplink_in){ .octets = s->frame,
				 .len = s->len,
				 .waits = s->queued,
				 .meta = { .sum = vnet.flags & good } };
	return true;
}

/* Short frames lie in the ring, which costs no system call, and longer ones in the queue, from
 * which they go to their client's conduit at once. */
static bool packet_receive(struct uplink *p, struct uplink_in *f)
{
	struct packet_uplink *pp = packet_uplink_of(p);
	struct rx_slot s;

	while (!big_tcp_any(&pp->big)) {
		give_back(pp);
		if (!rx_ring_look(&pp->ring, 0, &s))
			return false;
		if (look_at(pp, &s, f))
			return true;
	}
	next_piece(pp, f);
	return true;
}

/* ---- ports --------------------------------------------------------------------------------- */

static struct filter_ports list(const struct held_ports *p, bool holds, uint16_t *room)
{
	return (struct filter_ports){ room, holds ? held_ports_list(p, room, FILTER_PORTS) : 0 };
}

static void attach_filter(void *arg)
{
	struct packet_uplink *p = arg;
	struct sock_filter code[FILTER_MAX];
	uint16_t ports[FILTER_PORTS], ports6[FILTER_PORTS];
	struct filter_ask a = { .addr = p->p.addr,
				.shared = p->holds,
				.shared6 = p->holds6,
				.ports = list(&p->held, p->holds, ports),
				.ports6 = list(&p->held6, p->holds6, ports6),
				.ip6 = p->p.ip6,
				.n_ip6 = p->p.n_ip6 };
	struct sock_fprog prog = { .filter = code };

	prog.len = (unsigned short)filter_make(&a, code);
	if (setsockopt(p->p.fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		uw_log("no filter on %s: %s", p->interface.name, strerror(errno));
}

static struct ingress_ask ingress_ask_of(const struct packet_uplink *p)
{
	return (struct ingress_ask){ .interface = p->interface.name,
				     .shared = p->p.own ? 0 : IO_V4 | IO_V6,
				     .addr = p->p.addr,
				     .ip6 = p->p.ip6,
				     .n_ip6 = p->p.n_ip6 };
}

static void held(void *arg, uint16_t port, bool on)
{
	struct packet_uplink *p = arg;

	ingress_port(&p->ingress, IO_V4, port, on);
}

static void held6(void *arg, uint16_t port, bool on)
{
	struct packet_uplink *p = arg;

	ingress_port(&p->ingress, IO_V6, port, on);
}

/* NULL: nobody else has the addresses. */
static struct held_ports *held_of(struct packet_uplink *p, enum io_versions v)
{
	if (v == IO_V6)
		return p->holds6 ? &p->held6 : NULL;
	return p->holds ? &p->held : NULL;
}

static enum switch_msg_why why_of(uw_status st)
{
	if (!st)
		return SWITCH_GRANTED;
	return st == UW_E_ADDR_IN_USE ? SWITCH_IN_USE : SWITCH_NO_MEMORY;
}

static enum switch_msg_why packet_claim(struct uplink *p, uint16_t port, enum io_versions v)
{
	struct held_ports *held = held_of(packet_uplink_of(p), v);

	return why_of(held ? held_ports_claim(held, port, false) : UW_OK);
}

static void packet_release(struct uplink *p, uint16_t port, enum io_versions v)
{
	struct held_ports *held = held_of(packet_uplink_of(p), v);

	if (held)
		held_ports_forget(held, port);
}

/* The filter lets them in all along. */
static enum switch_msg_why packet_claim_packets(struct uplink *p)
{
	struct packet_uplink *pp = packet_uplink_of(p);
	const struct ingress_ask a = ingress_ask_of(pp);
	uw_status st;

	if (p->own || pp->roce.n)
		return SWITCH_GRANTED;
	st = roce_port_hold(&pp->roce, pp->holds ? &pp->held.at : NULL,
			    pp->holds6 ? &pp->held6.at : NULL, pp->interface.name);
	if (!st)
		ingress_roce(&pp->ingress, &a);
	return why_of(st);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* The kernel takes the index from the socket when the interface is deleted, or goes to another
 * network namespace. The socket's error (ENETDOWN) comes before that, and no other does. */
static bool packet_gone(struct uplink *p)
{
	struct sockaddr_ll a = { 0 };
	socklen_t n = sizeof(a);
	bool gone = !getsockname(p->fd, (void *)&a, &n) && a.sll_ifindex <= 0;

	if (gone)
		uw_log("uwarpd: interface %s is gone; start again when it is there",
		       packet_uplink_of(p)->interface.name);
	return gone;
}

static void packet_close(struct uplink *p)
{
	struct packet_uplink *pp = packet_uplink_of(p);

	rx_ring_close(&pp->ring);
	big_tcp_close(&pp->big);
	if (p->fd >= 0)
		close(p->fd);
	ingress_close(&pp->ingress);
	if (pp->holds)
		held_ports_close(&pp->held);
	if (pp->holds6)
		held_ports_close(&pp->held6);
	roce_port_release(&pp->roce);
	for (unsigned i = 0; i < 1 + IO_IP6_MAX; i++) {
		if (pp->told[i] >= 0)
			close(pp->told[i]);
	}
	pthread_mutex_destroy(&pp->lock);
	free(pp);
}

static const struct uplink_ops ops = {
	.send = packet_send,
	.receive = packet_receive,
	.fetch = packet_fetch,
	.claim = packet_claim,
	.release = packet_release,
	.claim_packets = packet_claim_packets,
	.gone = packet_gone,
	.close = packet_close,
};

/* The MTU is known. */
static void choose_ip6(struct packet_uplink *p, const struct options *o)
{
	p->p.scope = (uint32_t)p->interface.index;
	if (p->p.own)
		uplink_own_ip6(&p->p, o);
	else if (p->p.mtu >= IO_IP6_MIN_MTU)
		p->p.n_ip6 = interface_ip6(&p->interface, p->p.ip6, IO_IP6_MAX);
}

/* The kernel's are shared all or not at all. */
static bool check_own6(const struct packet_uplink *p, const struct options *o)
{
	for (unsigned i = 0; i < o->n_ip6; i++) {
		if (p->p.own && !interface_kernel_has(&o->ip6[i].ip, p->interface.index))
			continue;
		uw_log("--ip of IPv6 is for unused addresses of the uwarpd's own, with an unused "
		       "one of IPv4; those of %s are shared without it",
		       p->interface.name);
		return false;
	}
	return true;
}

static bool choose_address(struct packet_uplink *p, const struct options *o)
{
	const struct interface *i = &p->interface;
	const struct uw_ip own = uw_ip_v4(o->addr);

	p->p.own = o->addr && o->addr != i->addr;
	p->p.addr = p->p.own ? o->addr : i->addr;
	p->p.mask = p->p.own ? o->mask : i->mask;
	choose_ip6(p, o);
	if (!p->p.addr && !p->p.n_ip6) {
		if (!interface_lacks_link_local(i))
			uw_log("interface %s has no address; give it one, or an unused one of IPv4 "
			       "of its "
			       "network to us (--ip A/N)",
			       i->name);
		return false;
	}
	if (p->p.own && interface_kernel_has(&own, i->index)) {
		uw_log("the kernel has the address that was asked for, but not as the first of %s: "
		       "give that one, or an unused one of its network (--ip)",
		       i->name);
		return false;
	}
	return check_own6(p, o);
}

static bool check_mtu(struct packet_uplink *p, const struct options *o)
{
	const struct interface *i = &p->interface;

	p->p.mtu = o->mtu ? o->mtu : i->mtu < IO_MTU_MAX ? i->mtu : IO_MTU_MAX;
	if (p->p.mtu < IO_MTU_LEAST) {
		uw_log("%s has an MTU of %u, and %u is the least that works: ip link set %s mtu "
		       "1500",
		       i->name, p->p.mtu, IO_MTU_LEAST, i->name);
		return false;
	}
	if (p->p.mtu <= i->mtu)
		return true;
	uw_log("an MTU of %u is more than the %u of %s; raise that first: ip link set %s mtu %u",
	       p->p.mtu, i->mtu, i->name, i->name, p->p.mtu);
	return false;
}

static bool hold_ports(struct packet_uplink *p)
{
	const struct held_at four = { .ip = { uw_ip_v4(p->p.addr) }, .n = 1 };
	struct held_at six = { .n = p->p.n_ip6, .scope = p->p.scope };

	for (unsigned i = 0; i < six.n; i++)
		six.ip[i] = p->p.ip6[i].ip;
	p->holds = p->p.addr && !held_ports_open(&p->held, &four, &p->lock);
	if (p->p.addr && !p->holds)
		return false;
	p->holds6 = six.n && !held_ports_open(&p->held6, &six, &p->lock);
	p->held.changed = p->held6.changed = attach_filter;
	p->held.held = held;
	p->held6.held = held6;
	p->held.arg = p->held6.arg = p;
	p->p.needs_admin = true;
	return p->holds6 || !six.n;
}

/* Where the uwarpd answers, neighbours ask at a multicast address (RFC 4291 §2.7.1, RFC 2464 §7).
 * To the kernel's addresses they ask the kernel. */
static void join_groups(struct packet_uplink *p)
{
	for (unsigned i = 0; p->p.own && i < p->p.n_ip6; i++) {
		const uint8_t *b = p->p.ip6[i].ip.b;
		const uint8_t mac[6] = { 0x33, 0x33, 0xff, b[13], b[14], b[15] };

		interface_join(&p->interface, p->p.fd, mac);
	}
}

/* The order matters: nothing comes before the filter is there. */
static bool open_socket(struct packet_uplink *p)
{
	if ((!p->p.own && !hold_ports(p)) || interface_socket(&p->interface, &p->p.fd))
		return false;
	if (!rx_ring_open(&p->ring, p->p.fd, RING_BLOCKS)) {
		uw_log("no receive ring for the packet socket on %s (%s)", p->interface.name,
		       strerror(errno));
		return false;
	}
	attach_filter(p);
	join_groups(p);
	return !interface_bind(&p->interface, p->p.fd);
}

/* Without nf_tables the host's IP stack gets each frame, too, and drops it. */
static void keep_frames(struct packet_uplink *p)
{
	const struct ingress_ask a = ingress_ask_of(p);
	int err = ingress_open(&p->ingress, &a);

	if (err)
		uw_log("the host's IP stack gets our frames on %s, too (nf_tables: %s)",
		       p->interface.name, strerror(err));
}

static void tell_addresses(struct packet_uplink *p)
{
	const struct uw_ip four = uw_ip_v4(p->p.addr);

	if (p->p.addr)
		p->told[0] = presence_tell(p->interface.index, &four);
	for (unsigned i = 0; i < p->p.n_ip6; i++)
		p->told[1 + i] = presence_tell(p->interface.index, &p->p.ip6[i].ip);
}

struct uplink *uplink_open_packet(const struct options *o, const char *interface)
{
	struct packet_uplink *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->p.ops = &ops;
	p->p.fd = -1;
	ingress_init(&p->ingress);
	memset(p->told, 0xff, sizeof(p->told));
	p->p.flags = SWITCH_FLAG_SUMS | SWITCH_FLAG_MERGES;
	if (interface_read(interface, &p->interface) || !check_mtu(p, o) || !choose_address(p, o) ||
	    !open_socket(p)) {
		packet_close(&p->p);
		return NULL;
	}
	keep_frames(p);
	tell_addresses(p);
	memcpy(p->p.mac, p->interface.mac, 6);
	p->p.bps = p->interface.bps ? p->interface.bps : BPS_UNKNOWN;
	return &p->p;
}
