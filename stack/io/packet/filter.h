/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket filter (classic BPF) of a packet link: which frames the kernel hands to it. It spares
 * work; what matters is decided again where frames are received. */
#ifndef UWARP_IO_PACKET_FILTER_H
#define UWARP_IO_PACKET_FILTER_H

#include <linux/filter.h>

#include "io/io.h"

#define FILTER_PORTS 64u /* with more ports, all TCP to the address comes */
#define FILTER_MAX   (64u + FILTER_PORTS)

struct filter_ask {
	uint32_t addr; /* IPv4, network order; 0: none */
	/* Shared with the kernel: of IPv4 only ARP replies and TCP to these ports come. Else all
	 * ARP, ICMP and TCP. */
	bool shared;
	const uint16_t *ports; /* network order */
	unsigned n_ports;
	const struct uw_net *ip6; /* TCP and ICMPv6 to these, and asking for them */
	unsigned n_ip6;
};

/* Writes the program to `out`, FILTER_MAX instructions at most; returns their number. */
unsigned filter_make(const struct filter_ask *a, struct sock_filter *out);

#endif
