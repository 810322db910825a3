/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet link's own record; private to this folder. */
#ifndef UWARP_IO_PACKET_LINK_H
#define UWARP_IO_PACKET_LINK_H

#include <sys/types.h>

#include "io/packet/frames.h"
#include "io/packet/held_ports.h"
#include "io/packet/interface.h"

/* Under the stack lock but for what says otherwise. */
struct packet_link {
	struct io_link l; /* first: an io_link * is a packet_link * */
	int fd;		  /* the packet socket */
	int bell;	  /* an eventfd that ends a sleep; any thread */
	pid_t pid;	  /* whose it is: not a forked child's */
	struct interface interface;
	struct frames frames;
	struct io_frame *next; /* a large frame to receive into, NULL: take one */
	bool merges;	       /* segments go merged */
	unsigned refused;      /* merged frames in a row that the kernel did not take */
	bool shared;	       /* the kernel has the address, too */
	struct held_ports ports;
	_Atomic uint32_t doorbell;
};

static inline struct packet_link *packet_link_of(const struct io_link *l)
{
	return (struct packet_link *)(uintptr_t)l;
}

/* receive.c, send.c: as io_ops has them. */
unsigned packet_rx(struct io_link *l, struct io_frame **v, unsigned n);
unsigned packet_tx(struct io_link *l, struct io_frame **v, unsigned n);

#endif
