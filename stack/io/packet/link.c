/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/link.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/be.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/addr.h"
#include "io/fds.h"
#include "io/packet/filter.h"
#include "io/packet/packet.h"
#include "io/packet/presence.h"

#define ETHER	  14u
#define VLAN_TYPE 0x8100u

/* ---- under the stack lock ------------------------------------------------------------------ */

static struct io_frame *link_alloc(struct io_link *l)
{
	return frames_take(&packet_link_of(l)->frames.small, l);
}

static struct io_frame *link_alloc_long(struct io_link *l)
{
	struct packet_link *p = packet_link_of(l);

	return p->merges ? frames_take_long(&p->frames, l) : NULL;
}

static bool link_pending(struct io_link *l)
{
	const struct packet_link *p = packet_link_of(l);

	return packet_socket_any(&p->wire) || packet_socket_any(&p->local);
}

/* ---- sleeping: no lock --------------------------------------------------------------------- */

/* An interface that went down is an error of the socket (ENETDOWN), which would end each sleep
 * until somebody has asked for it. So would whatever the program has put in the socket's place. */
static void forget_error(struct packet_link *p, int fd)
{
	socklen_t n = sizeof(int);
	int error;

	if (p->lost || !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n))
		return;
	p->lost = true;
	uw_log("the program has closed the packet socket on %s, which it does not know: nothing is "
	       "sent any more",
	       p->interface.name);
}

/* This thread is alone here. */
static void link_sleep(struct io_link *l, uint64_t us)
{
	struct packet_link *p = packet_link_of(l);
	int bell = p->bell;
	struct pollfd fds[] = { { .fd = p->lost ? -1 : p->wire.fd, .events = POLLIN },
				{ .fd = bell, .events = POLLIN },
				{ .fd = p->lost ? -1 : p->local.fd, .events = POLLIN } };
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000 * 1000) };

	if (ppoll(fds, 3, &t, NULL) <= 0)
		return;
	if (fds[0].revents & ~POLLIN)
		forget_error(p, p->wire.fd);
	if (fds[2].revents & ~POLLIN)
		forget_error(p, p->local.fd);
	if (fds[1].revents && !fds_rung(bell))
		p->bell = -1;
}

static void link_rouse(struct io_link *l)
{
	fds_ring(packet_link_of(l)->bell);
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

static struct filter_ports list(const struct held_ports *p, bool shared, uint16_t *room)
{
	return (struct filter_ports){ room, shared ? held_ports_list(p, room, FILTER_PORTS) : 0 };
}

/* Under the ports' lock, or before there are any. */
static void attach_filter(void *arg)
{
	struct packet_link *p = arg;
	uint16_t ports[FILTER_PORTS], ports6[FILTER_PORTS];
	bool shared = p->l.flags & IO_SHARED, shared6 = p->l.flags & IO_SHARED6;
	struct filter_ask a = { .addr = p->l.addr,
				.shared = shared,
				.shared6 = shared6,
				.groups = p->groups,
				.groups6 = p->groups6,
				.vlan = p->tag_len ? uw_be16(p->tag + 2) : 0,
				.ports = list(&p->ports, shared, ports),
				.ports6 = list(&p->ports6, shared6, ports6),
				.ip6 = p->l.ip6,
				.n_ip6 = p->l.n_ip6 };

	attach(p, p->wire.fd, &a);
	a.local = true;
	memcpy(a.mac, p->l.mac, sizeof(a.mac));
	if (p->local.fd >= 0)
		attach(p, p->local.fd, &a);
}

static struct ingress_ask ingress_ask_of(const struct packet_link *p)
{
	return (struct ingress_ask){ .interface = p->interface.name,
				     .shared = io_shared_versions(&p->l),
				     .addr = p->l.addr,
				     .ip6 = p->l.ip6,
				     .n_ip6 = p->l.n_ip6 };
}

static void keep(struct packet_link *p, enum io_versions version, uint16_t port, bool ours)
{
	ingress_port(&p->ingress, version, port, ours);
	p->l.stats.kept = p->ingress.fd >= 0;
}

static void held(void *arg, uint16_t port, bool on)
{
	keep(arg, IO_V4, port, on);
}

static void held6(void *arg, uint16_t port, bool on)
{
	keep(arg, IO_V6, port, on);
}

static void link_release(struct io_link *l, uint16_t port, unsigned versions)
{
	struct packet_link *p = packet_link_of(l);

	versions &= io_shared_versions(l);
	if (versions & IO_V4)
		held_ports_release(&p->ports, port);
	if (versions & IO_V6)
		held_ports_release(&p->ports6, port);
}

static uw_status link_claim(struct io_link *l, uint16_t port, unsigned versions)
{
	struct packet_link *p = packet_link_of(l);
	bool named = versions & IO_NAMED;
	uw_status st = UW_OK;

	versions &= io_shared_versions(l);
	if (versions & IO_V4)
		st = held_ports_claim(&p->ports, port, named);
	if (st || !(versions & IO_V6))
		return st;
	st = held_ports_claim(&p->ports6, port, named);
	if (st && versions & IO_V4)
		held_ports_release(&p->ports, port);
	return st;
}

static void keep_roce(struct packet_link *p)
{
	const struct ingress_ask a = ingress_ask_of(p);

	pthread_mutex_lock(&p->ports_lock);
	ingress_roce(&p->ingress, &a);
	p->l.stats.kept = p->ingress.fd >= 0;
	pthread_mutex_unlock(&p->ports_lock);
}

/* All processes that share the address hear of all packets. */
static uw_status link_claim_packets(struct io_link *l, uint32_t qpn)
{
	struct packet_link *p = packet_link_of(l);
	uw_status st = UW_OK;

	(void)qpn;
	if (p->roce.n)
		return UW_OK;
	if (packet_shares(p))
		st = roce_port_hold(&p->roce, l->flags & IO_SHARED ? &p->ports.at : NULL,
				    l->flags & IO_SHARED6 ? &p->ports6.at : NULL,
				    p->interface.name);
	if (!st)
		keep_roce(p);
	return st;
}

static uw_status complain_of_group(const struct packet_link *p, int err)
{
	uw_log("no membership of a multicast group on %s: %s%s", p->interface.name, strerror(err),
	       err == ENOBUFS ? " (sysctl net.ipv4.igmp_max_memberships)" : "");
	return err == ENOBUFS || err == ENOMEM ? UW_E_NOMEM : UW_E_UNSUPPORTED;
}

static bool has_socket(int *fd, int family)
{
	if (*fd < 0)
		*fd = fds_keep(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	return *fd >= 0;
}

static uw_status change_group4(struct packet_link *p, const struct uw_ip *group, bool in)
{
	struct ip_mreqn m = { .imr_multiaddr.s_addr = uw_ip_v4_be(group),
			      .imr_ifindex = p->interface.index };

	if (has_socket(&p->members, AF_INET) &&
	    !setsockopt(p->members, IPPROTO_IP, in ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &m,
			sizeof(m)))
		return UW_OK;
	return complain_of_group(p, errno);
}

/* Where the kernel has no IPv6 on the interface, nobody reports us, and the card lets the frames
 * through nevertheless: that is all that a link without watching switches needs. */
static uw_status change_group6(struct packet_link *p, const struct uw_ip *group, bool in)
{
	const uint8_t *b = group->b;
	const uint8_t mac[6] = { 0x33, 0x33, b[12], b[13], b[14], b[15] };
	struct ipv6_mreq m = { .ipv6mr_interface = (unsigned)p->interface.index };

	memcpy(&m.ipv6mr_multiaddr, b, sizeof(m.ipv6mr_multiaddr));
	if (has_socket(&p->members6, AF_INET6) &&
	    !setsockopt(p->members6, IPPROTO_IPV6, in ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &m,
			sizeof(m)))
		return UW_OK;
	if (errno == ENOBUFS || errno == ENOMEM)
		return complain_of_group(p, errno);
	if (in)
		interface_join(&p->interface, p->wire.fd, mac);
	return UW_OK;
}

/* The kernel is the member: it sends the reports (RFC 3376, RFC 3810), answers the routers and has
 * the card let the group's frames through. Nothing is sent to its socket, whose port is none. */
static uw_status link_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	struct packet_link *p = packet_link_of(l);
	bool v4 = uw_ip_is_v4(group);
	uw_status st = v4 ? change_group4(p, group, in) : change_group6(p, group, in);

	if (st || !in || atomic_exchange(v4 ? &p->groups : &p->groups6, true))
		return st;
	pthread_mutex_lock(&p->ports_lock);
	attach_filter(p);
	pthread_mutex_unlock(&p->ports_lock);
	return UW_OK;
}

static bool link_is_ours(struct io_link *l, uint16_t port, enum io_versions version)
{
	struct packet_link *p = packet_link_of(l);

	if (!(io_shared_versions(l) & version) || p->local.fd < 0)
		return true;
	return held_ports_is_ours(version == IO_V6 ? &p->ports6 : &p->ports, port);
}

/* The kernel's address may be another process's, too, with a packet link as ours: that one is
 * reached. */
static bool link_reaches(struct io_link *l, const struct uw_ip *to)
{
	struct packet_link *p = packet_link_of(l);
	const char *name = p->interface.name;

	if (!presence_of_uwarpd(p->interface.index, to))
		return true;
	if (said_may(&p->said, uw_ip_hash(to), 0, uw_clock_ms() * 1000))
		uw_log("the address is that of the uwarpd on %s: its clients and a process with "
		       "--link %s do not reach each other; --link uwarpd does",
		       name, name);
	return interface_kernel_has(to, p->interface.index);
}

static void link_tidy(struct io_link *l)
{
	struct packet_link *p = packet_link_of(l);

	if (l->flags & IO_SHARED)
		held_ports_tidy(&p->ports);
	if (l->flags & IO_SHARED6)
		held_ports_tidy(&p->ports6);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* The kernel's sockets end last: until then they keep it from answering. */
static void close_socket(struct packet_socket *s)
{
	rx_ring_close(&s->ring);
	big_tcp_close(&s->big);
	fds_close(s->fd);
	s->fd = -1;
}

static void end(struct packet_link *p)
{
	close_socket(&p->wire);
	close_socket(&p->local);
	ingress_close(&p->ingress);
	lo_close(&p->lo);
	fds_close(p->bell);
	fds_close(p->wait_fd);
	roce_port_release(&p->roce);
	fds_close(p->members);
	fds_close(p->members6);
	held_ports_close(&p->ports);
	held_ports_close(&p->ports6);
	pthread_mutex_destroy(&p->ports_lock);
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
	.alloc_long = link_alloc_long,
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
	.reaches = link_reaches,
	.tidy = link_tidy,
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

static uw_status say_kernels(const struct packet_link *p)
{
	uw_log("the kernel has the address that was asked for, but not as the first of %s: give "
	       "that one, or an unused one of its network (--ip)",
	       p->interface.name);
	return UW_E_ADDR;
}

static bool among(const struct uw_ip *ip, const struct uw_net *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (uw_ip_eq(ip, &v[i].ip))
			return true;
	}
	return false;
}

/* The IPv6 addresses that were asked for are the kernel's n, or none of them is. Which of the
 * kernel's stay in v is in *n: with the link-local one, which is the first, those that were asked
 * for. */
static uw_status choose_named6(const struct packet_link *p, const struct packet_config *cfg,
			       struct uw_net *v, unsigned *n)
{
	unsigned found = 0, others = 0;

	for (unsigned i = 0; i < cfg->n_ip6; i++) {
		if (among(&cfg->ip6[i].ip, v, *n))
			found++;
		else if (interface_kernel_has(&cfg->ip6[i].ip, p->interface.index))
			return say_kernels(p);
		else
			others++;
	}
	if (found && others) {
		uw_log("of the IPv6 addresses that were asked for the kernel has some: give its "
		       "own ones of %s alone, or unused ones alone (--ip)",
		       p->interface.name);
		return UW_E_ADDR;
	}
	if (!found)
		*n = 0;
	for (unsigned i = 0; found && i < found; i++)
		v[i + 1] = cfg->ip6[i];
	if (found)
		*n = found + 1;
	return UW_OK;
}

/* The kernel's are shared unless others are asked for. */
static uw_status choose_ip6(struct packet_link *p, const struct packet_config *cfg)
{
	struct uw_net v[IO_IP6_MAX];
	unsigned n = cfg->vlan ? 0 : interface_ip6(&p->interface, v, IO_IP6_MAX);
	bool own4 = p->l.addr && !(p->l.flags & IO_SHARED);
	uw_status st = UW_OK;

	if (cfg->n_ip6)
		st = choose_named6(p, cfg, v, &n);
	else if (own4)
		n = 0;
	if (st)
		return st;
	if (n)
		io_share_ip6(&p->l, v, n);
	else
		io_set_ip6(&p->l, cfg->ip6, cfg->n_ip6);
	return UW_OK;
}

static uw_status say_no_address(const struct packet_link *p, bool vlan)
{
	if (vlan)
		uw_log("in a VLAN of %s the kernel has no address to share: give an unused one of "
		       "the VLAN's network (--ip A/N)",
		       p->interface.name);
	else if (!interface_lacks_link_local(&p->interface))
		uw_log("interface %s has no address; give it one, or an unused one of its network "
		       "to us (--ip A/N)",
		       p->interface.name);
	return UW_E_ADDR;
}

/* Whose the addresses are: the interface's, which are shared, or nobody's, which are ours alone.
 * The link's MTU is known. */
static uw_status choose_address(struct packet_link *p, const struct packet_config *cfg)
{
	const struct interface *i = &p->interface;
	const struct uw_ip own = uw_ip_v4(cfg->addr);
	bool shared = i->addr && !cfg->vlan && (!cfg->addr || cfg->addr == i->addr);
	uw_status st;

	p->l.addr = shared ? i->addr : cfg->addr;
	p->l.mask = shared ? i->mask : cfg->mask;
	p->l.flags |= shared ? IO_SHARED : 0u;
	if (cfg->addr && !shared && interface_kernel_has(&own, i->index))
		return say_kernels(p);
	st = choose_ip6(p, cfg);
	if (!st && !p->l.addr && !p->l.n_ip6 && !cfg->n_ip6)
		st = say_no_address(p, cfg->vlan);
	return st;
}

static void set_size(struct io_link *l, unsigned asked, const struct interface *i)
{
	l->mtu = asked ? asked : i->mtu;
	if (l->mtu > IO_MTU_MAX) /* veth and bridges take 65535 */
		l->mtu = IO_MTU_MAX;
	l->bps = i->bps ? i->bps : IO_BPS_UNKNOWN;
}

void packet_foresee(const char *interface, unsigned mtu, struct io_link *l)
{
	struct interface i;

	if (interface_size(interface, &i))
		set_size(l, mtu, &i);
}

static void fill_link(struct packet_link *p, const struct packet_config *cfg)
{
	const struct interface *i = &p->interface;

	set_size(&p->l, cfg->mtu, i);
	p->l.scope = (uint32_t)i->index;
	memcpy(p->l.mac, i->mac, sizeof(p->l.mac));
	p->l.headroom = FRAMES_HEADROOM;
	p->l.doorbell = &p->doorbell;
	p->l.flags = IO_RX_CSUM | IO_TX_CSUM | IO_NEIGHBOURS | IO_QUEUE;
	if (cfg->vlan) {
		uw_put16(p->tag, VLAN_TYPE);
		uw_put16(p->tag + 2, cfg->vlan);
		p->tag_len = sizeof(p->tag);
	}
	p->merges = !cfg->no_tso;
	if (p->merges)
		p->l.flags |= IO_TSO;
}

/* IPv6's neighbours are asked for at a multicast address (RFC 4291 §2.7.1, RFC 2464 §7). */
static void join_groups(struct packet_link *p)
{
	static const uint8_t all_nodes[6] = { 0x33, 0x33, 0, 0, 0, 1 };

	if (p->l.n_ip6)
		interface_join(&p->interface, p->wire.fd, all_nodes);
	for (unsigned i = 0; i < p->l.n_ip6; i++) {
		const uint8_t *b = p->l.ip6[i].ip.b;
		const uint8_t mac[6] = { 0x33, 0x33, 0xff, b[13], b[14], b[15] };

		interface_join(&p->interface, p->wire.fd, mac);
	}
}

/* For processes of this host, which do not hear each other on the interface itself: lo carries what
 * they send each other. Without it connections by a shared address are refused, and others find
 * nobody. */
static void open_local(struct packet_link *p)
{
	struct interface lo = { .name = "lo", .index = (int)if_nametoindex("lo") };
	const struct filter_ask none = { .local = true };

	if (!lo.index || interface_socket(&lo, &p->local.fd))
		return; /* which says why */
	if (fds_keep(p->local.fd) < 0) {
		p->local.fd = -1;
		return;
	}
	attach(p, p->local.fd, &none);
	if (!rx_ring_open(&p->local.ring, p->local.fd, PACKET_BLOCKS) ||
	    interface_bind(&lo, p->local.fd))
		close_socket(&p->local);
	else if (packet_shares(p))
		lo_open(&p->lo, p->l.scope);
}

/* The order matters: nothing comes before the filter is there. */
static uw_status open_sockets(struct packet_link *p)
{
	uw_status st = interface_socket(&p->interface, &p->wire.fd);

	if (st)
		return st;
	p->bell = fds_keep(doorbell_eventfd());
	p->wait_fd = doorbell_eventfd();
	if (fds_keep(p->wire.fd) < 0 || p->bell < 0 || p->wait_fd < 0 || fds_keep(p->wait_fd) < 0)
		return UW_E_NOMEM;
	if (!rx_ring_open(&p->wire.ring, p->wire.fd, PACKET_BLOCKS)) {
		uw_log("no receive ring for the packet socket on %s (%s)", p->interface.name,
		       strerror(errno));
		return UW_E_NOMEM;
	}
	open_local(p);
	attach_filter(p);
	p->ports.held = held;
	p->ports6.held = held6;
	p->ports.changed = p->ports6.changed = attach_filter;
	p->ports.arg = p->ports6.arg = p;
	join_groups(p);
	return interface_bind(&p->interface, p->wire.fd);
}

/* Threads of the program may sleep on the sockets themselves. */
static void let_wait(struct packet_link *p)
{
	p->l.wait = doorbell_ring_of(&p->doorbell, p->wait_fd);
	p->l.frames_fd[0] = p->wire.fd;
	p->l.frames_fd[1] = p->local.fd;
	p->l.flags |= IO_WAITS;
}

static void say_choice(const struct packet_link *p, int ingress)
{
	const struct interface *i = &p->interface;

	uw_log("link %s: packet socket, MTU %u, %s, address %s, %s%s%s", i->name, p->l.mtu,
	       p->merges ? "merged segments (TSO)" : "single segments",
	       packet_shares(p) ? "shared with the kernel" : "of our own",
	       ingress ? "the host's IP stack sees our frames, too (nf_tables: "
		       : "our frames kept from the host's IP stack",
	       ingress ? strerror(ingress) : "", ingress ? ")" : "");
}

/* What a VLAN carries reaches the host's stack by another interface, if at all. 0 or an errno. */
static int keep_frames(struct packet_link *p)
{
	const struct ingress_ask a = ingress_ask_of(p);
	int err = p->tag_len ? EOPNOTSUPP : ingress_open(&p->ingress, &a);

	p->l.stats.kept = !err;
	return err;
}

static uw_status hold_ports(struct packet_link *p)
{
	struct held_at four = { .ip = { uw_ip_v4(p->l.addr) }, .n = 1 },
		       six = { .n = p->l.n_ip6, .scope = p->l.scope };
	uw_status st = UW_OK;

	for (unsigned i = 0; i < six.n; i++)
		six.ip[i] = p->l.ip6[i].ip;
	if (p->l.flags & IO_SHARED)
		st = held_ports_open(&p->ports, &four, &p->ports_lock);
	if (!st && p->l.flags & IO_SHARED6)
		st = held_ports_open(&p->ports6, &six, &p->ports_lock);
	return st;
}

static uw_status bring_up(struct packet_link *p, const struct packet_config *cfg)
{
	uw_status st = interface_read(cfg->interface, &p->interface);

	if (!st)
		st = check_mtu(p, cfg);
	if (st)
		return st;
	fill_link(p, cfg);
	st = choose_address(p, cfg);
	if (st)
		return st;
	if (!frames_open(&p->frames, p->l.mtu + ETHER))
		return UW_E_NOMEM;
	st = hold_ports(p);
	return st ? st : open_sockets(p);
}

uw_status packet_link_open(const struct packet_config *cfg, const struct io_env *env,
			   struct io_link **out)
{
	struct packet_link *p = calloc(1, sizeof(*p));
	uw_status st;
	int err;

	if (!p)
		return UW_E_NOMEM;
	p->l.ops = &ops;
	p->l.env = *env;
	p->wire.fd = p->local.fd = p->wait_fd = p->members = p->members6 = -1;
	p->bell = -1;
	lo_init(&p->lo);
	ingress_init(&p->ingress);
	pthread_mutex_init(&p->ports_lock, NULL);
	p->pid = getpid();
	st = bring_up(p, cfg);
	if (st) {
		end(p);
		return st;
	}
	let_wait(p);
	err = keep_frames(p);
	if (cfg->verbose)
		say_choice(p, err);
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
