/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a packet link; private to this folder. */
#ifndef UWARP_IO_PACKET_LINK_H
#define UWARP_IO_PACKET_LINK_H

#include <sys/types.h>

#include "io/packet/frames.h"
#include "io/packet/held_ports.h"
#include "io/packet/interface.h"
#include "io/packet/lo.h"

/* All fields are under the stack lock unless their comment says otherwise. */
/* Room for the frames of one call of recvmmsg. A frame is written into a small one, and what does
 * not fit into that, into a large one behind the place where the small one's octets belong. */
#define PACKET_AT_ONCE 16u
struct packet_rx {
	struct io_frame *small[PACKET_AT_ONCE]; /* NULL: there was none to be had, ... */
	struct io_frame *large[PACKET_AT_ONCE]; /* ... then this one takes the frame alone */
	unsigned ask;				/* how many to ask for next */
};

struct packet_link {
	struct io_link l;    /* first: an io_link * is a packet_link * */
	int fd;		     /* the packet socket */
	int local;	     /* a packet socket on lo, for processes of this host; -1: none */
	unsigned local_turn; /* calls of rx() until lo is looked at; 0: each time, ... */
	unsigned local_calm; /* ... while this is not 0: looks since a frame came, backwards */
	struct lo lo;	     /* ... and for the kernel's programs */
	int bell;	     /* an eventfd that ends a sleep; any thread may write to it */
	pid_t pid;	     /* the process that opened the link; a forked child leaves it alone */
	struct interface interface;
	struct frames frames;
	struct packet_rx rx;
	bool merges;	  /* send segments merged */
	unsigned refused; /* number of merged frames in a row that the kernel refused */
	bool shared;	  /* the kernel has the IPv4 address too */
	uint8_t tag[4];	  /* IEEE 802.1Q: what comes behind the MACs of a sent frame ... */
	unsigned tag_len; /* ... octets of it: 4 or 0 */
	struct held_ports ports;
	int members; /* a socket of the kernel's, member of our multicast groups; -1: none yet */
	_Atomic bool groups; /* the filter lets packets to groups through */
	int deaf_udp;	     /* shared: holds RoCEv2's UDP port; -1: not yet */
	_Atomic uint32_t doorbell;
};

static inline struct packet_link *packet_link_of(const struct io_link *l)
{
	return (struct packet_link *)(uintptr_t)l;
}

/* receive.c, send.c: rx and tx of struct io_ops. */
unsigned packet_rx(struct io_link *l, struct io_frame **v, unsigned n);
unsigned packet_tx(struct io_link *l, struct io_frame **v, unsigned n);

#endif
