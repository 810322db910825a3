/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a network interface, and packet sockets on an interface. An error writes one line
 * to stderr. */
#ifndef UWARP_IO_PACKET_INTERFACE_H
#define UWARP_IO_PACKET_INTERFACE_H

#include "io/io.h"

/* The command that grants what a packet link needs. File capabilities do not help: with them the
 * loader ignores LD_PRELOAD. */
#define INTERFACE_GRANT                                                                            \
	"setpriv --reuid=USER --init-groups --inh-caps=+net_raw,+net_admin "                       \
	"--ambient-caps=+net_raw,+net_admin uwarp-run ..."

struct interface {
	char name[16]; /* IF_NAMESIZE */
	int index;
	unsigned mtu; /* IP octets */
	uint8_t mac[6];
	uint32_t addr, mask; /* IPv4, network order; 0: none */
	uint64_t bps;	     /* 0: unknown */
};

/* Read the properties of an interface. UW_E_NO_LINK: no such interface, or the interface is down or
 * no Ethernet. */
UW_CHECK uw_status interface_read(const char *name, struct interface *out);

/* Only its MTU and speed, and without a word. False: there is no such interface. */
bool interface_size(const char *name, struct interface *out);

/* The IPv6 addresses of an interface that may be shared, the link-local one first, max at most;
 * returns how many, 0 if it has no link-local one. While the kernel still asks whether another host
 * has one of them, waits for it, 3 s at most. */
unsigned interface_ip6(const struct interface *i, struct uw_net *out, unsigned max);
/* Is there an address of IPv6, but none that is link-local? One line on stderr says so. */
bool interface_lacks_link_local(const struct interface *i);

/* Does any interface of the kernel have this address? A link-local one of IPv6 is that of interface
 * `index`. */
bool interface_kernel_has(const struct uw_ip *ip, int index);

/* Open a packet socket in *fd. The socket receives nothing before interface_bind(); each frame
 * comes behind a struct virtio_net_hdr. UW_E_PERM without CAP_NET_RAW. */
UW_CHECK uw_status interface_socket(const struct interface *i, int *fd);

/* Let frames of this Ethernet multicast address through the device's filter. */
void interface_join(const struct interface *i, int fd, const uint8_t mac[6]);

/* The socket receives frames of the interface from now on. */
UW_CHECK uw_status interface_bind(const struct interface *i, int fd);

#endif
