/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface through a packet socket, merged frames both ways (doc/adr/0024). */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "io/fds.h"
#include "io/packet/filter.h"
#include "io/packet/held_ports.h"
#include "io/packet/ingress.h"
#include "io/packet/interface.h"
#include "uplink.h"

#define VNET	    sizeof(struct virtio_net_hdr)
#define BPS_UNKNOWN UINT64_C(10000000000)
#define ETHER	    14u
#define TCP_SUM	    16u

struct packet_uplink {
	struct uplink p; /* first */
	struct interface interface;
	pthread_mutex_t lock; /* of held */
	struct held_ports held;
	bool holds; /* held is open */
	struct ingress ingress;
	int deaf_udp; /* keeps the kernel from answering packets of RoCEv2; -1: none */
	uint8_t in[VNET + LANE_FRAME_MAX + 1];
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
	v.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
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

static bool packet_receive(struct uplink *p, struct uplink_in *f)
{
	const uint8_t good = VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID;
	struct packet_uplink *pp = packet_uplink_of(p);
	struct virtio_net_hdr vnet;
	ssize_t got = recv(p->fd, pp->in, sizeof(pp->in), MSG_DONTWAIT);

	if (got <= (ssize_t)VNET)
		return false;
	memcpy(&vnet, pp->in, VNET);
	f->octets = pp->in + VNET;
	f->len = (uint32_t)got - (uint32_t)VNET;
	f->meta = (struct lane_meta){ .sum = vnet.flags & good };
	return true;
}

/* ---- ports --------------------------------------------------------------------------------- */

static void attach_filter(void *arg)
{
	struct packet_uplink *p = arg;
	struct sock_filter code[FILTER_MAX];
	uint16_t ports[FILTER_PORTS];
	struct filter_ask a = { .addr = p->p.addr, .shared = !p->p.own };
	struct sock_fprog prog = { .filter = code };

	if (p->holds)
		a.ports = (struct filter_ports){ ports,
						 held_ports_list(&p->held, ports, FILTER_PORTS) };
	prog.len = (unsigned short)filter_make(&a, code);
	if (setsockopt(p->p.fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		uw_log("no filter on %s: %s", p->interface.name, strerror(errno));
}

static struct ingress_ask ingress_ask_of(const struct packet_uplink *p)
{
	return (struct ingress_ask){ .interface = p->interface.name,
				     .shared = p->p.own ? 0 : IO_V4,
				     .addr = p->p.addr };
}

static void held(void *arg, uint16_t port, bool on)
{
	struct packet_uplink *p = arg;

	ingress_port(&p->ingress, IO_V4, port, on);
}

static enum switch_msg_why packet_claim(struct uplink *p, uint16_t port)
{
	struct packet_uplink *pp = packet_uplink_of(p);

	switch (pp->holds ? held_ports_claim(&pp->held, port) : UW_OK) {
	case UW_OK:
		return SWITCH_GRANTED;
	case UW_E_ADDR_IN_USE:
		return SWITCH_IN_USE;
	default:
		return SWITCH_NO_MEMORY;
	}
}

static void packet_release(struct uplink *p, uint16_t port)
{
	if (packet_uplink_of(p)->holds)
		held_ports_forget(&packet_uplink_of(p)->held, port);
}

/* The filter lets them in all along. */
static enum switch_msg_why packet_claim_packets(struct uplink *p)
{
	struct packet_uplink *pp = packet_uplink_of(p);
	const struct ingress_ask a = ingress_ask_of(pp);

	if (p->own || pp->deaf_udp >= 0)
		return SWITCH_GRANTED;
	pp->deaf_udp = held_ports_deafen_udp(&pp->held.at, 0, htons(ROCE_PORT));
	if (pp->deaf_udp >= 0) {
		ingress_roce(&pp->ingress, &a);
		return SWITCH_GRANTED;
	}
	uw_log("UDP port %u of %s is not to be had (%s): unload rdma_rxe, or give an unused "
	       "address "
	       "(--ip)",
	       ROCE_PORT, pp->interface.name, strerror(-pp->deaf_udp));
	return SWITCH_IN_USE;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void packet_close(struct uplink *p)
{
	struct packet_uplink *pp = packet_uplink_of(p);

	if (p->fd >= 0)
		close(p->fd);
	ingress_close(&pp->ingress);
	if (pp->holds)
		held_ports_close(&pp->held);
	fds_close(pp->deaf_udp);
	pthread_mutex_destroy(&pp->lock);
	free(pp);
}

static const struct uplink_ops ops = {
	.send = packet_send,
	.receive = packet_receive,
	.claim = packet_claim,
	.release = packet_release,
	.claim_packets = packet_claim_packets,
	.close = packet_close,
};

static bool choose_address(struct packet_uplink *p, const struct options *o)
{
	const struct interface *i = &p->interface;
	const struct uw_ip own = uw_ip_v4(o->addr);

	p->p.own = o->addr && o->addr != i->addr;
	p->p.addr = p->p.own ? o->addr : i->addr;
	p->p.mask = p->p.own ? o->mask : i->mask;
	if (!p->p.addr) {
		uw_log("interface %s has no IPv4 address; give it one, or an unused one of its "
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
	return true;
}

static bool check_mtu(struct packet_uplink *p, const struct options *o)
{
	const struct interface *i = &p->interface;

	p->p.mtu = o->mtu ? o->mtu : i->mtu;
	if (p->p.mtu <= i->mtu)
		return true;
	uw_log("an MTU of %u is more than the %u of %s; raise that first: ip link set %s mtu %u",
	       p->p.mtu, i->mtu, i->name, i->name, p->p.mtu);
	return false;
}

/* The order matters: nothing comes before the filter is there. */
static bool open_socket(struct packet_uplink *p)
{
	if (!p->p.own) {
		const struct held_at at = { .ip = { uw_ip_v4(p->p.addr) }, .n = 1 };

		p->holds = !held_ports_open(&p->held, &at, &p->lock);
		if (!p->holds)
			return false;
		p->held.changed = attach_filter;
		p->held.held = held;
		p->held.arg = p;
		p->p.needs_admin = true;
	}
	if (interface_socket(&p->interface, &p->p.fd))
		return false;
	attach_filter(p);
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

struct uplink *uplink_open_packet(const struct options *o, const char *interface)
{
	struct packet_uplink *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->p.ops = &ops;
	p->p.fd = p->deaf_udp = -1;
	ingress_init(&p->ingress);
	p->p.flags = SWITCH_FLAG_SUMS | SWITCH_FLAG_MERGES;
	if (interface_read(interface, &p->interface) || !check_mtu(p, o) || !choose_address(p, o) ||
	    !open_socket(p)) {
		packet_close(&p->p);
		return NULL;
	}
	keep_frames(p);
	memcpy(p->p.mac, p->interface.mac, 6);
	p->p.bps = p->interface.bps ? p->interface.bps : BPS_UNKNOWN;
	return &p->p;
}
