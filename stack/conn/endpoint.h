/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint: what a TCP socket is below a rdma_cm_id. It is bound to an address, and then either
 * listens or has one connection. Under the locks of all stacks, but for what its line says.
 */
#ifndef UWARP_CONN_ENDPOINT_H
#define UWARP_CONN_ENDPOINT_H

#include "conn/conn.h"
#include "conn/listener.h"

enum ep_state {
	EP_IDLE,
	EP_BOUND,	/* has a local address and a port */
	EP_RESOLVED,	/* the way to the peer is known */
	EP_NO_PEER_YET, /* ... no process had that address: look again when connecting */
	EP_LISTENING,	/* has a listener */
	EP_HAS_CONN,	/* has a connection, whose state says the rest */
	EP_STATES
};

struct uw_ep {
	struct stack *stack;	   /* changes before it has a connection */
	uint8_t state;		   /* enum ep_state */
	struct conn *conn;	   /* EP_HAS_CONN */
	struct listener *listener; /* EP_LISTENING */
	uw_cm_event_fn *fn;
	void *ctx;
	bool owned; /* the program knows it: events go out. Read under its stack's lock */
	struct uw_ep *next, **link;	      /* conn_domain.eps */
	struct uw_ep *port_next, **port_link; /* ports.holders; port_link NULL: it has no port */
	struct io_link *l;
	struct uw_ip local, remote;
	struct uw_ip asked;    /* the destination as the program named it */
	uint16_t lport, rport; /* network order */
	bool share_port;       /* with others that do */
	bool only6;	       /* :: does not stand for 0.0.0.0 as well */
	bool claimed;	       /* the link tells other processes that we listen on the port */
	uint8_t tos;
};

struct uw_ep *ep_new(struct conn_domain *d, struct stack *s);
/* Its connection or listener ends; no event any more. */
void ep_free(struct uw_ep *ep);
bool ep_may_enter(enum ep_state from, enum ep_state to);

/* Any address, or a loopback one: all that a link has. */
bool ep_means_all(const struct uw_ip *a);
/* UW_E_AFAMILY. port in network order. */
uw_status ep_read_addr(const struct sockaddr *sa, struct uw_ip *addr, uint16_t *port) UW_CHECK;
/* The link that has this address. */
bool ep_find_link(const struct stack *s, const struct uw_ip *addr, struct io_link **l);
/* The address of ours to speak to `to` from, if the program asked for `from`. */
uw_status ep_local_for(const struct io_link *l, const struct uw_ip *from, const struct uw_ip *to,
		       struct uw_ip *out) UW_CHECK;
/* No lock held; may block. As io_ops.resolve. */
uw_status ep_find_way(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms);

/* What uw_ep_create does once the engine has started. */
int ep_create(struct conn_domain *d, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out);

#endif
