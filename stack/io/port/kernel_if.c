/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel_if.h"
#include "io/fds.h"
#include "io/log.h"

static uint32_t ask_addr(int fd, struct ifreq *r, unsigned long what)
{
	if (ioctl(fd, what, r))
		return 0;
	return ((struct sockaddr_in *)(void *)&r->ifr_addr)->sin_addr.s_addr;
}

/* As DPDK's driver counts them: what says nothing of combined channels has one. */
static unsigned ask_queues(int fd, struct ifreq *r)
{
	struct ethtool_channels c = { .cmd = ETHTOOL_GCHANNELS };

	r->ifr_data = (char *)&c;
	if (ioctl(fd, SIOCETHTOOL, r) || c.max_combined == 0)
		return 1;
	return c.combined_count;
}

static uw_status ask(int fd, const char *name, struct kernel_if *out)
{
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCGIFMTU, &r))
		return log_error(UW_E_NO_LINK, "no interface %s: %s", name, strerror(errno));
	out->mtu = (unsigned)r.ifr_mtu;
	if (ioctl(fd, SIOCGIFFLAGS, &r))
		r.ifr_flags = 0;
	out->up = r.ifr_flags & IFF_UP;
	out->promiscuous = r.ifr_flags & IFF_PROMISC;
	out->queues = ask_queues(fd, &r);
	out->addr = ask_addr(fd, &r, SIOCGIFADDR);
	out->mask = out->addr ? ask_addr(fd, &r, SIOCGIFNETMASK) : 0;
	return UW_OK;
}

uw_status kernel_if_read(const char *name, struct kernel_if *out)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(out, 0, sizeof(*out));
	if (fd < 0)
		return log_error(UW_E_NO_LINK, "no socket to ask about %s: %s", name,
				 strerror(errno));
	uw_status st = ask(fd, name, out);
	close(fd);
	return st;
}

int kernel_if_hear_all(unsigned index)
{
	const struct packet_mreq all = { .mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: it takes no frame */

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all))) {
		close(fd);
		return -1;
	}
	return fds_keep(fd);
}
