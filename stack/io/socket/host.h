/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's own network as a link: it has an address and an MTU, and no frames. */
#ifndef UWARP_SOCKET_HOST_H
#define UWARP_SOCKET_HOST_H

#include "io/io.h"

struct host_config {
	uint32_t addr, mask; /* network order */
	uint32_t mtu;	     /* no larger segments than fit it; 0: as the kernel has it */
	bool addr_auto; /* an address of 127.0.0.0/8 that was not asked for: unlike the others' */
};

/* UW_E_ADDR: no address of this host; UW_E_NOMEM, UW_E_IO. */
uw_status host_link_open(const struct host_config *cfg, const struct io_env *env,
			 struct io_link **out) UW_CHECK;
/* The largest segment that host_config.mtu allows; 0: no limit. */
uint32_t host_link_mss(const struct io_link *l);

#endif
