/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2's UDP port on addresses that the kernel has too: for each address a kernel socket behind a
 * filter that drops every packet, so that the kernel answers none. Under a lock of the caller's.
 */
#ifndef UWARP_IO_PACKET_ROCE_PORT_H
#define UWARP_IO_PACKET_ROCE_PORT_H

#include "base/status.h"
#include "io/packet/held_ports.h"

struct roce_port {
	int fd[1 + IO_IP6_MAX];
	unsigned n; /* 0: not held */
};

/* At the addresses of IPv4 and of IPv6 (NULL: none); those that the interface has lost are passed
 * over. May be called again. UW_E_ADDR_IN_USE, UW_E_ADDR (all are lost), UW_E_PERM, UW_E_NOMEM: not
 * held anywhere, with a line on stderr that names the interface. */
UW_CHECK uw_status roce_port_hold(struct roce_port *r, const struct held_at *four,
				  const struct held_at *six, const char *interface);
void roce_port_release(struct roce_port *r);

#endif
