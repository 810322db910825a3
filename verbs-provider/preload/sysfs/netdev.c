/* SPDX-License-Identifier: BSD-3-Clause */
#include "netdev.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "libc/raw.h"

/* The most IPv4 addresses of the host that are looked through. */
#define ADDRESSES_MAX 128

/* The interface of such a link: what stands between the colon and a comma. */
static bool named_by_link(char name[IF_NAMESIZE])
{
	static const char *const kinds[] = { "af_packet:", "af_xdp:", "packet:" };
	const char *link = secure_getenv("UWARP_LINK");
	size_t len;

	for (size_t i = 0; link && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncmp(link, kinds[i], strlen(kinds[i])) != 0)
			continue;
		link += strlen(kinds[i]);
		len = strcspn(link, ",");
		if (!len || len >= IF_NAMESIZE)
			return false;
		memcpy(name, link, len);
		name[len] = '\0';
		return true;
	}
	return false;
}

/* The first IPv4 address in "A/N,A/N...", network order; 0: none. */
static in_addr_t own_address(void)
{
	const char *ip = secure_getenv("UWARP_IP");
	char one[INET_ADDRSTRLEN];
	struct in_addr in;
	size_t len;

	for (; ip; ip = strchr(ip, ','), ip = ip ? ip + 1 : NULL) {
		len = strcspn(ip, "/,");
		if (len >= sizeof(one))
			continue;
		memcpy(one, ip, len);
		one[len] = '\0';
		if (inet_pton(AF_INET, one, &in) == 1)
			return in.s_addr;
	}
	return 0;
}

static bool has_address(const struct ifreq *ifr, in_addr_t wanted)
{
	struct sockaddr_in in;

	memcpy(&in, &ifr->ifr_addr, sizeof(in));
	return in.sin_family == AF_INET && in.sin_addr.s_addr == wanted;
}

/* The interface to which the kernel has given the process's own address. */
static bool named_by_address(char name[IF_NAMESIZE])
{
	struct ifreq list[ADDRESSES_MAX];
	struct ifconf all = { .ifc_len = sizeof(list), .ifc_req = list };
	const in_addr_t wanted = own_address();
	int fd = raw_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found = false;

	if (fd < 0)
		return false;
	if (wanted && !syscall(SYS_ioctl, fd, SIOCGIFCONF, &all)) {
		for (size_t i = 0; !found && i < (size_t)all.ifc_len / sizeof(list[0]); i++) {
			found = has_address(&list[i], wanted);
			if (found) /* without the label of an address: "eth0:1" */
				name[strcspn(strcpy(name, list[i].ifr_name), ":")] = '\0';
		}
	}
	raw_close(fd);
	return found;
}

void netdev_find(struct netdev *dev)
{
	if (!named_by_link(dev->name) && !named_by_address(dev->name))
		strcpy(dev->name, "lo");
	dev->index = if_nametoindex(dev->name);
}
