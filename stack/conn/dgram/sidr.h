/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of datagrams (RDMA_PS_UDP, doc/adr/0039). They have no connection: one message on QP 1
 * asks which QP serves a port, and one answers (SIDR, IBA volume 1, §12.11). roce/mad.h knows the
 * messages; this folder finds the endpoint, and repeats what has no answer. On the first stack,
 * under its lock; functions that take an endpoint: under the locks of all stacks.
 */
#ifndef UWARP_CONN_DGRAM_SIDR_H
#define UWARP_CONN_DGRAM_SIDR_H

#include "conn/endpoint.h"
#include "roce/mad.h"
#include "roce/packet.h"

enum sidr_state {
	SIDR_ASKING, /* a request is sent, again and again until a reply comes */
	SIDR_ASKED,  /* a request came; the program has to answer */
	SIDR_OVER, /* asking: the outcome is told. Asked: `mad` is the answer, also for repetitions
		    */
};

/* What an endpoint has from connect or from a request on. */
struct sidr {
	struct sidr *next; /* stack.sidrs */
	struct uw_ep *ep;
	uint8_t state; /* enum sidr_state */
	bool passive;  /* a request made the endpoint */
	unsigned tries;
	uint64_t due_us, until_us; /* SIDR_ASKING: when to ask again, and when to give up */
	uint64_t tid;
	uint32_t request_id;
	uint8_t mad[MAD_SIZE]; /* what was sent last; SIDR_ASKED: the request */
};

enum mad_for {
	MAD_FOR_US,	/* somebody of this process asked for it, or will answer it */
	MAD_FOR_OTHERS, /* nobody did or will */
};

/* mad_send.c: send a management datagram. False: the link has no room. */
bool mad_send(struct stack *s, struct io_link *l, const struct roce_path *path,
	      const uint8_t mad[MAD_SIZE], enum mad_for whom);

/* mad_receive.c: a packet to QP 1 of the link. */
void mad_packet(struct stack *s, struct io_link *l, const struct roce_packet *p);

/* What came to QP 1: a request for the QP of a port, and a reply. */
void sidr_request(struct stack *s, struct io_link *l, const struct roce_packet *p,
		  const struct mad *m);
void sidr_reply(struct stack *s, const struct roce_packet *p, const struct mad *m);
/* Ask again what has no answer. */
void sidr_timers(struct stack *s, uint64_t now_us);
/* When to call sidr_timers; UINT64_MAX: not needed. */
uint64_t sidr_next_us(const struct stack *s);

/* The endpoint listens from now on: its part of uw_ep_listen. sidr_unlisten: no more, if it did. */
uw_status sidr_listen(struct uw_ep *ep) UW_CHECK;
void sidr_unlisten(struct uw_ep *ep);

/* The parts of uw_ep_connect, uw_ep_accept and uw_ep_reject for datagrams. UW_E_STATE, UW_E_NOMEM,
 * UW_E_INVAL: too much private data. why: the peer could not be found; an event tells. */
uw_status sidr_connect(struct uw_ep *ep, const struct uw_cm_param *p, uw_status why) UW_CHECK;
uw_status sidr_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p) UW_CHECK;
uw_status sidr_reject(struct uw_ep *ep, const struct uw_cm_param *p) UW_CHECK;

/* The port of a datagram endpoint that has an address; 0: any free one. UW_E_ADDR_IN_USE. */
uw_status sidr_take_port(struct uw_ep *ep, uint16_t port_be) UW_CHECK;

#endif
