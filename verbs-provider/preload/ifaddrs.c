/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An RNIC's address is one of a network interface, and libfabric finds RNICs by trying the
 * addresses of all interfaces. getifaddrs() therefore also lists the address that uwarp-run chose.
 */
#include <ifaddrs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "next.h"
#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

struct entry {
	struct ifaddrs ifa;
	struct sockaddr_in addr, mask;
};

/* An entry is ours if its name is this very array. */
static char own_name[] = SHIM_DEV_NAME;

/* UWARP_IP is A/N. */
static bool parse(const char *text, struct in_addr *addr, unsigned *bits)
{
	char quad[INET_ADDRSTRLEN];

	return text && sscanf(text, "%15[0-9.]/%u", quad, bits) == 2 && *bits >= 1 && *bits <= 32 &&
	       inet_pton(AF_INET, quad, addr) == 1;
}

static struct ifaddrs *make_entry(struct in_addr addr, unsigned bits)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = addr };
	e->mask = (struct sockaddr_in){ .sin_family = AF_INET };
	e->mask.sin_addr.s_addr = htonl(UINT32_MAX << (32 - bits));
	e->ifa.ifa_name = own_name;
	e->ifa.ifa_flags = IFF_UP | IFF_RUNNING;
	e->ifa.ifa_addr = (struct sockaddr *)&e->addr;
	e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
	return &e->ifa;
}

EXPORT int getifaddrs(struct ifaddrs **list)
{
	struct ifaddrs **end = list, *own;
	struct in_addr addr;
	unsigned bits;

	if (next_fn()->getifaddrs(list))
		return -1;
	if (!parse(secure_getenv("UWARP_IP"), &addr, &bits))
		return 0;
	own = make_entry(addr, bits);
	if (!own) {
		next_fn()->freeifaddrs(*list);
		errno = ENOMEM;
		return -1;
	}
	while (*end) /* last: who takes the first interface takes a kernel's one */
		end = &(*end)->ifa_next;
	*end = own;
	return 0;
}

EXPORT void freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs **p = &list, *own;

	while (*p && (*p)->ifa_name != own_name)
		p = &(*p)->ifa_next;
	own = *p;
	if (own)
		*p = own->ifa_next;
	next_fn()->freeifaddrs(list);
	free(own);
}
