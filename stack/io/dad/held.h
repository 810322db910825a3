/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process of this machine has an address for itself: two on one interface do not hear each
 * other's frames, so dad.h does not find them. A name of an abstract UNIX socket, which the kernel
 * gives to one process of the network namespace and takes back when that has ended. */
#ifndef UWARP_IO_DAD_HELD_H
#define UWARP_IO_DAD_HELD_H

#include "base/ip.h"
#include "io/io.h"

/* Of one address each. */
struct held {
	unsigned n;
	int fd[1 + IO_IP6_MAX];
};

struct held_by {
	struct uw_ip ip;
	int pid; /* 0: nobody could tell */
};

/* Takes the addresses of the link that are neither the kernel's nor made from one of the kernel's.
 * False: another process has one of them; *h is empty. What cannot be asked is not held. */
bool held_take(struct held *h, const struct io_link *l, uint32_t ifindex, uint32_t vlan,
	       struct held_by *who);
void held_drop(struct held *h);

#endif
