/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a packet link; private to this folder. */
#ifndef UWARP_IO_PACKET_LINK_H
#define UWARP_IO_PACKET_LINK_H

#include <sys/types.h>

#include "base/said.h"
#include "io/packet/big_tcp.h"
#include "io/packet/frames.h"
#include "io/packet/held_ports.h"
#include "io/packet/ingress.h"
#include "io/packet/interface.h"
#include "io/packet/lo.h"
#include "io/packet/roce_port.h"
#include "io/packet/rx_ring.h"

/* Of a receive ring: 1,036 slots, as many frames as a few peers have under way (ADR 24). */
#define PACKET_BLOCKS 74u

/* A packet socket and what comes from it. */
struct packet_socket {
	int fd;
	struct rx_ring ring;
	struct big_tcp big; /* came before what is in the ring */
};

static inline bool packet_socket_any(const struct packet_socket *s)
{
	return big_tcp_any(&s->big) || rx_ring_any(&s->ring);
}

/* All fields are under the stack lock unless their comment says otherwise. */
struct packet_link {
	struct io_link l; /* first: an io_link * is a packet_link * */
	struct packet_socket wire;
	struct packet_socket local; /* on lo, for processes of this host; fd -1: none */
	struct lo lo;		    /* ... and for the kernel's programs */
	_Atomic int bell; /* an eventfd that ends a sleep; any thread may ring it; -1: lost */
	bool lost;	  /* the program has closed a socket; of link_sleep alone */
	int wait_fd;	  /* ... that ends the wait of a thread of the program (IO_WAITS) */
	pid_t pid;	  /* the process that opened the link; a forked child leaves it alone */
	struct interface interface;
	struct frames frames;
	bool merges;	  /* send segments merged */
	unsigned refused; /* number of merged frames in a row that the kernel refused */
	uint8_t tag[4];	  /* IEEE 802.1Q: what comes behind the MACs of a sent frame ... */
	unsigned tag_len; /* ... octets of it: 4 or 0 */
	/* Of IPv4 (l.flags has IO_SHARED) and of IPv6 (IO_SHARED6). */
	struct held_ports ports, ports6;
	pthread_mutex_t ports_lock;
	struct ingress ingress; /* under ports_lock */
	/* sockets of the kernel's, members of our multicast groups, IPv4's and IPv6's; -1: none yet
	 */
	int members, members6;
	_Atomic bool groups, groups6; /* the filter lets packets to such groups through */
	struct roce_port roce;	      /* of the shared addresses */
	_Atomic uint32_t doorbell;
	struct said said; /* link_reaches; any thread */
};

static inline bool packet_shares(const struct packet_link *p)
{
	return io_shared_versions(&p->l);
}

static inline struct packet_link *packet_link_of(const struct io_link *l)
{
	return (struct packet_link *)(uintptr_t)l;
}

/* receive.c, send.c: rx and tx of struct io_ops. */
unsigned packet_rx(struct io_link *l, struct io_frame **v, unsigned n);
unsigned packet_tx(struct io_link *l, struct io_frame **v, unsigned n);

#endif
