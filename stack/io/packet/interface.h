/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about an interface, and a packet socket on it. Errors are said in one line
 * on stderr. */
#ifndef UWARP_IO_PACKET_INTERFACE_H
#define UWARP_IO_PACKET_INTERFACE_H

#include "io/io.h"

/* The command that grants what a packet link needs. File capabilities do not do: the loader would
 * ignore LD_PRELOAD. */
#define INTERFACE_GRANT                                                                            \
	"setpriv --reuid=USER --init-groups --inh-caps=+net_raw,+net_admin "                       \
	"--ambient-caps=+net_raw,+net_admin uwarp-run ..."

struct interface {
	char name[16]; /* IF_NAMESIZE */
	int index;
	unsigned mtu; /* IP octets */
	uint8_t mac[6];
	uint32_t addr, mask; /* IPv4, network order; 0: it has none */
	uint64_t bps;	     /* 0: unknown */
};

/* UW_E_NO_LINK if there is no such interface, if it is down, or no Ethernet. */
UW_CHECK uw_status interface_read(const char *name, struct interface *out);

/* Has the kernel this IPv4 address, on whichever interface? */
bool interface_kernel_has(uint32_t addr);

/* A packet socket that receives nothing before interface_bind(), each frame behind a
 * struct virtio_net_hdr; in *fd. UW_E_PERM without CAP_NET_RAW. */
UW_CHECK uw_status interface_socket(const struct interface *i, int *fd);

/* Let frames of this Ethernet multicast address through the device's filter. */
void interface_join(const struct interface *i, int fd, const uint8_t mac[6]);

/* From now on it receives. */
UW_CHECK uw_status interface_bind(const struct interface *i, int fd);

#endif
