/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: what rdma_cm needs (RFC 5044 §7, RFC 6581); conventions are in uwarp.h. */
#ifndef UWARP_ENDPOINT_H
#define UWARP_ENDPOINT_H

#include "uwarp/config.h"

enum uw_cm_event_type {
	UW_CM_CONNECT_REQUEST, /* on a listener: ev->ep is the new endpoint, owned by the callee */
	UW_CM_ESTABLISHED,     /* both sides; param = the peer's, on the connecting side */
	UW_CM_REJECTED,	       /* by the peer's program; param has its private data */
	UW_CM_REFUSED,	       /* TCP refused: nobody listens on that port */
	UW_CM_UNREACHABLE,     /* no route, no such peer, or no answer in time */
	UW_CM_CONNECT_ERROR,   /* start-up failed: the peer does not speak MPA, or broke it */
	UW_CM_DISCONNECTED,    /* an established connection ended, whoever ended it */
};

struct uw_cm_param {
	const void *private_data; /* valid during the call only */
	uint16_t private_data_len;
	uint16_t ird; /* responder resources: what this side answers (RFC 6581 §9.1 IRD) */
	uint16_t ord; /* initiator depth: what this side asks */
	/* A Send that finds no receive here waits without a limit, as an RNR retry count of 7 says.
	 */
	bool rnr_for_ever;
};

struct uw_cm_event {
	enum uw_cm_event_type type;
	int error;	  /* negative errno for the failures, else 0 */
	struct uw_ep *ep; /* UW_CM_CONNECT_REQUEST: the new endpoint */
	struct uw_cm_param param;
	struct uw_stack *stack; /* for uw_later() */
};

/* Called in the order in which things happened on each endpoint. `ctx` is the endpoint's. */
typedef void uw_cm_event_fn(void *ctx, const struct uw_cm_event *ev);

/* Within a callback: fn(arg) as soon as the stack lets its lock go, which it may have taken for
 * many events. A thread that is woken before that takes this very core, and then waits for the
 * lock. fn may call nothing of the stack. False: too many wait already. */
bool uw_later(struct uw_stack *stack, void (*fn)(void *arg), void *arg);

/* An endpoint is what a TCP socket is below a rdma_cm_id. Starts the engine's link. */
int uw_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out);
/* Give an endpoint that came with CONNECT_REQUEST its context. From then on it has its events. */
void uw_ep_set_ctx(struct uw_ep *ep, void *ctx);
/* Claim a local address; port 0 = any free one; wildcards, 127.0.0.1 and ::1 mean this engine's
 * addresses, :: those of IPv4 too (but: uw_ep_only6), 0.0.0.0 and 127.0.0.1 that of IPv4 alone.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EAFNOSUPPORT, -EINVAL (bound already). */
int uw_ep_bind(struct uw_ep *ep, const struct sockaddr *addr);
/* From bind on: share the local port with other endpoints that do, as long as none listens
 * (SO_REUSEADDR, RDMA_OPTION_ID_REUSEADDR). -EINVAL: it has a port already. */
int uw_ep_share_port(struct uw_ep *ep, bool on);
/* Until listen: its :: stands for IPv6 alone (IPV6_V6ONLY, RDMA_OPTION_ID_AFONLY). -EINVAL later.
 */
int uw_ep_only6(struct uw_ep *ep, bool on);
/* The DS field of every IPv4 packet that it sends, the traffic class of every IPv6 one
 * (RDMA_OPTION_ID_TOS); the lower two bits are ECN's and count as 0. Before connect, listen or
 * accept; later it has no effect. What a listener has when it begins to listen its
 * CONNECT_REQUESTs' endpoints have, from the SYN-ACK on. 0 at first. */
void uw_ep_set_tos(struct uw_ep *ep, uint8_t tos);
/* Find the way to dst, joining a peer process if need be (blocks, at most timeout_ms), and choose
 * the local address. With a timeout of 0 it does not block: -EAGAIN, it is not known yet.
 * -EHOSTUNREACH, -ETIMEDOUT, -EAFNOSUPPORT. */
int uw_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		  unsigned timeout_ms);
int uw_ep_listen(struct uw_ep *ep, int backlog);
/* Connect QP number qpn to the resolved destination; the outcome is an event. -ENOENT no such QP,
 * -EINVAL wrong state or private data longer than 508 (rev 2) or 512 octets (rev 1). */
int uw_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);
/* Answer a CONNECT_REQUEST. */
int uw_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);
int uw_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p);
/* End gracefully after what was posted has been sent; DISCONNECTED follows. -ENOTCONN. */
int uw_ep_disconnect(struct uw_ep *ep);
/* No event of this endpoint is delivered after return. A listener drops connections whose
 * Request is still to come; a live connection is closed and its QP goes to error. */
void uw_ep_destroy(struct uw_ep *ep);
void uw_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a);
void uw_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a);

#endif
