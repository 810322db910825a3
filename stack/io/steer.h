/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link filters (link_filter.h) for several stacks on one port (doc/adr/0016). Each stack uses one
 * queue of the port under its own lock. The port chooses the queue of each connection, and it may
 * not be the queue of the stack that has the connection. Then the filter hands the frame to that
 * stack:
 *
 * - A connection that comes in belongs to the stack on whose queue its first frame came.
 * - A connection that a stack opened belongs to that stack, by its local port (steer_port).
 * - Answers of address resolution (ARP, ND) and announcements are copied to all stacks.
 * - An ICMP error goes to the stack with the local port that it quotes, and to all stacks if the
 *   port belongs to none. Copies are marked IO_FRAME_COPY.
 * - Anything else is the first stack's.
 */
#ifndef UWARP_IO_STEER_H
#define UWARP_IO_STEER_H

#include "io/io.h"

#define STEER_MAX 8u
/* the port belongs to no stack: a frame is for the stack on whose queue the frame came */
#define STEER_ANY 0xffu

enum steer_ip { STEER_IP4, STEER_IP6, STEER_IPS };

/* Which stack each local port belongs to; STEER_ANY: see above. The index is the port in network
 * order. All links of a process share this table. */
struct steer_ports {
	_Atomic uint8_t owner[STEER_IPS][65536];
};

struct steer_config {
	struct io_link *const *under; /* n links; closing a filter closes the link below it */
	unsigned n;		      /* number of stacks, 2..STEER_MAX */
	/* Called with arg[i], without a lock: a frame was handed to stack i. */
	void (*wake)(void *arg);
	void *const *arg; /* n arguments of wake(), one for each stack */
	const struct steer_ports *ports;
};

/* A new table in which all ports belong to STEER_ANY. NULL: no memory. The caller frees the table
 * with free(). */
struct steer_ports *steer_ports_new(void);

/* Put filters above the n links in c->under; out[i] is used under the lock of stack i. UW_E_NOMEM:
 * the links below stay the caller's. */
uw_status steer_open(const struct steer_config *c, struct io_link **out) UW_CHECK;

/* Any thread: give a local port (network order) to a stack, or to STEER_ANY. */
void steer_port(struct steer_ports *p, enum steer_ip v, uint16_t port, uint8_t to);

/* Drop the frames that were handed to this link and not received. Call it for each link when no
 * stack uses them any more, before the first is closed. */
void steer_stop(struct io_link *l);

#endif
