/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listener accepts connections on a port. A listener has a part on every stack of the process,
 * since a connection belongs to the stack on whose queue its SYN comes. Under the locks of all
 * stacks; a part's own stack may read the listener under its lock alone.
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
	struct listener *next; /* next in conn_domain.listeners */
	/* A Request came on c, which the callee owns from now on. Under the lock of c's stack. */
	void (*requested)(struct listener *ls, struct conn *c, struct uw_cm_event *ev);
	void *ctx;	  /* for the callee */
	bool cm_less;	  /* for CM-less RC */
	unsigned rc_port; /* then: the port, in host order; */
	bool asked;	  /* questions for the port of a QP reach us */
	uint8_t tos;	  /* DS field of its connections, as llp_ops.set_tos */
	unsigned n_parts;
	struct listener_part part[UW_STACKS_MAX];
};

enum listener_stacks { LISTENER_ON_ALL, LISTENER_AT_HOME };

/* Listen on `link` of stack `home`, and with LISTENER_ON_ALL on the same link of all other stacks.
 * The caller has filled in ls except its parts. On an error nothing listens: UW_E_ADDR_IN_USE,
 * UW_E_NOMEM. */
uw_status listener_start(struct listener *ls, struct stack *home, struct io_link *link,
			 const struct llp_place *at, int backlog,
			 enum listener_stacks stacks) UW_CHECK;
/* Stop listening, and drop connections that have no Request yet. Other connections lose their
 * pointer to the listener. */
void listener_stop(struct listener *ls);
/* Stop the TCP listeners of a stack that ends. */
void listeners_stop(struct stack *s);

#endif
