/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint corresponds to a rdma_cm_id, as a socket does in TCP. An endpoint is bound to an
 * address, and then either listens or has one connection. Fields and functions are under the locks
 * of all stacks unless their comment says otherwise.
 */
#ifndef UWARP_CONN_ENDPOINT_H
#define UWARP_CONN_ENDPOINT_H

#include "conn/conn.h"
#include "conn/listener.h"

struct sidr;

enum ep_state {
	EP_IDLE,
	EP_BOUND,    /* has a local address and port */
	EP_RESOLVED, /* the address to connect to is known */
	/* as EP_RESOLVED, but no process had the address: resolve again when connecting */
	EP_NO_PEER_YET,
	EP_LISTENING, /* has a listener */
	EP_HAS_CONN,  /* has a connection; conn.state says more */
	EP_HAS_SIDR, /* datagrams: asks or was asked which QP serves a port; sidr.state says more */
	EP_STATES
};

struct uw_ep {
	struct stack *stack;	   /* may change until there is a connection */
	uint8_t state;		   /* enum ep_state */
	struct conn *conn;	   /* EP_HAS_CONN */
	struct listener *listener; /* EP_LISTENING, but for datagrams */
	struct sidr *sidr;	   /* EP_HAS_SIDR */
	uw_cm_event_fn *fn;
	void *ctx;
	/* the program holds the endpoint, so events are reported. Read under the lock of its stack
	 */
	bool owned;
	struct uw_ep *next, **link; /* list: conn_domain.eps */
	/* list: conn_domain.servers; serve_link NULL: it does not listen for datagrams */
	struct uw_ep *serve_next, **serve_link;
	struct uw_ep *port_next, **port_link; /* list: ports.holders; port_link NULL: no port */
	struct io_link *l;
	uint32_t scope; /* of the link: the process may end, and l with it, when it is asked for */
	struct uw_ip local, remote;
	struct uw_ip asked;    /* the destination that the program asked for */
	uint16_t lport, rport; /* network order */
	uint8_t claims;	       /* versions of IP (enum io_versions) that ports.c claimed for it */
	bool share_port;       /* share the port with other endpoints that have this set */
	bool datagrams;	       /* RDMA_PS_UDP (dgram/sidr.h) */
	bool only6;	       /* listen on :: without 0.0.0.0 */
	/* the link tells other processes that we listen on the port, of these versions of IP */
	uint8_t claimed;
	uint8_t tos;
};

struct uw_ep *ep_new(struct conn_domain *d, struct stack *s);
/* Free ep; its connection or listener ends, and no event follows. */
void ep_free(struct uw_ep *ep);
bool ep_may_enter(enum ep_state from, enum ep_state to);

/* All that ep has of its link. */
static inline void ep_set_link(struct uw_ep *ep, struct io_link *l)
{
	ep->l = l;
	ep->scope = l->scope;
}

/* Is a the any address or a loopback address? Such an address stands for all addresses of a link.
 */
bool ep_means_all(const struct uw_ip *a);
/* Read an IPv4 or IPv6 socket address; port in network order. UW_E_AFAMILY: another family. */
uw_status ep_read_addr(const struct sockaddr *sa, struct uw_ip *addr, uint16_t *port) UW_CHECK;
/* Find the link that has this address; false: none. */
bool ep_find_link(const struct stack *s, const struct uw_ip *addr, struct io_link **l);
/* Choose the local address for the destination `to`, if the program asked for `from`. */
uw_status ep_local_for(const struct io_link *l, const struct uw_ip *from, const struct uw_ip *to,
		       struct uw_ip *out) UW_CHECK;
/* As stack_hold_links(), with no lock held. */
bool ep_hold_links(struct uw_ep *ep);
/* Calls io_ops.resolve. No lock held, but the links (stack_hold_links); may block. */
uw_status ep_find_way(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms);

/* The part of uw_ep_create after the start of the engine. */
int ep_create(struct conn_domain *d, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out);

#endif
