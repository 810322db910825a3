/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket filter (classic BPF) of a packet link: which frames the kernel hands to the socket.
 * The filter only saves work; the receive path decides again. */
#ifndef UWARP_IO_PACKET_FILTER_H
#define UWARP_IO_PACKET_FILTER_H

#include <linux/filter.h>

#include "io/io.h"

#define ROCE_PORT    4791u /* UDP */
#define FILTER_PORTS 64u   /* with more ports the filter passes all TCP to the address */
#define FILTER_MAX   (100u + 2 * FILTER_PORTS) /* jumps reach 255 instructions */

struct filter_ask {
	uint32_t addr; /* IPv4, network order; 0: none */
	/* The kernel has the IPv4 address too: of IPv4, pass only ARP replies, ICMP errors
	 * (destination unreachable), TCP to `ports`, and RoCEv2 (UDP port 4791). Else pass all ARP,
	 * and TCP, ICMP and RoCEv2 to the address. */
	bool shared;
	uint16_t vlan; /* frames of this VLAN alone; 0: those without a tag */
	/* The interface is lo: frames from processes on the same interface, which have its MAC, and
	 * to a shared address from the kernel's programs, which have none. Nobody else answers
	 * requests for the address there. What a process sends to all it hears itself: not its own
	 * probes (RFC 5227 §2.1, RFC 4862 §5.4). */
	bool local;
	uint8_t mac[6]; /* of `local` */
	/* RoCEv2 to multicast groups of IPv4, and of IPv6, too: whichever the interface lets
	 * through */
	bool groups, groups6;
	struct filter_ports {
		const uint16_t *at; /* network order */
		unsigned n;
	} ports, ports6;
	/* pass TCP, RoCEv2, ICMPv6 and neighbor solicitations for these addresses, and to all nodes
	 */
	const struct uw_net *ip6;
	unsigned n_ip6;
	/* The kernel has the IPv6 addresses too: pass only neighbor advertisements, errors, TCP to
	 * `ports6`, and RoCEv2. */
	bool shared6;
};

/* Writes the program to `out`, FILTER_MAX instructions at most; returns their number. */
unsigned filter_make(const struct filter_ask *a, struct sock_filter *out);

#endif
