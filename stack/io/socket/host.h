/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's network as a link: the link has an address and an MTU, and carries no frames. */
#ifndef UWARP_SOCKET_HOST_H
#define UWARP_SOCKET_HOST_H

#include "io/io.h"

struct host_config {
	uint32_t addr, mask; /* network order */
	uint32_t mtu;	     /* limits the segment size; 0: no limit of ours */
	/* the user did not ask for addr: if another process uses addr, choose a free address in
	 * 127.0.0.0/8 */
	bool addr_auto;
};

/* UW_E_ADDR: addr is no address of this host. UW_E_NOMEM, UW_E_IO. */
uw_status host_link_open(const struct host_config *cfg, const struct io_env *env,
			 struct io_link **out) UW_CHECK;
/* Set the MTU and the speed that host_link_open(cfg) will set. */
void host_foresee(const struct host_config *cfg, struct io_link *l);
/* The largest segment that host_config.mtu allows; 0: no limit. */
uint32_t host_link_mss(const struct io_link *l);

#endif
