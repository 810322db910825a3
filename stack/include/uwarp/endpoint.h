/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: what rdma_cm needs (RFC 5044 §7, RFC 6581); conventions are in uwarp.h. */
#ifndef UWARP_ENDPOINT_H
#define UWARP_ENDPOINT_H

#include "uwarp/config.h"

enum uw_cm_event_type {
	/* on a listener: ev->ep is the new endpoint, which the callee must destroy if it takes it
	 */
	UW_CM_CONNECT_REQUEST,
	/* on both sides; on the connecting side, param has the values of the peer */
	UW_CM_ESTABLISHED,
	UW_CM_REJECTED,	   /* the program of the peer rejected; param has the private data */
	UW_CM_REFUSED,	   /* TCP refused: nobody listens on that port */
	UW_CM_UNREACHABLE, /* no route, no such peer, or no answer in time */
	/* MPA start-up failed: the peer does not speak MPA, or violated MPA */
	UW_CM_CONNECT_ERROR,
	UW_CM_DISCONNECTED, /* an established connection ended, whoever ended it */
};

struct uw_cm_param {
	const void *private_data; /* valid during the call or callback only */
	uint16_t private_data_len;
	/* responder resources: most inbound Reads and atomics in flight (IRD, RFC 6581 §9.1) */
	uint16_t ird;
	uint16_t ord; /* initiator depth: most outbound Reads and atomics in flight (ORD) */
	/* datagrams: the QP number and Q_Key of the peer, in ESTABLISHED; the own Q_Key, for
	 * uw_ep_accept, 0: UW_UD_QKEY */
	uint32_t qpn, qkey;
	/* datagrams, in ESTABLISHED: the addresses of both ends, IPv4 as ::ffff:a.b.c.d */
	uint8_t own_gid[16], peer_gid[16];
	/* A Send that finds no receive on this side waits without a limit, as with an RNR retry
	 * count of 7. */
	bool rnr_for_ever;
};

struct uw_cm_event {
	enum uw_cm_event_type type;
	/* negative errno for the failures, else 0; datagrams: or the status of the peer's reply,
	 * above 0 (IBA volume 1, §12.11.2.1) */
	int error;
	struct uw_ep *ep; /* UW_CM_CONNECT_REQUEST: the new endpoint */
	struct uw_cm_param param;
	struct uw_stack *stack; /* argument for uw_later() */
};

/* Events of an endpoint come in the order in which they happened. ctx is that of the endpoint.
 * False: the callee does not take the CONNECT_REQUEST: the peer is rejected, and the new endpoint
 * is no more. Of other events the result means nothing. */
typedef bool uw_cm_event_fn(void *ctx, const struct uw_cm_event *ev);

/* Within a callback: call fn(arg) as soon as the stack lock is released. Use this to wake a thread:
 * a thread woken earlier would run on this core and then wait for the lock. fn must not call the
 * stack. False: too many calls are deferred already; fn will not be called. */
bool uw_later(struct uw_stack *stack, void (*fn)(void *arg), void *arg);

/* An endpoint corresponds to a rdma_cm_id, as a socket does in TCP. Starts the engine. */
int uw_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out);
/* Make an endpoint that has no address yet one of datagrams (RDMA_PS_UDP, doc/adr/0039). Its ports
 * are apart from TCP's. Connecting asks the peer which QP serves the port (SIDR), and ESTABLISHED
 * brings its number and Q_Key; there is no connection, and no QP changes. Accepting tells them to
 * the peer, without an event. -EOPNOTSUPP: as for a QP of UD, with a line on stderr. */
int uw_ep_set_datagrams(struct uw_ep *ep);
#define UW_UD_QKEY 0x01234567u /* the Q_Key that rdma_cm gives to QPs of datagrams */
/* Set the context of an endpoint that came with CONNECT_REQUEST. Its events are reported from then
 * on. */
void uw_ep_set_ctx(struct uw_ep *ep, void *ctx);
/* Bind to a local address; port 0 = any free one. Wildcards and loopback addresses stand for the
 * addresses of this engine: 0.0.0.0 and 127.0.0.1 for the IPv4 address, ::1 for the IPv6 ones, ::
 * for both (see uw_ep_only6). -EADDRINUSE, -EADDRNOTAVAIL, -EAFNOSUPPORT, -EINVAL (bound already).
 */
int uw_ep_bind(struct uw_ep *ep, const struct sockaddr *addr);
/* Before bind: share the local port with other endpoints that have this set, as long as none
 * listens (SO_REUSEADDR, RDMA_OPTION_ID_REUSEADDR). -EINVAL: the endpoint has a port already. */
int uw_ep_share_port(struct uw_ep *ep, bool on);
/* Before listen: :: stands for IPv6 alone (IPV6_V6ONLY, RDMA_OPTION_ID_AFONLY). -EINVAL after that.
 */
int uw_ep_only6(struct uw_ep *ep, bool on);
/* Set the DS field (IPv4) or traffic class (IPv6) of the packets of the connection
 * (RDMA_OPTION_ID_TOS); the lower two bits belong to ECN and count as 0. Call this before connect,
 * listen or accept; a later call has no effect. Endpoints of CONNECT_REQUESTs begin with the value
 * of the listener, which also holds for the SYN-ACK. Initially 0. */
void uw_ep_set_tos(struct uw_ep *ep, uint8_t tos);
/* Resolve dst, joining a peer process if necessary (blocks for at most timeout_ms), and choose the
 * local address. src NULL: any; an endpoint that is not bound takes its port, 0: any that is free.
 * -EADDRINUSE: it is taken. With a timeout of 0 the call does not block: -EAGAIN, the answer is not
 * known yet. -EHOSTUNREACH, -ETIMEDOUT, -EAFNOSUPPORT. */
int uw_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		  unsigned timeout_ms);
/* Listen, also on an endpoint that is not bound. -EADDRINUSE: another process listens on the port
 * (a line on stderr), or another endpoint does; -EINVAL: wrong state; -ENOMEM. */
int uw_ep_listen(struct uw_ep *ep, int backlog);
/* Connect QP number qpn to the resolved destination; the outcome is an event. -ENOENT no such QP of
 * RC, -EINVAL wrong state or private data longer than 508 (rev 2) or 512 octets (rev 1). */
int uw_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);
/* Answer a CONNECT_REQUEST. -EINVAL: there is none, or too much private data (uw_ep_connect);
 * -ENOENT: no such QP; -ECONNRESET: the peer has given up. */
int uw_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);
int uw_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p);
/* Close the connection after all posted requests were sent; DISCONNECTED follows. -ENOTCONN. */
int uw_ep_disconnect(struct uw_ep *ep);
/* Destroy the endpoint; no event is delivered after return. A listener drops connections that have
 * no Request yet; a live connection is closed and its QP goes to error. */
void uw_ep_destroy(struct uw_ep *ep);
void uw_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a);
void uw_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a);
/* The peer's address as a GID, as it was found for the one that the program asked for. */
void uw_ep_peer_gid(const struct uw_ep *ep, uint8_t gid[16]);

#endif
