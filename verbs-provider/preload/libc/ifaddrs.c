/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric and others find an RNIC by trying the addresses of all network interfaces. So
 * getifaddrs() lists the addresses of the device too, as those of an interface named uwarp0.
 */
#include <ifaddrs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "io/addr.h"
#include "loader/loader.h"
#include "next.h"
#include "raw.h"
#include "threads.h"

#define EXPORT __attribute__((visibility("default")))

#define MAX 8

struct entry {
	struct ifaddrs ifa;
	struct sockaddr_in6 addr, mask; /* or a sockaddr_in */
	struct sockaddr_in broad;	/* of IPv4 alone */
};

/* All of ours are one block, and an entry is ours if its name is this very array. */
static char own_name[] = UWARP_DEV_NAME;

static void set_bits(uint8_t *mask, unsigned bits)
{
	for (unsigned i = 0; i < bits; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

static void fill_ip4(struct entry *e, const struct in_addr *addr, unsigned bits)
{
	struct sockaddr_in *a = (struct sockaddr_in *)&e->addr, *m = (struct sockaddr_in *)&e->mask;

	a->sin_family = m->sin_family = AF_INET;
	a->sin_addr = *addr;
	set_bits((uint8_t *)&m->sin_addr, bits);
	e->broad = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = addr->s_addr | ~m->sin_addr.s_addr };
}

static void fill_ip6(struct entry *e, const void *addr, unsigned bits)
{
	e->addr.sin6_family = e->mask.sin6_family = AF_INET6;
	memcpy(&e->addr.sin6_addr, addr, sizeof(e->addr.sin6_addr));
	set_bits(e->mask.sin6_addr.s6_addr, bits);
}

/* "A/N"; false: it is none. */
static bool parse(const char *text, struct entry *e)
{
	char addr[INET6_ADDRSTRLEN], end;
	unsigned bits;
	struct in6_addr in;

	if (sscanf(text, "%45[0-9a-fA-F.:]/%u%c", addr, &bits, &end) != 2 || !bits)
		return false;
	if (bits <= 32 && inet_pton(AF_INET, addr, &in) == 1)
		fill_ip4(e, (struct in_addr *)&in, bits);
	else if (bits <= 128 && inet_pton(AF_INET6, addr, &in) == 1)
		fill_ip6(e, &in, bits);
	else
		return false;
	return true;
}

/* What a process has besides: io/addr.c. */
static unsigned add_made(struct entry *first, unsigned n)
{
	const char *link = secure_getenv("UWARP_LINK"), *mtu = secure_getenv("UWARP_MTU");
	const struct sockaddr_in *four = (struct sockaddr_in *)&first->addr;
	struct uw_net made;

	if (!n || n == MAX || four->sin_family != AF_INET || (link && strcmp(link, "memif")) ||
	    (mtu && *mtu && strtoul(mtu, NULL, 10) < IO_IP6_MIN_MTU))
		return n;
	made = io_local_of(four->sin_addr.s_addr);
	fill_ip6(&first[n], &made.ip, made.bits);
	return n + 1;
}

/* The addresses as uwarp-run wrote them: "A/N,A/N...". A second program under one uwarp-run takes
 * an address of its own. So where the address is a proposal and the program has asked for the
 * device, the one that this process really has counts. */
static const char *addresses(char own[INET_ADDRSTRLEN + 4])
{
	const char *ip = secure_getenv("UWARP_IP"), *slash = ip ? strchr(ip, '/') : NULL;
	const char *proposed = secure_getenv("UWARP_IP_AUTO");
	struct uw_device_attr dev;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&dev.addr;
	int was;

	if (!ip || !proposed || strcmp(proposed, "1") || !loader_is_open())
		return ip ? ip : "";
	was = cancel_off();
	if (loader_device_settled(&dev) && in->sin_family == AF_INET &&
	    inet_ntop(AF_INET, &in->sin_addr, own, INET_ADDRSTRLEN)) {
		strncat(own, slash ? slash : "", 3);
		ip = own;
	}
	cancel_restore(was);
	return ip;
}

/* An interface of Ethernet broadcasts, and a program may copy its broadcast address unseen (CCI).
 */
static struct ifaddrs interface_of(struct entry *e, struct entry *next)
{
	struct ifaddrs ifa = { .ifa_next = next ? &next->ifa : NULL,
			       .ifa_name = own_name,
			       .ifa_flags = IFF_UP | IFF_BROADCAST | IFF_RUNNING,
			       .ifa_addr = (struct sockaddr *)&e->addr,
			       .ifa_netmask = (struct sockaddr *)&e->mask };

	if (e->broad.sin_family)
		ifa.ifa_broadaddr = (struct sockaddr *)&e->broad;
	return ifa;
}

/* *own: NULL if there is none. False: no memory. */
static bool make_entries(struct ifaddrs **own)
{
	char text[INET_ADDRSTRLEN + 4];
	const char *ip = addresses(text);
	char *list = strdup(ip), *rest = list, *one;
	struct entry *v = calloc(MAX, sizeof(*v));
	unsigned n = 0;
	bool ok;

	while (v && list && n < MAX && (one = strsep(&rest, ",")) && parse(one, &v[n]))
		n++;
	if (v)
		n = add_made(v, n);
	for (unsigned i = 0; i < n; i++)
		v[i].ifa = interface_of(&v[i], i + 1 < n ? &v[i + 1] : NULL);
	ok = v && list;
	*own = n ? &v->ifa : NULL;
	if (!n)
		free(v);
	free(list);
	return ok;
}

EXPORT int getifaddrs(struct ifaddrs **list)
{
	struct ifaddrs **end = list, *own;

	if (next_fn()->getifaddrs(list))
		return -1;
	if (!make_entries(&own)) {
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
	*p = NULL;
	next_fn()->freeifaddrs(list);
	free(own);
}
