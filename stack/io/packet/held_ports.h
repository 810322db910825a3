/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP ports that are ours on an address which the kernel has, too. Each is held by a kernel socket
 * that listens there behind a filter that drops all: the kernel then has an owner for our segments
 * and answers none with RST, and no other program can take the port. The sockets end with the
 * process. Needs CAP_NET_ADMIN: the kernel wants it for a filter on a TCP socket.
 *
 * Any thread; a lock inside.
 */
#ifndef UWARP_IO_PACKET_HELD_PORTS_H
#define UWARP_IO_PACKET_HELD_PORTS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct held_port;

struct held_ports {
	uint32_t addr; /* network order */
	pthread_mutex_t lock;
	/* Which ports are held, one bit each, by the port in host order. Read without the lock; a
	 * port's first segments come after its claim has returned. */
	_Atomic uint64_t bits[65536 / 64];
	/* Under the lock. */
	struct held_port *list;
	unsigned n;
	void (*changed)(void *arg); /* the ports are others now; under the lock */
	void *arg;
};

/* UW_E_PERM, said on stderr: a port cannot be held here. */
UW_CHECK uw_status held_ports_open(struct held_ports *p, uint32_t addr);
void held_ports_close(struct held_ports *p);

/* One more user of a port (network order). UW_E_ADDR_IN_USE: another program has it. */
UW_CHECK uw_status held_ports_claim(struct held_ports *p, uint16_t port);
/* One user less. Without any it is held for a while longer, since segments may come late; it is
 * given back at a later call of these two. */
void held_ports_release(struct held_ports *p, uint16_t port);

static inline bool held_ports_has(const struct held_ports *p, uint16_t port)
{
	unsigned at = ntohs(port);

	return atomic_load_explicit(&p->bits[at / 64], memory_order_relaxed) >> (at % 64) & 1;
}

/* Under the lock: the ports, network order, at most max of them; returns how many there are. */
unsigned held_ports_list(const struct held_ports *p, uint16_t *out, unsigned max);

#endif
