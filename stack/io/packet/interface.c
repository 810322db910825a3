/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/interface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "io/route/kernel.h"

#define RX_OCTETS (32 << 20) /* several full windows, as the kernel counts their memory */
#define TX_OCTETS (4 << 20)
/* RFC 4862 §5.4: one solicitation, and a second for an answer, after up to a second of delay */
#define TENTATIVE_MS	  3000
#define TENTATIVE_STEP_MS 50

/* ---- asking the kernel --------------------------------------------------------------------- */

static uint32_t ask_addr(int fd, struct ifreq *r, unsigned long what)
{
	if (ioctl(fd, what, r))
		return 0;
	return ((struct sockaddr_in *)(void *)&r->ifr_addr)->sin_addr.s_addr;
}

static uint64_t ask_speed(int fd, struct ifreq *r)
{
	struct ethtool_cmd c = { .cmd = ETHTOOL_GSET };
	uint32_t mbps;

	r->ifr_data = (char *)&c;
	if (ioctl(fd, SIOCETHTOOL, r))
		return 0;
	mbps = (uint32_t)c.speed_hi << 16 | c.speed; /* ethtool_cmd_speed() shifts into the sign */
	return mbps == (uint32_t)SPEED_UNKNOWN ? 0 : (uint64_t)mbps * 1000000;
}

/* False: no answer. */
static bool ask_size(int fd, struct ifreq *r, struct interface *i)
{
	bool there = !ioctl(fd, SIOCGIFMTU, r);

	i->mtu = there ? (unsigned)r->ifr_mtu : 1500;
	i->bps = ask_speed(fd, r);
	return there;
}

static uw_status ask(int fd, struct interface *i)
{
	struct ifreq r = { 0 };

	memcpy(r.ifr_name, i->name, sizeof(i->name));
	if (ioctl(fd, SIOCGIFINDEX, &r)) {
		uw_log("no interface %s: %s (ip link shows those there are)", i->name,
		       strerror(errno));
		return UW_E_NO_LINK;
	}
	i->index = r.ifr_ifindex;
	if (ioctl(fd, SIOCGIFFLAGS, &r) || !(r.ifr_flags & IFF_UP)) {
		uw_log("interface %s is down; bring it up: ip link set %s up", i->name, i->name);
		return UW_E_NO_LINK;
	}
	if (ioctl(fd, SIOCGIFHWADDR, &r) || r.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		uw_log("interface %s is no Ethernet", i->name);
		return UW_E_NO_LINK;
	}
	memcpy(i->mac, r.ifr_hwaddr.sa_data, sizeof(i->mac));
	ask_size(fd, &r, i);
	i->addr = ask_addr(fd, &r, SIOCGIFADDR);
	i->mask = i->addr ? ask_addr(fd, &r, SIOCGIFNETMASK) : 0;
	return UW_OK;
}

uw_status interface_read(const char *name, struct interface *out)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uw_status st;

	*out = (struct interface){ 0 };
	snprintf(out->name, sizeof(out->name), "%s", name);
	if (fd < 0) {
		uw_log("no socket to ask about %s: %s", name, strerror(errno));
		return UW_E_NO_LINK;
	}
	st = ask(fd, out);
	close(fd);
	return st;
}

bool interface_size(const char *name, struct interface *out)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };
	bool there;

	*out = (struct interface){ 0 };
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	there = fd >= 0 && ask_size(fd, &r, out);
	if (fd >= 0)
		close(fd);
	return there;
}

/* A socket can be bound to the kernel's addresses alone, and has a way to the one that it is bound
 * to. (getifaddrs(3) shows ours as well.) In a network namespace that never had an IPv4 address,
 * and whose lo is down, it can be bound to any, but has no way. */
static bool is_local(int fd, const void *addr, socklen_t n)
{
	return !bind(fd, addr, n) && (!connect(fd, addr, n) || errno != ENETUNREACH);
}

bool interface_kernel_has(const struct uw_ip *ip, int index)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = uw_ip_v4_be(ip) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_scope_id = (uint32_t)index };
	bool v4 = uw_ip_is_v4(ip), has;
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&six.sin6_addr, ip->b, sizeof(six.sin6_addr));
	has = fd >= 0 &&
	      is_local(fd, v4 ? (void *)&four : (void *)&six, v4 ? sizeof(four) : sizeof(six));
	if (fd >= 0)
		close(fd);
	return has;
}

/* ---- its IPv6 addresses -------------------------------------------------------------------- */

/* False: the kernel does not answer. */
static bool read_kernel(struct route_watch *w, struct route_kernel *k)
{
	for (unsigned i = 0; i < TENTATIVE_MS / TENTATIVE_STEP_MS; i++) {
		bool answered = route_watch_read(w, k);

		route_clear(&k->routes);
		if (!answered || !k->tentative)
			return answered;
		poll(NULL, 0, TENTATIVE_STEP_MS);
	}
	return true;
}

/* Those that are, or are not, link-local; returns how many are in out. */
static unsigned pick(const struct route_kernel *k, bool local, struct uw_net *out, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < k->n_addr6 && n < max; i++) {
		if (uw_ip_is_link_local(&k->addr6[i].ip) == local && !(k->deprecated6 >> i & 1))
			out[n++] = k->addr6[i];
	}
	return n;
}

unsigned interface_ip6(const struct interface *i, struct uw_net *out, unsigned max)
{
	struct route_watch w;
	struct route_kernel k;
	unsigned n = 0;

	if (route_watch_open(&w, i->name))
		return 0;
	if (read_kernel(&w, &k))
		n = pick(&k, true, out, 1);
	if (n)
		n += pick(&k, false, out + n, max - n);
	route_watch_close(&w);
	return n;
}

bool interface_lacks_link_local(const struct interface *i)
{
	struct route_watch w;
	struct route_kernel k;
	struct uw_net v;
	bool lacks = false;

	if (route_watch_open(&w, i->name))
		return false;
	if (read_kernel(&w, &k))
		lacks = !pick(&k, true, &v, 1) && pick(&k, false, &v, 1);
	route_watch_close(&w);
	if (lacks)
		uw_log("interface %s has no link-local address of IPv6, which neighbours are asked "
		       "from: ip addr add fe80::N/64 dev %s",
		       i->name, i->name);
	return lacks;
}

/* ---- the packet socket --------------------------------------------------------------------- */

/* A limit that needs no right, if the one that does is refused. */
static void set_room(int fd, int forced, int plain, int octets)
{
	if (setsockopt(fd, SOL_SOCKET, forced, &octets, sizeof(octets)))
		setsockopt(fd, SOL_SOCKET, plain, &octets, sizeof(octets));
}

static uw_status say_no_right(const struct interface *i)
{
	uw_log("no right to open a packet socket on %s (CAP_NET_RAW): be root, or let root start "
	       "the program by: " INTERFACE_GRANT,
	       i->name);
	return UW_E_PERM;
}

uw_status interface_socket(const struct interface *i, int *out)
{
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 && (errno == EPERM || errno == EACCES))
		return say_no_right(i);
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one))) {
		uw_log("no packet socket with PACKET_VNET_HDR on %s: %s", i->name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return UW_E_NO_LINK;
	}
	set_room(fd, SO_RCVBUFFORCE, SO_RCVBUF, RX_OCTETS);
	set_room(fd, SO_SNDBUFFORCE, SO_SNDBUF, TX_OCTETS);
	*out = fd;
	return UW_OK;
}

void interface_join(const struct interface *i, int fd, const uint8_t mac[6])
{
	struct packet_mreq m = { .mr_ifindex = i->index,
				 .mr_type = PACKET_MR_MULTICAST,
				 .mr_alen = 6 };

	memcpy(m.mr_address, mac, 6);
	setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m));
}

uw_status interface_bind(const struct interface *i, int fd)
{
	/* ETH_P_ALL: the taps of one protocol come after tc and netfilter's ingress hook. */
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL),
				 .sll_ifindex = i->index };

	if (!bind(fd, (const void *)&a, sizeof(a)))
		return UW_OK;
	uw_log("cannot receive on %s: %s", i->name, strerror(errno));
	return UW_E_NO_LINK;
}
