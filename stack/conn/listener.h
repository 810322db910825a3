/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listener: connections that come in to a port. It has a part on every stack of the process,
 * since a connection belongs to the stack on whose queue its SYN comes. Under the locks of all
 * stacks, but for what a part's own stack reads.
 */
#ifndef UWARP_CONN_LISTENER_H
#define UWARP_CONN_LISTENER_H

#include "conn/stack.h"

struct listener;

struct listener_part {
	struct listener *listener;
	struct stack *stack;
	struct io_link *l;
	struct llp_listener *llp;
};

struct listener {
	struct listener *next; /* conn_domain.listeners */
	/* A Request came; its connection is the callee's. Under the lock of c's stack. */
	void (*requested)(struct listener *ls, struct conn *c, struct uw_cm_event *ev);
	void *ctx;    /* the callee's */
	bool cm_less; /* its connections are of CM-less RC */
	uint8_t tos;  /* of its connections, as llp_ops.set_tos */
	unsigned n_parts;
	struct listener_part part[UW_STACKS_MAX];
};

/* Listen on link number `link` of stack `home`, and on the same link of all others unless
 * `home_only`. ls is filled in but for its parts. UW_E_ADDR_IN_USE, UW_E_NOMEM: nothing listens. */
uw_status listener_start(struct listener *ls, struct stack *home, struct io_link *link,
			 const struct llp_place *at, int backlog, bool home_only) UW_CHECK;
/* Stop, and drop connections whose Request is still to come. Others forget their listener. */
void listener_stop(struct listener *ls);
/* The TCP listeners of one stack, when it ends. */
void listeners_stop(struct stack *s);

#endif
