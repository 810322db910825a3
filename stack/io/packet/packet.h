/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet link: a kernel interface through a packet socket with virtio-net headers
 * (PACKET_VNET_HDR, packet(7)). The kernel merges received segments and cuts sent ones, and its
 * drivers compute checksums, so one system call carries up to 64 KiB of TCP payload (doc/adr/0024).
 *
 * The link's IPv4 address is either one that the kernel does not have, or the interface's own,
 * which is then shared with the kernel: the link receives TCP only for ports that it has claimed
 * (claim_port), and the kernel handles everything else.
 */
#ifndef UWARP_IO_PACKET_PACKET_H
#define UWARP_IO_PACKET_PACKET_H

#include "io/io.h"

struct packet_config {
	const char *interface;
	/* Network order. 0: the interface's own address, shared with the kernel. */
	uint32_t addr, mask;
	const struct uw_net *ip6; /* n_ip6 addresses, beside those that io_set_ip6 makes */
	unsigned n_ip6;
	unsigned mtu; /* IP octets per frame; 0: the interface's */
	/* IEEE 802.1Q: send all frames in this VLAN and receive those of it; needs an address of
	 * our own. 0: without a tag. */
	uint16_t vlan;
	bool no_tso;  /* send every segment by itself */
	bool verbose; /* print to stderr what was chosen */
};

/* Needs CAP_NET_RAW, and CAP_NET_ADMIN to share an address. UW_E_NO_LINK, UW_E_PERM, UW_E_INVAL,
 * UW_E_NOMEM; one line on stderr names the cause. */
UW_CHECK uw_status packet_link_open(const struct packet_config *cfg, const struct io_env *env,
				    struct io_link **out);

/* Set the MTU and the speed that a link on this interface will have. No such interface: they stay,
 * and nothing is said. */
void packet_foresee(const char *interface, unsigned mtu, struct io_link *l);

/* The interface in a link's name: "packet:IF", or IF if there is such an interface. NULL: the name
 * means another kind of link. */
const char *packet_interface(const char *link);

#endif
