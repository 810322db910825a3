/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/link.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/be.h"
#include "base/log.h"
#include "io/addr.h"
#include "io/fds.h"
#include "io/packet/filter.h"
#include "io/packet/packet.h"

#define BPS_UNKNOWN UINT64_C(10000000000)
#define ETHER	    14u
#define VLAN_TYPE   0x8100u

/* ---- under the stack lock ------------------------------------------------------------------ */

static struct io_frame *link_alloc(struct io_link *l)
{
	return frames_take(&packet_link_of(l)->frames.small, l);
}

static bool link_pending(struct io_link *l)
{
	struct pollfd p[] = { { .fd = packet_link_of(l)->fd, .events = POLLIN },
			      { .fd = packet_link_of(l)->local, .events = POLLIN } };

	if (!poll(p, 2, 0))
		return false;
	if (p[1].revents)
		packet_link_of(l)->local_turn = 0;
	return true;
}

/* ---- sleeping: no lock --------------------------------------------------------------------- */

static void link_sleep(struct io_link *l, uint64_t us)
{
	const struct packet_link *p = packet_link_of(l);
	struct pollfd fds[] = { { .fd = p->fd, .events = POLLIN },
				{ .fd = p->bell, .events = POLLIN },
				{ .fd = p->local, .events = POLLIN } };
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000 * 1000) };
	uint64_t rung;

	if (ppoll(fds, 3, &t, NULL) > 0 && fds[1].revents && read(p->bell, &rung, 8) < 0)
		return; /* another thread has read it */
}

static void link_rouse(struct io_link *l)
{
	const uint64_t one = 1;

	if (write(packet_link_of(l)->bell, &one, sizeof(one)) < 0)
		return; /* it is full: rung already */
}

/* ---- sharing the address ------------------------------------------------------------------- */

static void attach(const struct packet_link *p, int fd, const struct filter_ask *a)
{
	struct sock_filter code[FILTER_MAX];
	struct sock_fprog prog = { .filter = code };

	prog.len = (unsigned short)filter_make(a, code);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		uw_log("no filter on %s (%s): all that comes to it is looked at", p->interface.name,
		       strerror(errno));
}

/* Under the ports' lock, or before there are any. */
static void attach_filter(void *arg)
{
	struct packet_link *p = arg;
	uint16_t ports[FILTER_PORTS];
	struct filter_ask a = { .addr = p->l.addr,
				.shared = p->shared,
				.groups = p->groups,
				.vlan = p->tag_len ? uw_be16(p->tag + 2) : 0,
				.ports = ports,
				.ip6 = p->l.ip6,
				.n_ip6 = p->l.n_ip6 };

	if (p->shared)
		a.n_ports = held_ports_list(&p->ports, ports, FILTER_PORTS);
	attach(p, p->fd, &a);
	a.local = true;
	a.n_ip6 = 0;
	if (p->local >= 0)
		attach(p, p->local, &a);
}

static uw_status link_claim(struct io_link *l, uint16_t port)
{
	struct packet_link *p = packet_link_of(l);

	return p->shared ? held_ports_claim(&p->ports, port) : UW_OK;
}

static void link_release(struct io_link *l, uint16_t port)
{
	struct packet_link *p = packet_link_of(l);

	if (p->shared)
		held_ports_release(&p->ports, port);
}

static uw_status link_claim_packets(struct io_link *l)
{
	struct packet_link *p = packet_link_of(l);
	int fd;

	if (!p->shared || p->deaf_udp >= 0)
		return UW_OK;
	fd = held_ports_deafen_udp(p->l.addr, htons(ROCE_PORT));
	if (fd < 0) {
		uw_log("UDP port %u of %s is not to be had (%s): unload rdma_rxe, or give an "
		       "unused "
		       "address (--ip)",
		       ROCE_PORT, p->interface.name, strerror(-fd));
		return fd == -EADDRINUSE ? UW_E_ADDR_IN_USE : UW_E_PERM;
	}
	p->deaf_udp = fd;
	return UW_OK;
}

static uw_status complain_of_group(const struct packet_link *p, int err)
{
	uw_log("no membership of a multicast group on %s: %s%s", p->interface.name, strerror(err),
	       err == ENOBUFS ? " (sysctl net.ipv4.igmp_max_memberships)" : "");
	return err == ENOBUFS || err == ENOMEM ? UW_E_NOMEM : UW_E_UNSUPPORTED;
}

/* The kernel is the member: it sends the reports (RFC 3376), answers the routers and has the card
 * let the group's frames through. Nothing is sent to its socket, whose port is none. IPv6 is not
 * there yet. */
static uw_status link_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	struct packet_link *p = packet_link_of(l);
	struct ip_mreqn m = { .imr_multiaddr.s_addr = uw_ip_v4_be(group),
			      .imr_ifindex = p->interface.index };

	if (!uw_ip_is_v4(group))
		return complain_of_group(p, EAFNOSUPPORT);
	if (p->members < 0)
		p->members = fds_keep(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (p->members < 0 ||
	    setsockopt(p->members, IPPROTO_IP, in ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &m,
		       sizeof(m)))
		return complain_of_group(p, errno);
	if (!in || atomic_exchange(&p->groups, true))
		return UW_OK;
	if (p->shared)
		held_ports_tell(&p->ports);
	else
		attach_filter(p);
	return UW_OK;
}

static bool link_is_ours(struct io_link *l, uint16_t port)
{
	struct packet_link *p = packet_link_of(l);

	return !p->shared || p->local < 0 || held_ports_is_ours(&p->ports, port);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* The kernel's sockets end last: until then they keep it from answering. */
static void end(struct packet_link *p)
{
	fds_close(p->fd);
	fds_close(p->local);
	lo_close(&p->lo);
	fds_close(p->bell);
	fds_close(p->deaf_udp);
	fds_close(p->members);
	if (p->shared)
		held_ports_close(&p->ports);
	frames_close(&p->frames);
	free(p);
}

static void link_close(struct io_link *l)
{
	struct packet_link *p = packet_link_of(l);

	if (p->pid == getpid()) /* else it is the parent's */
		end(p);
}

static const struct io_ops ops = {
	.name = "packet",
	.rx = packet_rx,
	.tx = packet_tx,
	.alloc = link_alloc,
	.free = frames_free,
	.ref = frames_ref,
	.refs = frames_refs,
	.pending = link_pending,
	.sleep = link_sleep,
	.rouse = link_rouse,
	.claim_port = link_claim,
	.release_port = link_release,
	.claim_packets = link_claim_packets,
	.group = link_group,
	.is_ours = link_is_ours,
	.close = link_close,
};

static uw_status check_mtu(const struct packet_link *p, const struct packet_config *cfg)
{
	if (cfg->mtu <= p->interface.mtu)
		return UW_OK;
	uw_log("an MTU of %u is more than the %u of %s; raise that first: ip link set %s mtu %u",
	       cfg->mtu, p->interface.mtu, p->interface.name, p->interface.name, cfg->mtu);
	return UW_E_INVAL;
}

/* Whose the address is: the interface's, which is shared, or nobody's, which is ours alone. */
static uw_status choose_address(struct packet_link *p, const struct packet_config *cfg)
{
	const struct interface *i = &p->interface;

	p->shared = i->addr && !cfg->vlan && (!cfg->addr || cfg->addr == i->addr);
	p->l.addr = p->shared ? i->addr : cfg->addr;
	p->l.mask = p->shared ? i->mask : cfg->mask;
	if (cfg->vlan && !p->l.addr && !cfg->n_ip6) {
		uw_log("in a VLAN of %s the kernel has no address to share: give an unused one of "
		       "the VLAN's network (--ip A/N)",
		       i->name);
		return UW_E_ADDR;
	}
	if (!p->l.addr && !cfg->n_ip6) {
		uw_log("interface %s has no IPv4 address; give it one, or an unused one of its "
		       "network to us (--ip A/N)",
		       i->name);
		return UW_E_ADDR;
	}
	if (!p->shared && interface_kernel_has(p->l.addr)) {
		uw_log("the kernel has the address that was asked for, but not as the first of %s: "
		       "give that one, or an unused one of its network (--ip)",
		       i->name);
		return UW_E_ADDR;
	}
	return UW_OK;
}

static void fill_link(struct packet_link *p, const struct packet_config *cfg)
{
	const struct interface *i = &p->interface;

	p->l.mtu = cfg->mtu ? cfg->mtu : i->mtu;
	p->l.scope = (uint32_t)i->index;
	memcpy(p->l.mac, i->mac, sizeof(p->l.mac));
	p->l.bps = i->bps ? i->bps : BPS_UNKNOWN;
	p->l.headroom = FRAMES_HEADROOM;
	p->l.doorbell = &p->doorbell;
	p->l.flags =
		IO_RX_CSUM | IO_TX_CSUM | IO_NEIGHBOURS | IO_QUEUE | (p->shared ? IO_SHARED : 0u);
	if (cfg->vlan) {
		uw_put16(p->tag, VLAN_TYPE);
		uw_put16(p->tag + 2, cfg->vlan);
		p->tag_len = sizeof(p->tag);
	}
	p->merges = !cfg->no_tso;
	if (p->merges)
		p->l.flags |= IO_TSO;
	io_set_ip6(&p->l, cfg->ip6, cfg->n_ip6);
}

/* IPv6's neighbours are asked for at a multicast address (RFC 4291 §2.7.1, RFC 2464 §7). */
static void join_groups(struct packet_link *p)
{
	static const uint8_t all_nodes[6] = { 0x33, 0x33, 0, 0, 0, 1 };

	if (p->l.n_ip6)
		interface_join(&p->interface, p->fd, all_nodes);
	for (unsigned i = 0; i < p->l.n_ip6; i++) {
		const uint8_t *b = p->l.ip6[i].ip.b;
		const uint8_t mac[6] = { 0x33, 0x33, 0xff, b[13], b[14], b[15] };

		interface_join(&p->interface, p->fd, mac);
	}
}

/* For connections between processes of this host by the shared address, which no interface but lo
 * carries. Without it they are refused. */
static void open_local(struct packet_link *p)
{
	struct interface lo = { .name = "lo", .index = (int)if_nametoindex("lo") };
	const struct filter_ask none = { .local = true };

	if (!p->shared || !lo.index || interface_socket(&lo, &p->local))
		return;
	if (fds_keep(p->local) < 0) {
		p->local = -1;
		return;
	}
	attach(p, p->local, &none);
	if (interface_bind(&lo, p->local)) {
		fds_close(p->local);
		p->local = -1;
	} else {
		lo_open(&p->lo);
	}
}

/* The order matters: nothing comes before the filter is there. */
static uw_status open_sockets(struct packet_link *p)
{
	uw_status st = interface_socket(&p->interface, &p->fd);

	if (st)
		return st;
	p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fds_keep(p->fd) < 0 || p->bell < 0 || fds_keep(p->bell) < 0)
		return UW_E_NOMEM;
	open_local(p);
	attach_filter(p);
	p->ports.changed = attach_filter;
	p->ports.arg = p;
	join_groups(p);
	return interface_bind(&p->interface, p->fd);
}

static void say_choice(const struct packet_link *p)
{
	const struct interface *i = &p->interface;

	uw_log("link %s: packet socket, MTU %u, %s, address %s", i->name, p->l.mtu,
	       p->merges ? "merged segments (TSO)" : "single segments",
	       p->shared ? "shared with the kernel" : "of our own");
}

static uw_status bring_up(struct packet_link *p, const struct packet_config *cfg)
{
	uw_status st = interface_read(cfg->interface, &p->interface);

	if (!st)
		st = check_mtu(p, cfg);
	if (!st)
		st = choose_address(p, cfg);
	if (st)
		return st;
	fill_link(p, cfg);
	if (!frames_open(&p->frames, p->l.mtu + ETHER))
		return UW_E_NOMEM;
	if (p->shared)
		st = held_ports_open(&p->ports, p->l.addr);
	return st ? st : open_sockets(p);
}

uw_status packet_link_open(const struct packet_config *cfg, const struct io_env *env,
			   struct io_link **out)
{
	struct packet_link *p = calloc(1, sizeof(*p));
	uw_status st;

	if (!p)
		return UW_E_NOMEM;
	p->l.ops = &ops;
	p->l.env = *env;
	p->fd = p->local = p->lo.fd = p->bell = p->deaf_udp = p->members = -1;
	p->pid = getpid();
	st = bring_up(p, cfg);
	if (st) {
		end(p);
		return st;
	}
	if (cfg->verbose)
		say_choice(p);
	*out = &p->l;
	return UW_OK;
}

const char *packet_interface(const char *link)
{
	static const char prefix[] = "packet:";

	if (!strncmp(link, prefix, sizeof(prefix) - 1))
		return link + sizeof(prefix) - 1;
	return *link && strlen(link) < IF_NAMESIZE && if_nametoindex(link) ? link : NULL;
}
