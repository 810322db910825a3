/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose frames are whose: in front of the links of one port, each of which a stack of its own uses
 * under its own lock (doc/adr/0016). The port spreads connections over its queues as it likes.
 * Those that come in belong to the stack on whose queue they came; those that a stack has begun
 * belong to it, and so do all segments to a port that was given to it: what comes on another's
 * queue is handed over. Address resolution concerns all: its answers are copied.
 */
#ifndef UWARP_IO_STEER_H
#define UWARP_IO_STEER_H

#include "io/io.h"

#define STEER_MAX 8u
#define STEER_ANY 0xffu /* whoever's queue it comes on */

enum steer_ip { STEER_IP4, STEER_IP6, STEER_IPS };

/* Whose a local port is (network order): a stack's, or STEER_ANY. All links of a process share it.
 * A segment's connection is known by it. */
struct steer_ports {
	_Atomic uint8_t owner[STEER_IPS][65536];
};

struct steer_config {
	struct io_link *const *under; /* n links; close() of ours closes them */
	unsigned n;		      /* 2..STEER_MAX */
	/* No lock needed: stack i has got a frame. */
	void (*wake)(void *arg);
	void *const *arg; /* n, one of each stack */
	const struct steer_ports *ports;
};

/* All ports are STEER_ANY's. NULL: no memory. free() ends it. */
struct steer_ports *steer_ports_new(void);

/* out: n links, the i-th to be used under the i-th stack's lock. UW_E_NOMEM (the links below stay
 * the caller's). */
uw_status steer_open(const struct steer_config *c, struct io_link **out) UW_CHECK;

/* Any thread: segments to this local port go to that stack, or STEER_ANY. */
void steer_port(struct steer_ports *p, enum steer_ip v, uint16_t port, uint8_t to);

/* One of ours, before any is closed and when nobody uses them any more: what was handed over to it
 * and not taken is dropped. */
void steer_stop(struct io_link *l);

#endif
